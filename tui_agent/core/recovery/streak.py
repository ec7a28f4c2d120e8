"""The error streak: failing iterations in a row (HPD-Agent). It counts iterations, not calls.

| counts | iterations in which nothing succeeded and something failed; not refusals |
| resets | an iteration with a success, also one of many in a batch; the operator's answer |
| levels | guide up to the limit · beyond it: stop (HPD), or ask if an operator is there; else another way, or a
|        | partial answer if the run is not to go on alone |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.detector import Account, Answer, Beginning, Detector, Standing, Step
from tui_agent.core.recovery.parameters import Count, Parameters
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import verdict
from tui_agent.quantities import of_limit


class StreakParameters(Parameters):
    """Failing steps in a row."""

    streak: Literal["off", "stop", "escalate"] = "escalate"
    """Too many failing steps in a row: not judged, stop (HPD), or ask; with nobody there `on_escalation` decides."""
    streak_limit: Count = 3
    """Failing steps in a row that are allowed; the next one exceeds it."""


def exceeded_reason(limit: int) -> str:
    """The reason of the verdict, in HPD-Agent's words."""
    return f"Exceeded maximum consecutive errors ({limit})"


def exceeded_message(limit: int) -> str:
    """The warning that HPD-Agent shows when it stops."""
    return (
        f"⚠️ Maximum consecutive errors ({limit}) exceeded. Stopping execution to prevent infinite error loop."
    )


@dataclass(frozen=True)
class ErrorStreak(Detector[StreakParameters]):
    """`count` failing iterations in a row; `limit` are allowed."""

    name = "streak"
    parameters = StreakParameters
    off = {"streak": "off"}

    count: int = 0
    limit: int = 3
    failing: bool = False
    """The last iteration was a failing one."""

    @property
    def exceeded(self) -> bool:
        """More failing iterations in a row than allowed."""
        return self.count > self.limit

    @classmethod
    def rungs(cls, policy: StreakParameters) -> frozenset[str]:
        return _RUNGS[policy.streak]

    def next_run(self, run: Beginning[StreakParameters]) -> ErrorStreak:
        return ErrorStreak(limit=run.policy.streak_limit)

    def apply(self, step: Step[StreakParameters]) -> ErrorStreak:
        """Denials, refusals, cancellations and replies without a call change nothing."""
        if step.iteration.failing(step.policy):
            return evolve(self, count=self.count + 1, failing=True)
        if step.iteration.succeeded and self.count:
            return evolve(self, count=0, failing=False)
        return evolve(self, failing=False) if self.failing else self

    def answered(self, answer: Answer[StreakParameters]) -> ErrorStreak:
        """Begin anew: the operator's answer is new information."""
        return evolve(self, count=0, failing=False) if self.count and answer.informs else self

    def verdict(self, standing: Standing[StreakParameters]) -> VerdictRecord:
        """HPD says nothing below its limit; the others guide."""
        stops = standing.policy.streak == "stop"
        if not self.failing or (stops and not self.exceeded):
            return self.silent
        if not self.exceeded:
            plural = "s in a row" if self.count > 1 else ""
            reason = f"{self.count} failing step{plural} (limit {self.limit})"
            return verdict(Level.GUIDE, Rule.STREAK_GUIDE, reason)
        reason = exceeded_reason(self.limit)
        if stops:
            return verdict(Level.STOP, Rule.STREAK_STOP, reason)
        if standing.operator_present:
            return verdict(Level.ESCALATE, Rule.STREAK_ASK, reason)
        if standing.goes_on:
            again = self.count % (self.limit + 1) == 0
            return verdict(Level.PIVOT if again else Level.GUIDE, Rule.STREAK_PIVOT, reason)
        return verdict(Level.DEGRADE, Rule.STREAK_DEGRADE, reason)

    def account(self, standing: Standing[Any], key: str, tool: str) -> Account:
        return Account(of_limit(self.count, self.limit, "failing steps in a row"))


_RUNGS: dict[str, frozenset[str]] = {
    "off": frozenset(),
    "stop": frozenset({"stop"}),
    "escalate": frozenset({"guide", "escalate", "degrade"}),
}
