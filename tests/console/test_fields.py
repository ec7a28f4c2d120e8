"""Fields that have no room, and their cursors in sixteen colours."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import MagicMock

import pytest
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from tests.console.live_harness import live
from tests.console.waiting import picture, wear
from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.prompt import fields
from tui_agent.console.prompt.completion import Completions
from tui_agent.console.prompt.fields import LineField, TextField
from tui_agent.console.prompt.prompt import Prompt


@pytest.mark.parametrize("columns", range(1, 6))
async def test_a_placeholder_without_columns_is_not_drawn(columns: int) -> None:
    class Narrow(App[None]):
        CSS = f"Screen > * {{ width: {columns}; padding: 0 1; }}"

        def compose(self) -> ComposeResult:
            yield TextField(placeholder="what goes here")
            yield Prompt(Completions(lambda _: ()), lambda: None, list)

    async with Narrow().run_test(size=(16, 8)) as pilot:
        await pilot.pause()
        picture(pilot.app)
        assert len(pilot.app.query(TextArea)) == 2


@pytest.mark.parametrize("kind", ["ask", "escalate"])
async def test_the_cursor_in_a_line_is_seen_on_whatever_ground_the_terminal_has(kind: str) -> None:
    async with live() as console:
        await console.until(lambda: "terminal" in console.app.theme_names)
        await wear(console.app, console.pilot, "terminal")
        getattr(console, kind)()
        await console.card_appears()
        cursor = console.card.query_one(AnswerField).get_component_rich_style("text-area--cursor")
        assert cursor.reverse
        assert {colour.name for colour in (cursor.color, cursor.bgcolor) if colour} <= {"default"}


@pytest.mark.parametrize("theme", ["terminal", "ansi-dark", "agent-dark"])
async def test_a_placeholder_looks_unlike_a_text_in_every_theme(theme: str) -> None:
    async with live() as console:
        await console.until(lambda: theme in console.app.theme_names)
        await wear(console.app, console.pilot, theme)

        def look() -> str:
            strips = console.app.screen._compositor.render_strips()
            return next(str(part.style) for row in strips for part in row if "task, or type" in part.text)

        empty = look()
        await console.type("the task, or type")
        await console.until(lambda: "the task, or type" in console.shown())
        assert look() != empty


@pytest.mark.parametrize("field", [LineField, TextField])
async def test_a_cursor_blinks_for_a_while_after_a_key_and_then_stands_still(
    field: type[LineField | TextField], monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[Callable[[], object]] = []

    def once(owner: object, delay: float, callback: Callable[[], object]) -> MagicMock:
        rests.append(callback)
        return MagicMock()

    monkeypatch.setattr(fields, "once", once)

    class One(App[None]):
        def compose(self) -> ComposeResult:
            yield field()

    async with One().run_test() as pilot:
        shown = pilot.app.query_one(field)
        assert shown.cursor_blink
        rests[-1]()
        assert not shown.cursor_blink
        await pilot.press("a")
        assert shown.cursor_blink
