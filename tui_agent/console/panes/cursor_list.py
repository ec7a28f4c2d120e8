"""A list with one row under a cursor, moved by its screen's keys or a click; it never takes the focus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from textual.message import Message

from tui_agent.console.panes.pane import LinePane
from tui_agent.console.panes.styled_line import Line

if TYPE_CHECKING:
    from textual import events

    from tui_agent.core.state import RunState

Row = TypeVar("Row")


class CursorList(LinePane, Generic[Row], can_focus=False):
    """Rows that a subclass draws, one line each."""

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
        self.rows = rows
        self.cursor = cursor

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor; None in an empty list."""
        return self.rows[self.cursor] if self.rows else None

    def draw_row(self, row: Row, width: int, *, current: bool) -> Line:
        """One row; `current`: it is under the cursor."""
        raise NotImplementedError

    def show(self, state: RunState, now: float) -> None:
        """The rows are given by the screen, not by a state."""

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
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def draw(self, width: int, height: int) -> list[Line]:
        return [
            self.draw_row(row, width, current=place == self.cursor) for place, row in enumerate(self.rows)
        ]

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row under the mouse."""
        place = event.y + self.scroll_offset.y
        if 0 <= place < len(self.rows):
            again = place == self.cursor
            self.move(place - self.cursor)
            self.post_message(self.Clicked(again))
