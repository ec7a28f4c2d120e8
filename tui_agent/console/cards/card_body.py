"""The subject of a card in full: wrapped lines that scroll and are never cut.

The text is shown by `reveal`: an operator who is asked to allow something must see every character
of it, also those that a terminal would hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import chop_cells

from tui_agent.console.panes.pane import LinePane
from tui_agent.console.panes.styled_line import Line, Span, wrap
from tui_agent.terminal_text import reveal

if TYPE_CHECKING:
    from textual.geometry import Size

    from tui_agent.core.state import RunState


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

    def __init__(self, passages: Sequence[Passage]) -> None:
        super().__init__()
        self._passages: list[Passage] = []
        self._wrapped: tuple[int, list[Line]] | None = None
        self.rewrite(passages)

    def rewrite(self, passages: Iterable[Passage]) -> None:
        """Show another text; not for the subject of a card."""
        self._passages = [passage._replace(text=reveal(passage.text)) for passage in passages]
        self._wrapped = None

    def show(self, state: RunState, now: float) -> None:
        """A card's text never changes while it is on screen."""

    @property
    def overflows(self) -> bool:
        """Whether there is more than can be seen at once."""
        return self.max_scroll_y > 0

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
                pieces = (chop_cells(source, room) or [""]) if verbatim else wrap(source, room)
                for piece in pieces:
                    yield (Span(" " * indent + piece, role),)
