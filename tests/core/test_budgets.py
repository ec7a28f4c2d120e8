"""What a run may use, what is left of it, and which limit an answer names."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.core import budgets, events
from tui_agent.core.budgets import Spending
from tui_agent.core.fold import apply
from tui_agent.core.names import BUDGET_KEYS
from tui_agent.core.projections.entries import OutcomeEntry
from tui_agent.core.state import RunState

ANSWERS = [
    ("max_cost", "2.50", 2.5),
    ("max_cost", "up to 2.50 USD please", 2.5),
    ("max_cost", "$3", 3.0),
    ("max_cost", "0.50", None),
    ("max_cost", "yes", None),
    ("max_cost", "without this limit", float("inf")),
    ("max_cost", "go on, up to 2.00 USD", 2.0),
    ("max_run_tokens", "20k", 20_000),
    ("max_run_tokens", "1,500,000 tokens", 1_500_000),
    ("max_session_tokens", "2M", 2_000_000),
    ("max_run_time", "10 min", 600),
    ("max_run_time", "1 h 30 min", 5_400),
    ("max_session_time", "90", 90),
    ("max_session_time", "9" * 400, None),
]


@pytest.mark.parametrize(("key", "text", "limit"), ANSWERS)
def test_an_answer_names_a_limit_above_what_is_used_or_none_at_all(
    key: str, text: str, limit: float | None
) -> None:
    assert Spending(key, used=1.2, limit=1.0).limit_in(text) == limit


@pytest.mark.parametrize("key", BUDGET_KEYS)
@pytest.mark.parametrize("used", [1.0, 1.5, 2.0, 7_300.0])
def test_each_way_to_go_on_that_is_offered_leads_on(key: str, used: float) -> None:
    spent = Spending(key, used, limit=1.0)
    for option in spent.options():
        limit = spent.limit_in(option)
        assert limit is not None
        assert limit > used


def played(*steps: tuple[float, events.Event], begin: float = 1.0, **start: Any) -> RunState:
    state = RunState()
    started = events.RunStarted(run=1, task="x", policy="combined", **start)
    for seq, (at, event) in enumerate(((begin, started), *steps), 1):
        state = apply(state, event.stamped(seq, at))
    return state


ASKED = events.ApprovalAsked(id="a", call_id="c", tool="bash", input={}, preview="ls")
ANSWERED = events.ApprovalAnswered(id="a", decision="once")


def test_waits_for_the_operator_are_no_working_time() -> None:
    state = played(
        (100.0, events.IterationStarted(iteration=1)),
        (130.0, ASKED),
        (5_000.0, ANSWERED),
        (5_010.0, events.IterationFinished(iteration=1)),
        (9_000.0, events.IterationStarted(iteration=2)),
        (9_005.0, events.SessionResumed(app_version="1")),
        (9_025.0, events.IterationFinished(iteration=2)),
    )
    assert (state.metrics.worked, state.metrics.session_worked) == (60.0, 60.0)


def test_the_time_of_a_run_leaves_out_that_in_which_no_process_was_there() -> None:
    state = played(
        (110.0, events.IterationStarted(iteration=1)),
        (140.0, ASKED),
        (150.0, events.SessionResumed(app_version="1")),
        (90_000.0, events.SessionResumed(app_version="1")),
        (90_020.0, ANSWERED),
        (90_025.0, events.IterationFinished(iteration=1)),
        (90_030.0, events.RunFinished(outcome=events.Outcome.ANSWERED)),
        (99_000.0, events.SessionResumed(app_version="1")),
        begin=100.0,
    )
    ended = state.conversation.entries[-1]
    assert isinstance(ended, OutcomeEntry)
    assert ended.duration == (140.0 - 100.0) + (90_030.0 - 90_000.0)
    assert state.metrics.waited(99_000.0) == 20.0


def test_a_warning_says_how_long_the_rest_will_do() -> None:
    state = played(
        (0.0, events.IterationStarted(iteration=1)),
        (90.0, events.ReplyFinished(text="x", cost=0.9)),
        (120.0, events.IterationFinished(iteration=1)),
        max_cost=1.0,
    )
    spent = budgets.near(state)
    assert spent is not None
    assert budgets.warning(state, spent) == (
        "The run cost 0.9000 USD; its limit is 1.00 USD (90%). At 0.4500 USD a minute the rest is used up in "
        "about 13 s."
    )


def test_what_was_raised_for_the_session_stays_raised_and_what_was_raised_for_a_run_does_not() -> None:
    again = events.RunStarted(
        run=2, task="y", policy="combined", max_cost=1.0, budgets={"max_session_cost": 2.0}
    )
    state = played(
        (1.0, events.BudgetRaised(key="max_cost", limit=3.0)),
        (2.0, events.BudgetRaised(key="max_session_cost", limit=5.0)),
        (3.0, again),
        max_cost=1.0,
        budgets={"max_session_cost": 2.0},
    )
    assert state.run.limits == {"max_cost": 1.0, "max_session_cost": 5.0}
    state = apply(state, events.BudgetRaised(key="max_session_cost", limit=None).stamped(9, 4.0))
    assert apply(state, again.stamped(10, 5.0)).run.limits == {"max_cost": 1.0}
