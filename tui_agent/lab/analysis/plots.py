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
GOOD, FAIR, NEUTRAL, SERIOUS, GRAVE, BAD, WORST = (
    "#2f855a", "#8fc7a8", "#b8c4d6", "#d9a441", "#cf7a38", "#c4492f", "#6d1f12"
)  # fmt: skip
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
figure{{margin:0}}
</style>{body}</html>
"""
_WIDTH = 480
"""Of a drawing, in units: small enough that its words can be read on a telephone, and larger on a wide page."""
_WIDEST = 680
"""Of a drawing, in pixels."""
_LETTER = 6.6
"""About the width of a letter in units."""
_STYLE = f'font-family="system-ui, sans-serif" fill="{_INK}"'


class Point(NamedTuple):
    """A named point; `x` and `y` from 0 to 1. `own`: drawn in another colour."""

    name: str
    x: float
    y: float
    own: bool = False


class IntervalRow(NamedTuple):
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
    """A row of stacked parts for each name, with its sum; `parts`: what they are, and their colours."""
    left, step = _room([bar.name for bar in shown]), 24
    most = max([1, *(sum(bar.parts) for bar in shown)])
    inner = _WIDTH - left - 48
    lines: list[str] = []
    x, y = 0.0, 6.0
    for words, shade in parts.items():
        long = 30 + _LETTER * len(words)
        if x + long > _WIDTH:
            x, y = 0.0, y + 18
        lines += [_box(x, y, 12, 12, shade), _text(x + 17, y + 10, words, "start")]
        x += long
    top = y + 26
    for number, bar in enumerate(shown):
        y, x = top + number * step, float(left)
        lines.append(_text(left - 10, y + 13, clipped(bar.name, 34), "end"))
        for shade, part in zip(parts.values(), bar.parts, strict=True):
            long = part / most * inner
            lines.append(_box(x, y, long, 16, shade))
            x += long
        lines.append(_text(x + 6, y + 13, f"{sum(bar.parts):,}", "start"))
    return _svg(lines, top + step * len(shown) + 10)


def plane(points: Sequence[Point], across: str, up: str) -> str:
    """Points by two shares, in their part of the plane, each with its name beside it. Points at one place
    share a label.
    """
    height, left, bottom, right = 380, 52, 46, 24
    inner_w, inner_h = _WIDTH - left - right, height - bottom - 20
    widest = max([0.1, *(ceil(10 * point.x) / 10 for point in points)])
    lowest = min([0.9, *(floor(10 * point.y) / 10 for point in points)])
    highest = max([lowest + 0.1, *(ceil(10 * point.y) / 10 for point in points)])

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x / widest * inner_w, 20 + (highest - y) / (highest - lowest) * inner_h

    lines: list[str] = []
    for tick in range(6):
        across_here, up_here = widest * tick / 5, lowest + (highest - lowest) * tick / 5
        x, y = place(across_here, up_here)
        lines += [
            _line(left, y, left + inner_w, y, _LINE),
            _text(left - 8, y + 4, f"{up_here:.0%}", "end"),
            _text(x, height - bottom + 22, f"{across_here:.0%}", "middle"),
        ]
    together: dict[tuple[int, int], list[Point]] = {}
    for point in points:
        x, y = place(point.x, point.y)
        together.setdefault((round(x), round(y)), []).append(point)
    taken = [_Area(x - 5, x + 5, y - 5, y + 5) for x, y in together]
    for (x, y), same in sorted(together.items(), key=lambda one: (one[0][1], one[0][0])):
        lines.append(_circle(x, y, _OWN if any(point.own for point in same) else _POINT))
        lines += _label(x, y, ", ".join(point.name for point in same), taken, height - bottom + 4)
    lines.append(_text(left + inner_w / 2, height - 6, across, "middle"))
    lines.append(
        f'<text transform="translate(13 {20 + inner_h / 2:.0f}) rotate(-90)" text-anchor="middle" font-size="12" '
        f"{_STYLE}>{_safe(up)}</text>"
    )
    return _svg(lines, height)


class _Area(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: _Area) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def _label(x: float, y: float, words: str, taken: list[_Area], lowest: float) -> list[str]:
    """The words beside a point, in a free place, and a line to them if they are not at its height. `taken`
    gets their area; `lowest`: how far down they may stand.
    """
    long = _LETTER * len(words)
    start = x + 9 if x + 9 + long < _WIDTH else x - 9 - long
    tried = [
        (at, _Area(start, start + long, at - 10, at + 3))
        for shift in range(12)
        for at in dict.fromkeys((y + 4 + 12 * shift, y + 4 - 12 * shift))
        if 10 <= at <= lowest
    ]
    free = (one for one in tried if not any(one[1].meets(other) for other in taken))
    at, area = next(free, tried[0])
    taken.append(area)
    near = start - 2 if start > x else start + long + 2
    lead = [_line(x, y, near, at - 4, _SOFT)] if abs(at - 4 - y) > 1 else []
    return [*lead, _text(start, at, words, "start")]


def rows(spans: Sequence[IntervalRow], low: float, high: float, title: str) -> str:
    """Means with intervals over one scale in percentage points, a line at 0."""
    left, step = _room([span.name for span in spans]), 22
    height = step * len(spans) + 60
    inner = _WIDTH - left - 62

    def place(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * inner

    lines = [_text(_WIDTH, 14, title, "end")]
    for tick in range(5):
        value = low + (high - low) * tick / 4
        x = place(value)
        lines.append(_line(x, 24, x, height - 28, _LINE))
        lines.append(_text(x, height - 12, f"{value * 100:g}", "middle"))
    if low < 0 < high:
        lines.append(_line(place(0.0), 24, place(0.0), height - 28, _SOFT))
    for number, span in enumerate(spans):
        y = 38 + number * step
        said = f"{span.mean * 100:+.1f}" if low < 0 else f"{span.mean * 100:.0f} %"
        lines += [
            _text(left - 10, y + 4, clipped(span.name, 34), "end"),
            _line(place(span.low), y, place(span.high), y, _POINT, 3),
            _circle(place(span.mean), y, _OWN),
            _text(_WIDTH, y + 4, said, "end"),
        ]
    return _svg(lines, height)


def _room(names: Sequence[str]) -> float:
    """Units for names at the left of a drawing."""
    return 14 + _LETTER * max([8, *(len(clipped(name, 34)) for name in names)])


def _safe(text: str) -> str:
    return escape(visible(text))


def _svg(lines: Sequence[str], height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'style="max-width:{_WIDEST}px;width:100%">{"".join(lines)}</svg>'
    )


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: int = 1) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def _circle(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12" {_STYLE}>{_safe(words)}</text>'
    )
