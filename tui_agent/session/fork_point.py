"""The beginning of a fork from an event, and the changes that are possible there; asking makes nothing.

What a screen needs before it calls `fork`: read from the journal's index and a state that is folded already.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tui_agent.core import events
from tui_agent.core.state import RunState
from tui_agent.store.errors import SessionError
from tui_agent.store.journal_index import JournalIndex


@dataclass(frozen=True)
class ForkPoint:
    """The state of a session after event `seq` of `total`, as far as a fork can change it."""

    seq: int
    total: int
    at: float
    kind: str
    """The event's type; with the tool's name if it is about one."""
    iteration: int = 0
    policy: str = ""
    model: str = ""
    open: bool = False
    """A run is under way: a message or a note can still reach the model in it."""
    question: str | None = None
    """Waits for an answer here, or was answered since the newest model call."""
    answer: str | None = None
    """The answer to it; None while it waits."""
    answer_seq: int = 0
    """The event after which another answer is given: the last one before the answer that was given."""
    note: str | None = None
    """Goes with the next model call."""


def open_parent(parent: Path, seq: int | None) -> tuple[JournalIndex, int]:
    """The journal in the folder (or file) `parent` as far as it can be read, and the event after which it is forked
    (None: the last). Raises `SessionError`.
    """
    source = JournalIndex(parent, salvage=True)
    seq = len(source) if seq is None else seq
    if not 1 <= seq <= len(source):
        raise SessionError(
            f"The session cannot be forked at event {seq}",
            f"{parent} holds events 1 to {len(source)} that can be read",
            "Choose one of them.",
        )
    return source, seq


def fork_point(parent: Path, state: RunState, seq: int | None = None) -> ForkPoint:
    """Look at the session in the folder (or file) `parent` after event `seq` (None: the last one written);
    `state` is the one after it. Raises `SessionError`.
    """
    source, seq = open_parent(parent, seq)
    question, answer, answer_seq = _asked(source, state, seq)
    running = state.running
    tool = getattr(source.event(seq), "tool", "")
    kind = source.kinds[seq - 1].replace("_", " ")
    return ForkPoint(
        seq=seq,
        total=len(source),
        at=source.at(seq),
        kind=f"{kind}: {tool}" if tool else kind,
        iteration=state.run.iteration if running else 0,
        policy=state.run.policy if running else state.session.policy or state.run.policy,
        model=state.model,
        open=running,
        question=question,
        answer=answer,
        answer_seq=answer_seq,
        note=state.note if running else None,
    )


def _asked(source: JournalIndex, state: RunState, seq: int) -> tuple[str | None, str | None, int]:
    """The question that another answer would be given to, its answer, and the event at which it is open."""
    if state.escalation is not None:
        return state.escalation.in_words, None, seq
    kinds = source.kinds
    for number in range(seq if state.running else 0, 1, -1):
        match kinds[number - 1]:
            case "model_call_started" | "run_started":
                break
            case "escalation_answered":
                given = cast("events.EscalationAnswered", source.event(number))
                raised = _raised(source, number, given.id)
                if raised is None:
                    return None, None, 0
                return raised.in_words, given.in_words, number - 1
            case _:
                pass
    return None, None, 0


def _raised(source: JournalIndex, before: int, asked: str) -> events.EscalationRaised | None:
    for number in range(before - 1, 1, -1):
        if source.kinds[number - 1] == "escalation_raised":
            raised = cast("events.EscalationRaised", source.event(number))
            if raised.id == asked:
                return raised
    return None
