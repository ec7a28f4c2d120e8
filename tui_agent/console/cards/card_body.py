"""The subject of a card in full: wrapped lines that scroll and are never cut.

The text is shown by `reveal`: an operator who is asked to allow something must see every character
of it, also those that a terminal would hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from textual.geometry import Size
from textual.message import Message

from tui_agent.console.panes.pane import LinePane
from tui_agent.frontend.lines.passages import GAP, Passage, blanks_said
from tui_agent.frontend.lines.styled import Line, Span, squeezed, wrap
from tui_agent.terminal_text import reveal

if TYPE_CHECKING:
    from textual.events import Resize

    from tui_agent.core.state import RunState


def _at_spaces(source: str, width: int) -> list[str]:
    """`source` in pieces of at most `width` cells, every character kept; only words that are longer are broken."""
    pieces: list[str] = []
    while cell_len(source) > width:
        piece = chop_cells(source[: width + 1], width)[0]
        space = piece.rfind(" ") + 1
        word = source[space : space + width + 1].partition(" ")[0]
        pieces.append(piece[:space] if piece[:space].strip() and cell_len(word) <= width else piece)
        source = source[len(pieces[-1]) :]
    return [*pieces, source]


class CardBody(LinePane, can_focus=False):
    """A borderless pane as tall as its text, up to what its card allows."""

    DEFAULT_CSS = """
    CardBody {
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

    def __init__(self, passages: Sequence[Passage], remarks: Sequence[Passage] = ()) -> None:
        """`remarks` stand below the subject and may change."""
        super().__init__()
        self._seen = self._subject_seen = False
        self._passages: list[Passage] = []
        self._remarks: list[Passage] = []
        self._wrapped: tuple[int, list[Line], int] | None = None
        self._spaced = True
        self._rows = 0
        """The rows that `allow` gave; before, more is laid out than there is room for."""
        self.rewrite(passages)
        self.remark(remarks)

    def allow(self, rows: int, width: int) -> int:
        """Take at most so many rows of `width` cells; what an older layout shows below them does not count as seen.
        The lines are there before the first frame has a size for them. Gives the rows that are taken.
        """
        self._rows = rows
        self.styles.max_height = rows
        room = width - self.scrollbar_size_vertical
        lines = self.draw(room, 0)
        if lines != self.lines:
            self.lines = lines
            self._strips.clear()
            self.virtual_size = Size(room, len(lines))
        return min(rows, len(self.lines))

    def rewrite(self, passages: Iterable[Passage]) -> None:
        """Show another text; not for the subject of a card."""
        self._passages = _safe(passages)
        self._wrapped = None
        self._seen = self._subject_seen = False

    def remark(self, remarks: Iterable[Passage]) -> None:
        """Show these remarks below the subject."""
        self._remarks = _safe(remarks)
        self._wrapped = None
        self._seen = False

    def space_out(self, spaced: bool) -> None:
        """Set the parts of the text off from each other by empty lines, or not."""
        if spaced != self._spaced:
            self._spaced, self._wrapped = spaced, None
            self.redraw()
            self.refresh(layout=True)

    def show(self, state: RunState, now: float) -> None:
        """A card's text never changes while it is on screen."""

    @property
    def unseen(self) -> int:
        """Lines that were not on the screen yet, below what is; 0 once the end has been there."""
        left = self._below(len(self.lines))
        self._seen = self._seen or left <= 0
        return 0 if self._seen else max(1, left)

    @property
    def below(self) -> int:
        """Lines below the rows that are allowed; 0 once the end has been on the screen."""
        left = len(self.lines) - self.scroll_offset.y - self._rows
        return max(0, left) if self._rows and self.unseen else 0

    @property
    def subject_unseen(self) -> bool:
        """True if the end of the subject has not been on the screen yet."""
        self._subject_seen = self._subject_seen or self._seen or self._below(self.subject_lines) <= 0
        return not self._subject_seen

    @property
    def subject_lines(self) -> int:
        """Lines before the remarks."""
        return 0 if self._wrapped is None else self._wrapped[2]

    def _below(self, lines: int) -> int:
        """How many of the first `lines` are below what is on the screen."""
        height = min(self.scrollable_content_region.height, self._rows)
        return lines - (self.scroll_offset.y + height) if height and lines else max(1, lines)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The end may have come into view."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    def on_resize(self, _: Resize) -> None:
        """More of the text may be in view, or less."""
        self.post_message(self.Scrolled())

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # The scrollbar's column is kept free: whether it is there depends on the height that is asked for.
        return len(self.draw(width - self.scrollbar_size_vertical, 0))

    def draw(self, width: int, height: int) -> list[Line]:
        if self._wrapped is None or self._wrapped[0] != width:
            passages = [each for each in self._passages if self._spaced or each != GAP]
            subject = list(_laid_out(passages, max(1, width)))
            remarks = list(_laid_out(self._remarks, max(1, width)))
            gap: list[Line] = [()] if self._spaced and remarks else []
            self._wrapped = (width, subject + gap + remarks, len(subject))
        return self._wrapped[1]


def _safe(passages: Iterable[Passage]) -> list[Passage]:
    return [passage._replace(text=blanks_said(reveal(passage.text))) for passage in passages]


def _laid_out(passages: Sequence[Passage], width: int) -> Iterable[Line]:
    margin = max((len(passage.number) for passage in passages), default=0)
    for text, role, verbatim, indent, number, short in passages:
        before = margin + 1 if number else 0
        room = max(8, width - indent - before)
        ground = role[at:] if (at := role.find("on:")) >= 0 else ""
        for line in text.split("\n"):
            source, at = squeezed(line, room) if short else line, indent
            if not verbatim and room < cell_len(source) <= room + indent:
                # An indent gives way before a line that would fit without it is wrapped.
                at = room + indent - cell_len(source)
            span = room + indent - at
            for piece in _at_spaces(source, span) if verbatim else wrap(source, span):
                margins = (Span(number.rjust(margin) + " ", role if ground else "muted"),) if before else ()
                yield (*margins, Span(" " * at + piece, role), Span("", ground))
                number = ""
