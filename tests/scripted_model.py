"""A scripted model of turns that a test writes down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tui_agent.models.scenario import Pace, Scenario
from tui_agent.models.scenario_checks import Table
from tui_agent.models.scenario_file import read_turns
from tui_agent.models.scripted import ScriptedModel


def scripted_model(
    turns: Iterable[Mapping[str, Any] | str], *, pace: float = 0.0, context_tokens: int | None = None
) -> ScriptedModel:
    """Turns are tables in the form of the data file, or mere texts."""
    tables = [
        Table({"text": turn} if isinstance(turn, str) else dict(turn), f"turns[{place}]")
        for place, turn in enumerate(turns)
    ]
    script = tuple(read_turns(tables, Pace()))
    return ScriptedModel(Scenario("turns", script, context_tokens=context_tokens), pace=pace)
