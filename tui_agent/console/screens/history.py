"""Earlier prompts, searched by what is typed; the one that is chosen goes into the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui_agent.terminal_text import one_line

SHOWN = 100
"""Texts that are listed; more letters find the others."""


class HistoryScreen(ModalScreen["str | None"]):
    """Dismissed with a text, or None."""

    DEFAULT_CSS = """
    HistoryScreen { align: center bottom; }
    HistoryScreen Vertical {
        width: 100; max-width: 98%; height: auto; max-height: 80%; padding: 0 1; margin-bottom: 2;
        background: $surface; border: round $accent;
        border-title-color: $accent; border-subtitle-color: $text-muted;
    }
    HistoryScreen OptionList { height: auto; max-height: 16; background: $surface; border: none; padding: 0; }
    HistoryScreen Input { border: none; height: 1; padding: 0; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", show=False, priority=True),
        Binding("up,ctrl+r", "move(1)", "Older", show=False, priority=True),
        Binding("down", "move(-1)", "Newer", show=False, priority=True),
    ]

    def __init__(self, texts: Sequence[str]) -> None:
        """`texts`: the oldest first."""
        super().__init__()
        self._texts = list(dict.fromkeys(reversed(texts)))
        self._found: list[str] = []

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content("Earlier prompts")
            box.border_subtitle = Content("Enter takes · ↑ ↓ chooses · Esc closes")
            yield OptionList(markup=False)
            yield Input(placeholder="letters of the text")

    def on_mount(self) -> None:
        """Everything is offered at first."""
        self._search("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._search(event.value)

    def on_input_submitted(self) -> None:
        """Take the chosen one."""
        place = self.query_one(OptionList).highlighted
        self.dismiss(self._found[len(self._found) - 1 - place] if place is not None and self._found else None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click takes it."""
        self.dismiss(self._found[len(self._found) - 1 - event.option_index])

    def action_move(self, step: int) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            options.highlighted = max(0, min(len(self._found) - 1, options.highlighted - step))

    def _search(self, typed: str) -> None:
        """The newest stands at the bottom, next to what is typed."""
        words = typed.lower().split()
        self._found = [text for text in self._texts if all(word in text.lower() for word in words)][:SHOWN]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(Content(one_line(text, 200))) for text in reversed(self._found))
        options.highlighted = len(self._found) - 1 if self._found else None
