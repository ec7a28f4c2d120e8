"""The commands that run in the background: what each is, its age, what it printed last, a key that stops it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from tui_agent.console.cards.choices import Choices
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.screens.reading import ReadingScreen
from tui_agent.frontend.lines.passages import Choice
from tui_agent.quantities import seconds
from tui_agent.terminal_text import revealed_line
from tui_agent.tools.output import last_lines

if TYPE_CHECKING:
    from tui_agent.core.events import BackgroundStarted

LINES = 12
"""Rows for what was printed, shared by the commands."""

FEWEST = 3
"""Lines of one command."""


class BackgroundScreen(ReadingScreen[str]):
    """Dismissed with the id of the command to stop; empty: none. What is printed while it is open is shown."""

    DEFAULT_CSS = """
    BackgroundScreen > Vertical { width: 110; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("background")

    def __init__(self, running: Sequence[BackgroundStarted], clock: Callable[[], float]) -> None:
        """`clock` in seconds since the epoch."""
        super().__init__("In the background")
        self._commands = running
        self._clock = clock
        self._count = max(FEWEST, LINES // max(1, len(running)))
        self._shown = [Static() for _ in running]

    def text(self) -> ComposeResult:
        self._show([[] for _ in self._commands])
        yield from self._shown

    def on_mount(self) -> None:
        """Their output is read in a thread: a disk may be slow."""
        self._read()
        self.set_interval(1.0, self._read)

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        printed = [last_lines(Path(one.output_file), self._count) for one in self._commands]
        self.app.call_from_thread(self._show, printed)

    def _show(self, printed: Sequence[Sequence[str]]) -> None:
        now = self._clock()
        for one, shown, lines in zip(self._commands, self._shown, printed, strict=True):
            heading = Content.assemble(
                (f"⚙ {one.id} ", "$accent"),
                (f"{seconds(max(0.0, now - one.at))}  ", "$muted"),
                revealed_line(one.command, 400),
            )
            under = lines or ["nothing printed yet"]
            shown.update(
                Content("\n").join([heading, *(Content.styled(f"  │ {line}", "$muted") for line in under)])
            )

    def choices(self) -> list[Choice]:
        stops = [Choice(str(n), f"stop {one.id}", one.id) for n, one in enumerate(self._commands, start=1)]
        return [Choice("c", "close", ""), *stops]

    def on_choices_picked(self, event: Choices.Picked) -> None:
        self.dismiss(event.value)
