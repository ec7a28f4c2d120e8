"""Messages that wait for their turn, above the prompt; a click on one takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tui_agent.terminal_text import one_line

SHOWN = 4


class Waiting(NamedTuple):
    """A message that was typed and not delivered yet."""

    id: str
    text: str


class QueuedMessages(Static):
    """One line a message, the oldest first."""

    DEFAULT_CSS = """
    QueuedMessages { display: none; height: auto; padding: 0 1; background: $panel; }
    QueuedMessages.-some { display: block; }
    """

    @dataclass
    class TakenBack(Message):
        """A message was clicked away."""

        id: str

    def __init__(self) -> None:
        super().__init__("", markup=False, id="queued")
        self.waiting: tuple[Waiting, ...] = ()

    def show(self, waiting: Sequence[Waiting]) -> None:
        """Draw the queue where it has changed."""
        if tuple(waiting) == self.waiting:
            return
        self.waiting = tuple(waiting)
        self.set_class(bool(waiting), "-some")
        self.update(self._lines())

    def _lines(self) -> Content:
        lines = []
        for place, message in enumerate(self.waiting[:SHOWN]):
            text = one_line(message.text)
            hint = "  alt+↑ edits it" if place == len(self.waiting) - 1 else ""
            lines.append(
                Content.assemble(("✕ ", "$error"), ("queued ", "$text-muted"), text, (hint, "$text-muted"))
            )
        if len(self.waiting) > SHOWN:
            lines.append(Content.styled(f"  and {len(self.waiting) - SHOWN} more", "$text-muted"))
        return Content("\n").join(
            line.truncate(max(20, self.size.width - 2), ellipsis=True) for line in lines
        )

    def on_resize(self) -> None:
        """Cut the lines for the new width."""
        if self.waiting:
            self.update(self._lines())

    def on_click(self, event: events.Click) -> None:
        """A click on a line takes its message back."""
        line = event.y
        if line < min(SHOWN, len(self.waiting)):
            self.post_message(self.TakenBack(self.waiting[line].id))
