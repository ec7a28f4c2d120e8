"""What is covered is not rendered, and nobody sees a difference."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual._compositor import Compositor, visible_screen_stack
from textual.geometry import Region
from textual.strip import Strip

from tests.console.real_session import RealConsole, real_live
from tests.console.waiting import LIMIT
from tui_agent.console.panes.conversation import ConversationPane
from tui_agent.console.panes.dashboard import RecoveryColumn


def differences(console: RealConsole, crop: Region) -> list[tuple[int, int]]:
    """Line and column of each piece within `crop` that Textual's own compositor draws otherwise."""
    own = console.screen._compositor
    visible_screen_stack.set([])
    lines = crop.line_range.__contains__
    expected, drawn = Compositor._render_chops(own, crop, lines), own._render_chops(crop, lines)
    assert [list(line) for line in drawn] == [list(line) for line in expected]
    return [
        (y, column)
        for y in crop.line_range
        for (column, strip), end in zip(drawn[y].items(), own.cuts[y][1:], strict=True)
        if column < crop.right and end > crop.x and strip != expected[y][column]
    ]


@pytest.mark.parametrize("size", [(60, 20), (120, 40), (200, 60)])
async def test_the_screen_looks_as_textuals_own_compositor_draws_it(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with real_live(tmp_path, ["One.\n\n- two\n- three"], size=size) as console:
        await console.run("Say it.")
        width, height = size
        for crop in (
            Region(0, 0, width, height),
            Region(7, 3, width // 2, height // 2),
            Region(width - 9, 0, 9, height),
            Region(0, height - 4, width, 3),
        ):
            assert differences(console, crop) == []


async def test_a_container_that_is_covered_is_not_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, [], size=(120, 40)) as console:
        body = console.screen.query_one("#body")
        asked: list[Region] = []
        monkeypatch.setattr(body, "render_lines", lambda crop: asked.append(crop) or [])
        console.screen._compositor.render_strips()
        assert asked == []


async def test_a_frame_lays_out_and_paints_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with real_live(tmp_path, []) as console:
        screen = console.screen
        done: list[str] = []
        reflow, paint = screen._compositor.reflow, screen._compositor.render_update
        monkeypatch.setattr(
            screen._compositor, "reflow", lambda *given: done.append("laid out") or reflow(*given)
        )
        monkeypatch.setattr(
            screen._compositor, "render_update", lambda **given: done.append("painted") or paint(**given)
        )
        screen._layout_required = screen._repaint_required = True
        screen._on_timer_update()
        assert done == ["laid out", "painted"]
        # Textual tells a screen of its size once more when it has been laid out for it.
        done.clear()
        screen._screen_resized(screen.size)
        assert done == []


async def test_what_goes_is_painted_over_also_when_the_map_is_asked_for_before_the_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, []) as console:
        screen, compositor = console.screen, console.screen._compositor
        console.app.notify("A remark.", timeout=60)
        await console.until(lambda: screen.query("Toast") and screen.query_one("Toast").region.area)
        place = screen.query_one("Toast").region
        painted: list[Region] = []
        monkeypatch.setattr(
            compositor, "render_update", lambda **_: painted.extend(compositor._dirty_regions)
        )
        screen.query_one("ToastRack").styles.display = "none"
        compositor._full_map_invalidated = True
        assert screen.query_one("Toast") not in compositor.full_map
        screen._layout_required = True
        screen._on_timer_update()
        assert any(region.contains_region(place) for region in painted)


async def test_no_line_that_was_drawn_keeps_itself_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, []) as console:
        drawn: list[Strip] = []

        def noted(render: Callable[[Region], list[Strip]], crop: Region) -> list[Strip]:
            drawn.extend(strips := render(crop))
            return strips

        for widget in (console.screen, *console.screen.walk_children()):
            monkeypatch.setattr(widget, "render_lines", partial(noted, widget.render_lines))
        console.screen._compositor.render_strips()
        assert drawn
        kept = [
            piece for strip in drawn for pieces in strip._divide_cache._cache.values() for piece in pieces
        ]
        assert {id(strip) for strip in drawn}.isdisjoint(id(piece) for piece in kept)


async def test_a_resize_is_laid_out_at_once_in_the_form_that_the_size_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, [], size=(120, 40)) as console:
        screen = console.screen
        reflow = screen._compositor.reflow
        forms: list[tuple[bool, bool]] = []

        def noted(*given: Any) -> Any:
            forms.append((screen.query_one(RecoveryColumn).display, screen.has_class("-low")))
            return reflow(*given)

        monkeypatch.setattr(screen._compositor, "reflow", noted)
        assert screen.query_one(RecoveryColumn).display
        await console.pilot.resize_terminal(100, 15)
        assert set(forms) == {(False, True)}


async def test_a_tab_that_was_hidden_while_the_terminal_was_resized_has_the_form_of_the_new_size(
    tmp_path: Path,
) -> None:
    async with real_live(tmp_path, [], size=(120, 40)) as console:
        first = console.screen
        await console.say("/new")
        await console.until(lambda: len(console.app.tabs) == 2 and console.app.shown is not first)
        await console.pilot.resize_terminal(100, 15)
        console.app.show_tab(first)
        await console.until(lambda: console.app.shown is first and first.has_class("-low"))
        assert not first.query_one(RecoveryColumn).display


def painted_regions(screen: Any, monkeypatch: pytest.MonkeyPatch) -> list[set[Region]]:
    """What each paint from now on paints."""
    painted: list[set[Region]] = []

    def noted(**_: Any) -> None:
        painted.append(screen._compositor._dirty_regions.copy())
        screen._compositor._dirty_regions.clear()

    monkeypatch.setattr(screen._compositor, "render_update", noted)
    return painted


async def test_what_was_typed_is_painted_before_a_whole_screen_that_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, [], size=(120, 40)) as console:
        screen = console.screen
        painted = painted_regions(screen, monkeypatch)
        prompt, whole = screen.focused.region, screen.size.region
        screen.key_came()
        screen.refresh()
        screen._repaint_required = True
        screen._on_timer_update()
        assert painted == [{prompt}]
        await console.until(lambda: len(painted) > 1)
        assert any(region.contains_region(whole) for region in painted[1])
        # What has changed since the frame began is painted with the rest.
        painted.clear()
        screen.status.refresh()
        screen._dirty_widgets.add(screen.status)
        screen._compositor_refresh()
        assert screen.status.region in painted[0]
        # Without a key, and where the focus is large itself, it is one frame.
        for typed, focused in ((False, screen.focused), (True, screen.query_one(ConversationPane))):
            screen.set_focus(focused)
            await console.pilot.pause()
            painted.clear()
            if typed:
                screen.key_came()
            screen.refresh()
            screen._repaint_required = True
            screen._on_timer_update()
            assert any(region.contains_region(whole) for region in painted[0])


async def test_a_key_does_not_wait_for_the_timer_of_the_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, []) as console:
        screen = console.screen
        monkeypatch.setattr(screen._update_timer, "resume", lambda: None)
        screen._update_timer.pause()
        painted = painted_regions(screen, monkeypatch)
        screen._frame_began = 0.0
        console.app.post_message(events.Key("a", "a"))
        async with asyncio.timeout(LIMIT):  # the driven console's own waiting is a frame too
            while not any(screen.focused.region in regions for regions in painted):
                await asyncio.sleep(0.001)
