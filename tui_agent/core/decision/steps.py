"""Requests to the loop: its next step.

`Record` holds events that follow from the state alone; every other step needs the world and ends in events again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui_agent.core import events
from tui_agent.core.request import compaction


@dataclass(frozen=True)
class Record:
    """These events follow from the state; ask again when they are recorded."""

    events: tuple[events.Event, ...]


@dataclass(frozen=True)
class StartIteration:
    """Let the operator's gate open, then record the start of iteration `number`."""

    number: int


@dataclass(frozen=True)
class LearnWindow:
    """Find out how long a prompt of `model` may be."""

    model: str


@dataclass(frozen=True)
class Summarise:
    """Ask `model` for a summary of the older part of the history; if it fails, the next decision asks
    `instead`.
    """

    model: str
    plan: compaction.CompactionPlan
    instructions: str
    rule: str
    instead: str = ""


@dataclass(frozen=True)
class Advise:
    """Ask `model` for another approach; `question` says what fails."""

    model: str
    question: str


@dataclass(frozen=True)
class CallModel:
    """Wait `delay` seconds, then send the request with `note`. `attempt` counts from 1 in the iteration.

    `until`: a moment of the wall clock (seconds since 1970) at which the wait is over too, however long a process was
    away meanwhile.
    """

    model: str
    attempt: int
    note: str | None
    delay: float = 0.0
    until: float | None = None


@dataclass(frozen=True)
class RunCalls:
    """Execute these calls, group after group; those of a group at the same time.

    `approved`: the operator wrote them and is not asked again.
    """

    groups: tuple[tuple[events.ToolCall, ...], ...]
    approved: bool = False


@dataclass(frozen=True)
class Ask:
    """Put this question, which is recorded already, to the operator."""

    question: events.EscalationRaised


@dataclass(frozen=True)
class BringBack:
    """Bring the files of this checkpoint back, then record `started`; if that is not possible, `instead`."""

    ref: str
    started: events.StartedAfresh
    instead: events.StartedAfresh


@dataclass(frozen=True)
class Finish:
    """The run ends."""

    finished: events.RunFinished


Step = (
    Record
    | StartIteration
    | LearnWindow
    | Summarise
    | Advise
    | CallModel
    | RunCalls
    | Ask
    | BringBack
    | Finish
)
