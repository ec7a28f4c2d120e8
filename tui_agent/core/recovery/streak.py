"""The error streak: failing iterations in a row (HPD-Agent). It counts iterations, not calls.

| counts | iterations in which nothing succeeded and something failed; not refusals |
| resets | an iteration with a success, also one of many in a batch; the operator's answer |
| levels | guide up to the limit · beyond it: stop (HPD), or, once cognition wants another way too, ask if an operator
|        | is there; else guide, or a partial answer if the run is not to go on alone |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.cognition import CognitionParameters, CognitiveState, Strategy
from tui_agent.core.recovery.detector import Account, Answer, Beginning, Detector, Standing, Step
from tui_agent.core.recovery.parameters import Count
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import verdict
from tui_agent.quantities import of_limit


class StreakParameters(CognitionParameters):
    """Failing steps in a row."""

    streak: Literal["off", "stop", "escalate"] = "escalate"
    """Too many failing steps in a row: not judged, stop (HPD), or ask if `cognition` wants another way, too."""
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

    def afresh(self) -> ErrorStreak:
        return ErrorStreak(limit=self.limit)

    def verdict(self, standing: Standing[StreakParameters]) -> VerdictRecord:
        """HPD says nothing below its limit; the others guide."""
        stops = standing.policy.streak == "stop"
        if not self.failing or (stops and not self.exceeded):
            return self.silent
        if not self.exceeded or not (stops or _needs_another_way(standing)):
            plural = "s in a row" if self.count > 1 else ""
            reason = f"{self.count} failing step{plural} (limit {self.limit})"
            return verdict(Level.GUIDE, Rule.STREAK_GUIDE, reason)
        reason = exceeded_reason(self.limit)
        if stops:
            return verdict(Level.STOP, Rule.STREAK_STOP, reason)
        if standing.operator_present:
            return verdict(Level.ESCALATE, Rule.STREAK_ASK, reason)
        if standing.goes_on:
            return verdict(Level.GUIDE, Rule.STREAK_GUIDE, reason)
        return verdict(Level.DEGRADE, Rule.STREAK_DEGRADE, reason)

    def account(self, standing: Standing[Any], key: str, tool: str) -> Account:
        return Account(of_limit(self.count, self.limit, "failing steps in a row"))


def _needs_another_way(standing: Standing[StreakParameters]) -> bool:
    """Tell if the errors repeat: steps that fail each in another way still look for one."""
    policy = standing.policy
    return policy.cognition == "off" or standing.of(CognitiveState).strategy is Strategy.PIVOT


_RUNGS: dict[str, frozenset[str]] = {
    "off": frozenset(),
    "stop": frozenset({"stop"}),
    "escalate": frozenset({"guide", "escalate", "degrade"}),
}
