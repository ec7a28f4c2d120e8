"""The fields of cards and screens: Textual's, with every key in its order and a cursor that rests."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Input, TextArea

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.prompt.pasted import EDITED, PASTED, Pasted
from tui_agent.console.terminal.keys_in_order import KeysInOrder, is_text
from tui_agent.console.terminal.timers import once
from tui_agent.terminal_text import as_pasted, invisible

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


class WholeText(Widget):
    """A field that takes a paste whole, with what is invisible in it: that stands as a mark (`pasted`)."""

    longest: ClassVar = PASTED
    """Lines and characters of a paste that are written out."""

    @cached_property
    def pasted(self) -> Pasted:
        return Pasted()

    @property
    def whole_text(self) -> str:
        """The text as it is sent, with what its marks stand for."""
        raise NotImplementedError

    @property
    def before_cursor(self) -> str:
        """The line up to the cursor; "" if something is selected."""
        raise NotImplementedError

    def put_in(self, text: str, *, over: int = 0) -> None:
        """Put text in place of what is selected, or of so many characters before the cursor."""
        raise NotImplementedError

    def write(self, text: str) -> None:
        """Put text at the cursor as if it was pasted."""
        self.put_in(self.pasted.shown(text, self.longest))

    async def on_key(self, event: events.Key) -> None:
        """Take characters that are not printed, and delete a mark as a whole."""
        typed, before = event.character or "", self.before_cursor
        if event.key == "backspace" and (mark := self.pasted.mark_at_end(before)):
            self.put_in("", over=len(mark))
        elif is_text(event) and invisible(before[-1:] + typed):
            self.write(typed)
        elif is_text(event) and not event.is_printable:
            self.put_in(typed)  # a joiner, which shapes the letter before it
        else:
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        """Take all of it: Textual's fields take control characters as they are, and of a line the first alone."""
        self.write(event.text)
        event.stop()
        event.prevent_default()


class LineField(RestingCursor, WholeText, KeysInOrder, Input):
    """A line of text.

    Textual reverses a cursor that is black on white already in sixteen colours: on a black ground it is not seen.
    """

    DEFAULT_CSS = """
    LineField > .input--placeholder { color: $text-muted; }
    LineField:ansi > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    """

    @property
    def whole_text(self) -> str:
        return self.pasted.whole(self.value)

    @property
    def before_cursor(self) -> str:
        return self.value[: self.cursor_position] if self.selection.is_empty else ""

    def put_in(self, text: str, *, over: int = 0) -> None:
        end = self.cursor_position
        self.replace(text, *((end - over, end) if over else self.selection))

    def on_mount(self) -> None:
        """Show what was given as a paste would be."""
        if invisible(self.value):
            self.value = self.pasted.shown(self.value, EDITED)
            self.cursor_position = len(self.value)

    def write(self, text: str) -> None:
        """Put text at the cursor as if it was pasted; its lines become one."""
        super().write(" ".join(as_pasted(text).strip("\n").split("\n")))


class TextField(RestingCursor, WholeText, KeysInOrder, TextArea):
    """Several lines of text."""

    longest = EDITED

    BINDINGS: ClassVar[list[BindingType]] = bindings("text")

    DEFAULT_CSS = """
    TextField .text-area--placeholder { color: $text-muted; }
    TextField:ansi .text-area--placeholder { text-style: dim; }
    """

    def on_mount(self) -> None:
        """Write on behind what is there, which is shown as a paste would be."""
        if invisible(self.text):
            self.text = self.pasted.shown(self.text, EDITED)
        self.move_cursor(self.document.end)

    @property
    def whole_text(self) -> str:
        return self.pasted.whole(self.text)

    @property
    def before_cursor(self) -> str:
        row, column = self.cursor_location
        return self.document.get_line(row)[:column] if self.selection.is_empty else ""

    def put_in(self, text: str, *, over: int = 0) -> None:
        row, column = self.cursor_location
        place = ((row, column - over), (row, column)) if over else self.selection
        put = self.replace(text, *place, maintain_selection_offset=False)
        self.move_cursor(put.end_location)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank if there is nothing to draw with.

        It has no styles once it was removed, and no columns to wrap a placeholder at if its edges leave none
        or its size did not reach it yet; the screen may draw it then by its layout.
        """
        drawn = self.is_attached and self.content_size.width
        return super().render_lines(crop) if drawn else [Strip.blank(crop.width)] * crop.height
