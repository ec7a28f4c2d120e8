"""One line of text that is asked for: a session's new title."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.prompt.fields import LineField
from tui_agent.console.screens.framed import FramedScreen


class LineScreen(FramedScreen[str]):
    """Dismissed with the line; empty: nothing is to change."""

    DEFAULT_CSS = """
    LineScreen > Vertical { width: 100; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("line")

    def __init__(self, title: str, value: str) -> None:
        super().__init__(title, ("Enter", "take it"), ("Esc", "cancel"))
        self._value = value

    def inside(self) -> ComposeResult:
        yield LineField(self._value, compact=True)

    def on_input_submitted(self) -> None:
        """Take what was typed."""
        self.dismiss(self.query_one(LineField).whole_text.strip())
