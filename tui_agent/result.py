"""The result of a run, as `run --output json` prints it: built from the state alone (CONTRACT.md)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from tui_agent.events import Outcome


@dataclass(frozen=True)
class RunResult:
    """Field for field the object on standard output. Times in seconds, money in USD, None where unknown."""

    session_id: str
    outcome: Outcome
    reason: str
    answer: str
    policy: str
    model: str
    iterations: int
    model_calls: int
    model_retries: int
    tool_calls: int
    tool_errors: int
    recoveries: int
    coherence_violations: int
    escalations: int
    confidence: float
    strategy: str
    uncertainties: list[str]
    ring: list[str | None]
    """The signatures as compared, by slot; None for an empty slot."""
    streak: int
    attempts: list[dict[str, Any]]
    usage: dict[str, int | float | None]
    duration_s: float

    def failed(self, reason: str) -> RunResult:
        """This result of a run that could not be recorded: an error, with whatever answer there was."""
        return replace(self, outcome=Outcome.ERROR, reason=reason)

    def to_json(self) -> dict[str, Any]:
        """Plain values, in the order of the fields."""
        return {**asdict(self), "outcome": self.outcome.value}
