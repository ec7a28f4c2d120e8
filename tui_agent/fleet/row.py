"""How one run stands, in a row of a board: folded from its events wherever they are, and sent in their place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tui_agent.core.badge import badge_of
from tui_agent.core.fold import title_of
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState

_LONGEST = 200


class RunRow(BaseModel, frozen=True):
    """A row of the board."""

    badge: str = ""
    """The run's state in one word (`core.badge`); empty before its first event."""
    task: str = ""
    model: str = ""
    step: int = 0
    last_step: int | None = None
    ring: tuple[int, ...] = ()
    """For each of the last failures, how many of them are identical to it."""
    attempts: int = 0
    """Of the call that failed most often."""
    blocked: int = 0
    """Calls that do not run until something changes."""
    confidence: float | None = None
    """The run's confidence, 0 to 1; None before its first event."""
    cost: float | None = None
    """USD, of the whole session; None: unknown."""
    tokens: int = 0
    asks: int = 0
    """Questions that wait for somebody."""
    failing: str = ""
    """The newest failure that still stands."""
    outcome: str = ""
    """How it ended in one word; empty while it goes on."""
    answer: str = ""
    """How it ended, or what it answered."""
    started: float = 0.0
    ended: float | None = None
    """Seconds since the epoch."""
    at: float = 0.0
    """Of the newest event."""

    @property
    def over(self) -> bool:
        """The run has ended."""
        return self.ended is not None


def row_of(state: RunState) -> RunRow:
    """The row of a session's newest run."""
    run, recovery, metrics = state.run, state.recovery, state.metrics
    slots = [slot.signature for slot in recovery.of(ErrorRing).slots if slot is not None]
    alike = Counter(slots)
    entries = recovery.of(AttemptLedger).entries.values()
    newest = recovery.of(ErrorRing).newest
    begun = bool(run.number)
    title = state.session.title
    return RunRow(
        badge=str(badge_of(state)) if begun else "",
        task=one_line(run.task if title == title_of(run.task) else title, _LONGEST),
        model=one_line(state.model, _LONGEST),
        step=run.iteration,
        last_step=run.last_step,
        ring=tuple(alike[signature] for signature in slots),
        attempts=max((entry.count for entry in entries), default=0),
        blocked=sum(recovery.blocks(entry) for entry in entries if run.outcome is None),
        confidence=recovery.of(CognitiveState).confidence if begun else None,
        cost=metrics.session_usage.cost if begun else None,
        tokens=metrics.session_usage.tokens,
        asks=len(state.approvals) + (state.escalation is not None) + len(state.server_questions),
        failing="" if newest is None else one_line(newest.message, _LONGEST),
        outcome="" if run.outcome is None else run.outcome.value,
        answer=one_line(run.answer if run.outcome == "answered" else run.reason, _LONGEST),
        started=metrics.started_at,
        ended=metrics.ended_at,
        at=state.at,
    )
