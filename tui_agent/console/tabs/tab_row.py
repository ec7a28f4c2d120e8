"""The row of tabs above the panes: each with its number, how it stands, and its title as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.console.panes.strips import Palette, to_strip
from tui_agent.frontend.lines.styled import Line, Span, fit, width_of

if TYPE_CHECKING:
    from tui_agent.console.tabs.tab import Standing

LONGEST = 40
"""Cells of a title."""


class TabRow(Widget):
    """One line; a click on a tab shows it."""

    DEFAULT_CSS = """
    TabRow { height: 1; background: $panel; color: $foreground; padding: 0; }
    """

    @dataclass
    class Picked(Message):
        """A tab was clicked, by its place from 0."""

        place: int

    def __init__(self) -> None:
        super().__init__()
        self._standings: Sequence[Standing] = ()
        self._shown = 0

    def show(self, standings: Sequence[Standing], shown: int) -> None:
        """Show these tabs; the one at `shown` is on the screen."""
        self._standings, self._shown = standings, shown
        self.refresh()

    def render_line(self, y: int) -> Strip:
        parts = tab_parts(self._standings, self._shown, self.size.width)
        line = tuple(span for part in parts for span in part)
        return to_strip(line, Palette.of(self.app), self.rich_style, self.size.width)

    def on_click(self, event: events.Click) -> None:
        """Show the tab under the mouse."""
        ends = accumulate(width_of(part) for part in tab_parts(self._standings, self._shown, self.size.width))
        place = next((place for place, end in enumerate(ends) if event.x < end), None)
        if place is not None:
            self.post_message(self.Picked(place))


def tab_parts(standings: Sequence[Standing], shown: int, width: int) -> list[Line]:
    """The line's parts, a tab each, in at most `width` cells: titles get shorter together, the shown one's
    last; if even numbers do not fit, tabs far from the shown one are left empty.
    """
    parts: list[Line] = []
    for longest in range(LONGEST, -1, -1):
        parts = [_part(place, standing, longest, place == shown) for place, standing in enumerate(standings)]
        if sum(map(width_of, parts)) <= width:
            return parts
    order = sorted(range(len(parts)), key=lambda place: abs(place - shown))
    room = width
    for place in order:
        room -= width_of(parts[place])
        if room < 0:
            parts[place] = ()
    return parts


def _part(place: int, standing: Standing, longest: int, shown: bool) -> Line:
    ground = " on:cursor-background" if shown else ""
    title = fit(standing.title, max(longest, 12) if shown else longest)
    return (
        Span(f" {place + 1} ", f"{'bold' if shown else 'muted'}{ground}"),
        Span(standing.glyph, f"{standing.role}{ground}"),
        Span(f" {title} " if title else " ", f"{'bold' if shown else ''}{ground}"),
    )
