"""A Markdown table within a width: aligned columns whose cells wrap, or a line a cell if columns get too
narrow.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tui_agent.frontend.lines.styled import Line, Span, text_of, width_of, wrap_spans

_LEAST = 8
"""Cells of a column in which words still fit; a column of shorter words may be narrower."""

_WORD = 20
"""Cells of a word that is not broken if the others leave it the room; longer ones are addresses and paths."""


def draw_table(rows: Sequence[Sequence[Line]], width: int, right: Sequence[bool]) -> list[Line]:
    """The rows, the first of which is the header, in lines of at most `width` cells. Nothing is cut off.

    `right`: the columns whose cells stand at their right edge.
    """
    columns = max(len(row) for row in rows)
    cells = [[*row, *[()] * (columns - len(row))] for row in rows]
    natural = [max(width_of(row[at]) for row in cells) for at in range(columns)]
    words = [max(_longest_word(row[at]) for row in cells) for at in range(columns)]
    room = width - 3 * (columns - 1)
    widths = _shrunk(natural, words, room) or _shrunk(natural, [_LEAST] * columns, room)
    return _records(cells, width) if widths is None else _columns(cells, widths, right)


def _columns(cells: Sequence[Sequence[Line]], widths: Sequence[int], right: Sequence[bool]) -> list[Line]:
    wrapped = any(width_of(cell) > size for row in cells for cell, size in zip(row, widths, strict=True))
    lines: list[Line] = []
    for number, row in enumerate(cells):
        if wrapped and number > 1:
            lines.append(_rule(widths, "┈┼┈", "┈"))
        pieces = [wrap_spans(cell, size) for cell, size in zip(row, widths, strict=True)]
        for at in range(max(map(len, pieces))):
            spans: list[Span] = []
            for column, (parts, size) in enumerate(zip(pieces, widths, strict=True)):
                shown = parts[at] if at < len(parts) else ()
                spans += [Span(" │ ", "faint")] if column else []
                rest = Span(" " * (size - width_of(shown)))
                spans += [rest, *shown] if right[column] else [*shown, rest]
            lines.append(tuple(spans))
        if not number:
            lines.append(_rule(widths, "─┼─", "─"))
    return lines


def _rule(widths: Sequence[int], cross: str, dash: str) -> Line:
    return (Span(cross.join(dash * size for size in widths), "faint"),)


def _records(cells: Sequence[Sequence[Line]], width: int) -> list[Line]:
    """Each row as a list of `header: cell`."""
    header, *rows = cells
    lines: list[Line] = []
    for number, row in enumerate(rows or [header]):
        if number:
            lines.append((Span("┈" * min(width, 12), "faint"),))
        for name, cell in zip(header, row, strict=True):
            label = () if not rows else (*name, Span(": ", "muted"))
            lines += wrap_spans((*label, *cell), width) if cell or label else []
    return lines


def _longest_word(cell: Line) -> int:
    return max((min(_WORD, cell_len(word)) for word in text_of(cell).split()), default=0)


def _shrunk(natural: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Widths that fit, none below its least: cells are taken from the widest columns. None: they do not fit."""
    widths = list(natural)
    while (excess := sum(widths) - room) > 0:
        wide = [at for at, size in enumerate(widths) if size > least[at]]
        if not wide:
            return None
        widest = max(wide, key=widths.__getitem__)
        lower = max(least[widest], *(widths[at] for at in wide if at != widest), 0)
        widths[widest] -= max(1, min(excess, widths[widest] - lower))
    return widths
