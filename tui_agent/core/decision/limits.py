"""The bounds of a run, looked at before each iteration: iterations, then budgets of money, tokens and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tui_agent.core import budgets, events
from tui_agent.core.decision.answers import INTERRUPTED
from tui_agent.core.decision.closing import end
from tui_agent.core.decision.endings import partial
from tui_agent.core.decision.steps import Finish, Record, Step
from tui_agent.core.names import ABOUT_BUDGET, ABOUT_STEPS
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState

_LATELY = 10
"""Steps of which the question at the step limit says how they went."""


def before_iteration(state: RunState) -> Step | None:
    """The demand of the run's bounds before another iteration."""
    run = state.run
    unpriced = _unpriced(state) if run.limits else None
    if unpriced is not None:
        return Record((unpriced,))
    if budgets.steps_used_up(state):
        if run.more_steps and run.operator_present:
            return _ask(state, _steps(state))
        every = run.iteration if run.more_steps else run.max_iterations
        used = "The only step is" if every == 1 else f"All {every} steps are"
        reason = f"{used} used up without an answer."
        ended = partial(state, events.Outcome.PARTIAL, reason, "max_iterations", Rule.LIMIT_ITERATIONS)
        return end(state, ended)
    if not run.limits:
        return None
    spent = budgets.exceeded(state)
    if spent is not None:
        return _ask(state, _budget(spent))
    near = budgets.near(state)
    if near is None:
        return None
    text = budgets.warning(state, near)
    rule = Rule.LIMIT_WARNING
    return Record((events.Notice(severity="warning", text=text, origin="budget", about=near.key, rule=rule),))


def _unpriced(state: RunState) -> events.Notice | None:
    """Said once if a cost is limited and known in part only."""
    limits = state.run.limits
    limit = limits.get("max_cost", limits.get("max_session_cost"))
    if limit is None or not state.metrics.usage.unpriced or state.unpriced_noticed:
        return None
    text = (
        f"A call of {state.run.model} has no known price: the limit of {limit} USD counts "
        "the other calls alone. Set its price in the configuration, under [prices]."
    )
    return events.Notice(severity="warning", text=text, origin="cost")


@dataclass(frozen=True)
class _Bound:
    """A bound of the run that is reached, and how the operator may move it."""

    key: str
    """Of its setting."""
    reason: str
    rule: Rule
    """Ends the run if nobody is asked."""
    source: str
    """Of the question."""
    options: tuple[str, ...]
    next: float
    """The bound that is offered first."""
    named: Callable[[str], float | None]
    """The bound that an answer names, `inf` for none; None if it names no usable one."""
    wanted: str
    """The amount that an answer has to name."""


def _budget(spent: budgets.Spending) -> _Bound:
    return _Bound(
        spent.key,
        spent.in_words(),
        spent.kind.rule,
        ABOUT_BUDGET,
        spent.options(),
        spent.raised(),
        spent.limit_in,
        "limit above that",
    )


def _steps(state: RunState) -> _Bound:
    run, metrics = state.run, state.metrics
    lately = list(metrics.course.tail(max(0, len(metrics.course) - _LATELY)))
    worked = sum(not point.failures for point in lately)
    how = (
        f"the last {len(lately)} all worked"
        if worked == len(lately)
        else f"{worked or 'none'} of the last {len(lately)} worked"
    )
    used = "The only step is" if run.iteration == 1 else f"All {run.iteration} steps are"
    options = (f"{run.more_steps} more", budgets.NO_LIMIT)

    def named(text: str) -> float | None:
        if text == options[0]:
            return run.iteration + run.more_steps
        more = budgets.more_in(text)
        return None if more is None else run.iteration + more

    return _Bound(
        "max_iterations",
        f"{used} used up, {how}." if len(lately) > 1 else f"{used} used up.",
        Rule.LIMIT_ITERATIONS,
        ABOUT_STEPS,
        options,
        run.iteration + run.more_steps,
        named,
        "number of further steps",
    )


def _ask(state: RunState, bound: _Bound) -> Step:
    """A partial answer, or the operator's choice if one is there."""
    reason, answer = bound.reason, state.budget_answer
    by_policy = answer is not None and answer.by != "operator" and answer.text != INTERRUPTED
    if not state.run.operator_present or by_policy:
        return Finish(partial(state, events.Outcome.PARTIAL, reason, bound.key, bound.rule))
    if answer is None or answer.by != "operator":
        return Record((_question(state, bound, reason),))
    if answer.choice == "partial":
        return Finish(partial(state, events.Outcome.PARTIAL, reason, bound.key, Rule.OPERATOR_PARTIAL))
    if answer.choice == "stop":
        return Finish(partial(state, events.Outcome.ESCALATED, reason, bound.key, Rule.OPERATOR_STOP))
    limit = bound.next if answer.choice == "retry" else bound.named(answer.text)
    if limit is None:
        unclear = f"{answer.text.strip()!r} names no {bound.wanted}. {reason}"
        return Record((_question(state, bound, unclear),))
    raised = events.BudgetRaised(
        key=bound.key, limit=None if limit == float("inf") else limit, rule=Rule.LIMIT_ASK
    )
    return Record((raised,))


def _question(state: RunState, bound: _Bound, reason: str) -> events.EscalationRaised:
    return events.EscalationRaised(
        id=f"{bound.source}-{state.seq + 1}",
        question=f"{reason} How should it go on?",
        source=bound.source,
        rule=Rule.LIMIT_ASK,
        options=bound.options,
    )
