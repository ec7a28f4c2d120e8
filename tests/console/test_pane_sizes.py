"""The panes at the conversation's side take the sizes that the operator gives them, by key, mouse and command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region

from tests.console.live_harness import LiveSession, live
from tui_agent.console.panes.pane_sizes import LOWEST, PaneSizes, cells, fitted, moved, share_of
from tui_agent.frontend import preferences

ROWS = st.lists(st.integers(0, 200), min_size=1, max_size=5)


@given(ROWS, st.integers(0, 120))
def test_what_was_chosen_fits_any_terminal(rows: list[int], room: int) -> None:
    fit = fitted(rows, room)
    assert len(fit) == len(rows)
    assert all(each >= LOWEST for each in fit)
    assert sum(fit) <= max(room - LOWEST, LOWEST * len(fit))


@given(ROWS, st.data(), st.integers(-50, 50), st.integers(10, 120))
def test_an_edge_moves_one_row_of_panes_and_leaves_the_last_its_room(
    rows: list[int], data: st.DataObject, by: int, room: int
) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    after = moved(rows, place, by, room)
    assert after[:place] + after[place + 1 :] == tuple(rows[:place] + rows[place + 1 :])
    assert after[place] == LOWEST or sum(after) + LOWEST <= room


@given(st.integers(20, 75), st.integers(108, 400))
def test_both_sides_keep_what_they_need(share: int, width: int) -> None:
    assert 30 <= cells(share, width) <= width - 40


def test_words_come_back_and_damaged_ones_count_as_not_chosen() -> None:
    sizes = PaneSizes(45, (5, 6, 7, 8), (9, 14))
    assert PaneSizes.of(sizes.words()) == sizes
    assert PaneSizes.of(PaneSizes().words()) == PaneSizes()
    assert PaneSizes.of({"side_share": "900", "side_grid": "9,x", "side_column": "²"}) == PaneSizes()
    assert [share_of(text) for text in ("45%", "45", "3%", "200%", "²5%")] == [45, None, None, None, None]


def _region(console: LiveSession, name: str) -> Region:
    return console.screen.query_one(name).region


async def test_keys_of_a_pane_move_its_edges_and_the_sizes_are_remembered(tmp_path: Path) -> None:
    async with live((140, 40)) as console:
        await console.press("f3")
        assert console.screen.focused is console.screen.query_one("#ring")
        side, ring = _region(console, "#recovery").width, _region(console, "#ring").height
        await console.press("less_than_sign")
        for _ in range(2):
            console.screen.action_heighten(1)  # faster than a layout, as keys may come
        await console.until(lambda: _region(console, "#recovery").width > side)
        await console.until(lambda: _region(console, "#ring").height == ring + 2)
        await console.press("greater_than_sign", "greater_than_sign", "minus")
        await console.until(lambda: _region(console, "#recovery").width < side)
        await console.until(lambda: _region(console, "#ring").height == ring + 1)
        assert console.prompt == ""


@pytest.mark.parametrize("size", [(140, 40), (200, 60)])
async def test_the_mouse_draws_the_edges_along_and_selects_no_text(size: tuple[int, int]) -> None:
    async with live(size) as console:
        pilot, screen = console.pilot, console.screen
        edge = _region(console, "#recovery").x
        await pilot.mouse_down(offset=(edge, 5))
        await pilot.hover(offset=(edge - 10, 6))
        await pilot.mouse_up(offset=(edge - 10, 6))
        await console.until(lambda: abs(_region(console, "#recovery").x - (edge - 10)) <= 1)
        note = _region(console, "#note")
        height = _region(console, "#note").y
        await pilot.mouse_down(offset=(note.x + 8, note.y))
        await pilot.hover(offset=(note.x + 8, note.y + 2))
        await pilot.mouse_up(offset=(note.x + 8, note.y + 2))
        await console.until(lambda: _region(console, "#note").y == height + 2)
        assert _region(console, "#timeline").bottom == _region(console, "#recovery").bottom
        assert screen.get_selected_text() is None
        await pilot.hover(offset=(note.x + 8, note.y + 6))
        await pilot.pause()
        assert _region(console, "#note").y == height + 2, "the button is up"


async def test_a_share_is_given_by_command_kept_over_sizes_and_taken_back() -> None:
    async with live((200, 60)) as console:
        usual = _region(console, "#recovery").width
        await console.say("/panes 30%")
        await console.until(lambda: _region(console, "#recovery").width == 60)
        await console.pilot.resize_terminal(120, 40)
        await console.until(lambda: _region(console, "#recovery").width == 36)
        await console.say("/panes 95%")
        await console.until(lambda: "from 20% to 75%" in console.shown())
        await console.pilot.resize_terminal(200, 60)
        await console.say("/panes reset")
        await console.until(lambda: _region(console, "#recovery").width == usual)


async def test_panes_stand_below_each_other_where_the_side_was_made_too_narrow_for_two() -> None:
    async with live((200, 60)) as console:
        await console.say("/panes wide")
        await console.until(lambda: _region(console, "#ring").y == _region(console, "#confidence").y)
        await console.say("/panes 25%")
        await console.until(lambda: _region(console, "#ring").width == 50)
        assert _region(console, "#ring").bottom <= _region(console, "#confidence").y
        await console.say("/panes 60%")
        await console.until(lambda: _region(console, "#ring").width == 60)
        assert _region(console, "#ring").y == _region(console, "#confidence").y


async def test_another_start_has_the_sizes_of_the_last(tmp_path: Path) -> None:
    preferences.save(tmp_path, **PaneSizes(30, grid=(12, 8)).words())
    async with live((200, 60)) as console:
        console.screen.use(preferences.load(tmp_path))
        await console.until(lambda: _region(console, "#recovery").width == 60)
        await console.until(lambda: _region(console, "#ring").height == 12)
        assert _region(console, "#note").height == 8
