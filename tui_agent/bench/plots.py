"""Drawings of figures as SVG text: points in a plane, and rows with intervals. Nothing but shapes and words."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor
from typing import NamedTuple

_INK, _LINE, _SOFT, _POINT, _OWN = "#1c2430", "#c9d1dc", "#6b7789", "#3b6fb6", "#c4492f"
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
        f"{_STYLE}>{escape(up)}</text>"
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


def _open(width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'style="max-width:{width}px;width:100%">'
    )


def _bar(start: float, end: float, y: float) -> str:
    return f'<line x1="{start:.1f}" y1="{y}" x2="{end:.1f}" y2="{y}" stroke="{_POINT}" stroke-width="3"/>'


def _text(x: float, y: float, words: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {_STYLE}>{escape(words)}</text>'
