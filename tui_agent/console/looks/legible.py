"""Colours of a theme that stand off the grounds on which they are drawn, by WCAG's ratio for text.

Textual's own themes are made for widgets of another kind: what they call a warning may be yellow on white.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.color import Color

ENOUGH = 4.7
"""The ratio of luminances that is aimed at: a little above that from which on text is legible (4.5, WCAG 2 AA), since
some grounds are mixed.
"""
_STEPS = 16
"""Steps from a colour to black or white."""


def luminance(colour: Color) -> float:
    """Give the relative luminance, from 0 to 1 (WCAG 2)."""
    shares = (channel / 255 for channel in colour.rgb)
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    """Give the ratio of two luminances, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def legible(colour: str, grounds: Iterable[str]) -> str:
    """Move a colour towards black or white until it is legible on all grounds, no further."""
    written = Color.parse(colour)
    behind = [Color.parse(ground) for ground in grounds]

    def worst(text: Color) -> float:
        return min(contrast(text, ground) for ground in behind)

    end = max((Color(0, 0, 0), Color(255, 255, 255)), key=worst)
    for step in range(_STEPS + 1):
        moved = written.blend(end, step / _STEPS)
        if worst(moved) >= ENOUGH:
            return colour if not step else moved.hex6
    return end.hex6
