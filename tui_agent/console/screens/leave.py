"""The question before a run is closed: leave, or stay."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_agent.console.cards.choices import Choice, Choices


class LeaveScreen(ModalScreen[bool]):
    """Dismissed with True to leave."""

    DEFAULT_CSS = """
    LeaveScreen {
        align: center middle;
        & Vertical {
            width: 60; max-width: 90%; height: auto; padding: 1 2;
            background: $surface; border: round $warning;
            border-title-color: $warning;
        }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,s", "dismiss(False)", "Stay", show=False),
        Binding("ctrl+q", "dismiss(True)", "Leave", show=False, priority=True),
    ]

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content("A run is under way")
            yield Static(
                Content(
                    "Leaving ends it as interrupted, with a partial answer. "
                    "Nothing is lost: agent-tui resume opens the session again."
                )
            )
            yield Choices([Choice("q", "leave", "leave"), Choice("s", "stay", "stay")])

    def on_mount(self) -> None:
        """The choice has the keys."""
        self.query_one(Choices).focus()

    def on_choices_picked(self, event: Choices.Picked) -> None:
        self.dismiss(event.value == "leave")
