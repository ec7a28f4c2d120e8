"""Failed model calls: what the run has seen of them, and how they read.

| counts | failed calls in a row; tries with one model and shrinkings of the window, within an iteration |
| resets | a reply; a new iteration begins with the run's own model again |
| levels | retry, wait, fallback, shrink: continue · next iteration: guide · ask the operator · partial answer · stop |

What is done about one is planned in `fault_plan`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tui_agent.core.events import (
    Fault,
    FaultKind,
    IterationStarted,
    Level,
    ModelFaulted,
    ReplyFinished,
    VerdictRecord,
)
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.detector import Detector, Standing
from tui_agent.core.recovery.parameters import Count, CountFrom0, Parameters, Seconds
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import verdict
from tui_agent.quantities import resets

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
_INVITES = re.compile(
    r"again|retry|temporar|unavailable|overload|busy|loading|timed? ?out|internal (?:server )?error\W*$|had an error",
    re.IGNORECASE,
)
"""Words of an error that may pass, or that say nothing of the request."""

ACTIONS: dict[Action, tuple[Level, Rule]] = {
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


class FaultParameters(Parameters):
    """Failed model calls."""

    model_faults: Literal["terminal", "next_iteration", "retry"] = "retry"
    """A failed model call ends the run, is left to the next step (FunnelCanary), or is retried."""
    model_tries: Count = 5
    """Calls made in all after a fault that may pass, before the next model."""
    model_patience: Seconds = 60.0
    """Seconds in all to wait for a server that cannot be reached or restarts, before the next model."""
    bad_output_retries: CountFrom0 = 2
    """Retries for empty or malformed output."""
    shrinks: CountFrom0 = 2
    """How often the request is shortened for a prompt that is too long, before the partial answer."""
    backoff_base: Seconds = 1.0
    """Seconds; upper bound of the first wait, doubled with each try."""
    backoff_cap: Seconds = 60.0
    """Seconds; upper bound of every wait that the provider did not ask for."""
    retry_after_cap: Seconds = 300.0
    """Seconds; a provider that asks for a longer wait counts as out of retries."""


@dataclass(frozen=True)
class ModelFaults(Detector[FaultParameters]):
    """Failed calls of the run, as far as it has seen any."""

    name = "model"
    parameters = FaultParameters
    off = {"model_faults": "terminal"}
    judges_faults = True

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

    @classmethod
    def has_a_say(cls, policy: FaultParameters) -> bool:
        return True  # whatever the policy does about a fault is said

    def faulted(self, event: ModelFaulted) -> ModelFaults:
        """Count one more fault."""
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
        """Count how often the server has said this of the request now, unless that is an accident of its own."""
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

    def replied(self) -> ModelFaults:
        """Begin anew: the model has answered."""
        if self.last is None:
            return self
        return ModelFaults(self.total, stand_ins=self.stand_ins, limited=self.limited)

    def next_iteration(self) -> ModelFaults:
        """Try the run's own model first again."""
        if not (self.tries or self.asked or self.used_fallbacks):
            return self
        return ModelFaults(self.total, self.in_row, self.last, stand_ins=self.stand_ins, limited=self.limited)

    hears = {
        ModelFaulted: lambda self, event, _: self.faulted(event),
        ReplyFinished: lambda self, *_: self.replied(),
        IterationStarted: lambda self, *_: self.next_iteration(),
    }

    def usable(self, model: str, at: float = 0.0) -> str:
        """Name the model, or what takes its place in this run; at this time, in seconds since 1970."""
        seen: set[str] = set()
        while model in self.stand_ins and model not in seen and at < self.limited.get(model, math.inf):
            seen.add(model)
            model = self.stand_ins[model]
        return model

    def verdict(self, standing: Standing[FaultParameters]) -> VerdictRecord:
        """Judge by what was done about the fault; nothing once the model has answered."""
        if self.last is None:
            return self.silent
        level, rule = ACTIONS[self.last.action]
        return verdict(level, rule, self.last.reason or fault_words(self.last.fault))


def fault_words(fault: Fault) -> str:
    """Write kind, status, who was asked, message and advice in a sentence or two."""
    return f"{kind_words(fault)}: {message_words(fault)}"


def kind_words(fault: Fault) -> str:
    """Name the kind, and who said it under which status."""
    return f"{fault.kind.in_words}{_said_by(fault)}"


def _said_by(fault: Fault) -> str:
    if not fault.asked:
        return ""
    return f" ({fault.status} from {fault.asked})" if fault.status is not None else f" ({fault.asked})"


def message_words(fault: Fault) -> str:
    """Write the message and the advice."""
    return f"{fault.message} {fault.advice}".strip()


def limit_words(fault: Fault, now: float) -> str:
    """Write `limit reached, resets 15:00 (in 2 h 13 min)`, with who says so."""
    return f"{when_words(fault, now)}{_said_by(fault)}"


def when_words(fault: Fault, now: float) -> str:
    """Name the kind, and when the limit resets if that is known."""
    when = "" if fault.resets_at is None else f", {resets(fault.resets_at, now)}"
    return f"{fault.kind.in_words}{when}"
