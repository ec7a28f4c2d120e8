"""A list to look through by typing: a line to type in, rows, what is known of the row under the cursor, the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui_agent.console.hints import Hint, KeyHints
from tui_agent.console.panes.cursor_list import LIST_KEYS, CursorList

if TYPE_CHECKING:
    from textual import events

    from tui_agent.console.session_app import SessionApp

Row = TypeVar("Row")

LOW = 24
"""Rows of the terminal below which the frame takes all of it."""


class Catalog(ModalScreen[None], Generic[Row]):
    """A frame around a list; the keys of a subclass come before those of the line."""

    app: SessionApp

    DEFAULT_CSS = """
    Catalog {
        align: center middle;
        & > Vertical {
            width: 96%; max-width: 130; height: 92%; background: $background; border: round $accent;
            border-title-color: $accent; border-subtitle-color: $text-muted; padding: 0 1;
        }
        & Input { border: none; height: 1; padding: 0; margin-bottom: 1; background: $background; }
        & Input > .input--placeholder { color: $text-muted; }
        & CursorList { height: 1fr; }
        & Static { height: auto; max-height: 40%; color: $foreground; margin-top: 1; }
        & KeyHints { padding: 0; background: $background; }
        &.-empty CursorList { display: none; }
        &.-empty Static { height: 1fr; max-height: 100%; margin-top: 0; }
        &.-low Input { margin-bottom: 0; }
        &.-low Static { margin-top: 0; }
        &.-low > Vertical { width: 100%; height: 100%; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *LIST_KEYS,
        Binding("enter", "take", "Take", show=False, priority=True),
    ]

    def __init__(self, title: str, placeholder: str, rows: CursorList[Row], hints: Sequence[Hint]) -> None:
        super().__init__()
        self._title, self._placeholder = title, placeholder
        self.list = rows
        self._hints = (*hints, Hint("Esc", "close", "escape"), Hint("↑↓", "choose", "down"))
        self._known = Static(markup=False)

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._title)
            yield Input(placeholder=self._placeholder, compact=True)
            yield self.list
            yield self._known
            yield KeyHints(self._hints)

    def on_mount(self) -> None:
        """Everything is listed at first."""
        self.typed("")

    def on_resize(self, event: events.Resize) -> None:
        """Give up empty lines where there are few."""
        self.set_class(event.size.height < LOW, "-low")

    def typed(self, text: str) -> None:
        """List what fits what was typed."""
        raise NotImplementedError

    def about(self, row: Row) -> Content:
        """What is known of a row."""
        raise NotImplementedError

    def action_take(self) -> None:
        """Enter, or a second click."""
        raise NotImplementedError

    def put(self, rows: Sequence[Row], cursor: int | None = None) -> None:
        """List these; the cursor stays where it is, as far as it can."""
        self.list.rows = rows
        wanted = self.list.cursor if cursor is None else cursor
        self.list.cursor = max(0, min(len(rows) - 1, wanted))
        self.list.redraw()
        self.list.follow()
        self.describe()

    def describe(self) -> None:
        """Say what is known of the row under the cursor."""
        chosen = self.list.chosen
        self._known.update(Content("Nothing fits.") if chosen is None else self.about(chosen))
        self.set_class(chosen is None, "-empty")
        # A longer text leaves the list fewer lines.
        self.call_after_refresh(self.list.follow)

    def say(self, text: str) -> None:
        """A remark on the lower edge."""
        self.query_one(Vertical).border_subtitle = Content(text)

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
