"""The session list: it opens at once, searches everything that was said, and offers what to do with a session.

It asks the store in threads and opens nothing: it is dismissed with what was chosen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from tui_agent.console.hints import Hint, KeyHints
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.panes.glyphs import OUTCOMES
from tui_agent.console.panes.styled_line import Line, Span, fit, pad, pad_left
from tui_agent.quantities import age, counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.store.session_store import SessionStore
    from tui_agent.store.summary import SessionRow

HINTS = (
    Hint("Enter", "go on with it", "enter"),
    Hint("^R", "replay", "ctrl+r"),
    Hint("^D", "delete", "ctrl+d"),
    Hint("↑↓", "choose", "down"),
    Hint("Esc", "back", "escape"),
)


class Chosen(NamedTuple):
    """A session and what to do with it."""

    session_id: str
    what: Literal["resume", "replay"]


class SessionList(CursorList["SessionRow"]):
    """One row a session, the newest first."""

    DEFAULT_CSS = """
    SessionList { height: 1fr; }
    """

    now = 0.0

    def show_rows(self, rows: Sequence[SessionRow], now: float) -> None:
        """Show these; the cursor stays on its session where that is still there."""
        before = self.chosen
        self.rows, self.now = rows, now
        same = [place for place, row in enumerate(rows) if before is not None and row.id == before.id]
        self.cursor = same[0] if same else 0
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        return super().draw(width, height) or [(Span("○ no session fits", "muted"),)]

    def draw_row(self, row: SessionRow, width: int, *, current: bool) -> Line:
        ground = " on:cursor-background" if current else ""
        spans = [Span("▌ " if current else "  ", f"accent{ground}")]
        spans.append(Span(pad_left(age(self.now - row.ended_at), 6) + "  ", f"muted{ground}"))
        if row.problem:
            return (*spans, Span(fit(f"{row.id}: {one_line(row.problem)}", width - 10), f"error{ground}"))
        sign = OUTCOMES.get(row.outcome)
        word = f"{sign.glyph} {row.outcome.replace('_', ' ')}" if sign else row.outcome or "open"
        spans.append(Span(pad(word, 14), f"{sign.role if sign else 'warn'}{ground}"))
        right: list[Span] = []
        if width >= 70:
            recovered = f"{row.recoveries}/{row.failures} recovered" if row.failures else ""
            right.append(Span(pad_left(recovered, 16), f"muted{ground}"))
        if width >= 96:
            cost = "cost ?" if row.cost is None else f"${row.cost:.2f}"
            right.append(Span(pad_left(cost, 9), f"muted{ground}"))
        if width >= 120:
            right.append(Span("  " + pad(one_line(row.model), 24), f"model{ground}"))
            right.append(Span("  " + pad(one_line(row.workspace)[-28:], 28), f"muted{ground}"))
        room = width - 24 - sum(len(span.text) for span in right)
        title = one_line(row.title) or row.id
        spans.append(Span(pad(title, max(4, room)), f"{'bold' if current else ''}{ground}"))
        return (*spans, *right, Span("", ground.strip()))


class SessionsScreen(ModalScreen["Chosen | None"]):
    """Dismissed with a session, or None."""

    DEFAULT_CSS = """
    SessionsScreen {
        align: center middle;
        & > Vertical {
            width: 96%; height: 92%; background: $background; border: round $accent;
            border-title-color: $accent; border-subtitle-color: $text-muted; padding: 0 1;
        }
        & Input { border: none; height: 1; padding: 0; margin-bottom: 1; background: $background; }
        & KeyHints { padding: 0; background: $background; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("pageup", "move(-10)", "Up", show=False, priority=True),
        Binding("pagedown", "move(10)", "Down", show=False, priority=True),
        Binding("enter", "choose('resume')", "Go on", show=False, priority=True),
        Binding("ctrl+r", "choose('replay')", "Replay", show=False, priority=True),
        Binding("ctrl+d", "delete", "Delete", show=False, priority=True),
    ]

    def __init__(self, store: SessionStore, own: str = "") -> None:
        """`own` is the session that is open: it cannot be deleted or opened again."""
        super().__init__()
        self._store = store
        self._own = own
        self._rows: list[SessionRow] = []
        self._list = SessionList()

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content("Sessions")
            yield Input(placeholder="Search in titles, workspaces and all that was said", compact=True)
            yield self._list
            yield KeyHints(HINTS)

    def on_mount(self) -> None:
        """What the index knows at once, then what changed since."""
        self.run_worker(self._load(), exclusive=True, group="load")

    async def _load(self) -> None:
        self._rows = await asyncio.to_thread(self._store.rows)
        await self._show()
        if await asyncio.to_thread(self._store.stale):
            await asyncio.to_thread(self._store.refresh)
            self._rows = await asyncio.to_thread(self._store.rows)
            await self._show()
        used = await asyncio.to_thread(self._store.disk_use)
        self.query_one(Vertical).border_subtitle = Content(
            f"{counted(len(self._rows), 'session')} · {used.total / 1e6:.1f} MB"
        )

    async def _show(self) -> None:
        words = self.query_one(Input).value.strip()
        rows = self._rows
        if words:
            hits = {hit.session_id for hit in await asyncio.to_thread(self._store.search, words, 500)}
            low = words.lower()
            rows = [
                row
                for row in rows
                if row.id in hits or low in f"{row.id} {row.title} {row.workspace}".lower()
            ]
        self._list.show_rows(rows, time.time())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search as it is typed."""
        self.run_worker(self._show(), exclusive=True, group="search")

    def action_move(self, step: int) -> None:
        self._list.move(step)

    def action_choose(self, what: Literal["resume", "replay"]) -> None:
        """Go on with the session, or watch it."""
        row = self._list.chosen
        if row is None:
            return
        if row.id == self._own and what == "resume":
            self.dismiss(None)
        else:
            self.dismiss(Chosen(row.id, what))

    def on_cursor_list_clicked(self, event: CursorList.Clicked) -> None:
        """A second click on a row goes on with it."""
        if event.again:
            self.action_choose("resume")

    def action_delete(self) -> None:
        """Into the trash, from which it can be brought back."""
        row = self._list.chosen
        if row is None:
            return
        if row.id == self._own:
            self.notify("This session is open; it cannot be deleted now.", severity="warning", markup=False)
            return
        self.run_worker(self._delete(row.id), group="load")

    async def _delete(self, session_id: str) -> None:
        await asyncio.to_thread(self._store.delete, session_id, time.time())
        self.notify("Moved to the trash; agent-tui sessions restores it.", markup=False)
        await self._load()
