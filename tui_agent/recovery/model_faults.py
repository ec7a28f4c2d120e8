"""Failed model calls: what to do about one, and what the run has seen of them (RECOVERY.md, 6).

`plan` is pure: how often the call was tried, which models are left and the dice come in as values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tui_agent.events import Fault, FaultKind, Level, ModelFaulted, VerdictRecord
from tui_agent.evolve import evolve
from tui_agent.recovery.verdict import MODEL, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.recovery.engine import RecoveryState
    from tui_agent.recovery.policy import RecoveryPolicy

Action = Literal["retry", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask"]

TRANSIENT = frozenset(
    {
        FaultKind.RATE_LIMIT,
        FaultKind.TIMEOUT,
        FaultKind.CONNECTION,
        FaultKind.SERVER,
        FaultKind.OVERLOADED,
        FaultKind.STREAM_CUT,
    }
)
"""Faults that may go away by themselves."""


@dataclass(frozen=True)
class FaultPlan:
    """What happens next. `delay` in seconds before a retry; `next_model` for a fallback."""

    action: Action
    delay: float = 0.0
    next_model: str = ""
    reason: str = ""


def plan(
    state: RecoveryState,
    fault: Fault,
    *,
    tries: int,
    shrinks: int = 0,
    fallbacks: Sequence[str] = (),
    jitter: float = 0.5,
) -> FaultPlan:
    """What to do about `fault`.

    `tries` calls were made with this model in this iteration (1 or more), `shrinks` shrinkings had no effect,
    `fallbacks` are the models not used yet, `jitter` is a random number in [0, 1).
    """
    policy = state.policy
    if policy.model_faults == "next_iteration":
        return FaultPlan("next_iteration", reason="The next iteration tries again")
    if policy.model_faults == "terminal":
        return FaultPlan("stop", reason=_told(fault))
    if fault.kind is FaultKind.CONTEXT_OVERFLOW:
        if shrinks < policy.shrinks:
            return FaultPlan("shrink", reason="The prompt is too long: the window is shrunk")
        return FaultPlan(
            "degrade", reason=f"The prompt is still too long after {shrinks} shrinkings of the window"
        )
    if fault.kind in TRANSIENT or fault.kind is FaultKind.BAD_OUTPUT:
        return _transient(policy, fault, tries, fallbacks, jitter)
    if state.operator_present:
        return FaultPlan("ask", reason=_told(fault))
    return FaultPlan("stop", reason=_told(fault))


def _transient(
    policy: RecoveryPolicy, fault: Fault, tries: int, fallbacks: Sequence[str], jitter: float
) -> FaultPlan:
    allowed = policy.model_tries
    if fault.kind is FaultKind.BAD_OUTPUT:
        allowed = min(allowed, policy.bad_output_retries + 1)
    asked = fault.retry_after or 0.0
    too_long = asked > policy.retry_after_cap
    if tries < allowed and not too_long:
        delay = max(backoff(policy, tries, jitter), asked)
        return FaultPlan("retry", delay, reason=f"Try {tries + 1} of {allowed} in {delay:.1f} s")
    why = (
        f"{fault.kind.value}: the provider asks to wait {asked:.0f} s"
        if too_long
        else f"{fault.kind.value}: {tries} {'try' if tries == 1 else 'tries'} failed"
    )
    if fallbacks:
        return FaultPlan("fallback", next_model=fallbacks[0], reason=f"{why}; going on with {fallbacks[0]}")
    return FaultPlan("degrade", reason=f"{why}: {fault.message}")


def backoff(policy: RecoveryPolicy, tries: int, jitter: float) -> float:
    """Seconds to wait after `tries` failed tries: exponential with full jitter."""
    doublings = min(max(tries - 1, 0), 30)
    return min(policy.backoff_cap, policy.backoff_base * 2.0**doublings) * jitter


def _told(fault: Fault) -> str:
    return f"{fault.kind.value}: {fault.message}" + (f" {fault.advice}" if fault.advice else "")


_LEVELS: dict[Action, Level] = {
    "retry": Level.CONTINUE,
    "fallback": Level.CONTINUE,
    "shrink": Level.CONTINUE,
    "next_iteration": Level.GUIDE,
    "degrade": Level.DEGRADE,
    "ask": Level.ESCALATE,
    "stop": Level.STOP,
}


@dataclass(frozen=True)
class ModelFaults:
    """What the run has seen: `total` faults, `in_row` since the model answered, the `last` of those."""

    total: int = 0
    in_row: int = 0
    last: ModelFaulted | None = None

    def apply(self, event: ModelFaulted) -> ModelFaults:
        """One more fault."""
        return ModelFaults(self.total + 1, self.in_row + 1, event)

    def answered(self) -> ModelFaults:
        """The model answered."""
        return evolve(self, in_row=0, last=None) if self.last is not None else self

    def verdict(self) -> VerdictRecord:
        """By what was done about the fault; nothing once the model has answered."""
        event = self.last
        if event is None:
            return silent(MODEL)
        reason = _told(event.fault)
        if event.action == "retry":
            reason = f"{event.fault.kind.value}: try {event.attempt + 1} in {event.delay:.1f} s"
        elif event.action == "fallback":
            reason = f"{event.fault.kind.value}: falling back to {event.next_model}"
        elif event.action == "shrink":
            reason = "The prompt is too long: the window is shrunk"
        return VerdictRecord(level=_LEVELS[event.action], detector=MODEL, reason=reason)
