"""The closing turn: before recovery ends a run, the model may bring its work into its best state and say what it has.

One reply and its calls, once a run. Not for an end that the operator wants, an interruption or a fault of the
model, and only if the budgets allow one more call (`closing.turn`).
"""

from __future__ import annotations

from tui_agent.core import budgets, events
from tui_agent.core.decision.endings import partial
from tui_agent.core.decision.steps import Finish, Record, StartIteration, Step
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.note import closing_note
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState

COMBINED = "combined"

_ROOM = 2.5
"""The size of one more call for a budget, in average calls of the run: the last ones are the longest."""


def end(state: RunState, finished: events.RunFinished) -> Step:
    """The end of the run, or the closing turn before it."""
    if not _may_close(state):
        return Finish(finished)
    opened = events.ClosingTurnOpened(
        iteration=state.run.iteration,
        outcome=finished.outcome,
        reason=finished.reason,
        detector=finished.detector,
        ended_by=finished.rule,
        rule=Rule.CLOSING_TURN,
    )
    return Record((opened,))


def in_closing(state: RunState, closing: events.ClosingTurnOpened) -> Step:
    """The one turn that is left, then the end that it precedes."""
    if state.run.iteration > closing.iteration:
        return Finish(partial(state, closing.outcome, closing.reason, closing.detector, closing.ended_by))
    text = closing_note(closing.reason)
    if state.note != text and not state.note_edited:
        return Record((events.NotePrepared(text=text, rules=(Rule.CLOSING_TURN,)),))
    return StartIteration(state.run.iteration + 1)


def _may_close(state: RunState) -> bool:
    policy = state.recovery.policy
    return (
        policy.name == COMBINED
        and policy.closing_turn
        and state.closing is None
        and state.stop is None
        and state.recovery.of(ModelFaults).last is None
        and all(_affordable(state, spent) for spent in budgets.spendings(state))
    )


def _affordable(state: RunState, spent: budgets.Spending) -> bool:
    metrics = state.metrics
    of_run = next(kind for kind in budgets.BUDGETS.values() if kind.rule is spent.kind.rule)
    average = of_run.used(metrics) / max(1, metrics.model_calls)
    return spent.limit - spent.used > _ROOM * average
