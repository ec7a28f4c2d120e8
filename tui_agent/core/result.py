"""The result of a run, as `run --output json` prints it: built from the state alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from tui_agent.core.events import Outcome
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.state import RunState


@dataclass(frozen=True)
class RunResult:
    """Field for field the object on standard output. Times in seconds, money in USD, None if unknown."""

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
    rule: str | None
    """Id of the rule that ended the run; None when it was answered."""
    failures: int
    """`recoveries` + `unrecovered`."""
    model_faults: int
    recovered_same_call: int
    recovered_worked_round: int
    unrecovered: int
    next_step_chance: float | None
    """Chance that the next step would have succeeded, 0 to 1."""
    files_changed: list[str]
    receipts: list[dict[str, Any]]
    """What the answer's claims rest on: `kind`, `claim`, `standing`, `step`, `command`, `exit_code`, `said`,
    `changed_since`; and files left behind."""

    def failed(self, reason: str) -> RunResult:
        """This result of a run that could not be recorded: an error, with whatever answer there was."""
        return replace(self, outcome=Outcome.ERROR, reason=reason, rule=Rule.RUN_ERROR.value)

    def to_json(self) -> dict[str, Any]:
        """Plain values, in the order of the fields."""
        return {**asdict(self), "outcome": self.outcome.value}


def result_of(state: RunState) -> RunResult:
    """The result of the newest run. One that has not ended is an error: nothing else may be claimed."""
    run, metrics, recovery = state.run, state.metrics, state.recovery
    cognition = recovery.of(CognitiveState)
    ended_at = state.at if metrics.ended_at is None else metrics.ended_at
    return RunResult(
        session_id=state.session.id,
        outcome=run.outcome or Outcome.ERROR,
        reason=run.reason if run.outcome else "The run has not ended.",
        answer=run.answer,
        policy=run.policy,
        model=run.model,
        iterations=run.iteration,
        model_calls=metrics.model_calls,
        model_retries=metrics.model_retries,
        tool_calls=metrics.tool_calls,
        tool_errors=metrics.tool_errors,
        recoveries=metrics.recoveries,
        coherence_violations=metrics.coherence_violations,
        escalations=metrics.escalations,
        confidence=cognition.confidence,
        strategy=cognition.strategy.value,
        uncertainties=list(cognition.uncertainties),
        ring=[None if slot is None else slot.signature for slot in recovery.of(ErrorRing).slots],
        streak=recovery.of(ErrorStreak).count,
        attempts=[
            {
                "tool": entry.tool,
                "input": dict(entry.input),
                "count": entry.count,
                "trials": entry.trials,
                "blocked": entry.blocked,
            }
            for entry in recovery.of(AttemptLedger).newest_first()
        ],
        usage={
            "prompt_tokens": metrics.usage.prompt_tokens,
            "completion_tokens": metrics.usage.completion_tokens,
            "cached_tokens": metrics.usage.cached_tokens,
            "cache_write_tokens": metrics.usage.cache_write_tokens,
            "cost_usd": metrics.usage.cost,
            "unpriced_calls": metrics.usage.unpriced,
        },
        duration_s=round(max(0.0, ended_at - metrics.started_at), 3),
        rule=run.rule or None,
        failures=metrics.failures,
        model_faults=metrics.model_faults,
        recovered_same_call=metrics.recovered_same_call,
        recovered_worked_round=metrics.recovered_worked_round,
        unrecovered=metrics.unrecovered,
        next_step_chance=cognition.next_step.stated,
        files_changed=list(metrics.files_changed),
        receipts=[{**one.model_dump(mode="json"), "standing": one.standing} for one in run.receipts],
    )
