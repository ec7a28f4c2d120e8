"""Failed model calls: what to do about one, and what the run has seen of them.

| counts | failed calls in a row; tries with one model and shrinkings of the window, within an iteration |
| resets | a reply; a new iteration begins with the run's own model again |
| levels | retry, wait, fallback, shrink: continue · next iteration: guide · ask the operator · partial answer · stop |

`plan` is pure: randomness and time come in as values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tui_agent.core.events import Fault, FaultKind, Level, ModelFaulted, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.names import LONGEST_WAIT, OnLimit
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import MODEL, silent, verdict
from tui_agent.quantities import counted, resets

if TYPE_CHECKING:
    from tui_agent.core.recovery.policy import RecoveryPolicy

Action = Literal[
    "retry", "wait", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask", "text_calls"
]

TRANSIENT = frozenset(
    {
        FaultKind.RATE_LIMIT,
        FaultKind.TIMEOUT,
        FaultKind.CONNECTION,
        FaultKind.SERVER,
        FaultKind.OVERLOADED,
        FaultKind.STREAM_CUT,
        FaultKind.BAD_OUTPUT,
        FaultKind.UNKNOWN,
    }
)
"""Faults that may go away by themselves."""

DOUBTFUL = frozenset({FaultKind.BAD_OUTPUT, FaultKind.UNKNOWN})
"""Faults that rarely do."""

UNUSABLE = frozenset(
    {FaultKind.AUTH, FaultKind.PERMISSION, FaultKind.QUOTA, FaultKind.NOT_FOUND, FaultKind.USAGE_LIMIT}
)
"""Faults that make a model of no use to the run, or until its limit resets: its fallback takes the calls that follow
too.
"""

AWAY = frozenset({FaultKind.CONNECTION, FaultKind.SERVER})
"""Faults of a server that cannot be reached or restarts."""


PASSING = frozenset({502, 503, 504, *range(520, 528), 529, 530})
"""Statuses of a gateway, and of a server that is busy or starts: they say nothing of the request."""
SAME_ANSWERS = 3
"""Answers with the same words to the same request that are no chance any more."""
_INVITES = re.compile(
    r"again|retry|temporar|unavailable|overload|busy|loading|timed? ?out|internal (?:server )?error\W*$|had an error",
    re.IGNORECASE,
)
"""Words of an error that may pass, or that say nothing of the request."""

FIRST_LOOK, LAST_LOOK = 900.0, 3_600.0
"""Seconds between calls while a limit stands that names no time: doubled from the first to the last."""
LATE = 12.0
"""Seconds, at the most, after the time of a reset at which the next call is made: clocks differ."""


@dataclass(frozen=True)
class FaultPlan:
    """What happens next. `delay` in seconds before a retry; `next_model` for a fallback; `until`: when a limit lets the
    next call through, in seconds since 1970.
    """

    action: Action
    reason: str
    delay: float = 0.0
    next_model: str = ""
    until: float | None = None

    @property
    def rule(self) -> Rule:
        return _RULES[self.action][1]


_RULES: dict[Action, tuple[Level, Rule]] = {
    "retry": (Level.CONTINUE, Rule.MODEL_RETRY),
    "wait": (Level.CONTINUE, Rule.MODEL_WAIT),
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
    same: int = 0
    """Answers of the server in a row that said the same of the same request."""
    limits: int = 0
    """Waits for a limit, since the model answered."""
    limit_waited: float = 0.0
    """Seconds that they take."""
    shrinks: int = 0
    """Shrinkings of the window in this iteration."""
    used_fallbacks: tuple[str, ...] = ()
    """Other models that were tried in this iteration."""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """By model that is of no use to this run: the fallback that takes its place."""
    limited: Mapping[str, float] = field(default_factory=dict)
    """By model whose limit was reached: when it resets, in seconds since 1970."""
    asked: int = 0
    """Questions to the operator about faults in this iteration."""

    def apply(self, event: ModelFaulted) -> ModelFaults:
        """One more fault."""
        changed = evolve(
            self,
            total=self.total + 1,
            in_row=self.in_row + 1,
            last=event,
            tries=self.tries + 1,
            same=self.after(event.fault),
        )
        match event.action:
            case "retry":
                return evolve(changed, waited=self.waited + event.delay)
            case "wait":
                waited = self.limit_waited + event.delay
                return evolve(changed, tries=0, waited=0.0, limits=self.limits + 1, limit_waited=waited)
            case "shrink":
                return evolve(changed, shrinks=self.shrinks + 1, same=0)
            case "fallback":
                used = (*self.used_fallbacks, event.next_model)
                changed = evolve(changed, tries=0, waited=0.0, shrinks=0, same=0, used_fallbacks=used)
                if event.fault.kind not in UNUSABLE:
                    return changed
                stand_ins = {**self.stand_ins, event.model: event.next_model}
                if event.until is None:
                    return evolve(changed, stand_ins=stand_ins)
                return evolve(
                    changed, stand_ins=stand_ins, limited={**self.limited, event.model: event.until}
                )
            case "text_calls":
                return evolve(changed, tries=self.tries)
            case "ask":
                return evolve(changed, tries=0, waited=0.0, shrinks=0, same=0, asked=self.asked + 1)
            case _:
                return changed

    def after(self, fault: Fault) -> int:
        """How often the server has said this of the request now, where that is no accident of its own."""
        if (
            fault.status is None
            or fault.status < 500
            or fault.status in PASSING
            or _INVITES.search(fault.message)
        ):
            return 0
        last = None if self.last is None else self.last.fault
        again = last is not None and (last.status, last.message) == (fault.status, fault.message)
        return self.same + 1 if again else 1

    def answered(self) -> ModelFaults:
        if self.last is None:
            return self
        return ModelFaults(self.total, stand_ins=self.stand_ins, limited=self.limited)

    def next_iteration(self) -> ModelFaults:
        """An iteration begins: the run's own model is tried first again."""
        if not (self.tries or self.asked or self.used_fallbacks):
            return self
        return ModelFaults(self.total, self.in_row, self.last, stand_ins=self.stand_ins, limited=self.limited)

    def usable(self, model: str, at: float = 0.0) -> str:
        """The model, or what takes its place in this run; at this time, in seconds since 1970."""
        seen: set[str] = set()
        while model in self.stand_ins and model not in seen and at < self.limited.get(model, math.inf):
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
    nearly_full: bool = False,
    jitter: float = 0.5,
    now: float = 0.0,
    on_limit: OnLimit | None = None,
    wait_at_most: float = LONGEST_WAIT,
) -> FaultPlan:
    """What to do about `fault`, which comes after `faults`.

    `fallbacks` are the other models for such a fault in their order, `can_shrink` says whether a smaller window would
    change the request, `can_write_calls` whether the model may write its calls as text instead, `nearly_full` whether
    the request came near the model's window; `jitter` is a random number in [0, 1). `now`: seconds since 1970;
    `on_limit` and `wait_at_most`: what the operator chose for a limit of use.
    """
    if fault.kind is FaultKind.NO_TOOLS and can_write_calls:
        return FaultPlan("text_calls", "The model cannot call tools: it writes its calls as text from now on")
    retries = policy.model_faults == "retry"
    if retries and _limits(policy, fault):
        return _limited(
            policy, faults, fault, operator_present, fallbacks, jitter, now, on_limit, wait_at_most
        )
    # Not every server says why it refuses what is too long for it.
    full = nearly_full and fault.kind is FaultKind.BAD_REQUEST and not faults.shrinks
    if retries and full and can_shrink:
        return FaultPlan(
            "shrink", f"{_kind_words(fault)}: the request nearly fills the window and is shortened once"
        )
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
    if fault.kind is FaultKind.CONTEXT_OVERFLOW or _too_large(fault):
        if faults.shrinks < policy.shrinks and can_shrink:
            return FaultPlan("shrink", "The prompt is too long: the request is shortened")
        times = (
            f"after it was shortened {counted(faults.shrinks, 'time')}"
            if faults.shrinks
            else "and cannot be shortened"
        )
        return FaultPlan("degrade", f"The prompt is too long {times}: {fault.message} {_WAYS_ON}")
    return _transient(policy, faults, fault, operator_present, fallbacks, jitter)


def _too_large(fault: Fault) -> bool:
    """A limit by the minute is less than the request alone takes: no wait helps."""
    window, prompt = fault.window, fault.prompt_tokens
    return fault.kind is FaultKind.RATE_LIMIT and bool(window and prompt and prompt > window)


def _limits(policy: RecoveryPolicy, fault: Fault) -> bool:
    """A limit of use was reached, or the provider asks for more patience than a retry has."""
    if fault.kind is FaultKind.USAGE_LIMIT:
        return True
    asked = fault.retry_after or 0.0
    return fault.kind in TRANSIENT and asked > policy.retry_after_cap and not _too_large(fault)


_BRIEF_WAITS = 3
"""Short waits for a limit that nobody chose to wait for."""


def _limited(
    policy: RecoveryPolicy,
    faults: ModelFaults,
    fault: Fault,
    operator_present: bool,
    fallbacks: tuple[str, ...],
    jitter: float,
    now: float,
    on_limit: OnLimit | None,
    wait_at_most: float,
) -> FaultPlan:
    """Wait, another model, a question or the end: as the operator chose, else by who is there."""
    until = _lets_through(policy, faults, fault, jitter, now)
    left = max(0.0, until - now)
    known = fault.kind is FaultKind.USAGE_LIMIT
    said = f"{limit_words(fault, now)}: {_words(fault)}" if known else _asks_to_wait(fault)
    brief = known and fault.resets_at is not None and left <= policy.retry_after_cap
    # A limit that stands after the moment of its reset is not waited for by itself for ever.
    chosen = on_limit or ("wait" if brief and faults.limits < _BRIEF_WAITS else None)
    if chosen == "wait" and faults.limit_waited + left <= wait_at_most:
        return FaultPlan("wait", f"{said} The run waits.", left, until=until)
    unused = _unused(faults, fallbacks)
    if unused and chosen != "stop":
        return FaultPlan("fallback", f"{said} This call goes to {unused}", next_model=unused, until=until)
    if operator_present and chosen != "stop":
        # What can be done is what the question offers.
        asked = f"{_when(fault, now)}: {fault.message}" if known else said
        return FaultPlan("ask", asked, until=until)
    return FaultPlan("stop" if known else "degrade", said, until=until)


def _asks_to_wait(fault: Fault) -> str:
    return (
        f"{_kind_words(fault)}: the provider asks to wait {fault.retry_after or 0.0:.0f} s: {_words(fault)}"
    )


def _lets_through(
    policy: RecoveryPolicy, faults: ModelFaults, fault: Fault, jitter: float, now: float
) -> float:
    """When the next call is worth a try, in seconds since 1970."""
    at = fault.resets_at
    if at is None and fault.retry_after is not None:
        at = now + fault.retry_after
    if at is None:
        return now + min(FIRST_LOOK * 2.0 ** min(faults.limits, 10), LAST_LOOK)
    if at <= now:  # it should have been reset by now
        return now + max(1.0, backoff(policy, faults.limits + 1, jitter))
    return at + min(LATE, 1.0 + (at - now) / 60) * (0.2 + 0.8 * jitter)


def limit_words(fault: Fault, now: float) -> str:
    """`limit reached, resets 15:00 (in 2 h 13 min)`, with who says so."""
    return f"{_when(fault, now)}{_said_by(fault)}"


def _when(fault: Fault, now: float) -> str:
    when = "" if fault.resets_at is None else f", {resets(fault.resets_at, now)}"
    return f"{fault.kind.in_words}{when}"


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
    if fault.kind in DOUBTFUL:
        allowed = min(allowed, policy.bad_output_retries + 1)
    same = faults.after(fault)
    away = fault.kind in AWAY and policy.backoff_base > 0 and faults.waited < policy.model_patience
    if (tries < allowed or away) and same < SAME_ANSWERS:
        delay = max(backoff(policy, tries, jitter), fault.retry_after or 0.0)
        of = f" of {allowed}" if tries < allowed else ""
        return FaultPlan("retry", f"{fault.kind.in_words}: try {tries + 1}{of} in {delay:.1f} s", delay)
    why = (
        f"{_kind_words(fault)}: the server said the same {counted(same, 'time')}"
        if same >= SAME_ANSWERS
        else f"{_kind_words(fault)}: {tries} {'try' if tries == 1 else 'tries'} failed"
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
    """Kind, status, who was asked, message and advice in a sentence or two."""
    return f"{_kind_words(fault)}: {_words(fault)}"


def _kind_words(fault: Fault) -> str:
    return f"{fault.kind.in_words}{_said_by(fault)}"


def _said_by(fault: Fault) -> str:
    """Who said it, and under which status."""
    if not fault.asked:
        return ""
    return f" ({fault.status} from {fault.asked})" if fault.status is not None else f" ({fault.asked})"


def _words(fault: Fault) -> str:
    return f"{fault.message} {fault.advice}".strip()
