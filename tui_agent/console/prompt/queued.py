"""Messages that wait for their turn, above the prompt: each can be edited, dropped, or sent now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import key_line
from tui_agent.frontend.commands.host import Waiting
from tui_agent.terminal_text import one_line

SHOWN = 4

MARGIN = " "
"""Before each line; the sign of the message under the cursor takes its place."""

DROP = "✕ "
"""The sign on which a click drops the message; a click beside it goes to the list."""


class QueuedMessages(Static, can_focus=True):
    """One line a message, the oldest first; with the focus, one of them is under the cursor."""

    DEFAULT_CSS = """
    QueuedMessages { display: none; height: auto; padding: 0 1 0 0; background: $panel; }
    QueuedMessages.-some { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("queue")

    @dataclass
    class Chosen(Message):
        """Something is to be done with a message; `send` means all that wait."""

        message: Waiting
        what: Literal["edit", "drop", "send"]

    class Left(Message):
        """Back to the prompt."""

    def __init__(self) -> None:
        super().__init__("", markup=False, id="queued")
        self.waiting: tuple[Waiting, ...] = ()
        self._cursor = 0

    def show(self, waiting: Sequence[Waiting]) -> None:
        """Draw the queue if it has changed."""
        if tuple(waiting) == self.waiting:
            return
        self.waiting = tuple(waiting)
        self._cursor = max(0, min(self._cursor, len(self.waiting) - 1))
        if not waiting and self.has_focus:
            self.post_message(self.Left())
        self.set_class(bool(waiting), "-some")
        self.update(self._lines())

    @property
    def _first(self) -> int:
        """The first message that is shown."""
        return max(0, min(self._cursor - SHOWN // 2, len(self.waiting) - SHOWN)) if self.has_focus else 0

    @property
    def _keys(self) -> Content:
        if not self.has_focus:
            return key_line(("↑", "choose"))
        send = "send all now" if len(self.waiting) > 1 else "send now"
        return key_line(("Enter", "edit"), ("s", send), ("d", "drop"), ("Esc", "back"))

    def _lines(self) -> Content:
        shown = self.waiting[self._first : self._first + SHOWN]
        width = max(20, self.size.width - 2 - len(MARGIN))
        hint = self._keys
        lines = []
        for place, message in enumerate(shown, self._first):
            current = self.has_focus and place == self._cursor
            last = place == self._first + len(shown) - 1
            room = width - (hint.cell_length + 2 if last and width > 2 * hint.cell_length else 0)
            line = Content.assemble(
                (DROP, "$muted"),
                ("queued ", "$muted"),
                (one_line(message.text, 400), "bold $accent" if current else ""),
            ).truncate(room, ellipsis=True, pad=last and room < width)
            sign = Content.styled("▌" if current else MARGIN, "$accent")
            lines.append(Content.assemble(sign, line, "  ", hint) if room < width else sign + line)
        rest = len(self.waiting) - len(shown)
        if rest:
            lines.append(Content.styled(f"{MARGIN}  and {rest} more", "$muted"))
        if shown and width <= 2 * hint.cell_length:
            lines.append(Content.assemble(MARGIN, "  ", hint).truncate(width, ellipsis=True))
        return Content("\n").join(lines)

    def on_resize(self) -> None:
        """Cut the lines for the new width."""
        self._draw()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Begin with the newest; without the focus no message is under the cursor."""
        super().watch_has_focus(_has_focus)
        self._cursor = len(self.waiting) - 1
        self._draw()

    def _draw(self) -> None:
        if self.waiting:
            self.update(self._lines())

    def action_move(self, step: int) -> None:
        """Another message; below the newest is the prompt."""
        if self._cursor + step >= len(self.waiting):
            self.post_message(self.Left())
        else:
            self._cursor = max(0, self._cursor + step)
            self._draw()

    def action_choose(self, what: Literal["edit", "drop", "send"]) -> None:
        """Do it with the message under the cursor."""
        if self.waiting:
            chosen = self.waiting[self._cursor]
            self.post_message(self.Chosen(chosen, what))
            if what == "drop":
                self.show([message for message in self.waiting if message is not chosen])

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def on_click(self, event: events.Click) -> None:
        """A click on a cross drops its message, one beside it puts the cursor on it."""
        place = self._first + event.y
        if event.y >= min(SHOWN, len(self.waiting)):
            return
        if event.x <= len(DROP):
            self.post_message(self.Chosen(self.waiting[place], "drop"))
        else:
            self._cursor = place
            self._draw()
