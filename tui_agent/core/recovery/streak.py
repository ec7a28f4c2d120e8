"""The error streak: failing iterations in a row (HPD-Agent). It counts iterations, not calls.

| counts | iterations in which nothing succeeded and something failed; not refusals |
| resets | an iteration with a success, also one of many in a batch; the operator's answer |
| levels | guide up to the limit · beyond it: stop (HPD), or ask where an operator is there; else another way, or a
|        | partial answer where the run is not to go on alone |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import STREAK, silent, verdict

if TYPE_CHECKING:
    from tui_agent.core.recovery.iteration import Iteration
    from tui_agent.core.recovery.policy import RecoveryPolicy


def exceeded_reason(limit: int) -> str:
    """The reason of the verdict, in HPD-Agent's words."""
    return f"Exceeded maximum consecutive errors ({limit})"


def exceeded_message(limit: int) -> str:
    """The warning that HPD-Agent shows when it stops."""
    return (
        f"⚠️ Maximum consecutive errors ({limit}) exceeded. Stopping execution to prevent infinite error loop."
    )


@dataclass(frozen=True)
class ErrorStreak:
    """`count` failing iterations in a row; `limit` are allowed."""

    count: int = 0
    limit: int = 3
    changed_last_iteration: bool = False
    """The last iteration was a failing one."""

    @property
    def exceeded(self) -> bool:
        """More failing iterations in a row than allowed."""
        return self.count > self.limit

    def apply(self, iteration: Iteration, policy: RecoveryPolicy) -> ErrorStreak:
        """Denials, refusals, cancellations and replies without a call change nothing."""
        if iteration.failing(policy):
            return evolve(self, count=self.count + 1, changed_last_iteration=True)
        if iteration.succeeded and self.count:
            return evolve(self, count=0, changed_last_iteration=False)
        return evolve(self, changed_last_iteration=False) if self.changed_last_iteration else self

    def answered(self) -> ErrorStreak:
        """The operator's answer is new information."""
        return evolve(self, count=0, changed_last_iteration=False) if self.count else self

    def verdict(
        self, policy: RecoveryPolicy, operator_present: bool, *, goes_on: bool = False
    ) -> VerdictRecord:
        """HPD says nothing below its limit; the others guide. `goes_on`: nobody can be asked, and the run goes on."""
        if not self.changed_last_iteration:
            return silent(STREAK)
        if self.exceeded:
            reason = exceeded_reason(self.limit)
            if policy.streak == "stop":
                return verdict(Level.STOP, Rule.STREAK_STOP, reason)
            if operator_present:
                return verdict(Level.ESCALATE, Rule.STREAK_ASK, reason)
            if goes_on:
                again = self.count % (self.limit + 1) == 0
                return verdict(Level.PIVOT if again else Level.GUIDE, Rule.STREAK_PIVOT, reason)
            return verdict(Level.DEGRADE, Rule.STREAK_DEGRADE, reason)
        if policy.streak == "stop":
            return silent(STREAK)
        plural = "s in a row" if self.count > 1 else ""
        reason = f"{self.count} failing step{plural} (limit {self.limit})"
        return verdict(Level.GUIDE, Rule.STREAK_GUIDE, reason)
