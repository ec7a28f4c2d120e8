"""The field for a free answer. The key of a choice that stands alone in it marks the choice, which Enter takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual import events
from textual.message import Message

from tui_agent.console.prompt.fields import LineField


class AnswerField(LineField):
    """An input. A choice's key in the empty field marks the choice; whatever follows it but Enter makes it text."""

    @dataclass
    class Marked(Message):
        """A choice's key was typed into the empty field; "": it is none any more, or is part of a text."""

        key: str

    @dataclass
    class Confirmed(Message):
        """Enter behind a choice's key."""

        key: str

    def __init__(self, placeholder: str, keys: Iterable[str]) -> None:
        """`keys`: of the choices."""
        super().__init__(placeholder=placeholder, compact=True, select_on_focus=False)
        self._keys = frozenset(keys)
        self.marking = ""
        """The key that stands in the field and marks its choice."""

    def watch_value(self, value: str) -> None:
        """What is more than the key, or no key any more, is text."""
        if self.marking and value != self.marking:
            self.marking = ""
            self.post_message(self.Marked(""))

    def take_mark(self) -> str:
        """The key that marks a choice, which leaves the field; "": none does."""
        key, self.marking = self.marking, ""
        if key:
            self.value = ""
        return key

    async def _on_key(self, event: events.Key) -> None:
        """Mark by the key of a choice, and take it by Enter."""
        key = "" if "alt+" in event.key else event.character or ""
        if event.key == "enter" and self.marking:
            self.post_message(self.Confirmed(self.take_mark()))
        elif key in self._keys and event.is_printable and not self.value:
            self.value = key
            self.cursor_position = 1
            self.marking = key
            self.post_message(self.Marked(key))
        else:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    def write(self, text: str) -> None:
        """Put text where the cursor is; it is text also where it is a choice's key."""
        self.marking = ""
        super().write(text)
