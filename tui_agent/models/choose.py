"""Which model a name stands for: `scripted:NAME` a scenario, anything else litellm in its host process.

Imports nothing heavy before it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tui_agent.models.protocol import Model

SCRIPTED = "scripted:"


class ModelSettings(Protocol):
    """The part of the settings that decides."""

    @property
    def model(self) -> str: ...
    @property
    def api_base(self) -> str | None: ...


def create_model(settings: ModelSettings) -> Model:
    """The model for the settings; it starts no process yet. Raises `ScenarioError` for a bad scenario."""
    if settings.model.startswith(SCRIPTED):
        from tui_agent.models.scripted import ScriptedModel, load_scenario

        return ScriptedModel(load_scenario(settings.model.removeprefix(SCRIPTED)))
    from tui_agent.models.hosted import HostedModel

    return HostedModel(api_base=settings.api_base)
