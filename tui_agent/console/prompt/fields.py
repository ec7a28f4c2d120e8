"""The fields of cards and screens: Textual's, with every key in its order and a cursor that rests."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Input, TextArea

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.terminal.keys_in_order import KeysInOrder
from tui_agent.console.terminal.timers import once
from tui_agent.terminal_text import sanitize_paste

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from textual import events
    from textual.reactive import reactive
    from textual.widget import Widget
else:
    Widget = object  # as in `keys_in_order`

NEW_LINE_KEYS = frozenset({"shift+enter", "ctrl+j", "alt+enter"})
"""In a field that Enter sends."""

BLINKING = 10.0
"""Seconds without a key after which the cursor stands still: a screen on which nothing happens draws nothing."""


class RestingCursor(Widget):
    """A field whose cursor blinks for a while after the focus and each key; not if nothing shall move."""

    cursor_blink: reactive[bool]
    _blinking: TimerHandle | None = None

    def on_focus(self) -> None:
        self._blink()

    async def on_key(self, event: events.Key) -> None:
        """Blink again."""
        self._blink()

    def _blink(self) -> None:
        if self._blinking is not None:
            self._blinking.cancel()
        self.cursor_blink = self.app.animation_level != "none"
        self._blinking = once(self, BLINKING, self.stand_still)

    def stand_still(self) -> None:
        """Show the cursor, and let it be."""
        self.cursor_blink = False


class LineField(RestingCursor, KeysInOrder, Input):
    """A line of text.

    Textual reverses a cursor that is black on white already in sixteen colours: on a black ground it is not seen.
    """

    DEFAULT_CSS = """
    LineField > .input--placeholder { color: $text-muted; }
    LineField:ansi > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    """

    def _on_paste(self, event: events.Paste) -> None:
        """All of it: Textual's takes the first line alone, and control characters."""
        self.write(event.text)
        event.stop()
        event.prevent_default()

    def write(self, text: str) -> None:
        """Put text at the cursor; its lines become one."""
        self.replace(" ".join(sanitize_paste(text).strip("\n").split("\n")), *self.selection)


class TextField(RestingCursor, KeysInOrder, TextArea):
    """Several lines of text."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("text")

    DEFAULT_CSS = """
    TextField .text-area--placeholder { color: $text-muted; }
    TextField:ansi .text-area--placeholder { text-style: dim; }
    """

    def on_mount(self) -> None:
        """Write on behind what is there."""
        self.move_cursor(self.document.end)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank if there is nothing to draw with.

        It has no styles once it was removed, and no columns to wrap a placeholder at if its edges leave none
        or its size did not reach it yet; the screen may draw it then by its layout.
        """
        drawn = self.is_attached and self.content_size.width
        return super().render_lines(crop) if drawn else [Strip.blank(crop.width)] * crop.height
