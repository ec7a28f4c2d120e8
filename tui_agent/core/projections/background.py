"""Commands that run in the background, beside the run and beyond it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core import events
from tui_agent.core.evolve import evolve


@dataclass(frozen=True)
class BackgroundFacts:
    """Those that run, oldest first, by id; and how many were started in all."""

    running: dict[str, events.BackgroundStarted] = field(default_factory=dict)
    started: int = 0


def _started(facts: BackgroundFacts, event: events.BackgroundStarted) -> BackgroundFacts:
    return BackgroundFacts({**facts.running, event.id: event}, facts.started + 1)


def _ended(facts: BackgroundFacts, event: events.BackgroundEnded) -> BackgroundFacts:
    return evolve(facts, running={name: one for name, one in facts.running.items() if name != event.id})


HANDLERS: dict[type[events.Event], Callable[[BackgroundFacts, Any], BackgroundFacts]] = {
    events.BackgroundStarted: _started,
    events.BackgroundEnded: _ended,
}


def lost(facts: BackgroundFacts) -> list[events.BackgroundEnded]:
    """Events to record about commands that a process took with it when it ended."""
    return [
        events.BackgroundEnded(
            id=one.id, command=one.command, how="process_ended", output_file=one.output_file
        )
        for one in facts.running.values()
    ]


def in_words(event: events.BackgroundEnded) -> str:
    """The end of a command."""
    match event.how:
        case "exited":
            code = "an unknown exit code" if event.code is None else f"exit code {event.code}"
            return f"ended with {code} after {event.duration:.0f} s"
        case "timed_out":
            return f"was stopped after {event.duration:.0f} s, its time limit"
        case "stopped":
            return f"was stopped after {event.duration:.0f} s"
        case "operator":
            return f"was stopped by the operator after {event.duration:.0f} s"
        case "session_closed" | "process_ended":
            return "ended with the session's process"
