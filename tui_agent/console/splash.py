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

    def render_line(self, y: int) -> Strip:
        """One line of the outline."""
        width, height = self.size
        inner = conversation_width(*self.app.size) - 2
        if y == 0:
            text = f"╭─{TITLE}{'─' * (inner - len(TITLE) - 1)}╮"
        elif y == height - 1:
            text = f"╰{'─' * inner}╯"
        else:
            text = f"│{' ' * inner}│"
        return Strip([Segment(text, self.rich_style)], inner + 2).adjust_cell_length(width, self.rich_style)


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
