"""One line of text that is asked for: a session's new title."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from tui_agent.console.fields import LineField
from tui_agent.console.hints import key_line


class LineScreen(ModalScreen[str]):
    """Dismissed with the line; empty: nothing is to change."""

    DEFAULT_CSS = """
    LineScreen { align: center middle; }
    LineScreen Vertical {
        width: 72; max-width: 96%; height: auto; padding: 0 1; background: $surface; border: round $accent;
        border-title-color: $accent; border-subtitle-color: $text-muted;
    }
    LineScreen Input, LineScreen Input:focus { border: none; height: 1; padding: 0; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss('')", "Back", show=False, priority=True)
    ]

    def __init__(self, title: str, value: str) -> None:
        super().__init__()
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = key_line(("Enter", "take it"), ("Esc", "cancel"))
            yield LineField(self._value, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed."""
        self.dismiss(event.value.strip())
