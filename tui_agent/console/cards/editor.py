"""A call's arguments for editing, a field for each: text as text, other values as JSON, checked when they are taken.

The text stays a draft for as long as the card is there, even if it was left or is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Label, Static

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import key_line
from tui_agent.console.prompt.fields import TextField
from tui_agent.frontend.lines.passages import is_plain
from tui_agent.terminal_text import one_line

KEYS = key_line(("^S", "run this"), ("Esc", "leave it as it was"), ("^E", "all as JSON"))


class ArgumentsError(ValueError):
    """A text that is no JSON value; the message names the place of the fault."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments in `text`. Raises `ArgumentsError`."""
    value = _parsed(text)
    if not isinstance(value, dict):
        raise ArgumentsError("Arguments are a JSON object: { … }.")
    return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentsError(f"Not JSON: {error.msg}, line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise ArgumentsError("Not usable: nested too deeply.") from error


class ArgumentField(Vertical):
    """One argument: its name, if there are several, and its value."""

    def __init__(self, name: str, value: object, *, labelled: bool) -> None:
        super().__init__()
        self.argument = name
        self._value = value
        self._plain = is_plain(value)
        self._labelled = labelled

    def compose(self) -> ComposeResult:
        """The label and the text."""
        if self._labelled or not self._plain:
            form = "" if self._plain else " (JSON)"
            yield Label(Content(f"{one_line(self.argument, 60)}{form}"))
        # ASCII escapes: nothing can hide in what is no plain text.
        text = str(self._value) if self._plain else json.dumps(self._value, indent=2, default=str)
        yield TextField(text, compact=True, soft_wrap=True, show_line_numbers="\n" in text)

    def value(self) -> object:
        """The value as edited. Raises `ArgumentsError`."""
        text = self.query_one(TextField).whole_text
        if self._plain:
            return text
        try:
            return _parsed(text)
        except ArgumentsError as error:
            raise ArgumentsError(f"{one_line(self.argument, 60)}: {error}") from error


class ArgumentsEditor(Vertical):
    """Opened by a card; Ctrl+S takes the arguments when they are right, Esc leaves them as they were."""

    DEFAULT_CSS = """
    ArgumentsEditor {
        height: auto;
        display: none;
        & VerticalScroll { height: auto; max-height: 30vh; }
        & ArgumentField { height: auto; }
        & TextArea { height: auto; min-height: 1; border: none; padding: 0; background: $background; }
        & Label { color: $accent; text-style: bold; }
        & Static { height: auto; color: $text-muted; }
        & .-wrong { color: $error; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("arguments")

    @dataclass
    class Accepted(Message):
        """The arguments are right."""

        arguments: dict[str, Any]

    class Left(Message):
        """The editor was closed without a change."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self._arguments = dict(arguments)
        self._as_json = not arguments
        # A card may be fitted before its editor is composed.
        self._fields = VerticalScroll(can_focus=False)

    def compose(self) -> ComposeResult:
        yield self._fields
        yield Static(KEYS)

    def open(self) -> None:
        """Show the arguments as they were asked about, or the draft that was left, and take the focus."""
        self.display = True
        if self._fields.children:
            self._say(KEYS)
            self.call_later(self.entrance().focus)
        else:
            self.call_later(self._show, self._arguments, as_json=not self._arguments)

    def fit(self, rows: int) -> None:
        """Take at most so many rows."""
        self._fields.styles.max_height = max(1, rows - 1)

    def entrance(self) -> TextField:
        """The first field."""
        return self.query(TextField).first()

    async def _show(self, arguments: Mapping[str, Any], *, as_json: bool) -> None:
        self._as_json = as_json
        self._say(KEYS)
        fields = (
            [TextField(json.dumps(arguments, indent=2, default=str), compact=True, soft_wrap=True)]
            if as_json
            else [
                ArgumentField(name, value, labelled=len(arguments) > 1) for name, value in arguments.items()
            ]
        )
        scroll = self._fields
        await scroll.remove_children()
        await scroll.mount(*fields)
        entrance = self.entrance()
        entrance.focus()
        # Each field shows its cursor, at its end; the first one has the focus.
        scroll.call_after_refresh(scroll.scroll_to_widget, entrance, animate=False)

    def _say(self, text: Content, *, wrong: bool = False) -> None:
        line = self.query(Static).last()
        line.update(text)
        line.set_class(wrong, "-wrong")

    def _edited(self) -> dict[str, Any]:
        if self._as_json:
            return parse_arguments(self.entrance().whole_text)
        return {field.argument: field.value() for field in self.query(ArgumentField)}

    def action_accept(self) -> None:
        """Check the text; close only when it is right."""
        try:
            arguments = self._edited()
        except ArgumentsError as error:
            self._say(Content(f"{error} Correct it, or press Esc."), wrong=True)
            return
        self.display = False
        self.post_message(self.Accepted(arguments))

    def action_leave(self) -> None:
        """Close without a change."""
        self.display = False
        self.post_message(self.Left())

    async def action_as_json(self) -> None:
        """All arguments as one JSON object, to add or rename one; and back."""
        try:
            await self._show(self._edited(), as_json=not self._as_json)
        except ArgumentsError as error:
            self._say(Content(f"{error} Correct it, or press Esc."), wrong=True)
