"""A screen for something to look at: lines that are drawn once, in a frame, closed by Esc."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from tui_agent.console.hints import key_line
from tui_agent.console.panes.pane import LinePane

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.console.panes.styled_line import Line
    from tui_agent.core.state import RunState


class ReportPane(LinePane):
    """As high as its lines, and no higher than the terminal."""

    DEFAULT_CSS = """
    ReportPane {
        width: 80; max-width: 96%; height: auto; max-height: 90%; padding: 0 1;
        background: $surface; border: round $accent;
        border-title-color: $accent; border-subtitle-color: $text-muted;
        &:focus { border: round $accent; }
    }
    """

    def __init__(self, draw: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._report = draw
        self.styles.height = len(draw(72)) + 2

    def show(self, state: RunState, now: float) -> None:
        """The screen shows the moment at which it was opened."""

    def draw(self, width: int, height: int) -> list[Line]:
        lines = self._report(width)
        self.styles.height = len(lines) + 2
        return lines


class ReportScreen(ModalScreen[None]):
    """`draw` makes the lines for a width in cells."""

    DEFAULT_CSS = """
    ReportScreen { align: center middle; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss(None)", "Back", show=False, priority=True),
    ]

    def __init__(self, title: str, draw: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._pane = ReportPane(draw)
        self._pane.border_title = Content(title)
        self._pane.border_subtitle = key_line(("Esc", "close"))

    def compose(self) -> ComposeResult:
        yield self._pane

    def on_mount(self) -> None:
        """The pane scrolls by the keys."""
        self._pane.focus()
