"""Another theme comes in pieces: keys are answered in between, and in the end all is styled as if at once."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from textual.widget import Widget

from tests.console.real_session import RealConsole, real_live
from tests.console.waiting import wear
from tui_agent.console.looks import themed_app


def rules(console: RealConsole) -> dict[Widget, dict[str, Any]]:
    """What the styles say of each widget, and of the parts that it styles itself."""
    return {
        widget: {
            **widget.styles.base.get_rules(),
            **{part: styles.get_rules() for part, styles in widget._component_styles.items()},
        }
        for widget in console.screen.walk_children(Widget, with_self=True)
    }


async def test_a_theme_that_another_one_follows_at_once_is_not_begun(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    async with real_live(tmp_path, []) as console:
        await console.until(lambda: "agent-light" in console.app.theme_names)
        console.app.theme = "agent-light"
        console.app.theme = "agent-contrast"
        await wear(console.app, console.pilot, "agent-light")
    gc.collect()
    assert [str(one.message) for one in recwarn if "never awaited" in str(one.message)] == []


async def test_keys_are_answered_while_the_theme_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(themed_app, "PIECE", 0.0)
    async with real_live(tmp_path, ["Done."]) as console:
        await console.run("Say it.")
        await console.until(lambda: "agent-light" in console.app.theme_names)
        before = rules(console)
        console.app.theme = "agent-light"
        await console.press("h", "i")
        assert console.screen.prompt.text == "hi"
        assert rules(console) == before
        await wear(console.app, console.pilot, "agent-light")
        worn = rules(console)
        assert worn != before
        console.app.stylesheet.reparse()
        console.app.stylesheet.update(console.app)
        assert rules(console) == worn


async def test_a_theme_that_was_left_again_is_never_worn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(themed_app, "PIECE", 0.0)
    async with real_live(tmp_path, []) as console:
        await console.until(lambda: "agent-light" in console.app.theme_names)
        before, former = rules(console), console.app.theme
        console.app.theme = "agent-light"
        await console.pilot.pause()
        await wear(console.app, console.pilot, former)
        assert rules(console) == before
        assert console.app.theme_variables == console.app.stylesheet._variables


async def test_a_theme_refreshes_a_widget_not_once_for_each_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, []) as console:
        await console.until(lambda: "agent-light" in console.app.theme_names)
        former = console.app.theme_variables["background"]
        refreshed: list[Widget] = []
        plain = Widget.refresh
        panes = [*console.screen.query("LinePane")]

        def refresh(widget: Widget, *regions: Any, **options: Any) -> Widget:
            refreshed.append(widget)
            return plain(widget, *regions, **options)

        monkeypatch.setattr(Widget, "refresh", refresh)
        await wear(console.app, console.pilot, "agent-light")
        assert console.app.theme_variables["background"] != former
        counts = {pane.id: refreshed.count(pane) for pane in panes}
        assert len(counts) == 7
        assert max(counts.values()) <= 2, counts
