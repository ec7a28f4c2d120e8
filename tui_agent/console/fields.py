"""The fields of cards and screens: Textual's, with every key in its order."""

from __future__ import annotations

from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Input, TextArea

from tui_agent.console.keys_in_order import KeysInOrder


class LineField(KeysInOrder, Input):
    """A line of text.

    Textual reverses a cursor that is black on white already in sixteen colours: on a black ground it is not seen.
    """

    DEFAULT_CSS = """
    LineField > .input--placeholder { color: $text-muted; }
    LineField:ansi > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    """


class TextField(KeysInOrder, TextArea):
    """Several lines of text."""

    DEFAULT_CSS = """
    TextField .text-area--placeholder { color: $text-muted; }
    TextField:ansi .text-area--placeholder { text-style: dim; }
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank where there is nothing to draw with.

        It has no styles once it was removed, and no columns to wrap a placeholder at where its edges leave none or its
        size did not reach it yet; the screen may draw it then by its layout.
        """
        drawn = self.is_attached and self.content_size.width
        return super().render_lines(crop) if drawn else [Strip.blank(crop.width)] * crop.height
