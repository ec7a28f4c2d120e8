"""A small app that shows panes as the screens do: all themes, our roles, a state given by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App, ComposeResult

from tui_agent.console.looks.themes import DEFAULT_THEME, read_themes, role_defaults, theme_folders
from tui_agent.console.panes import (
    RECOVERY_PANES,
    ConversationPane,
    IncidentStrip,
    StatusLine,
    TimelinePane,
)
from tui_agent.console.panes.pane import LinePane, StatePane
from tui_agent.console.panes.rows import Rows
from tui_agent.frontend.lines.styled import Line, width_of

if TYPE_CHECKING:
    from tui_agent.core.state import RunState

PANES: tuple[type[StatePane], ...] = (*RECOVERY_PANES, ConversationPane)
ROWS = (StatusLine, IncidentStrip)
ALL = (*PANES, *ROWS)


class Stage(App[None]):
    """Shows one widget over the whole screen, or several below each other."""

    def __init__(self, *kinds: type[LinePane | Rows], theme: str = DEFAULT_THEME) -> None:
        super().__init__()
        for each in read_themes(theme_folders())[0].values():
            self.register_theme(each)
        self.theme = theme
        self.kinds = kinds

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return role_defaults(self.current_theme)

    def compose(self) -> ComposeResult:
        for kind in self.kinds:
            pane = kind()
            if isinstance(pane, LinePane):
                pane.styles.height = "1fr"
            yield pane

    def show(self, state: RunState, now: float) -> None:
        for kind in self.kinds:
            self.query_one(kind).show(state, now)


def rows_of(pane: Any) -> list[str]:
    """The visible rows as text, as the compositor would ask for them."""
    return [pane.render_line(y).text for y in range(pane.content_region.height)]


def text_of_pane(pane: Any) -> str:
    """All visible rows."""
    return "\n".join(row.rstrip() for row in rows_of(pane))


def lines_of(pane: Any) -> tuple[list[Line], int]:
    """Every line that the pane holds or would draw in view, and the width that it may take."""
    if isinstance(pane, Rows):
        return pane.lines, pane.content_region.width
    if isinstance(pane, ConversationPane):
        transcript = pane.transcript
        lines = [
            transcript.line(index, number)
            for index in range(len(transcript))
            for number in range(transcript.measure(index))
        ]
        return lines, transcript.width
    if isinstance(pane, TimelinePane):
        return [pane._line(row) for row in range(pane._rows)], pane.content_width
    return pane.lines, pane.content_width


def too_wide(pane: Any) -> list[Line]:
    """Lines that would be cut off at the pane's edge."""
    lines, width = lines_of(pane)
    return [line for line in lines if width_of(line) > max(0, width)]
