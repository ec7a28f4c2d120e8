"""A screen for something to look at: lines in a frame that the keys scroll, closed by Esc."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen

from tui_agent.console.looks.command_keys import bindings, closing
from tui_agent.console.looks.hints import key_line
from tui_agent.console.panes.pane import LinePane
from tui_agent.frontend.lines.styled import Line


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

    def __init__(self, lines: Callable[[int], Iterable[Line]]) -> None:
        super().__init__()
        self._report = lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.draw(width - self.scrollbar_size_vertical, 0))

    def draw(self, width: int, height: int) -> list[Line]:
        return list(self._report(width))


class ReportScreen(ModalScreen[None]):
    """The lower edge names the keys that scroll if they do."""

    DEFAULT_CSS = """
    ReportScreen { align: center middle; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("report"), closing("why")]

    def __init__(
        self,
        title: str,
        lines: Callable[[int], Iterable[Line]],
        columns: int | None = None,
        *,
        moves: bool = False,
    ) -> None:
        """`lines` makes them for a width in cells, anew every second if the report `moves`."""
        super().__init__()
        self._moves = moves
        self.pane = ReportPane(lines)
        if columns is not None:
            self.pane.styles.width = columns
        self.pane.border_title = Content(title)

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        """The pane scrolls by the keys."""
        self.pane.focus()
        if self._moves:
            self.set_interval(1.0, self._again)
        self.watch(self.pane, "show_vertical_scrollbar", self._name_keys)

    def _again(self) -> None:
        self.pane.redraw()
        self.pane.refresh(layout=True)

    def _name_keys(self, scrolls: bool) -> None:
        self.pane.border_subtitle = key_line(("Esc", "close"), *([("↑↓", "scroll")] if scrolls else []))
