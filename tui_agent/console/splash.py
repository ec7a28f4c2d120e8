"""What stands in the dashboard's place for the first tenth of a second: its outline, drawn by one cheap widget."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

TITLE = " Conversation "
PANE_NAMES = ("conversation", "ring", "confidence", "attempts", "note", "timeline", "trends")


class Splash(Widget):
    """The conversation's border where it will be; the recovery panes' place stays empty."""

    DEFAULT_CSS = """
    Splash { height: 1fr; background: $background; color: $border-blurred; }
    """

    _outline: tuple[Strip, Strip, Strip] | None = None
    """The first line, those between, the last: drawn once for a size and a style."""

    def render_line(self, y: int) -> Strip:
        """One line of the outline."""
        if self._outline is None:
            self._outline = self._drawn()
        first, between, last = self._outline
        return first if y == 0 else last if y == self.size.height - 1 else between

    def _drawn(self) -> tuple[Strip, Strip, Strip]:
        inner = conversation_width(*self.app.size) - 2
        style = self.rich_style

        def line(text: str) -> Strip:
            return Strip([Segment(text, style)], inner + 2).adjust_cell_length(self.size.width, style)

        return (
            line(f"╭─{TITLE}{'─' * (inner - len(TITLE) - 1)}╮"),
            line(f"│{' ' * inner}│"),
            line(f"╰{'─' * inner}╯"),
        )

    def notify_style_update(self) -> None:
        """A line of the styles before is not drawn again."""
        super().notify_style_update()
        self._outline = None

    def on_resize(self) -> None:
        self._outline = None


def conversation_width(width: int, height: int) -> int:
    """Columns that the conversation takes in a terminal of this size."""
    if width < UNFOLDED_WIDTH or height < UNFOLDED_HEIGHT:
        return width
    if width >= WIDE_WIDTH:
        return width - min(108, width // 2)
    return width - max(46, min(64, width * 38 // 100))


UNFOLDED_WIDTH = 108
UNFOLDED_HEIGHT = 28
"""Below either, there is no room for the recovery panes at the conversation's side."""
WIDE_WIDTH = 170
LOW_HEIGHT = 16
"""Below it the summary and the hints go;"""
TINY_HEIGHT = 12
"""below it the frames."""
