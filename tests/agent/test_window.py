"""The window cuts whole groups only, and what must stay stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.agent.window import select
from tui_agent.folds.history import Group, GroupKind


def group(kind: GroupKind, tokens: int, run: int = 1, seq: int = 0) -> Group:
    return Group(kind, ({"role": "user", "content": "x"},), tokens, run, seq)


def test_without_a_budget_everything_stays() -> None:
    groups = [group("task", 10), group("exchange", 10_000)]
    assert select(groups, 1, None).dropped == 0


def test_the_oldest_exchanges_go_first() -> None:
    groups = [group("task", 10), *(group("exchange", 100, seq=n) for n in range(10))]
    window = select(groups, 1, 350)
    assert [kept.seq for kept in window.groups[1:]] == [7, 8, 9]
    assert window.dropped == 7


def test_the_runs_first_message_and_the_operators_last_one_stay_whatever_the_budget() -> None:
    groups = [
        group("task", 50, run=1, seq=1),
        group("exchange", 50, run=1, seq=2),
        group("task", 50, run=2, seq=3),
        group("exchange", 50, run=2, seq=4),
        group("operator", 50, run=2, seq=5),
        group("exchange", 50, run=2, seq=6),
        group("exchange", 50, run=2, seq=7),
    ]
    assert [kept.seq for kept in select(groups, 2, 0).groups] == [3, 5, 7]


kinds = st.sampled_from(["task", "operator", "exchange", "exchange", "exchange"])


@given(
    st.lists(st.tuples(kinds, st.integers(1, 500)), min_size=1, max_size=60),
    st.integers(0, 5_000),
)
def test_what_is_kept_is_in_order_and_beyond_the_pinned_ones_within_the_budget(
    shapes: list[tuple[GroupKind, int]], budget: int
) -> None:
    groups = [group(kind, tokens, seq=place) for place, (kind, tokens) in enumerate(shapes)]
    window = select(groups, 1, budget)
    places = [kept.seq for kept in window.groups]
    assert places == sorted(places)
    assert places[-1] == len(groups) - 1
    assert len(places) + window.dropped == len(groups)
    pinned = select(groups, 1, 0)
    assert window.tokens <= max(budget, pinned.tokens)
