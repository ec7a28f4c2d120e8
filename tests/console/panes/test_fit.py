"""Every pane, at every size, for every state: nothing too wide, nothing unsafe, no crash."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.console.panes.sequences import event_sequences
from tests.console.panes.stage import ALL, PANES, Stage, lines_of, rows_of, too_wide
from tests.console.panes.stories import STORIES
from tui_agent.console.panes import ConversationPane
from tui_agent.console.panes.transcript import ConversationRows
from tui_agent.core.events import Compacted
from tui_agent.core.fold import apply
from tui_agent.core.state import RunState
from tui_agent.frontend.lines.styled import text_of
from tui_agent.terminal_text import is_safe

SUMMARY_OF_NOTHING = Compacted(to_seq=1, groups=1, summary="", remark="", tokens_before=9000, tokens_after=1)

SIZES = [(20, 3), (20, 40), (34, 8), (60, 12), (120, 40)]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("story", STORIES)
async def test_no_line_is_wider_than_its_pane_at_any_size(kind: type, story: str) -> None:
    drawn = STORIES[story]()
    app = Stage(kind)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            app.show(drawn.state, drawn.now)
            await pilot.pause()
            pane = app.query_one(kind)
            assert too_wide(pane) == [], size
            rows = rows_of(pane)
            assert len({cell_len(row) for row in rows}) <= 1, size


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
async def test_an_empty_state_says_so_in_words(kind: type) -> None:
    app = Stage(kind)
    async with app.run_test(size=(60, 12)) as pilot:
        app.show(RunState(), 0.0)
        await pilot.pause()
        assert any(row.strip() for row in rows_of(app.query_one(kind)))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=event_sequences(), size=st.tuples(st.integers(20, 120), st.integers(3, 40)))
@example(events=[SUMMARY_OF_NOTHING], size=(20, 3))
async def test_any_sequence_of_events_can_be_shown_by_all_panes(events: list, size: tuple[int, int]) -> None:
    app = Stage(*ALL)
    async with app.run_test(size=(size[0], max(size[1] * 4, 24))) as pilot:
        state = RunState()
        for number, event in enumerate(events, 1):
            state = apply(state, event.stamped(number, 1_800_000_000.0 + number))
            app.show(state, 1_800_000_000.0 + number)
        await pilot.pause()
        for kind in ALL:
            pane = app.query_one(kind)
            assert too_wide(pane) == []
            lines, _ = lines_of(pane)
            assert all(is_safe(text_of(line)) for line in lines)
        assert pilot.app.is_running


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=event_sequences(), back=st.integers(0, 40), width=st.integers(8, 90))
def test_a_transcript_sought_back_and_forth_equals_one_drawn_afresh(
    events: list, back: int, width: int
) -> None:
    states = [RunState()]
    for number, event in enumerate(events, 1):
        states.append(apply(states[-1], event.stamped(number, float(number))))
    sought = ConversationRows()
    sought.resize(width)
    for state in (states[-1], states[max(0, len(states) - 1 - back)], states[-1]):
        sought.update(state.conversation, 3, waiting=False)
        sought.advance(state.at, "⠋")
        everything(sought)
    fresh = ConversationRows()
    fresh.resize(width)
    fresh.update(states[-1].conversation, 3, waiting=False)
    fresh.advance(states[-1].at, "⠋")
    assert everything(sought) == everything(fresh)


def everything(transcript: ConversationRows) -> list[str]:
    return [
        text_of(transcript.line(index, number))
        for index in range(len(transcript))
        for number in range(transcript.measure(index))
    ]


@pytest.mark.parametrize("kind", PANES, ids=lambda kind: kind.__name__)
async def test_a_pane_without_room_is_left_alone(kind: type) -> None:
    drawn = STORIES["troubled"]()
    app = Stage(kind)
    async with app.run_test(size=(4, 2)) as pilot:
        app.show(drawn.state, drawn.now)
        await pilot.pause()
        await pilot.resize_terminal(60, 12)
        app.show(drawn.state, drawn.now)
        await pilot.pause()
        pane = app.query_one(kind)
        assert any(row.strip() for row in rows_of(pane))
        assert isinstance(pane, ConversationPane) or too_wide(pane) == []
