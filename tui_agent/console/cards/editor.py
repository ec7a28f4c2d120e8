"""A field for a call's arguments as JSON, checked before they are taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea


class ArgumentsError(ValueError):
    """The text is not a JSON object; the message says where it goes wrong."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments in `text`. Raises `ArgumentsError`."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentsError(f"Not JSON: {error.msg}, line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise ArgumentsError("Not usable: nested too deeply.") from error
    if not isinstance(value, dict):
        raise ArgumentsError("Arguments are a JSON object: { … }.")
    return value


class ArgumentsEditor(Vertical):
    """Opened by a card; Ctrl+S takes the arguments when they are right, Esc leaves them as they were."""

    DEFAULT_CSS = """
    ArgumentsEditor {
        height: auto;
        display: none;
        & TextArea { height: auto; min-height: 3; max-height: 30vh; border: none; padding: 0; }
        & Static { height: auto; color: $text-muted; }
        & .-wrong { color: $error; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "accept", "Take the arguments", show=False, priority=True),
        Binding("escape", "leave", "Leave them as they were", show=False, priority=True),
    ]

    @dataclass
    class Accepted(Message):
        """The arguments are a JSON object."""

        arguments: dict[str, Any]

    class Left(Message):
        """The editor was closed without a change."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self._arguments = arguments

    def compose(self) -> ComposeResult:
        # ASCII escapes: nothing in the arguments can hide in the editor.
        text = json.dumps(dict(self._arguments), indent=2)
        yield TextArea(text, compact=True, soft_wrap=True, show_line_numbers=False)
        yield Static(Content("Ctrl+S runs it with these arguments · Esc leaves them as they were"))

    def open(self) -> None:
        """Show the editor and give it the focus."""
        self.display = True
        self.query_one(TextArea).focus()

    def action_accept(self) -> None:
        """Check the text; close only when it is right."""
        line = self.query_one(Static)
        try:
            arguments = parse_arguments(self.query_one(TextArea).text)
        except ArgumentsError as error:
            line.update(Content(f"{error} Correct it, or press Esc."))
            line.add_class("-wrong")
            return
        self.display = False
        self.post_message(self.Accepted(arguments))

    def action_leave(self) -> None:
        """Close without a change."""
        self.display = False
        self.post_message(self.Left())
