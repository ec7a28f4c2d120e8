"""The field for a free answer, in which the keys of the card's choices work for as long as it is empty."""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Collection
from dataclasses import dataclass

from textual import events
from textual.message import Message

from tui_agent.console.prompt.fields import LineField
from tui_agent.console.terminal.timers import once
from tui_agent.terminal_text import sanitize_paste

PATIENCE = 0.35
"""Seconds in which a second character makes the beginning of an answer of what was a choice's key."""


class AnswerField(LineField):
    """An input. A single key of a choice in the empty field takes the choice; what is typed on is text."""

    @dataclass
    class Key(Message):
        """A choice's key was typed into the empty field; `final`: and nothing after it."""

        key: str
        final: bool

    def __init__(self, placeholder: str, keys: Collection[str]) -> None:
        super().__init__(placeholder=placeholder, compact=True, select_on_focus=False)
        self._keys = keys
        self._waiting: TimerHandle | None = None

    async def _on_key(self, event: events.Key) -> None:
        """Wait a moment behind a choice's key; it stands in the field meanwhile."""
        waiting = self._stop_waiting()
        if waiting and event.key == "enter":
            self._take()
        elif event.character in self._keys and event.is_printable and not self.value:
            self.value = event.character or ""
            self.cursor_position = 1
            self.post_message(self.Key(self.value, final=False))
            self._waiting = once(self, PATIENCE, self._take)
        else:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    def _stop_waiting(self) -> bool:
        timer, self._waiting = self._waiting, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    def _take(self) -> None:
        self._waiting = None
        if self.value in self._keys:
            key, self.value = self.value, ""
            self.post_message(self.Key(key, final=True))

    def _on_paste(self, event: events.Paste) -> None:
        """A paste is text, also behind a key; its lines become one."""
        self._stop_waiting()
        self.replace(" ".join(sanitize_paste(event.text).split("\n")), *self.selection)
        event.stop()
        event.prevent_default()
