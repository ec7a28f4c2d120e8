"""The error streak: failing iterations in a row (HPD-Agent). It counts iterations, not calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.events import Level, VerdictRecord
from tui_agent.evolve import evolve
from tui_agent.recovery.verdict import STREAK, silent

if TYPE_CHECKING:
    from tui_agent.recovery.iteration import Iteration
    from tui_agent.recovery.policy import RecoveryPolicy


def exceeded_reason(limit: int) -> str:
    """The reason of the verdict, in HPD-Agent's words."""
    return f"Exceeded maximum consecutive errors ({limit})"


def exceeded_message(limit: int) -> str:
    """What HPD-Agent tells the user when it stops."""
    return (
        f"⚠️ Maximum consecutive errors ({limit}) exceeded. Stopping execution to prevent infinite error loop."
    )


@dataclass(frozen=True)
class ErrorStreak:
    """`count` failing iterations in a row; `limit` are allowed. `moved`: the last iteration was one of them."""

    count: int = 0
    limit: int = 3
    moved: bool = False

    @property
    def exceeded(self) -> bool:
        """More failing iterations in a row than allowed."""
        return self.count > self.limit

    def apply(self, iteration: Iteration) -> ErrorStreak:
        """A success sets 0, a failing iteration adds one; denials and cancellations alone change nothing."""
        if iteration.failing:
            return evolve(self, count=self.count + 1, moved=True)
        if iteration.succeeded and self.count:
            return evolve(self, count=0, moved=False)
        return evolve(self, moved=False) if self.moved else self

    def answered(self) -> ErrorStreak:
        """The operator's answer is new information."""
        return evolve(self, count=0, moved=False) if self.count else self

    def verdict(self, policy: RecoveryPolicy, operator_present: bool) -> VerdictRecord:
        """HPD stops when the limit is exceeded. `combined` guides before, then asks, or degrades with nobody there."""
        if not self.moved:
            return silent(STREAK)
        if self.exceeded:
            otherwise = Level.ESCALATE if operator_present else Level.DEGRADE
            level = Level.STOP if policy.streak == "stop" else otherwise
            return VerdictRecord(level=level, detector=STREAK, reason=exceeded_reason(self.limit))
        if policy.streak == "stop":
            return silent(STREAK)
        reason = (
            f"{self.count} failing iteration{'s in a row' if self.count > 1 else ''} (limit {self.limit})"
        )
        return VerdictRecord(level=Level.GUIDE, detector=STREAK, reason=reason)
