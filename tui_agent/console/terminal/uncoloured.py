"""A screen without colours (`NO_COLOR`): what stands out by its ground is shown reversed, all else by its words."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

STANDS_OUT = 0.2
"""Difference of brightness (0 to 1) from the screen's ground from which on a ground is meant to stand out."""


class Uncoloured(LineFilter):
    """Takes the colours out of a line; bold, underline and their like stay."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without colour."""
        ground = background.brightness
        return [
            Segment(text, None if style is None else _bare(style, ground), control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def _bare(style: Style, ground: float) -> Style:
    return Style(
        bold=style.bold,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=bool(style.reverse) != _stands_out(style.bgcolor, ground),
    )


def _stands_out(colour: RichColor | None, ground: float) -> bool:
    if colour is None or colour.is_default:
        return False
    brightness = Color.from_rich_color(colour).brightness
    return abs(brightness - ground) > STANDS_OUT
