"""The fields of cards and screens: Textual's, with every key in its order."""

from __future__ import annotations

from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Input, TextArea

from tui_agent.console.keys_in_order import KeysInOrder


class LineField(KeysInOrder, Input):
    """A line of text."""


class TextField(KeysInOrder, TextArea):
    """Several lines of text."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank once it was removed: the screen may draw it by its last layout, and it has no styles any more."""
        return super().render_lines(crop) if self.is_attached else [Strip.blank(crop.width)] * crop.height
