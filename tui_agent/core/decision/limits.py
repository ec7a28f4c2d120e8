"""The bounds of a run, looked at before each iteration: iterations, then budgets of money, tokens and time."""

from __future__ import annotations

from tui_agent.core import budgets, events
from tui_agent.core.decision.answers import INTERRUPTED
from tui_agent.core.decision.closing import end
from tui_agent.core.decision.endings import partial
from tui_agent.core.decision.steps import Finish, Record, Step
from tui_agent.core.names import ABOUT_BUDGET
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState


def before_iteration(state: RunState) -> Step | None:
    """What the bounds of the run demand before another iteration."""
    run = state.run
    unpriced = _unpriced(state) if run.limits else None
    if unpriced is not None:
        return Record((unpriced,))
    if run.iteration >= run.max_iterations:
        every = run.max_iterations
        used = "The only step is" if every == 1 else f"All {every} steps are"
        reason = f"{used} used up without an answer."
        ended = partial(state, events.Outcome.PARTIAL, reason, "max_iterations", Rule.LIMIT_ITERATIONS)
        return end(state, ended)
    if not run.limits:
        return None
    spent = budgets.exceeded(state)
    if spent is not None:
        return _over_budget(state, spent)
    near = budgets.near(state)
    if near is None:
        return None
    text = budgets.warning(state, near)
    rule = Rule.LIMIT_WARNING
    return Record((events.Notice(severity="warning", text=text, origin="budget", about=near.key, rule=rule),))


def _unpriced(state: RunState) -> events.Notice | None:
    """Said once where a cost is limited and known in part only."""
    limits = state.run.limits
    limit = limits.get("max_cost", limits.get("max_session_cost"))
    if limit is None or not state.metrics.usage.unpriced or state.unpriced_noticed:
        return None
    text = (
        f"A call of {state.run.model} has no known price: the limit of {limit} USD counts "
        "the other calls alone. Set its price in the configuration, under [prices]."
    )
    return events.Notice(severity="warning", text=text, origin="cost")


def _over_budget(state: RunState, spent: budgets.Spending) -> Step:
    """A partial answer, or what the operator says where one is there."""
    reason, answer = spent.in_words(), state.budget_answer
    by_policy = answer is not None and answer.by != "operator" and answer.text != INTERRUPTED
    if not state.run.operator_present or by_policy:
        return Finish(partial(state, events.Outcome.PARTIAL, reason, spent.key, spent.kind.rule))
    if answer is None or answer.by != "operator":
        return Record((_budget_question(state, spent, reason),))
    if answer.choice == "partial":
        return Finish(partial(state, events.Outcome.PARTIAL, reason, spent.key, Rule.OPERATOR_PARTIAL))
    if answer.choice == "stop":
        return Finish(partial(state, events.Outcome.ESCALATED, reason, spent.key, Rule.OPERATOR_STOP))
    limit = spent.raised() if answer.choice == "retry" else spent.limit_in(answer.text)
    if limit is None:
        unclear = f"{answer.text.strip()!r} names no limit above that. {reason}"
        return Record((_budget_question(state, spent, unclear),))
    raised = events.BudgetRaised(
        key=spent.key, limit=None if limit == float("inf") else limit, rule=Rule.LIMIT_ASK
    )
    return Record((raised,))


def _budget_question(state: RunState, spent: budgets.Spending, reason: str) -> events.EscalationRaised:
    return events.EscalationRaised(
        id=f"budget-{state.seq + 1}",
        question=f"{reason} How should it go on?",
        source=ABOUT_BUDGET,
        rule=Rule.LIMIT_ASK,
        options=spent.options(),
    )
