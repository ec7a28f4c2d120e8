"""Failed model calls: what to do about one, and what the run has seen of them.

| counts | failed calls in a row; tries with one model and shrinkings of the window, within an iteration |
| resets | a reply; a new iteration begins with the run's own model again |
| levels | retry, fallback, shrink: continue · next iteration: guide · ask the operator · partial answer · stop |

`plan` is pure: randomness comes in as a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tui_agent.core.events import Fault, FaultKind, Level, ModelFaulted, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import MODEL, silent, verdict
from tui_agent.quantities import counted

if TYPE_CHECKING:
    from tui_agent.core.recovery.policy import RecoveryPolicy

Action = Literal["retry", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask", "text_calls"]

TRANSIENT = frozenset(
    {
        FaultKind.RATE_LIMIT,
        FaultKind.TIMEOUT,
        FaultKind.CONNECTION,
        FaultKind.SERVER,
        FaultKind.OVERLOADED,
        FaultKind.STREAM_CUT,
        FaultKind.BAD_OUTPUT,
    }
)
"""Faults that may go away by themselves."""


UNUSABLE = frozenset({FaultKind.AUTH, FaultKind.PERMISSION, FaultKind.QUOTA, FaultKind.NOT_FOUND})
"""Faults that make a model of no use to the run: its fallback takes the calls that follow too."""

AWAY = frozenset({FaultKind.CONNECTION, FaultKind.SERVER})
"""Faults of a server that cannot be reached or restarts."""


@dataclass(frozen=True)
class FaultPlan:
    """What happens next. `delay` in seconds before a retry; `next_model` for a fallback."""

    action: Action
    reason: str
    delay: float = 0.0
    next_model: str = ""

    @property
    def rule(self) -> Rule:
        return _RULES[self.action][1]


_RULES: dict[Action, tuple[Level, Rule]] = {
    "retry": (Level.CONTINUE, Rule.MODEL_RETRY),
    "fallback": (Level.CONTINUE, Rule.MODEL_FALLBACK),
    "shrink": (Level.CONTINUE, Rule.MODEL_SHRINK),
    "next_iteration": (Level.GUIDE, Rule.MODEL_NEXT_ITERATION),
    "degrade": (Level.DEGRADE, Rule.MODEL_DEGRADE),
    "ask": (Level.ESCALATE, Rule.MODEL_ASK),
    "stop": (Level.STOP, Rule.MODEL_STOP),
    "text_calls": (Level.CONTINUE, Rule.MODEL_TEXT_CALLS),
}


@dataclass(frozen=True)
class ModelFaults:
    """What the run has seen of failed calls."""

    total: int = 0
    in_row: int = 0
    """Since the model answered."""
    last: ModelFaulted | None = None
    """The newest fault, until the model answers."""
    waited: float = 0.0
    """Seconds of the waits before tries with the model that is called now, in this iteration."""
    tries: int = 0
    """Failed tries with the model that is called now, in this iteration."""
    shrinks: int = 0
    """Shrinkings of the window in this iteration."""
    used_fallbacks: tuple[str, ...] = ()
    """Other models that were tried in this iteration."""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """By model that is of no use to this run: the fallback that takes its place."""
    asked: int = 0
    """Questions to the operator about faults in this iteration."""

    def apply(self, event: ModelFaulted) -> ModelFaults:
        """One more fault."""
        changed = evolve(self, total=self.total + 1, in_row=self.in_row + 1, last=event, tries=self.tries + 1)
        match event.action:
            case "retry":
                return evolve(changed, waited=self.waited + event.delay)
            case "shrink":
                return evolve(changed, shrinks=self.shrinks + 1)
            case "fallback":
                used = (*self.used_fallbacks, event.next_model)
                changed = evolve(changed, tries=0, waited=0.0, shrinks=0, used_fallbacks=used)
                if event.fault.kind not in UNUSABLE:
                    return changed
                return evolve(changed, stand_ins={**self.stand_ins, event.model: event.next_model})
            case "text_calls":
                return evolve(changed, tries=self.tries)
            case "ask":
                return evolve(changed, tries=0, waited=0.0, shrinks=0, asked=self.asked + 1)
            case _:
                return changed

    def answered(self) -> ModelFaults:
        return ModelFaults(self.total, stand_ins=self.stand_ins) if self.last is not None else self

    def next_iteration(self) -> ModelFaults:
        """An iteration begins: the run's own model is tried first again."""
        if not (self.tries or self.asked or self.used_fallbacks):
            return self
        return ModelFaults(self.total, self.in_row, self.last, stand_ins=self.stand_ins)

    def usable(self, model: str) -> str:
        """The model, or what takes its place in this run."""
        seen: set[str] = set()
        while model in self.stand_ins and model not in seen:
            seen.add(model)
            model = self.stand_ins[model]
        return model

    def verdict(self) -> VerdictRecord:
        """By what was done about the fault; nothing once the model has answered."""
        if self.last is None:
            return silent(MODEL)
        level, rule = _RULES[self.last.action]
        return verdict(level, rule, self.last.reason or fault_words(self.last.fault))


def plan(
    policy: RecoveryPolicy,
    faults: ModelFaults,
    fault: Fault,
    *,
    operator_present: bool,
    fallbacks: tuple[str, ...] = (),
    can_shrink: bool = True,
    can_write_calls: bool = False,
    jitter: float = 0.5,
) -> FaultPlan:
    """What to do about `fault`, which comes after `faults`.

    `fallbacks` are the other models for such a fault in their order, `can_shrink` says whether a smaller window would
    change the request, `can_write_calls` whether the model may write its calls as text instead; `jitter` is a random
    number in [0, 1).
    """
    if fault.kind is FaultKind.NO_TOOLS and can_write_calls:
        return FaultPlan("text_calls", "The model cannot call tools: it writes its calls as text from now on")
    lasting = fault.kind not in TRANSIENT
    if lasting and policy.model_faults == "retry" and (unused := _unused(faults, fallbacks)):
        why = f"{fault_words(fault)} This call goes to {unused}"
        return FaultPlan("fallback", why, next_model=unused)
    if lasting and fault.kind is not FaultKind.CONTEXT_OVERFLOW:
        if policy.model_faults == "retry" and operator_present:
            return FaultPlan("ask", fault_words(fault))
        return FaultPlan("stop", fault_words(fault))
    if policy.model_faults == "next_iteration":
        return FaultPlan("next_iteration", f"{fault_words(fault)} The next step tries again.")
    if policy.model_faults == "terminal":
        return FaultPlan("stop", fault_words(fault))
    if fault.kind is FaultKind.CONTEXT_OVERFLOW:
        if faults.shrinks < policy.shrinks and can_shrink:
            return FaultPlan("shrink", "The prompt is too long: the request is shortened")
        times = (
            f"after it was shortened {counted(faults.shrinks, 'time')}"
            if faults.shrinks
            else "and cannot be shortened"
        )
        return FaultPlan("degrade", f"The prompt is too long {times}: {fault.message} {_WAYS_ON}")
    return _transient(policy, faults, fault, operator_present, fallbacks, jitter)


def _transient(
    policy: RecoveryPolicy,
    faults: ModelFaults,
    fault: Fault,
    operator_present: bool,
    fallbacks: tuple[str, ...],
    jitter: float,
) -> FaultPlan:
    tries = faults.tries + 1
    allowed = policy.model_tries
    if fault.kind is FaultKind.BAD_OUTPUT:
        allowed = min(allowed, policy.bad_output_retries + 1)
    asked = fault.retry_after or 0.0
    too_long = asked > policy.retry_after_cap
    away = fault.kind in AWAY and policy.backoff_base > 0 and faults.waited < policy.model_patience
    if (tries < allowed or away) and not too_long:
        delay = max(backoff(policy, tries, jitter), asked)
        of = f" of {allowed}" if tries < allowed else ""
        return FaultPlan("retry", f"{fault.kind.in_words}: try {tries + 1}{of} in {delay:.1f} s", delay)
    why = (
        f"{fault.kind.in_words}: the provider asks to wait {asked:.0f} s"
        if too_long
        else f"{fault.kind.in_words}: {tries} {'try' if tries == 1 else 'tries'} failed"
    )
    unused = _unused(faults, fallbacks)
    if unused:
        return FaultPlan("fallback", f"{why}; this call goes to {unused}", next_model=unused)
    return FaultPlan("ask" if operator_present else "degrade", f"{why}: {_words(fault)}")


def _unused(faults: ModelFaults, fallbacks: tuple[str, ...]) -> str:
    return next((model for model in fallbacks if model not in faults.used_fallbacks), "")


def backoff(policy: RecoveryPolicy, tries: int, jitter: float) -> float:
    """Seconds to wait after `tries` failed tries: exponential, the upper half of each wait with jitter."""
    doublings = min(max(tries - 1, 0), 30)
    return min(policy.backoff_cap, policy.backoff_base * 2.0**doublings) * (0.5 + jitter / 2)


_WAYS_ON = (
    "Ways on: a model with a larger context window (/model, --model), /compact, "
    "or smaller results (a part of the file)."
)


def fault_words(fault: Fault) -> str:
    """Kind, message and advice in a sentence or two."""
    return f"{fault.kind.in_words}: {_words(fault)}"


def _words(fault: Fault) -> str:
    return f"{fault.message} {fault.advice}".strip()
