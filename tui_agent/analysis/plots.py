"""Figures as HTML that needs nothing else: points in a plane, rows with intervals, stacked bars, and the page for them.

Drawings are SVG text. Words are made safe here, so that a caller may give what was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor
from typing import NamedTuple

from tui_agent.terminal_text import clipped, visible

_INK, _LINE, _SOFT, _POINT, _OWN = "#1c2430", "#c9d1dc", "#6b7789", "#3b6fb6", "#c4492f"
GOOD, FAIR, NEUTRAL, SERIOUS, BAD, WORST = "#2f855a", "#8fc7a8", "#b8c4d6", "#d9a441", "#c4492f", "#6d1f12"
"""Colours of parts, from the best to the worst."""
_PAGE = """<!doctype html><html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width,initial-scale=1">
<meta http-equiv=Content-Security-Policy content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
body{{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#1c2430}}
table{{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}}
td,th{{padding:3px 8px;border-bottom:1px solid #dde3ea;text-align:right;white-space:nowrap}}
h1{{font-size:1.5rem}}h2{{font-size:1.1rem;margin-top:2rem}}
td:first-child,th:first-child,.left{{text-align:left}}td.left:last-child{{white-space:normal;min-width:14rem}}
pre{{background:#f4f6f9;padding:.7rem;overflow-x:auto}}
figure{{margin:0;overflow-x:auto}}svg{{min-width:34rem}}
</style>{body}</html>
"""
_STYLE = f'font-family="system-ui, sans-serif" fill="{_INK}"'


class Point(NamedTuple):
    """A named point; `x` and `y` from 0 to 1. `own`: drawn in another colour."""

    name: str
    x: float
    y: float
    own: bool = False


class Span(NamedTuple):
    """A named row: a mean with its interval."""

    name: str
    mean: float
    low: float
    high: float


class Bar(NamedTuple):
    """A named row of parts that add up."""

    name: str
    parts: tuple[int, ...]


def page(title: str, drawings: Sequence[tuple[str, str]], rest: str) -> str:
    """One file: drawings under their headings, then `rest`, which is HTML."""
    head = f"<h1>{_safe(title)}</h1>"
    shown = "".join(f"<h2>{_safe(words)}</h2><figure>{drawing}</figure>" for words, drawing in drawings)
    return _PAGE.format(title=_safe(title), body=f"{head}{shown}{rest}")


def table(head: Sequence[str], body: Sequence[Sequence[str]], left: int, words: int | None = None) -> str:
    """A table; the first `left` columns and those from `words` on begin at the left."""

    def row(tag: str, cells: Sequence[str]) -> str:
        texts = {*range(left), *range(len(cells) if words is None else words, len(cells))}
        marks = [" class=left" if place in texts else "" for place in range(len(cells))]
        made = (f"<{tag}{mark}>{_safe(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    return f"<table>{row('th', head)}{''.join(row('td', cells) for cells in body)}</table>"


def bars(shown: Sequence[Bar], parts: Mapping[str, str]) -> str:
    """A row of stacked parts for each name, over one scale; `parts`: what they are, and their colours."""
    width, left, step, top = 760, 240, 24, 44
    height = top + step * len(shown) + 10
    most = max([1, *(sum(bar.parts) for bar in shown)])
    inner = width - left - 70
    lines = [_open(width, height)]
    x = 0.0
    for words, shade in parts.items():
        lines += [_box(x, 6, 12, 12, shade), _text(x + 18, 16, words, "start")]
        x += 40 + 7 * len(words)
    for number, bar in enumerate(shown):
        y, x = top + number * step, float(left)
        lines.append(_text(left - 10, y + 13, clipped(bar.name, 34), "end"))
        for shade, part in zip(parts.values(), bar.parts, strict=True):
            long = part / most * inner
            lines.append(_box(x, y, long, 16, shade))
            x += long
        lines.append(_text(x + 8, y + 13, f"{sum(bar.parts):,}", "start"))
    return "".join((*lines, "</svg>"))


def plane(points: Sequence[Point], across: str, up: str) -> str:
    """Points by two shares, in the part of the plane where they are, each with its name beside it; names that would
    overlap move down.
    """
    width, height, left, bottom = 760, 460, 60, 50
    inner_w, inner_h = width - left - 160, height - bottom - 20
    widest = max([0.1, *(ceil(10 * point.x) / 10 for point in points)])
    lowest = min([0.9, *(floor(10 * point.y) / 10 for point in points)])
    highest = max([lowest + 0.1, *(ceil(10 * point.y) / 10 for point in points)])

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x / widest * inner_w, 20 + (highest - y) / (highest - lowest) * inner_h

    lines = [_open(width, height)]
    for tick in range(6):
        across_here, up_here = widest * tick / 5, lowest + (highest - lowest) * tick / 5
        x, y = place(across_here, up_here)
        lines += [
            f'<line x1="{left}" y1="{y:.0f}" x2="{left + inner_w}" y2="{y:.0f}" stroke="{_LINE}"/>',
            _text(left - 8, y + 4, f"{up_here:.0%}", "end"),
            _text(x, height - bottom + 18, f"{across_here:.0%}", "middle"),
        ]
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda one: (-one.y, one.x)):
        x, y = place(point.x, point.y)
        at = y + 4
        while any(abs(at - other) < 12 and abs(x - there) < 80 for there, other in taken):
            at += 12
        taken.append((x, at))
        colour = _OWN if point.own else _POINT
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        lines.append(_text(x + 8, at, point.name, "start", 11))
    lines.append(_text(left + inner_w / 2, height - 8, across, "middle"))
    lines.append(
        f'<text transform="translate(14 {20 + inner_h / 2:.0f}) rotate(-90)" text-anchor="middle" font-size="12" '
        f"{_STYLE}>{_safe(up)}</text>"
    )
    return "".join((*lines, "</svg>"))


def rows(spans: Sequence[Span], low: float, high: float, title: str) -> str:
    """Means with intervals over one scale in percentage points, a line at 0."""
    width, left, step = 760, 240, 22
    height = step * len(spans) + 60
    inner = width - left - 70

    def place(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * inner

    lines = [_open(width, height), _text(left, 14, title, "start")]
    for tick in range(5):
        value = low + (high - low) * tick / 4
        x = place(value)
        lines.append(f'<line x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{height - 28}" stroke="{_LINE}"/>')
        lines.append(_text(x, height - 12, f"{value * 100:.0f}", "middle"))
    if low < 0 < high:
        x = place(0.0)
        lines.append(f'<line x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{height - 28}" stroke="{_SOFT}"/>')
    for number, span in enumerate(spans):
        y = 38 + number * step
        lines += [
            _text(left - 10, y + 4, span.name, "end"),
            _bar(place(span.low), place(span.high), y),
            f'<circle cx="{place(span.mean):.1f}" cy="{y}" r="4" fill="{_OWN}"/>',
            _text(
                width - 60,
                y + 4,
                f"{span.mean * 100:+.1f}" if low < 0 else f"{span.mean * 100:.0f} %",
                "start",
            ),
        ]
    return "".join((*lines, "</svg>"))


def _safe(text: str) -> str:
    return escape(visible(text))


def _open(width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'style="max-width:{width}px;width:100%">'
    )


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _bar(start: float, end: float, y: float) -> str:
    return f'<line x1="{start:.1f}" y1="{y}" x2="{end:.1f}" y2="{y}" stroke="{_POINT}" stroke-width="3"/>'


def _text(x: float, y: float, words: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {_STYLE}>{_safe(words)}</text>'
