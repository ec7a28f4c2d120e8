"""Budgets: what a run and its session may cost, in USD, tokens and working time, and how fast that is used up.

Pure: everything is read from the state. Limits are held between iterations, so the call that reaches one is the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.core.recovery.rules import Rule

if TYPE_CHECKING:
    from tui_agent.core.projections.metrics import Metrics
    from tui_agent.core.state import RunState

WITHOUT = "without this limit"
NO_LIMIT = "no limit"

_AMOUNT = re.compile(r"(\d[\d_,]*(?:\.\d+)?|\.\d+)\s*([A-Za-z]*)")
_UNITS = {
    Rule.LIMIT_TOKENS: {"k": 1e3, "m": 1e6},
    Rule.LIMIT_TIME: {"m": 60.0, "min": 60.0, "minutes": 60.0, "h": 3_600.0, "hours": 3_600.0},
}
"""By the rule of a budget, what the units of an answer mean."""

_NO_LIMIT = re.compile(r"\b(?:without|unlimited|no limit)\b", re.IGNORECASE)


class _Kind(NamedTuple):
    """The measure of a budget: of the run or the session, in words, and the form of an amount."""

    whose: str
    did: str
    used: Callable[[Metrics], float]
    written: Callable[[float], str]
    rule: Rule


def _usd(amount: float) -> str:
    return f"{amount:.2f} USD" if amount >= 1 else f"{amount:.4f} USD"


def _tokens(amount: float) -> str:
    return f"{amount:,.0f} tokens"


def _time(amount: float) -> str:
    minutes, seconds = divmod(round(amount), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


BUDGETS: dict[str, _Kind] = {
    "max_cost": _Kind("run", "cost", lambda m: m.usage.priced, _usd, Rule.LIMIT_COST),
    "max_session_cost": _Kind("session", "cost", lambda m: m.session_usage.priced, _usd, Rule.LIMIT_COST),
    "max_run_tokens": _Kind("run", "took", lambda m: m.usage.tokens, _tokens, Rule.LIMIT_TOKENS),
    "max_session_tokens": _Kind(
        "session", "took", lambda m: m.session_usage.tokens, _tokens, Rule.LIMIT_TOKENS
    ),
    "max_run_time": _Kind("run", "worked for", lambda m: m.worked, _time, Rule.LIMIT_TIME),
    "max_session_time": _Kind("session", "worked for", lambda m: m.session_worked, _time, Rule.LIMIT_TIME),
}
"""By the key of the setting."""


@dataclass(frozen=True)
class Spending:
    """The used part of one budget."""

    key: str
    used: float
    limit: float
    unpriced: int = 0
    """Calls without a known price, beside what a cost budget knows."""

    @property
    def kind(self) -> _Kind:
        return BUDGETS[self.key]

    @property
    def share(self) -> float:
        """Of the limit; 1.0 is all of it."""
        return self.used / self.limit

    def in_words(self) -> str:
        """One sentence."""
        kind = self.kind
        more = (
            f" ({self.unpriced} {'call has' if self.unpriced == 1 else 'calls have'} no known price)"
            if self.unpriced
            else ""
        )
        return f"The {kind.whose} {kind.did} {kind.written(self.used)}{more}; its limit is {kind.written(self.limit)}."

    def raised(self) -> float:
        """The limit raised by itself until it is above what was used."""
        return self.limit * (int(self.used / self.limit) + 1)

    def options(self) -> tuple[str, str]:
        """How the operator may go on."""
        return f"go on, up to {self.kind.written(self.raised())}", WITHOUT

    def limit_in(self, text: str) -> float | None:
        """The new limit that an answer names, `inf` for none; None if it names no limit above the used
        amount.
        """
        if text == self.options()[0]:
            return self.raised()
        if _NO_LIMIT.search(text):
            return float("inf")
        units = _UNITS.get(self.kind.rule, {})
        amounts = [
            float(re.sub(r"[_,]", "", number)) * units.get(unit.lower(), 1.0)
            for number, unit in _AMOUNT.findall(text)
        ]
        named = sum(amounts) if self.kind.rule is Rule.LIMIT_TIME else next(iter(amounts), 0.0)
        return named if self.used < named < float("inf") else None


def more_in(text: str) -> float | None:
    """The number of further units that an answer names, `inf` for no limit; None if it names no number."""
    if _NO_LIMIT.search(text):
        return float("inf")
    found = _AMOUNT.search(text)
    more = int(float(re.sub(r"[_,]", "", found[1]))) if found else 0
    return float(more) if more > 0 else None


def spendings(state: RunState) -> Iterator[Spending]:
    """Every budget that is set."""
    metrics = state.metrics
    for key, limit in state.run.limits.items():
        kind = BUDGETS.get(key)
        if kind is not None:
            usage = metrics.session_usage if kind.whose == "session" else metrics.usage
            unpriced = usage.unpriced if kind.rule is Rule.LIMIT_COST else 0
            yield Spending(key, kind.used(metrics), limit, unpriced)


def exceeded(state: RunState) -> Spending | None:
    """The first budget that is used up."""
    return next((spent for spent in spendings(state) if spent.used >= spent.limit), None)


def near(state: RunState) -> Spending | None:
    """The first budget whose end is near and was not warned of."""
    return next(
        (
            spent
            for spent in spendings(state)
            if spent.key not in state.warned and spent.share >= state.run.budget_warning
        ),
        None,
    )


def warning(state: RunState, spent: Spending) -> str:
    """A sentence for the operator before the end of a budget: the used part, and the steps for which the rest
    will do.
    """
    kind, metrics = spent.kind, state.metrics
    text = f"{spent.in_words().rstrip('.')} ({spent.share:.0%})."
    worked = metrics.session_worked if kind.whose == "session" else metrics.worked
    if kind.rule is not Rule.LIMIT_TIME and worked > 0 and spent.used > 0:
        a_minute = spent.used / worked * 60.0
        left = (spent.limit - spent.used) / spent.used * worked
        text = f"{text} At {kind.written(a_minute)} a minute the rest is used up in about {_time(left)}."
    return text


_FURTHER = 4
"""Times the step limit that a run without any other budget may go on alone while it gets further."""


def steps_used_up(state: RunState) -> bool:
    """Tell if the run may take no further step. A run that goes on alone counts those since it changed something, if
    nobody named their number; other budgets bound it then.
    """
    run, recovery = state.run, state.recovery
    if run.iteration < run.max_iterations:
        return False
    if not (run.more_steps and recovery.goes_on) or (
        not run.limits and run.iteration >= _FURTHER * run.max_iterations
    ):
        return True
    return run.iteration - recovery.progressed >= run.max_iterations
