"""Counters that a run hands on to the next one if `persist` is set: how often which call has failed, and which tools.

Nothing is handed on that would bar a call at once: one try is always left, and an open breaker lets a probe through.
"""

from __future__ import annotations

from tui_agent.core.events import Kept, KeptBreaker, KeptCall
from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger
from tui_agent.core.recovery.tool_breaker import BreakerPhase, ToolBreakers

_MOST = 50
_LONGEST = 1_000
"""Characters of an argument, and of an error."""


def kept_of(attempts: AttemptLedger, breakers: ToolBreakers) -> Kept | None:
    """Gather what a run that has ended so hands on; None for nothing."""
    calls = tuple(_call(entry) for entry in attempts.newest_first()[:_MOST] if entry.count)
    tools = tuple(
        KeptBreaker(tool=tool, failures=state.failures, span=state.span)
        for tool, state in breakers.states.items()
        if state.phase is not BreakerPhase.CLOSED and not state.by_hand
    )
    return Kept(calls=calls, breakers=tools) if calls or tools else None


def _call(entry: AttemptEntry) -> KeptCall:
    clipped = {
        name: value[:_LONGEST] if isinstance(value, str) else value for name, value in entry.input.items()
    }
    return KeptCall(
        key=entry.key,
        tool=entry.tool,
        input=clipped,
        count=entry.count,
        message=entry.last_message[:_LONGEST],
        signature=entry.signature,
        hint=entry.hint[:_LONGEST],
    )
