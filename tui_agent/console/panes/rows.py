"""The base of the rows around the panes: lines over the whole width, drawn when the state or the width changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.strip import Strip
from textual.widget import Widget

from tui_agent.console.panes.strips import Palette, to_strip
from tui_agent.frontend.lines.styled import Line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


class Rows(Widget):
    """As high as the lines that `draw` makes."""

    DEFAULT_CSS = """
    Rows { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    lines: list[Line] = []
    _state: RunState | None = None
    _now = 0.0

    def show(self, state: RunState, now: float) -> None:
        """Show `state` at the time `now` (seconds since the epoch)."""
        self._state, self._now = state, now
        self.redraw()

    def draw(self, state: RunState, now: float, width: int) -> list[Line]:
        """The rows, of at most `width` cells each."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw what was shown last; cheap when the lines come out the same."""
        width = self.content_region.width
        if self._state is None or width <= 0:
            return
        lines = self.draw(self._state, self._now, width)
        if lines == self.lines:
            return
        if len(lines) != len(self.lines):
            self.styles.height = len(lines)
        self.lines = lines
        self.refresh()

    def on_resize(self) -> None:
        self.redraw()

    def render_line(self, y: int) -> Strip:
        width = self.content_region.width
        if y >= len(self.lines):
            return Strip.blank(width, self.rich_style)
        return to_strip(self.lines[y], Palette.of(self.app), self.rich_style, width)
