"""The session browser: it opens at once, searches everything that was said, and offers what to do with a session.

It asks the store in threads and opens nothing: it is dismissed with what was chosen.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, ParamSpec, TypeVar

from textual import events, work
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import Hint
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.catalog import Catalog
from tui_agent.console.screens.line import LineScreen
from tui_agent.console.screens.session_tree import SessionBranch, entries
from tui_agent.frontend.commands.host import ChosenSession
from tui_agent.frontend.lines.glyphs import OUTCOMES
from tui_agent.frontend.lines.styled import Line, Span, clip, pad, pad_left, width_of
from tui_agent.frontend.loading import yielding_threads
from tui_agent.quantities import age, counted
from tui_agent.store.errors import SessionError
from tui_agent.store.redaction import Redactor
from tui_agent.terminal_text import one_line, sanitize

if TYPE_CHECKING:
    from tui_agent.store.session_index import Hit
    from tui_agent.store.session_store import SessionStore
    from tui_agent.store.summary import SessionRow

Given = ParamSpec("Given")
Result = TypeVar("Result")

HINTS = (
    Hint("Enter", "open", "enter"),
    Hint("^R", "replay", "ctrl+r"),
    Hint("F2", "rename", "f2"),
    Hint("^E", "export", "ctrl+e"),
    Hint("^D", "delete", "ctrl+d"),
)
PAUSE = 0.08
"""Seconds without a key before the conversations are searched; titles are narrowed down at once."""

LOW = 16
"""Rows of the terminal below which what is known of the chosen session takes one line."""

ROLES = {"operator": "» you", "model": "· model", "error": "✗ error", "title": "≡ title"}
"""Who said what was found."""


class SessionList(CursorList[SessionBranch]):
    """Sessions, the newest first, forks below their parents; while something is looked for, with the line found."""

    now = 0.0
    words: Sequence[str] = ()

    def __init__(self, here: frozenset[str]) -> None:
        """`here`: the sessions that are open in tabs."""
        super().__init__()
        self.here = here

    def draw_row(self, row: SessionBranch, width: int, *, current: bool) -> Line:
        session = row.row
        when = Span(pad_left(age(self.now - session.ended_at), 6) + " ", "muted")
        sign = OUTCOMES["error"] if session.problem else OUTCOMES.get(session.outcome)
        word = f"{sign.glyph if sign else '·'} {session.outcome_in_words}"
        if session.id in self.here:
            word = "● open here"
        role = "accent" if session.id in self.here else sign.role if sign else "muted"
        left = (when, Span(pad(word, 14) + " ", role))
        right: list[Span] = []
        if width >= 74:
            recovered = f"{session.recoveries}/{session.failures} recovered" if session.failures else ""
            right.append(Span(pad_left(recovered, 16), "muted"))
        if width >= 94:
            cost = "cost ?" if session.cost is None else f"${session.cost:.2f}" if session.events else ""
            right.append(Span(pad_left(cost, 9), "muted"))
        if width >= 118:
            right.append(Span("  " + pad(one_line(session.model), 24), "model"))
            right.append(Span("  " + pad(one_line(session.workspace)[-28:], 28), "muted"))
        room = width - width_of((*left, *right))
        title = clip(_title(row, self.words, "bold" if current else ""), max(4, room))
        return (*left, *title, Span(" " * (room - width_of(title))), *right)

    def draw_second(self, row: SessionBranch, width: int, *, current: bool) -> Line:
        who, text = "", row.row.workspace
        found: Sequence[tuple[int, int]] = _places(text, self.words)
        if row.hit is not None:
            who = ROLES.get(row.hit.role, row.hit.role)
            text, found = _from_near(row.hit.snippet, row.hit.spans, width - 9)
        return clip((Span(pad_left(who, 7) + "  ", "muted"), *_marked(text, found, "muted")), width)


def _title(entry: SessionBranch, words: Sequence[str], weight: str) -> list[Span]:
    """The title with the sought words marked; a fork behind the point at which it left its parent."""
    row = entry.row
    spans = [Span(entry.branch, "muted")] if entry.branch else []
    if row.parent:
        spans.append(Span(f"{'' if entry.branch else 'fork '}@{row.parent_seq} ", "note"))
    text = one_line(row.title) or row.id
    return [*spans, *_marked(text, _places(text, words), weight)]


def _places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """The first place of the words."""
    low = text.lower()
    return sorted((at, at + len(word)) for word in words if (at := low.find(word)) >= 0)


def _from_near(
    text: str, places: Sequence[tuple[int, int]], width: int
) -> tuple[str, Sequence[tuple[int, int]]]:
    """The text from shortly before its first place on, if that would not be seen in `width` characters."""
    if not places or places[0][1] <= width:
        return text, places
    cut = max(0, places[0][0] - width // 4)
    return "…" + text[cut:], [(start - cut + 1, end - cut + 1) for start, end in places]


def _marked(text: str, places: Iterable[tuple[int, int]], plain: str) -> list[Span]:
    """`text` on one line, its `places` standing out."""
    spans: list[Span] = []
    end = 0
    for start, stop in places:
        if start >= end:
            spans += (Span(_flat(text[end:start]), plain), Span(_flat(text[start:stop]), "accent bold"))
            end = stop
    return [*spans, Span(_flat(text[end:]), plain)]


def _flat(text: str) -> str:
    """Safe, on one line, with the spaces at its ends."""
    return re.sub(r"\s+", " ", sanitize(text))


def about(row: SessionRow, parent: str, lines: int) -> str:
    """Facts about a session, in one line or several. `parent`: its title, if it is a fork."""
    cost = "cost unknown" if row.cost is None else f"${row.cost:.2f}"
    first = [row.id, row.workspace, row.model, f"policy {row.policy}" if row.policy else ""]
    second = [
        f"{row.recoveries} of {counted(row.failures, 'failure')} recovered" if row.failures else "no failure",
        cost,
        counted(row.runs, "run"),
        counted(row.iterations, "step"),
        f"{row.size / 1e3:.0f} kB",
        row.source,
    ]
    third = [f"fork of {parent} after event {row.parent_seq}"] if row.parent else []
    if row.problem:
        second = [row.problem]
    if lines == 1:
        first, second, third = [row.id, *second, *third], [], []
    parts = (" · ".join(one_line(part, 400) for part in line if part) for line in (first, second, third))
    return "\n".join(filter(None, parts))


class SessionsScreen(Catalog[SessionBranch, "ChosenSession | None"]):
    """Dismissed with a session, or None."""

    DEFAULT_CSS = """
    SessionsScreen {
        & > Vertical { max-width: 100%; }
        & Static { color: $text-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("sessions")

    def __init__(
        self,
        store: SessionStore,
        export: Callable[[Path], Awaitable[None]],
        here: frozenset[str] = frozenset(),
    ) -> None:
        """`export` writes the session in a folder to a file; `here`: the sessions that are open in this console."""
        self._list = SessionList(here)
        super().__init__("Sessions", "Search in titles, workspaces and all that was said", self._list, HINTS)
        self._store = store
        self._export = export
        self._rows: list[SessionRow] = []
        self.nothing = "looking…"

    def on_mount(self) -> None:
        """The rows of the index at once, then the changes since."""
        self.run_worker(self._load(), exclusive=True, group="load")

    def on_resize(self, event: events.Resize) -> None:
        self.describe()

    async def _load(self) -> None:
        await self._read()
        if await _in_thread(self._store.stale):
            loop = asyncio.get_running_loop()

            def progressed(done: int, of: int) -> None:
                loop.call_soon_threadsafe(self._progressed, done, of)

            await _in_thread(self._store.refresh, progressed)
            await self._read()
        used = await _in_thread(self._store.disk_use)
        self.say(f"{counted(len(self._rows), 'session')} · {used.total / 1e6:.1f} MB")

    async def _read(self) -> None:
        self._rows = [row for row in await _in_thread(self._store.rows) if row.is_worth_listing]
        self.nothing = "No session fits." if self._rows else "No session is saved yet."
        await self._search(self.query_one(Input).value, 0.0)

    def _progressed(self, done: int, of: int) -> None:
        if self.is_attached:
            self.say(f"reading {done} of {of}…")

    def typed(self, text: str) -> None:
        self.run_worker(self._search(text, PAUSE), exclusive=True, group="search")

    async def _search(self, typed: str, pause: float) -> None:
        """Narrow down by titles at once, and by all that was said once nobody types."""
        await self._show(typed, ())
        if typed.strip():
            await asyncio.sleep(pause)
            await self._show(typed, await _in_thread(self._store.found, typed))

    async def _show(self, typed: str, hits: Sequence[Hit]) -> None:
        """List what was found; the cursor stays on its session, unless other words are looked for."""
        found = await _in_thread(entries, self._rows, typed, hits)
        words = typed.lower().split()
        before = self._list.chosen if words == self._list.words else None
        self._list.words, self._list.now, self._list.row_height = words, time.time(), 2 if words else 1
        same = (place for place, each in enumerate(found) if before and each.row.id == before.row.id)
        self.put(found, next(same, 0))

    def about(self, row: SessionBranch) -> Content:
        titles = (each.title for each in self._rows if each.id == row.row.parent)
        parent = next(titles, row.row.parent)
        return Content(about(row.row, parent, 1 if self.size.height < LOW else 2))

    def action_take(self) -> None:
        """Go on with the session."""
        self.action_choose("resume")

    def action_choose(self, what: Literal["resume", "replay"]) -> None:
        """Go on with the session, or watch it, from the place of the find."""
        chosen = self._list.chosen
        if chosen is not None:
            at = chosen.hit.seq if chosen.hit is not None else 0
            self.dismiss(ChosenSession(chosen.row.id, what, at, tuple(self._list.words)))

    def _closed_one(self, what: str) -> SessionRow | None:
        """The chosen session, unless it is open: an open one is written by its tab alone."""
        chosen = self._list.chosen
        if chosen is not None and chosen.row.id in self._list.here:
            self.notify(f"This session is open; it cannot be {what} here.", severity="warning", markup=False)
            return None
        return None if chosen is None else chosen.row

    @work(group="change")
    async def action_rename(self) -> None:
        """Give the session another title."""
        row = self._closed_one("renamed (use /title in its tab)")
        if row is None:
            return
        title = await self.app.push_screen_wait(LineScreen("Title of the session", row.title))
        if title and title != row.title:
            redactor = Redactor.from_environment(os.environ)
            await self._change(self._store.rename(row.id, title, time.time(), redactor))

    @work(group="change")
    async def action_export(self) -> None:
        """Write the session to a file."""
        chosen = self._list.chosen
        if chosen is not None:
            await self._export(self._store.folder(chosen.row.id))

    @work(group="change")
    async def action_delete(self) -> None:
        """Into the trash, from which it can be brought back."""
        row = self._closed_one("deleted")
        if row is not None and await self._change(asyncio.to_thread(self._store.delete, row.id, time.time())):
            self.notify(f"In the trash; agent-tui sessions restore {row.id} brings it back.", markup=False)

    async def _change(self, doing: Awaitable[None]) -> bool:
        """Change a session, and list it as it is then. False if the disk or another program refused."""
        try:
            await doing
        except SessionError as error:
            self.notify(str(error), severity="error", markup=False)
            return False
        await self._read()
        return True


async def _in_thread(work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
    """Do it in a thread that lets the screen go first."""
    with yielding_threads():
        return await asyncio.to_thread(work, *given, **named)
