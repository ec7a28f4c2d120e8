"""The changes of a run, file by file: old beside new if the terminal is wide, else one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.panes.pane import LinePane
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.frontend.lines.diff import FileDiff, draw_sides, draw_unified
from tui_agent.frontend.lines.styled import Line, Span, fit_middle, pad
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

WIDE = 140
"""Columns of the terminal from which on old and new stand side by side by themselves."""

LARGE = 100_000
"""Characters of a diff from which on it is drawn beside the screen's own work."""

SIDES = 60
"""Columns below which they never do."""


class FileList(CursorList[FileDiff]):
    """One line a file."""

    DEFAULT_CSS = """
    FileList { height: auto; max-height: 25%; min-height: 1; margin-bottom: 1; }
    """

    def get_content_height(self, *_: object) -> int:
        return len(self.rows)

    def draw_row(self, row: FileDiff, width: int, *, current: bool) -> Line:
        added, removed = f" +{row.added}", f" −{row.removed} "
        room = max(1, width - len(added) - len(removed))
        name = pad(fit_middle(one_line(row.name, 300), room), room)
        return (
            Span(name, "bold" if current else ""),
            Span(added, "diff-add"),
            Span(removed, "diff-remove"),
        )


class Drawing(NamedTuple):
    """Values on which the drawing of a file's changes depends."""

    file: FileDiff
    width: int
    beside: bool

    def lines(self) -> list[Line]:
        """At least one line."""
        made = (draw_sides if self.beside else draw_unified)(self.file, self.width)
        return made or [(Span(_nothing_to_show(self.file), "muted"),)]


class FilePane(LinePane):
    """The changes of one file."""

    DEFAULT_CSS = """
    FilePane { height: 1fr; border: none; padding: 0; &:focus { border: none; } }
    """

    def __init__(self, file: FileDiff) -> None:
        super().__init__()
        self.file = file
        self.sides: bool | None = None
        """As the operator wants it; None: as the width has it."""
        self._made: tuple[Drawing, list[Line]] | None = None
        self._under_way: Drawing | None = None

    def put(self, file: FileDiff) -> None:
        """Show another file, from its beginning."""
        self.file = file
        self.redraw()
        self.scroll_home(animate=False)

    @property
    def beside(self) -> bool:
        """Old and new stand side by side."""
        wanted = self.app.size.width >= WIDE if self.sides is None else self.sides
        return wanted and self.has_room

    @property
    def has_room(self) -> bool:
        """Old and new could stand side by side."""
        return self.content_width >= SIDES

    @property
    def has_lines(self) -> bool:
        """The file is text, and lines of it were changed."""
        return bool(self.file.added or self.file.removed)

    def draw(self, width: int, height: int) -> list[Line]:
        wanted = Drawing(self.file, width, self.beside)
        if self._made is None or self._made[0] != wanted:
            if len(self.file.diff) > LARGE:
                if self._under_way != wanted:
                    self._under_way = wanted
                    self.run_worker(partial(self._draw_aside, wanted), group="drawing", thread=True)
                return [(Span("Drawing …", "muted"),)]
            self._made = wanted, wanted.lines()
        return self._made[1]

    def _draw_aside(self, wanted: Drawing) -> None:
        """In a thread: the screen does not wait for a large file."""
        self.app.call_from_thread(self._take, wanted, wanted.lines())

    def _take(self, made: Drawing, lines: list[Line]) -> None:
        self._made, self._under_way = (made, lines), None
        if made == Drawing(self.file, self.content_width, self.beside):
            self.redraw()


def _nothing_to_show(file: FileDiff) -> str:
    if "Binary files" in file.diff or "GIT binary patch" in file.diff:
        return "This file is not text."
    return "No line of this file was changed: it is empty, or its mode changed."


class DiffScreen(FramedScreen[None]):
    """`files` as they are when it is opened, at least one; `title` says what they are."""

    DEFAULT_CSS = """
    DiffScreen > Vertical { width: 98%; max-width: 98%; height: 96%; background: $background; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("diff")

    def __init__(self, files: Sequence[FileDiff], title: str) -> None:
        super().__init__(title)
        self._list = FileList(files)
        self._list.display = len(files) > 1
        self._pane = FilePane(files[0])
        added, removed = sum(file.added for file in files), sum(file.removed for file in files)
        about = one_line(files[0].name, 80) if len(files) == 1 else counted(len(files), "file")
        self.frame.border_subtitle = Content(f"{about}  +{added} −{removed}" if added or removed else about)

    def inside(self) -> ComposeResult:
        yield self._list
        yield self._pane
        yield KeyHints([])

    def on_mount(self) -> None:
        """The arrows scroll; no notification covers it."""
        self.app.clear_notifications()
        self._list.redraw()
        self._pane.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Keys are named if they do something: one for other files if there are some."""
        self.call_after_refresh(self._name_keys)

    def _name_keys(self) -> None:
        hints = [Hint("Esc", "close", "escape"), Hint("↑↓", "read", "down")]
        if self._list.display:
            hints.insert(1, Hint("←→", "file", "right"))
        if self._pane.has_room and self._pane.has_lines:
            hints.append(Hint("v", "one column" if self._pane.beside else "side by side", "v"))
        self.query_one(KeyHints).show(hints)

    def action_file(self, step: int) -> None:
        """The file before or after; from the last one on to the first."""
        self._list.move((self._list.cursor + step) % len(self._list.rows) - self._list.cursor)

    def on_cursor_list_moved(self, _: CursorList.Moved) -> None:
        """Show the file under the cursor."""
        if self._list.chosen is not None:
            self._pane.put(self._list.chosen)
            self._name_keys()

    def action_turn(self) -> None:
        """Side by side, or one below the other."""
        if not self._pane.has_lines:
            return
        self._pane.sides = not self._pane.beside
        self._pane.redraw()
        self._name_keys()
        if self._pane.sides and not self._pane.beside:
            self.notify("Side by side needs a wider terminal.", markup=False)
