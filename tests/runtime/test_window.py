"""The window cuts whole groups only and much at once; what must stay stays, and the prefix between cuts is stable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.cases import Call, Case, Fault, Reply
from tests.cases.player import Player
from tui_agent.core.decision.steps import CallModel
from tui_agent.core.events import FaultKind
from tui_agent.core.evolve import evolve
from tui_agent.core.projections.history import Group, GroupKind, History
from tui_agent.core.request import window
from tui_agent.core.request.build import build
from tui_agent.core.request.coherence import Validator


def group(kind: GroupKind, tokens: int, run: int = 1, seq: int = 0) -> Group:
    return Group(kind, ({"role": "user", "content": "x"},), tokens, run, seq)


def history(*groups: Group) -> History:
    made = History()
    for one in groups:
        made = made.plus(one)
    return made


def after_cut(before: History, run: int, budget: int) -> History:
    cut = window.cut(before, run, budget)
    return before if cut is None else evolve(before, cut=cut.stamped(before.groups[-1].seq, 0.0))


def seqs(cut: History, run: int = 1) -> list[int]:
    return [kept.seq for kept in window.groups_in_window(cut, run)]


def test_nothing_is_cut_while_it_fits() -> None:
    assert window.cut(history(group("task", 10, seq=1), group("exchange", 90, seq=2)), 1, 100) is None


def test_the_oldest_exchanges_go_first_and_a_cut_leaves_room() -> None:
    full = history(group("task", 10, seq=1), *(group("exchange", 100, seq=n) for n in range(2, 12)))
    cut = window.cut(full, 1, 800)
    assert cut is not None
    assert (cut.groups, cut.rule) == (6, "window.cut")
    assert seqs(after_cut(full, 1, 800)) == [1, 8, 9, 10, 11]
    assert "6 earlier steps" in cut.remark


def test_between_two_cuts_every_request_begins_with_the_one_before() -> None:
    grown = history(group("task", 10, seq=1))
    before: list[Group] = []
    cuts = 0
    for seq in range(2, 70):
        grown = grown.plus(group("exchange", 100, seq=seq))
        newer = after_cut(grown, 1, 2_000)
        cuts += newer is not grown
        shown = window.groups_in_window(newer, 1)
        if newer is grown:
            assert shown[: len(before)] == before
        grown, before = newer, shown
    assert 4 <= cuts <= 9, "about every eighth iteration, not every one"


def test_the_runs_first_message_and_the_operators_last_one_stay_whatever_the_budget() -> None:
    full = history(
        group("task", 50, run=1, seq=1),
        group("exchange", 50, run=1, seq=2),
        group("task", 50, run=2, seq=3),
        group("exchange", 50, run=2, seq=4),
        group("operator", 50, run=2, seq=5),
        group("exchange", 50, run=2, seq=6),
        group("exchange", 50, run=2, seq=7),
    )
    assert seqs(after_cut(full, 2, 0), 2) == [3, 5, 7]


def test_a_result_that_alone_is_too_long_is_cut_in_the_middle_and_never_twice_the_same() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "bash"}}]}
    long = {"role": "tool", "tool_call_id": "c", "content": "x" * 40_000}
    full = history(group("task", 10, seq=1), Group("exchange", (call, long), 10_000, 1, 2))
    first = after_cut(full, 1, 2_000)
    shown = window.messages_in_window(first, 1)
    assert window.tokens_of(shown) <= 2_000
    assert "characters left out" in shown[-1].messages[-1]["content"]
    second = window.cut(first, 1, 900)
    assert second is not None
    assert first.cut is not None
    assert second.longest_result < first.cut.longest_result


def test_what_cannot_be_made_smaller_is_not_cut_again() -> None:
    full = history(group("task", 5_000, seq=1))
    assert window.cut(full, 1, 100) is None


kinds = st.sampled_from(["task", "operator", "exchange", "exchange", "exchange"])


@given(
    st.lists(st.tuples(kinds, st.integers(1, 500)), min_size=1, max_size=60),
    st.integers(0, 5_000),
)
def test_what_is_kept_is_in_order_and_beyond_the_pinned_ones_within_the_budget(
    shapes: list[tuple[GroupKind, int]], budget: int
) -> None:
    full = history(*(group(kind, tokens, seq=place) for place, (kind, tokens) in enumerate(shapes, 1)))
    cut = after_cut(full, 1, budget)
    places = seqs(cut)
    assert places == sorted(places)
    assert places[-1] == len(shapes)
    smallest = window.tokens_of(window.groups_in_window(after_cut(full, 1, 0), 1))
    kept = window.tokens_of(window.groups_in_window(cut, 1))
    assert kept <= max(budget, smallest)
    assert window.tokens_in_window(cut, 1) == window.tokens_of(window.messages_in_window(cut, 1))


@given(
    lengths=st.lists(st.integers(1, 60_000), min_size=1, max_size=8),
    limits=st.lists(st.none() | st.integers(300, 60_000), min_size=1, max_size=6),
)
def test_no_request_goes_out_twice_after_an_overflow_whatever_its_figures(
    lengths: list[int], limits: list[int | None]
) -> None:
    player = Player(Case(id="any", proves=(), why="", steps=()))
    for number, length in enumerate(lengths):
        call = Call(tool="read_file", input={"path": str(number)}, text="x" * length)
        player.play(Reply(calls=(call,)))
    for limit in limits:
        if not isinstance(player.demand, CallModel):
            break
        before = build(player.state, player.demand.note, Validator()).messages
        player.play(Fault(kind=FaultKind.CONTEXT_OVERFLOW, limit=limit))
        if isinstance(player.demand, CallModel):
            after = build(player.state, player.demand.note, Validator()).messages
            assert after != before
            assert len(str(after)) < len(str(before))
