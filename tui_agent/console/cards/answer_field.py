"""The field for a text on a card: it grows to five lines, and Enter sends it. The key of a choice that stands alone in
it marks the choice, which Enter takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets.text_area import Edit, EditResult

from tui_agent.console.prompt.fields import NEW_LINE_KEYS, TextField
from tui_agent.console.prompt.pasted import PASTED
from tui_agent.terminal_text import as_pasted

MOST_ROWS = 5


class AnswerField(TextField):
    """A choice's key in the empty field marks the choice; whatever follows it but Enter makes it text."""

    DEFAULT_CSS = """
    AnswerField {
        height: auto; min-height: 1; max-height: 5; border: none; padding: 0; scrollbar-size-vertical: 1;
        & .text-area--cursor-line { background: transparent; }
    }
    """

    longest = PASTED

    @dataclass
    class Marked(Message):
        """A choice's key was typed into the empty field; "": it is none any more, or is part of a text."""

        key: str

    @dataclass
    class Confirmed(Message):
        """Enter behind a choice's key."""

        key: str

    @dataclass
    class Submitted(Message):
        """Enter behind a text, or without one."""

        value: str

    def __init__(self, placeholder: str = "", keys: Iterable[str] = ()) -> None:
        """`keys`: of the choices."""
        super().__init__(
            placeholder=placeholder,
            compact=True,
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
        )
        self._keys = frozenset(keys)
        self.marking = ""
        """The key that stands in the field and marks its choice."""

    @property
    def value(self) -> str:
        """The text as it is sent."""
        return self.whole_text

    @value.setter
    def value(self, text: str) -> None:
        self.pasted.forget()
        self.text = self.pasted.shown(text, PASTED)
        self.move_cursor(self.document.end)
        self._unmark()

    @property
    def rows(self) -> int:
        """Rows that the text takes, as far as they are shown."""
        return max(1, min(MOST_ROWS, self.wrapped_document.height))

    def edit(self, edit: Edit) -> EditResult:
        """Change the text; what is more than the key, or no key any more, is text."""
        result = super().edit(edit)
        self._unmark()
        return result

    def _unmark(self) -> None:
        if self.marking and self.text != self.marking:
            self.marking = ""
            self.post_message(self.Marked(""))

    def take_mark(self) -> str:
        """Take out the key that marks a choice, and give it; "": none does."""
        key, self.marking = self.marking, ""
        if key:
            self.value = ""
        return key

    def begin_with(self, key: str) -> None:
        """Mark a choice by its key, as if it had been typed here."""
        self.value = key
        self.marking = key

    def enter(self) -> None:
        """Take the choice that is marked, or send the text."""
        marked = self.marking and self.text == self.marking
        self.post_message(self.Confirmed(self.take_mark()) if marked else self.Submitted(self.value))

    async def _on_key(self, event: events.Key) -> None:
        """Mark by the key of a choice; Enter takes it, or sends the text. Keys that lead out are the card's."""
        key = "" if "alt+" in event.key else event.character or ""
        if event.key == "enter":
            self.enter()
        elif event.key in NEW_LINE_KEYS:
            self.insert("\n")
        elif key in self._keys and event.is_printable and not self.text:
            self.begin_with(key)
            self.post_message(self.Marked(key))
        elif event.key in {"pageup", "pagedown"} or self._leads_out(event.key):
            event.prevent_default()
            return
        else:
            return
        event.stop()
        event.prevent_default()

    def _leads_out(self, key: str) -> bool:
        row = self.wrapped_document.location_to_offset(self.cursor_location).y
        return (key == "down" and row == self.wrapped_document.height - 1) or (key == "up" and row == 0)

    def write(self, text: str) -> None:
        """Put text at the cursor as if it was pasted; it is text even if it is a choice's key."""
        self.marking = ""
        super().write(as_pasted(text).strip("\n"))
