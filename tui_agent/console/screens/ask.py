"""A question with two answers, over the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from tui_agent.console.cards.choices import Choices
from tui_agent.console.looks.command_keys import bindings, closing
from tui_agent.console.screens.reading import ReadingScreen, ScrolledText
from tui_agent.frontend.lines.passages import Choice

_LOOK = 0.25
"""Seconds between two looks at whether the subject of a question is over."""


class AskScreen(ReadingScreen[bool]):
    """Dismissed with True for `yes`. Choices are a key and what it does: the key marks one, Enter takes it."""

    DEFAULT_CSS = """
    AskScreen > Vertical { width: 72; border: round $warning; border-title-color: $warning; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("question")

    def __init__(
        self,
        title: str,
        text: str,
        yes: tuple[str, str],
        no: tuple[str, str],
        *,
        no_first: bool = False,
        over: tuple[Callable[[], bool], bool] | None = None,
    ) -> None:
        """`over`: whether what is asked about is over, and the answer that the question then gives itself."""
        super().__init__(title)
        self._text = text
        self._over = over
        choices = [Choice(*yes, "yes"), Choice(*no, "no")]
        self._choices = choices[::-1] if no_first else choices

    def on_mount(self) -> None:
        """A question does not outlive what it is about."""
        if self._over is not None:
            self.set_interval(_LOOK, self._end_with_its_subject)

    def _end_with_its_subject(self) -> None:
        if self._over is not None and self.is_current and self._over[0]():
            self.dismiss(self._over[1])

    def text(self) -> ComposeResult:
        yield Static(Content(self._text))

    def choices(self) -> list[Choice]:
        return self._choices

    def on_choices_picked(self, event: Choices.Picked) -> None:
        """Take the answer; nothing is agreed to whose end has not been on the screen."""
        text = self.query_one(ScrolledText)
        if event.value == "yes" and text.scroll_offset.y < text.max_scroll_y:
            self.action_read(1)
            self.notify("There is more to read first: PgDn.", markup=False)
        else:
            self.dismiss(event.value == "yes")


class LeaveScreen(AskScreen):
    """Asked before a run is closed; True: leave."""

    BINDINGS: ClassVar[list[BindingType]] = [closing("quit", "True")]

    def __init__(self, runs: int, what: str, over: Callable[[], bool]) -> None:
        """`runs` are under way, and `what` ends them, until they are `over` by themselves: then nothing is left."""
        super().__init__(
            "A run is under way" if runs == 1 else f"{runs} runs are under way",
            f"{what} ends {'it' if runs == 1 else 'them'} as interrupted, with a partial answer. Nothing is lost: "
            "agent-tui resume opens a session again.",
            ("q", "leave"),
            ("s", "stay"),
            over=(over, False),
        )
