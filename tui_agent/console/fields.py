"""The fields of cards and screens: Textual's, with every key in its order."""

from __future__ import annotations

from textual.widgets import Input, TextArea

from tui_agent.console.keys_in_order import KeysInOrder


class LineField(KeysInOrder, Input):
    """A line of text."""


class TextField(KeysInOrder, TextArea):
    """Several lines of text."""
