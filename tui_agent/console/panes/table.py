"""A Markdown table as aligned columns that fit the width."""

from __future__ import annotations

import re

from rich.cells import cell_len

from tui_agent.console.panes.ink import Line, Span, clip, pad

_RULE_CELL = re.compile(r"^:?-+:?$")
_LEAST = 3


def is_row(line: str) -> bool:
    """Whether a source line belongs to a table."""
    return line.lstrip().startswith("|") and line.count("|") > 1


def draw_table(rows: list[str], width: int) -> list[Line]:
    """The rows with their columns aligned; a header is bold, with a rule below it."""
    cells = [_cells(row) for row in rows]
    ruled = len(cells) > 1 and all(_RULE_CELL.match(cell) for cell in cells[1])
    body = [row for number, row in enumerate(cells) if not (ruled and number == 1)]
    columns = max(len(row) for row in body)
    widths = [max((cell_len(row[at]) for row in body if at < len(row)), default=0) for at in range(columns)]
    _shrink(widths, width - 3 * (columns - 1))
    lines: list[Line] = []
    for number, row in enumerate(body):
        spans: list[Span] = []
        for at in range(columns):
            if at:
                spans.append(Span(" │ ", "faint"))
            spans.append(
                Span(
                    pad(row[at] if at < len(row) else "", widths[at]), "bold" if ruled and not number else ""
                )
            )
        lines.append(clip(spans, width))
        if ruled and not number:
            lines.append(clip((Span("─┼─".join("─" * size for size in widths), "faint"),), width))
    return lines


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("**", "").replace("`", "") for cell in inner.split("|")]


def _shrink(widths: list[int], room: int) -> None:
    """Take cells from the widest columns until all fit (or nothing can give any more)."""
    excess = sum(widths) - room
    while excess > 0:
        widest = max(range(len(widths)), key=lambda at: widths[at])
        if widths[widest] <= _LEAST:
            return
        rest = [size for at, size in enumerate(widths) if at != widest]
        step = max(1, min(excess, widths[widest] - max([_LEAST, *rest])))
        widths[widest] -= step
        excess -= step
