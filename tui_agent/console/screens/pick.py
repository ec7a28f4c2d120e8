"""A list to pick from, narrowed by what is typed: earlier prompts, models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Input, Static

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.prompt.fields import LineField
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.frontend.lines.passages import Row
from tui_agent.frontend.lines.styled import Line, Span, clip, fit
from tui_agent.terminal_text import one_line

AROUND = 6
"""Rows of the terminal that the frame and the search field need."""

MOST_OF_REMARK = 6
"""Rows that a remark takes at most."""

GAP = "  "
SIGN = 2
"""Cells of what marks the row under the cursor."""


class PickList(CursorList[Row]):
    """A name a line, and the text about it: behind it, or below it if a line is too short for one of them."""

    DEFAULT_CSS = """
    PickList { height: auto; min-height: 1; background: $surface; }
    """

    _names = 0

    def put(self, rows: Sequence[Row]) -> None:
        """List these, with the cursor on the first."""
        self.rows, self.cursor = rows, 0
        self._names = max((len(row.text) for row in rows if row.about), default=0)
        self._fit(self.content_width)
        self.refresh(layout=True)
        self.redraw()
        self.follow()

    def _fit(self, width: int) -> None:
        longest = max(
            (max(self._names, len(row.text)) + len(row.about) for row in self.rows if row.about), default=0
        )
        self.row_height = 2 if 0 < width < SIGN + longest + len(GAP) else 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._fit(width - self.scrollbar_size_vertical)
        return max(1, len(self.rows) * self.row_height)

    def draw(self, width: int, height: int) -> Sequence[Line]:
        return super().draw(width, height) if self.rows else [(Span(fit("Nothing fits.", width), "muted"),)]

    def draw_row(self, row: Row, width: int, *, current: bool) -> Line:
        spans = [Span(one_line(row.text, 400), "bold" if current else "")]
        if row.about and self.row_height == 1:
            spans.append(Span(" " * (self._names - len(row.text)) + GAP + one_line(row.about, 200), "muted"))
        return clip(spans, width)

    def draw_second(self, row: Row, width: int, *, current: bool) -> Line:
        return clip((Span(GAP + one_line(row.about, 200), "muted"),), width)


class PickScreen(FramedScreen[Any]):
    """Dismissed with the value of a row, or None."""

    DEFAULT_CSS = """
    PickScreen {
        & > Vertical { width: 130; max-width: 98%; }
        & Input { margin-bottom: 1; }
        & Static { margin-bottom: 1; color: $text-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "pick")

    def __init__(
        self,
        title: str,
        rows: Sequence[Row],
        remark: str = "",
        written: Callable[[str], Row | None] | None = None,
        without: str = "close",
    ) -> None:
        """`remark` stands above the list; `written` makes a last row of the typed text, if that is a choice;
        `without`: the meaning of choosing nothing.
        """
        super().__init__(title, ("Enter", "take"), ("Esc", without), ("↑↓", "choose"))
        self._rows = rows
        self._remark = remark
        self._written = written
        self._list = PickList()

    def inside(self) -> ComposeResult:
        if self._remark:
            yield Static(Content(self._remark))
        search = "Type to search" if self._written is None else "Type to search, or write a name"
        yield LineField(placeholder=search, compact=True)
        yield self._list

    def on_mount(self) -> None:
        """Everything is offered at first; no notification covers it."""
        self.app.clear_notifications()
        self._search("")
        self.query_one(Input).focus()

    def on_resize(self, event: events.Resize) -> None:
        """The remark above the list stays in sight."""
        around = AROUND + (MOST_OF_REMARK if self._remark else 0)
        self._list.styles.max_height = max(2, event.size.height - around)

    def on_input_changed(self) -> None:
        self._search(self.query_one(LineField).whole_text)

    def on_input_submitted(self) -> None:
        """Take the row under the cursor."""
        self._take()

    def on_cursor_list_clicked(self, _: CursorList.Clicked) -> None:
        """A click takes a row."""
        self._take()

    def _take(self) -> None:
        if self._list.chosen is not None:
            self.dismiss(self._list.chosen.value)

    def action_move(self, step: int) -> None:
        self._list.move(step)

    def _search(self, typed: str) -> None:
        words = typed.lower().split()
        found = [
            row for row in self._rows if all(word in f"{row.text} {row.about}".lower() for word in words)
        ]
        own = None if self._written is None else self._written(typed.strip())
        if own is not None and all(row.text != own.text for row in found):
            found.append(own)
        self._list.put(found)
