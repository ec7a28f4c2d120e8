"""The subject of a card in full: wrapped lines that scroll and are never cut.

The text is shown by `reveal`: an operator who is asked to allow something must see every character
of it, also those that a terminal would hide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, chop_cells
from textual.message import Message

from tui_agent.console.panes.pane import LinePane
from tui_agent.console.panes.styled_line import Line, Span, wrap
from tui_agent.terminal_text import reveal

if TYPE_CHECKING:
    from textual.geometry import Size

    from tui_agent.core.state import RunState


_SPACES = re.compile(" {41,}")
_EMPTY_LINES = re.compile(r"\n(?:[ ]*\n){5,}")


class Passage(NamedTuple):
    """A piece of text in one role. `verbatim`: broken at any cell, spaces kept (commands, diffs, JSON).
    `indent`: cells before each of its lines."""

    text: str
    role: str = ""
    verbatim: bool = False
    indent: int = 0


def diff_passages(text: str) -> Iterable[Passage]:
    """A preview line by line: lines of a unified diff in their colours."""
    is_diff = any(line.startswith("@@ ") for line in text.split("\n", 64)[:64])
    for line in text.split("\n"):
        role = "code"
        if is_diff and line[:1] == "+":
            role = "diff-add"
        elif is_diff and line[:1] == "-":
            role = "diff-remove"
        elif is_diff and line[:2] == "@@":
            role = "muted"
        yield Passage(line, role, verbatim=True)


def _blanks_said(text: str) -> str:
    """Blanks that would push what follows out of sight, counted instead."""
    text = _SPACES.sub(lambda run: f" ⋯ {len(run.group()):,} spaces ⋯ ", text)
    return _EMPTY_LINES.sub(lambda run: f"\n⋯ {run.group().count(chr(10)) - 1:,} empty lines ⋯\n", text)


def _at_spaces(source: str, width: int) -> list[str]:
    """`source` in pieces of at most `width` cells, every character kept; broken behind a space where one is near."""
    pieces: list[str] = []
    while cell_len(source) > width:
        piece = chop_cells(source[: width + 1], width)[0]
        space = piece.rfind(" ", len(piece) * 2 // 3) + 1
        pieces.append(piece[:space] if space else piece)
        source = source[len(pieces[-1]) :]
    return [*pieces, source]


class CardBody(LinePane, can_focus=False):
    """A borderless pane as tall as its text, up to what its card allows."""

    DEFAULT_CSS = """
    CardBody {
        scrollbar-size-horizontal: 0;
        border: none;
        padding: 0;
        height: auto;
        max-height: 40vh;
        background: transparent;
        &:focus { border: none; }
    }
    """

    class Scrolled(Message):
        """Another part of the text is in view."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        super().__init__()
        self._seen = False
        self._passages: list[Passage] = []
        self._wrapped: tuple[int, list[Line]] | None = None
        self.rewrite(passages)

    def rewrite(self, passages: Iterable[Passage]) -> None:
        """Show another text; not for the subject of a card."""
        self._passages = [passage._replace(text=_blanks_said(reveal(passage.text))) for passage in passages]
        self._wrapped = None
        self._seen = False

    def show(self, state: RunState, now: float) -> None:
        """A card's text never changes while it is on screen."""

    @property
    def unseen(self) -> int:
        """Lines that were not on the screen yet, below what is; 0 once the end has been there."""
        height = self.scrollable_content_region.height
        left = len(self._lines) - (self.scroll_offset.y + height)
        self._seen = self._seen or (height > 0 and left <= 0)
        return 0 if self._seen else max(1, left)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The end may have come into view."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # The scrollbar's column is kept free: whether it is there depends on the height that is asked for.
        return len(self.draw(width - self.scrollbar_size_vertical, 0))

    def draw(self, width: int, height: int) -> list[Line]:
        if self._wrapped is None or self._wrapped[0] != width:
            self._wrapped = (width, list(self._laid_out(max(1, width))))
        return self._wrapped[1]

    def _laid_out(self, width: int) -> Iterable[Line]:
        for text, role, verbatim, indent in self._passages:
            room = max(8, width - indent)
            for source in text.split("\n"):
                pieces = _at_spaces(source, room) if verbatim else wrap(source, room)
                for piece in pieces:
                    yield (Span(" " * indent + piece, role),)
