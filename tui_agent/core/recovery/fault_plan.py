"""Plans: what to do about a failed model call, by its kind, the policy and what the run has seen of such faults.

Pure: randomness and time come in as values. What the run has seen is kept in `model_faults`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui_agent.core.events import Fault, FaultKind
from tui_agent.core.names import LONGEST_WAIT, OnLimit
from tui_agent.core.recovery.model_faults import (
    ACTIONS,
    AWAY,
    TRANSIENT,
    Action,
    FaultParameters,
    ModelFaults,
    fault_words,
    kind_words,
    limit_words,
    message_words,
    when_words,
)
from tui_agent.core.recovery.rules import Rule
from tui_agent.quantities import counted

DOUBTFUL = frozenset({FaultKind.BAD_OUTPUT, FaultKind.UNKNOWN})
"""Faults that rarely pass by themselves."""
SAME_ANSWERS = 3
"""Answers with the same words to the same request that are no chance any more."""

FIRST_LOOK, LAST_LOOK = 900.0, 3_600.0
"""Seconds between calls while a limit stands that names no time: doubled from the first to the last."""
LATE = 12.0
"""Seconds, at the most, after the time of a reset at which the next call is made: clocks differ."""


@dataclass(frozen=True)
class FaultPlan:
    """The next action. `delay` in seconds before a retry; `next_model` for a fallback; `until`: when a limit lets the
    next call through, in seconds since 1970.
    """

    action: Action
    reason: str
    delay: float = 0.0
    next_model: str = ""
    until: float | None = None

    @property
    def rule(self) -> Rule:
        return ACTIONS[self.action][1]


def plan(
    policy: FaultParameters,
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
    """Decide what to do about `fault`, which comes after `faults`.

    `fallbacks` are the other models for such a fault in their order. `can_shrink`: a smaller window would
    change the request. `can_write_calls`: the model may write its calls as text instead. `nearly_full`: the
    request came near the model's window. `jitter` is a random number in [0, 1). `now`: seconds since 1970;
    `on_limit` and `wait_at_most`: the operator's choices for a limit of use.
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
            "shrink", f"{kind_words(fault)}: the request nearly fills the window and is shortened once"
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
    """Tell if a limit by the minute is less than the request alone takes: no wait helps."""
    window, prompt = fault.window, fault.prompt_tokens
    return fault.kind is FaultKind.RATE_LIMIT and bool(window and prompt and prompt > window)


def _limits(policy: FaultParameters, fault: Fault) -> bool:
    """Tell if a limit of use was reached, or the provider asks for more patience than a retry has."""
    if fault.kind is FaultKind.USAGE_LIMIT:
        return True
    asked = fault.retry_after or 0.0
    return fault.kind in TRANSIENT and asked > policy.retry_after_cap and not _too_large(fault)


_BRIEF_WAITS = 3
"""Short waits for a limit that nobody chose to wait for."""


def _limited(
    policy: FaultParameters,
    faults: ModelFaults,
    fault: Fault,
    operator_present: bool,
    fallbacks: tuple[str, ...],
    jitter: float,
    now: float,
    on_limit: OnLimit | None,
    wait_at_most: float,
) -> FaultPlan:
    """Choose among a wait, another model, a question and the end: as the operator chose, else by who is there."""
    until = _lets_through(faults, fault, jitter, now)
    left = max(0.0, until - now)
    known = fault.kind is FaultKind.USAGE_LIMIT
    said = f"{limit_words(fault, now)}: {message_words(fault)}" if known else _asks_to_wait(fault)
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
        asked = f"{when_words(fault, now)}: {fault.message}" if known else said
        return FaultPlan("ask", asked, until=until)
    return FaultPlan("stop" if known else "degrade", said, until=until)


def _asks_to_wait(fault: Fault) -> str:
    return f"{kind_words(fault)}: the provider asks to wait {fault.retry_after or 0.0:.0f} s: {message_words(fault)}"


def _lets_through(faults: ModelFaults, fault: Fault, jitter: float, now: float) -> float:
    """Say when the next call is worth a try, in seconds since 1970."""
    at = fault.resets_at
    if at is None and fault.retry_after is not None:
        at = now + fault.retry_after
    if at is None:
        return now + min(FIRST_LOOK * 2.0 ** min(faults.limits, 10), LAST_LOOK)
    if (
        at <= now
    ):  # it should have been reset by now: clocks differ by seconds, and some limits stand for an hour more
        return now + min(LATE * 2.0 ** min(faults.limits, 10), FIRST_LOOK) * (0.5 + jitter / 2)
    return at + min(LATE, 1.0 + (at - now) / 60) * (0.2 + 0.8 * jitter)


def _transient(
    policy: FaultParameters,
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
        f"{kind_words(fault)}: the server said the same {counted(same, 'time')}"
        if same >= SAME_ANSWERS
        else f"{kind_words(fault)}: {tries} {'try' if tries == 1 else 'tries'} failed"
    )
    unused = _unused(faults, fallbacks)
    if unused:
        return FaultPlan("fallback", f"{why}; this call goes to {unused}", next_model=unused)
    return FaultPlan("ask" if operator_present else "degrade", f"{why}: {message_words(fault)}")


def _unused(faults: ModelFaults, fallbacks: tuple[str, ...]) -> str:
    return next((model for model in fallbacks if model not in faults.used_fallbacks), "")


def backoff(policy: FaultParameters, tries: int, jitter: float) -> float:
    """Count the seconds to wait after `tries` failed tries: exponential, the upper half of each wait with jitter."""
    doublings = min(max(tries - 1, 0), 30)
    return min(policy.backoff_cap, policy.backoff_base * 2.0**doublings) * (0.5 + jitter / 2)


_WAYS_ON = (
    "Ways on: a model with a larger context window (/model, --model), /compact, "
    "or smaller results (a part of the file)."
)
