"""Which model a name means: `scripted:NAME` a scenario, anything else litellm in its host process.

The choice is made again for each call, so that a model can be changed in mid-session and a fallback be of another
kind. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tui_agent.models.protocol import Delta, Model, ModelRequest, Reply

SCRIPTED = "scripted:"


class ModelSettings(Protocol):
    """The part of the settings that decides."""

    @property
    def model(self) -> str: ...
    @property
    def api_base(self) -> str | None: ...


def create_model(settings: ModelSettings) -> ModelByName:
    """The model for the settings; it starts no process yet. Raises `ScenarioError` for a bad scenario."""
    return ModelByName(settings.model, settings.api_base)


class ModelByName:
    """A `Model` that hands each call to the one its name means, made when it is first needed."""

    def __init__(self, first: str, api_base: str | None = None) -> None:
        """`first` is the name to begin with. Raises `ScenarioError` when it is a scenario that cannot be used."""
        self._first = first
        self._api_base = api_base
        self._made: dict[str, Model] = {}
        if first.startswith(SCRIPTED):
            self.named(first)

    def named(self, name: str) -> Model:
        """The model for a name: one for each scenario, one host for all others. Raises `ScenarioError`."""
        key = name if name.startswith(SCRIPTED) else ""
        if key not in self._made:
            self._made[key] = _scripted(name) if key else _hosted(self._api_base)
        return self._made[key]

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        return self._or_fault(request.model).stream(request)

    async def start(self) -> None:
        """See `protocol.Model`."""
        await self._or_fault(self._first).start()

    async def context_tokens(self, model: str) -> int | None:
        """See `protocol.Model`."""
        from tui_agent.models.scenario_checks import ScenarioError

        try:
            return await self.named(model).context_tokens(model)
        except ScenarioError:
            return None

    async def close(self) -> None:
        """See `protocol.Model`."""
        import asyncio

        ended = await asyncio.gather(
            *(model.close() for model in self._made.values()), return_exceptions=True
        )
        for fault in ended:
            if fault is not None:
                raise fault

    def _or_fault(self, name: str) -> Model:
        from tui_agent.core.events import Fault, FaultKind
        from tui_agent.models.protocol import ModelFault
        from tui_agent.models.scenario_checks import ScenarioError

        try:
            return self.named(name)
        except ScenarioError as error:
            fault = Fault(kind=FaultKind.NOT_FOUND, message=str(error), advice="Choose another model.")
            raise ModelFault(fault) from error


def _scripted(name: str) -> Model:
    from tui_agent.models.scenario_file import load_scenario
    from tui_agent.models.scripted import ScriptedModel

    return ScriptedModel(load_scenario(name.removeprefix(SCRIPTED)))


def _hosted(api_base: str | None) -> Model:
    from tui_agent.models.hosted import HostedModel

    return HostedModel(api_base=api_base)
