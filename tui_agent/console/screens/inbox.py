"""The inbox: everything that waits for the operator in any tab, the oldest first; Enter goes to its card.

Nothing is answered here: a card shows the whole of what it asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from tui_agent.console.looks.command_keys import bindings, closing
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.console.tabs.inbox import Item
from tui_agent.frontend.lines.styled import Line, Span, clip, fit, pad, pad_left
from tui_agent.quantities import counted, whole_seconds

if TYPE_CHECKING:
    from tui_agent.console.tabs.session_app import SessionApp

AROUND = 6
"""Rows of the terminal that the frame and the keys need."""

CLOSE = Hint("Esc", "close", "escape")
HINTS = (Hint("Enter", "go to its card", "enter"), CLOSE, Hint("↑↓", "choose", "down"))


class InboxList(CursorList[Item]):
    """Two lines an item: its waiting time, its kind and its session; then its question."""

    DEFAULT_CSS = """
    InboxList { height: auto; min-height: 1; background: $surface; }
    """

    now = 0.0
    title_of: Callable[[Item], str] = staticmethod(lambda item: "")

    def show_items(self, items: Sequence[Item], now: float) -> None:
        """Show these; the cursor stays on its question."""
        before = self.chosen
        same = (place for place, item in enumerate(items) if before and item.question is before.question)
        self.row_height = 2
        if len(items) != len(self.rows):
            self.refresh(layout=True)
        self.rows, self.now = items, now
        self.cursor = next(same, min(self.cursor, max(0, len(items) - 1)))
        self.redraw()

    def get_content_height(self, *_: object) -> int:
        return max(1, len(self.rows) * self.row_height)

    def draw(self, width: int, height: int) -> Sequence[Line]:
        return (
            super().draw(width, height)
            if self.rows
            else [(Span(fit("Nothing waits for you.", width), "muted"),)]
        )

    def draw_row(self, row: Item, width: int, *, current: bool) -> Line:
        spans = (
            Span(pad_left(whole_seconds(self.now - row.since), 7) + "  ", "muted"),
            Span(pad(row.asks[0], 9), "operator bold"),
            Span(self.title_of(row), "bold" if current else ""),
        )
        return clip(spans, width)

    def draw_second(self, row: Item, width: int, *, current: bool) -> Line:
        return clip((Span(" " * 9 + row.asks[1]),), width)


class InboxScreen(FramedScreen["Item | None"]):
    """Dismissed with the question to go to, or None."""

    app: SessionApp

    DEFAULT_CSS = """
    InboxScreen {
        & > Vertical { width: 130; border: round $warning; border-title-color: $warning; }
        & KeyHints { margin-top: 1; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "inbox"), closing("inbox")]

    def __init__(self, items: Callable[[], Sequence[Item]]) -> None:
        """`items`: what waits now."""
        super().__init__("Inbox")
        self._items = items
        self._list = InboxList()
        self._list.title_of = self._title

    def inside(self) -> ComposeResult:
        yield self._list
        yield KeyHints([CLOSE])

    def on_mount(self) -> None:
        """Show what waits, and what comes and goes meanwhile."""
        self._look()
        self.set_interval(0.5, self._look)

    def on_resize(self, event: events.Resize) -> None:
        """The keys stay in sight; the list scrolls."""
        self._list.styles.max_height = max(2, event.size.height - AROUND)

    def _look(self) -> None:
        items = self._items()
        self._list.show_items(items, time.time())
        self.query_one(KeyHints).show(HINTS if items else [CLOSE])
        waits = f"{counted(len(items), 'question')} {'waits' if len(items) == 1 else 'wait'}" if items else ""
        self.frame.border_subtitle = Content(waits)

    def _title(self, item: Item) -> str:
        tabs = self.app.tabs
        if item.tab not in tabs:
            return ""
        title = item.tab.title_of(item.question)
        return f"tab {tabs.index(item.tab) + 1} · {title}" if len(tabs) > 1 else title

    def action_move(self, step: int) -> None:
        self._list.move(step)

    def action_choose(self) -> None:
        self.dismiss(self._list.chosen)

    def on_cursor_list_clicked(self, event: CursorList.Clicked) -> None:
        """A second click goes to the card."""
        if event.again:
            self.action_choose()
