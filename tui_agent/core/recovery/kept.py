"""What a run hands on to the next one where `persist` is set: how often which call has failed, and which tools.

Nothing is handed on that would bar a call at once: one try is always left, and an open breaker lets a probe through.
"""

from __future__ import annotations

from tui_agent.core.events import Kept, KeptBreaker, KeptCall
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger
from tui_agent.core.recovery.tool_breaker import BreakerPhase, BreakerState, ToolBreakers

_MOST = 50
_LONGEST = 1_000
"""Characters of an argument, and of an error."""


def kept_of(attempts: AttemptLedger, breakers: ToolBreakers) -> Kept | None:
    """What a run that has ended so hands on; None for nothing."""
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


def attempts_with(ledger: AttemptLedger, kept: Kept) -> AttemptLedger:
    """The counts of an earlier run, the one that failed last at the end; one try is left to each."""
    entries = {
        one.key: AttemptEntry(
            one.key,
            one.tool,
            one.input,
            count=min(one.count, ledger.limit - 1),
            limit=ledger.limit,
            last_message=one.message,
            signature=one.signature,
            hint=one.hint,
        )
        for one in reversed(kept.calls)
        if min(one.count, ledger.limit - 1) > 0
    }
    return evolve(ledger, entries=entries)


def breakers_with(breakers: ToolBreakers, kept: Kept) -> ToolBreakers:
    """Breakers that were open let one call through."""
    states = {
        one.tool: BreakerState(BreakerPhase.HALF_OPEN, failures=one.failures, span=one.span)
        for one in kept.breakers
        if one.tool not in breakers.states
    }
    return evolve(breakers, states={**breakers.states, **states}) if states else breakers
