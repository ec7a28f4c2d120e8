"""Places of pieces that stand side by side as far as they fit, and on more lines if they do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from textual import events
from textual.content import Content


class ChipPlace(NamedTuple):
    """The line of a piece, its first column, the column behind its last."""

    line: int
    start: int
    end: int

    def holds(self, event: events.Click) -> bool:
        """True if the click was on the piece."""
        return event.y == self.line and self.start <= event.x < self.end


def flow(lengths: Iterable[int], width: int) -> list[ChipPlace]:
    """The places of pieces of these lengths, a column apart. One without a length takes no room."""
    places: list[ChipPlace] = []
    line = column = 0
    for length in lengths:
        if length and column and column + length > width:
            line, column = line + 1, 0
        places.append(ChipPlace(line, column, column + length))
        column += length + 1 if length else 0
    return places


def height(places: Sequence[ChipPlace]) -> int:
    """Lines that the pieces take."""
    return places[-1].line + 1 if places else 0


def joined(chips: Iterable[Content], places: Sequence[ChipPlace]) -> Content:
    """The pieces at their places."""
    lines: list[Content] = []
    for chip, place in zip(chips, places, strict=True):
        if place.line == len(lines):
            lines.append(Content(""))
        lines[-1] = Content.assemble(lines[-1], " " * (place.start - lines[-1].cell_length), chip)
    return Content("\n").join(lines)
