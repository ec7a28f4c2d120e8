"""A list to look through by typing: a line to type in, rows, what is known of the row under the cursor, the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Static

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.prompt.fields import LineField
from tui_agent.console.screens.framed import FramedScreen, Result

if TYPE_CHECKING:
    from tui_agent.console.tabs.session_app import SessionApp

Row = TypeVar("Row")


class Catalog(FramedScreen[Result], Generic[Row, Result]):
    """A frame around a list; the keys of a subclass come before those of the line."""

    app: SessionApp

    DEFAULT_CSS = """
    Catalog {
        & > Vertical { width: 96%; max-width: 130; height: 92%; max-height: 100%; background: $background; }
        & Input { margin-bottom: 1; }
        & CursorList { height: 1fr; }
        & Static { max-height: 40%; color: $foreground; margin-top: 1; }
        &.-empty CursorList { display: none; }
        &.-empty Static { height: 1fr; max-height: 100%; margin-top: 0; }
        &.-low Input { margin-bottom: 0; }
        &.-low Static { margin-top: 0; }
        &.-low > Vertical { width: 100%; height: 100%; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "catalog")

    low = 24
    nothing = "Nothing fits."
    """The text in place of an empty list."""
    of_no_row = frozenset({"escape"})
    """Keys that work on an empty list: only they are named then."""

    def __init__(self, title: str, placeholder: str, rows: CursorList[Row], hints: Sequence[Hint]) -> None:
        super().__init__(title)
        self._placeholder = placeholder
        self.list = rows
        self._hints = (*hints, Hint("Esc", "close", "escape"), Hint("↑↓", "choose", "down"))
        self.known = Static(markup=False)

    def inside(self) -> ComposeResult:
        yield LineField(placeholder=self._placeholder, compact=True)
        yield self.list
        yield self.known
        yield KeyHints([])

    def on_mount(self) -> None:
        """Everything is listed at first."""
        self.typed("")

    def typed(self, text: str) -> None:
        """List what fits what was typed."""
        raise NotImplementedError

    def about(self, row: Row) -> Content:
        """Details of a row."""
        raise NotImplementedError

    def action_take(self) -> None:
        """Enter, or a second click."""
        raise NotImplementedError

    def put(self, rows: Sequence[Row], cursor: int | None = None) -> None:
        """List these; the cursor keeps its place, as far as it can."""
        self.list.rows = rows
        self.set_class(not rows, "-empty")
        self.query_one(KeyHints).show([hint for hint in self._hints if rows or hint.key in self.of_no_row])
        wanted = self.list.cursor if cursor is None else cursor
        self.list.cursor = max(0, min(len(rows) - 1, wanted))
        self.list.redraw()
        self.list.follow()
        self.describe()

    def describe(self) -> None:
        """Say what is known of the row under the cursor."""
        chosen = self.list.chosen
        self.known.update(Content(self.nothing) if chosen is None else self.about(chosen))
        # A longer text leaves the list fewer lines.
        self.call_after_refresh(self.list.follow)

    def say(self, text: str) -> None:
        """A note on the lower edge."""
        self.frame.border_subtitle = Content(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.typed(event.value)

    def on_cursor_list_moved(self, _: CursorList.Moved) -> None:
        self.describe()

    def on_cursor_list_clicked(self, event: CursorList.Clicked) -> None:
        """A second click on a row takes it."""
        if event.again:
            self.action_take()

    def action_move(self, step: int) -> None:
        self.list.move(step)
