"""The commands that run in the background: what each is, for how long, and a key that stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from tui_agent.console.cards.choices import Choice, Choices
from tui_agent.console.screens.reading import ReadingScreen
from tui_agent.quantities import seconds
from tui_agent.terminal_text import revealed_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.core.events import BackgroundStarted


class BackgroundScreen(ReadingScreen[str]):
    """Dismissed with the id of the command to stop; empty: none."""

    DEFAULT_CSS = """
    BackgroundScreen > Vertical { width: 110; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Back", show=False)]

    def __init__(self, running: Sequence[BackgroundStarted], now: float) -> None:
        """`now` in seconds since the epoch."""
        super().__init__("In the background")
        self._commands = running
        self._now = now

    def text(self) -> ComposeResult:
        for one in self._commands:
            line = Content.assemble(
                (f"⚙ {one.id} ", "$accent"),
                (f"{seconds(max(0.0, self._now - one.at))}  ", "$muted"),
                revealed_line(one.command, 400),
            )
            yield Static(line)

    def choices(self) -> list[Choice]:
        stops = [Choice(str(n), f"stop {one.id}", one.id) for n, one in enumerate(self._commands, start=1)]
        return [Choice("c", "close", ""), *stops]

    def on_choices_picked(self, event: Choices.Picked) -> None:
        self.dismiss(event.value)
