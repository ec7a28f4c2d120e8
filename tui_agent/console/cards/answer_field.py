"""The field for a free answer, in which the keys of the card's choices work for as long as it is empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from textual import events
from textual.message import Message

from tui_agent.console.prompt.fields import LineField
from tui_agent.console.terminal.timers import Quiet


class AnswerField(LineField):
    """An input. A single key of a choice in the empty field takes the choice; what is typed on is text."""

    @dataclass
    class Key(Message):
        """A choice's key was typed into the empty field; `final`: and nothing after it."""

        key: str
        final: bool

    def __init__(self, placeholder: str, keys: Mapping[str, float]) -> None:
        """`keys`: for each key of a choice the seconds in which a second character makes a text of it."""
        super().__init__(placeholder=placeholder, compact=True, select_on_focus=False)
        self._keys = keys
        self._waiting: Quiet | None = None

    async def _on_key(self, event: events.Key) -> None:
        """Wait a moment behind a choice's key; it stands in the field meanwhile."""
        waiting = self._stop_waiting()
        if waiting and event.key == "enter":
            self._take()
        elif event.character in self._keys and event.is_printable and not self.value:
            self.value = event.character or ""
            self.cursor_position = 1
            self.post_message(self.Key(self.value, final=False))
            self._waiting = Quiet(self, self._keys[self.value], self._take)
        else:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    def _stop_waiting(self) -> bool:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.cancel()
        return waiting is not None

    def _take(self) -> None:
        self._waiting = None
        if self.value in self._keys:
            key, self.value = self.value, ""
            self.post_message(self.Key(key, final=True))

    def _on_paste(self, _: events.Paste) -> None:
        """A paste is text, also behind a key."""
        self._stop_waiting()
