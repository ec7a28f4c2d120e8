"""The badge: the state of a run in one word, by the strongest statement about it.

It is shown beside the outlook for the next step and in the strip. A question, a block, a model call that is
tried again or a poor outlook is never called CONTINUE; cognition's own strategy counts only if nothing
stronger is said.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tui_agent.core.names import Level, Outcome, Phase

if TYPE_CHECKING:
    from tui_agent.core.recovery.engine import RecoveryState
    from tui_agent.core.state import RunState


class Badge(StrEnum):
    """The first of these that holds, while the run goes on; the last four are how it ended."""

    ASK = "ASK"
    WAITING = "WAITING"
    RETRY = "RETRY"
    STOP = "STOP"
    DEGRADE = "DEGRADE"
    PIVOT = "PIVOT"
    BLOCKED = "BLOCKED"
    GUIDE = "GUIDE"
    CONCLUDE = "CONCLUDE"
    DOUBTFUL = "DOUBTFUL"
    CONTINUE = "CONTINUE"
    DONE = "DONE"
    PARTIAL = "PARTIAL"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


_ENDED = {
    Outcome.ANSWERED: Badge.DONE,
    Outcome.PARTIAL: Badge.PARTIAL,
    Outcome.MODEL_FAILED: Badge.FAILED,
    Outcome.ERROR: Badge.FAILED,
}

_BY_LEVEL = {
    Level.STOP: Badge.STOP,
    Level.DEGRADE: Badge.DEGRADE,
    Level.RESTART: Badge.PIVOT,
    Level.PIVOT: Badge.PIVOT,
}


def badge_of(state: RunState) -> Badge:
    """The badge of a run at any moment of it."""
    from tui_agent.core.recovery.attempts import AttemptLedger

    if state.run.outcome is not None:
        return _ENDED.get(state.run.outcome, Badge.STOPPED)
    if state.escalation is not None:
        return Badge.ASK
    if state.approvals or state.server_questions:
        return Badge.WAITING
    if state.phase is Phase.BACKOFF:
        return Badge.RETRY if state.waiting is None else Badge.WAITING
    level = Level.CONTINUE if state.verdict is None else state.verdict.level
    if level in _BY_LEVEL:
        return _BY_LEVEL[level]
    if any(state.recovery.blocks(entry) for entry in state.recovery.of(AttemptLedger).entries.values()):
        return Badge.BLOCKED
    # A question that was answered, or that nobody could be asked, is what the note goes by.
    return Badge.GUIDE if level.rank > Level.CONTINUE.rank else _by_outlook(state.recovery)


def _by_outlook(recovery: RecoveryState) -> Badge:
    from tui_agent.core.recovery.cognition import CognitiveState

    cognition, policy = recovery.of(CognitiveState), recovery.policy
    if policy.cognition == "chance" and cognition.next_step.chance is not None:
        return Badge.CONTINUE if cognition.next_step.stated is None else Badge.DOUBTFUL
    return Badge(cognition.strategy.value)
