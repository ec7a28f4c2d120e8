"""A list with one row under a cursor, moved by its screen's keys or a click; it never takes the focus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from textual import events
from textual.message import Message

from tui_agent.console.panes.pane import LinePane
from tui_agent.frontend.lines.styled import Line, Span

Row = TypeVar("Row")


class _DrawnRows(Sequence[Line]):
    """The lines of all rows, each drawn when it is looked at: a list may have thousands."""

    def __init__(self, rows: CursorList[Any], width: int) -> None:
        self._list, self._width = rows, width
        self._rows, self._cursor, self._height = rows.rows, rows.cursor, rows.row_height

    def __len__(self) -> int:
        return len(self._rows) * self._height

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place, part = divmod(index, self._height)
        if place >= len(self._rows):
            raise IndexError(index)
        row, current = self._rows[place], place == self._cursor
        draw = self._list.draw_row if part == 0 else self._list.draw_second
        sign = "▌ " if current else "  " if part else self._list.sign(row)
        ground = "on:cursor-background" if current else ""
        spans = Span(sign, "accent"), *draw(row, self._width - len(sign), current=current)
        return (*(Span(text, f"{style} {ground}".strip()) for text, style in spans), Span("", ground))


class CursorList(LinePane, Generic[Row], can_focus=False):
    """Rows that a subclass draws, `row_height` lines each; what marks the one under the cursor is added to them."""

    DEFAULT_CSS = """
    CursorList { border: none; padding: 0; }
    """

    @dataclass
    class Moved(Message):
        """Another row is under the cursor."""

    @dataclass
    class Clicked(Message):
        """A row was clicked; `again`: it was under the cursor already."""

        again: bool

    def __init__(self, rows: Sequence[Row] = (), cursor: int = 0) -> None:
        super().__init__()
        self.row_height = 1
        self.rows = rows
        self.cursor = cursor

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor; None in an empty list."""
        return self.rows[self.cursor] if self.rows else None

    def sign(self, row: Row) -> str:
        """Two cells that stand before a row that is not under the cursor."""
        return "  "

    def draw_row(self, row: Row, width: int, *, current: bool) -> Line:
        """One row, or its first line; `current`: it is under the cursor."""
        raise NotImplementedError

    def draw_second(self, row: Row, width: int, *, current: bool) -> Line:
        """The second line of a row, if `row_height` is 2."""
        raise NotImplementedError

    def move(self, step: int) -> None:
        """Move the cursor by so many rows, as far as there are any, and bring it into view."""
        cursor = max(0, min(len(self.rows) - 1, self.cursor + step))
        if cursor != self.cursor:
            self.cursor = cursor
            self.redraw()
            self.post_message(self.Moved())
        self.follow()

    def follow(self) -> None:
        """Bring the row under the cursor into view."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        first, end = self.cursor * self.row_height, (self.cursor + 1) * self.row_height
        if first < top:
            self.scroll_to(y=first, animate=False)
        elif end > top + height:
            self.scroll_to(y=end - height, animate=False)

    def draw(self, width: int, height: int) -> Sequence[Line]:
        return _DrawnRows(self, width)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row under the mouse."""
        place = (event.y + self.scroll_offset.y) // self.row_height
        if 0 <= place < len(self.rows):
            again = place == self.cursor
            self.move(place - self.cursor)
            self.post_message(self.Clicked(again))
