"""A Markdown table as aligned columns that fit the width."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.console.panes.styled_line import Line, Span, clip, width_of

_LEAST = 3


def draw_table(rows: Sequence[Sequence[Line]], width: int) -> list[Line]:
    """The rows with their columns aligned, and a rule below the first, which is the header."""
    columns = max(len(row) for row in rows)
    cells = [[*row, *[()] * (columns - len(row))] for row in rows]
    widths = [max(width_of(row[at]) for row in cells) for at in range(columns)]
    _shrink(widths, width - 3 * (columns - 1))
    lines: list[Line] = []
    for number, row in enumerate(cells):
        spans: list[Span] = []
        for at, cell in enumerate(row):
            if at:
                spans.append(Span(" │ ", "faint"))
            shown = clip(cell, widths[at])
            spans += [*shown, Span(" " * (widths[at] - width_of(shown)))]
        lines.append(clip(spans, width))
        if not number:
            lines.append(clip((Span("─┼─".join("─" * size for size in widths), "faint"),), width))
    return lines


def _shrink(widths: list[int], room: int) -> None:
    """Take cells from the widest columns until all fit or all are as narrow as may be."""
    excess = sum(widths) - room
    while excess > 0:
        widest = max(range(len(widths)), key=lambda at: widths[at])
        if widths[widest] <= _LEAST:
            return
        rest = [size for at, size in enumerate(widths) if at != widest]
        step = max(1, min(excess, widths[widest] - max([_LEAST, *rest])))
        widths[widest] -= step
        excess -= step
