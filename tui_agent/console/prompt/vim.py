"""Vim's keys for a text area: its modes, motions, operators, text objects, counts, and one register.

`VimKeys` gets the keys of normal and visual mode and changes the text area; in insert mode only Esc is its
own. `vim_text` finds the target of a motion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial

from textual import events
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from tui_agent.console.prompt.vim_text import (
    Motion,
    TextSpan,
    extent,
    first_nonblank,
    line_end,
    line_start,
    lines_on,
    motion,
    on_character,
    text_object,
    whole_lines,
)

AWAITING = frozenset("gfFtTr")
"""Keys that need another one to be a command."""

OPENERS = {"/": "/", ":": "/", "!": "!", "@": "@"}
"""Characters that are typed into an empty prompt even in normal mode, by their key: they begin a command or a
name.
"""


class VimMode(StrEnum):
    """The meaning of a letter: it is typed, it is a command, or a command for the selection."""

    INSERT = "INSERT"
    NORMAL = "NORMAL"
    VISUAL = "VISUAL"
    LINES = "VISUAL LINE"

    @property
    def selects(self) -> bool:
        """Motions move one end of a selection."""
        return self in {VimMode.VISUAL, VimMode.LINES}


VISUAL_MODES = {"v": VimMode.VISUAL, "V": VimMode.LINES}
"""By the key that begins one, goes over to it, or ends it."""

SHORT_FOR = {"D": "d$", "C": "c$", "Y": "yy", "s": "cl", "S": "cc"}
"""An operator with its motion, by the one key that stands for both."""

ON_SELECTED = {"x": "d", "s": "c", "u": "gu", "U": "gU", "~": "g~"}
"""The operators that have a key of their own if something is selected."""

ON_SELECTED_LINES = {"D": "d", "X": "d", "C": "c", "S": "c", "R": "c", "Y": "y"}
"""The operators for all lines of the selection."""

ARROWS = {"left": "h", "right": "l", "up": "k", "down": "j", "home": "0", "end": "$"}
"""The motions of keys that are the text area's own if nothing is selected."""


def same_amount(text: str, span: TextSpan) -> list[str]:
    """The keys that select as much from the cursor on: as many lines, and as much of the last one."""
    start, last, linewise = span.start, span.end - 1, span.linewise
    lines = text.count("\n", start, span.end if linewise else last)
    across = last - max(start, line_start(text, max(0, last)))
    down = [*str(lines), "j"] if lines else []
    along = [*("0" if lines else ""), *(f"{across}l" if across > 0 else "")]
    return ["V", *down] if linewise else ["v", *down, *along]


class VimKeys:
    """The keys of one text area."""

    def __init__(self, area: TextArea) -> None:
        self.mode = VimMode.INSERT
        self._area = area
        self._operators: dict[str, Callable[[TextSpan, int], None]] = {
            "d": self._delete,
            "c": self._substitute,
            "y": self._copy,
            ">": self._indent,
            "<": self._outdent,
            "gu": partial(self._recase, to=str.lower),
            "gU": partial(self._recase, to=str.upper),
            "g~": partial(self._recase, to=str.swapcase),
        }
        """The operation on a part of the text, by the key that waits for a motion; the number is a count."""
        self._on_selected = self._operators | {
            "J": self._join_lines,
            "p": self._put_in_place,
            "P": partial(self._put_in_place, keep=True),
        }
        self._count = ""
        self._operator = ""
        self._outer = ""
        """The count that was typed before the operator."""
        self._prefix = ""
        self._anchor = self._head = 0
        """The characters at the ends of the selection; the cursor stands on the second."""
        self._selected: tuple[VimMode, int, int] | None = None
        """The last selection, for `gv`."""
        self._register = ("", False)
        """The text that was cut or copied last, and a mark for whole lines."""
        self._keys: list[str] = []
        """Of the command that is being typed."""
        self._change: tuple[list[str], str] = ([], "")
        """The keys of the last change, and what was typed in insert mode after them."""
        self._around = ("", "")
        """The text before and behind the place of an insertion, as it began."""
        self._sought = ""
        """The last `f`, `F`, `t` or `T`, with its character."""
        self._depths: list[int] = []
        """How many steps could be undone before each change."""
        self._undone: list[int] = []
        """How many steps each `u` took."""

    @property
    def pending(self) -> str:
        """The typed part of a command that is not complete."""
        return f"{self._outer}{self._operator}{self._count}{self._prefix}"

    @property
    def selected_text(self) -> str:
        """The selection in visual mode, with the character under the cursor."""
        start, end, _ = self._span() if self.mode.selects else TextSpan(0, 0)
        return self._text[start:end]

    def insert(self) -> None:
        """Letters are typed from now on."""
        self._forget()
        self.mode = VimMode.INSERT

    def follow(self) -> bool:
        """End visual mode if the mouse, a paste or another text took the selection away. True if so."""
        gone = self.mode.selects and self._area.selection != self._shown()
        if gone:
            self._forget()
            self.mode = VimMode.NORMAL
        return gone

    def take(self, event: events.Key) -> bool:
        """Do the work of the key if it is one of Vim's here. True if so; other keys are as without Vim."""
        if self.mode is VimMode.INSERT:
            if event.key != "escape":
                return False
            before, behind = self._around
            if self._text.startswith(before) and self._text[len(before) :].endswith(behind):
                typed = self._text[len(before) : len(self._text) - len(behind)]
                self._change = (self._change[0], typed)
            self._leave_insert()
            return True
        self.follow()
        if event.key == "escape":
            cancelled = bool(self.pending) or self.mode.selects
            self._forget()
            self._leave_visual()
            return cancelled
        if event.character in OPENERS and not self._text:
            self.insert()
            self._replace(0, 0, OPENERS[event.character])
            return True
        if event.key == "ctrl+r":
            self._times(self._redo)
            return True
        own = {"backspace": "h", "delete": "x", **(ARROWS if self.mode.selects else {})}
        key = own.get(event.key, event.character if event.is_printable else None)
        if key is None:
            self._forget()
            return False
        self._typed(key)
        return True

    def _typed(self, key: str) -> None:
        self._keys.append(key)
        if key in "0123456789" and not self._prefix and (key != "0" or self._count):
            self._count = (self._count + key)[-4:]
            return
        object_begins = bool(self._operator) or self.mode.selects
        if not self._prefix and (key in AWAITING or (object_begins and key in "ia")):
            self._prefix = key
            return
        key = self._prefix + key
        if not self._operator and not self.mode.selects and key in self._operators:
            self._operator, self._outer, self._count, self._prefix = key, self._count, "", ""
            return
        count, operator, typed = self._counted(), self._operator, self._keys
        self._forget()
        if not operator and (self._moved(key, count) or self._marked(key)):
            return
        before = self._text
        depth = len(self._area.history.undo_stack)
        self._area.history.checkpoint()
        if self.mode.selects:
            typed = same_amount(before, self._span()) + typed
            self._do_with_selected(key, count or 1)
        elif operator:
            self._operate(operator, key, count)
        elif key == "u":
            for _ in range(count or 1):
                self._undo()
            return
        elif key == ".":
            self._again(count or 1)
            return
        else:
            self._command(key, count or 1)
        inserting = self.mode is VimMode.INSERT
        if self._text != before or inserting:
            self._change = (typed, self._change[1] if typed == self._change[0] else "")
            self._depths.append(depth)
            self._undone.clear()
        if inserting:
            self._around = (self._text[: self._at], self._text[self._at :])

    def _moved(self, key: str, count: int | None) -> bool:
        """Move the cursor if the key is a motion. True if so."""
        moved = self._motion(key, count)
        if moved is None:
            return False
        if key in {"j", "k"} and not self.mode.selects:
            # As the arrows do it: at the edges to the texts before and after.
            step = self._area.action_cursor_down if key == "j" else self._area.action_cursor_up
            for _ in range(count or 1):
                step()
        else:
            self._go(moved.to)
        if not (self.mode.selects and key == "$"):
            # A selection up to `$` has the end of its line.
            self._settle()
        return True

    def _motion(self, key: str, count: int | None) -> Motion | None:
        again = key in {";", ","} and bool(self._sought)
        if again:
            key = self._sought if key == ";" else self._sought[0].swapcase() + self._sought[1]
        elif len(key) == 2 and key[0] in "fFtT":
            self._sought = key
        return motion(key, self._text, self._at, count, again=again)

    def _again(self, count: int) -> None:
        """Repeat the last change."""
        keys, typed = self._change
        for _ in range(count):
            for key in keys:
                self._typed(key)
            if self.mode is VimMode.INSERT:
                self._replace(self._at, self._at, typed)
                self._leave_insert()

    def _undo(self) -> None:
        """Undo a change, with what was typed after it."""
        steps = len(self._area.history.undo_stack)
        while self._depths and self._depths[-1] >= steps:
            self._depths.pop()
        back = steps - (self._depths.pop() if self._depths else max(0, steps - 1))
        for _ in range(back):
            self._area.undo()
        self._undone.append(back)
        self._settle()

    def _redo(self) -> None:
        before = self._text
        self._depths.append(len(self._area.history.undo_stack))
        for _ in range(self._undone.pop() if self._undone else 1):
            self._area.redo()
        now = self._text
        if now != before:
            alike = zip(before, now, strict=False)
            self._go(
                next((n for n, (was, is_) in enumerate(alike) if was != is_), min(len(before), len(now)))
            )

    def _leave_insert(self) -> None:
        self.mode = VimMode.NORMAL
        self._go(max(line_start(self._text, self._at), self._at - 1))

    def _counted(self) -> int | None:
        counts = [int(typed) for typed in (self._outer, self._count) if typed]
        product = 1
        for each in counts:
            product *= each
        return product if counts else None

    def _times(self, act: Callable[[], None]) -> None:
        self._leave_visual()
        for _ in range(self._counted() or 1):
            act()
        self._forget()
        self._settle()

    def _operate(self, operator: str, key: str, count: int | None) -> None:
        text, at = self._text, self._at
        named = text_object(text, at, key)
        if key in {operator, operator[-1]}:
            moved: Motion | None = Motion(lines_on(text, at, (count or 1) - 1), linewise=True)
        else:
            moved = Motion(at) if named is not None else self._motion(key, count)
        if moved is None:
            return
        span = named or extent(text, at, moved, key, operator)
        self._go(at if span.linewise and moved.to >= at and operator in "dcy" else span.start)
        self._operators[operator](span, 1)

    def _command(self, key: str, count: int) -> None:
        text, at = self._text, self._at
        before, after = line_start(text, at), line_end(text, at)
        inserting_at = {"i": at, "I": first_nonblank(text, at), "a": min(after, at + 1), "A": after}
        if key in inserting_at:
            self._go(inserting_at[key])
            self.insert()
        elif key in SHORT_FOR:
            self._operate(SHORT_FOR[key][0], SHORT_FOR[key][1], count)
        elif key in {"o", "O"}:
            place = after if key == "o" else before
            self._replace(place, place, "\n")
            self._go(place + 1 if key == "o" else place)
            self.insert()
        elif key in {"x", "X"}:
            self._delete(
                TextSpan(at, min(after, at + count)) if key == "x" else TextSpan(max(before, at - count), at)
            )
        elif key in {"p", "P"}:
            self._put(count, after=key == "p")
        elif key == "~" or (key[0] == "r" and at + count <= after):
            end = min(after, at + count)
            self._replace(at, end, text[at:end].swapcase() if key == "~" else key[1] * count)
            self._go(end if key == "~" else end - 1)
            self._settle()
        elif key == "J":
            self._join(max(2, count))

    def _join(self, lines: int) -> None:
        for _ in range(lines - 1):
            text = self._text
            end = line_end(text, self._at)
            if end < len(text):
                start = first_nonblank(text, end + 1)
                parted = end > line_start(text, end) and start < line_end(text, start)
                self._replace(end, start, " " if parted else "")
                self._go(end)
        self._settle()

    def _put(self, count: int, *, after: bool) -> None:
        held, linewise = self._register
        text, at = self._text, self._at
        if not held:
            return
        if not linewise:
            place = min(line_end(text, at), at + 1) if after and text else at
            self._replace(place, place, held * count)
            self._go(place + len(held) * count - 1)
        else:
            lines = "\n".join([held.removesuffix("\n")] * count)
            place = line_end(text, at) if after else line_start(text, at)
            self._replace(place, place, f"\n{lines}" if after else f"{lines}\n")
            self._go(first_nonblank(self._text, place + 1 if after else place))
        self._settle()

    def _forget(self) -> None:
        self._count = self._operator = self._outer = self._prefix = ""
        self._keys = []

    # --- what is done with a part of the text -----------------------------------------------------------------

    def _copy(self, span: TextSpan, _count: int = 1) -> None:
        if span.linewise or span.end > span.start:
            self._register = (self._text[span.start : span.end] + "\n" * span.linewise, span.linewise)

    def _delete(self, span: TextSpan, _count: int = 1) -> None:
        self._copy(span)
        start, end, linewise = span
        last = end == len(self._text)
        if linewise:
            # The last line goes with the line end before it.
            start, end = (max(0, start - 1), end) if last else (start, end + 1)
        self._rewrite(TextSpan(start, end), "")
        self._go(first_nonblank(self._text, min(span.start, len(self._text))) if linewise else start)
        self._settle()

    def _substitute(self, span: TextSpan, _count: int) -> None:
        self._copy(span)
        self._replace(span.start, span.end, "")
        self.insert()

    def _recase(self, span: TextSpan, _count: int, *, to: Callable[[str], str]) -> None:
        at = self._at
        self._rewrite(span, to(self._text[span.start : span.end]))
        self._go(min(at, len(self._text)))
        self._settle()

    def _indent(self, span: TextSpan, count: int) -> None:
        margin = " " * (self._area.indent_width * count)
        self._shift(span, lambda lines: re.sub(r"^(?=.*\S)", margin, lines, flags=re.MULTILINE))

    def _outdent(self, span: TextSpan, count: int) -> None:
        width = self._area.indent_width * count
        self._shift(span, lambda lines: re.sub(rf"^[ \t]{{1,{width}}}", "", lines, flags=re.MULTILINE))

    def _shift(self, span: TextSpan, to: Callable[[str], str]) -> None:
        lines = whole_lines(self._text, span.start, max(span.start, span.end - (not span.linewise)))
        self._rewrite(lines, to(self._text[lines.start : lines.end]))
        self._go(first_nonblank(self._text, lines.start))
        self._settle()

    def _join_lines(self, span: TextSpan, _count: int) -> None:
        self._join(max(2, self._text.count("\n", span.start, span.end) + 1))

    def _put_in_place(self, span: TextSpan, count: int, *, keep: bool = False) -> None:
        """Put what was cut or copied in the place of a part of the text, and hold that, or go on holding it."""
        held, linewise = self._register
        if not held:
            return
        if not keep:
            self._copy(span)
        if linewise or span.linewise:
            lines = "\n".join([held.removesuffix("\n")] * count)
            self._rewrite(span, lines if span.linewise else f"\n{lines}\n")
            self._go(first_nonblank(self._text, span.start + (not span.linewise)))
        else:
            self._rewrite(span, held * count)
            self._go(span.start + len(held) * count - 1)
        self._settle()

    # --- what is selected -------------------------------------------------------------------------------------

    def _marked(self, key: str) -> bool:
        """Select if the key names a selection. True if so."""
        at, selecting, chosen = self._at, self.mode.selects, VISUAL_MODES.get(key)
        if key == "gv" and self._selected is not None:
            self.mode, anchor, head = self._selected
            self._select(min(anchor, len(self._text)), min(head, len(self._text)))
        elif chosen is not None and self.mode is chosen:
            self._leave_visual()
        elif chosen is not None:
            self.mode = chosen
            self._select(self._anchor if selecting else at, at)
        elif selecting and key == "o":
            self._select(at, self._anchor)
        elif selecting and (named := self._object(key)) is not None:
            self.mode = VimMode.LINES if named.linewise else VimMode.VISUAL
            self._select(named.start, max(named.start, named.end - 1))
        else:
            return False
        return True

    def _object(self, key: str) -> TextSpan | None:
        """The selection of a text object: itself; if more than one character is selected, up to the next one
        too.
        """
        text, at = self._text, self._at
        more = at > self._anchor
        named = text_object(text, min(len(text), at + more), key)
        if named is None or (named.start == named.end and not named.linewise):
            return None
        return named._replace(start=min(named.start, self._anchor)) if more else named

    def _select(self, anchor: int, head: int) -> None:
        self._anchor = anchor
        self._go(head)

    def _span(self) -> TextSpan:
        """The selection."""
        start, end = sorted((self._anchor, self._head))
        if self.mode is VimMode.LINES:
            return whole_lines(self._text, start, end)
        return TextSpan(start, min(len(self._text), end + 1))

    def _shown(self) -> Selection:
        """The selection that the text area shows; the character under its cursor is seen as part of it."""
        start, end, linewise = self._span()
        if self._head < self._anchor:
            return Selection(self._location(end), self._location(start))
        return Selection(self._location(start), self._location(end if linewise else self._head))

    def _leave_visual(self) -> None:
        if self.mode.selects:
            self._selected = self.mode, self._anchor, self._head
            self.mode = VimMode.NORMAL
            self._go(self._head)
            self._settle()

    def _do_with_selected(self, key: str, count: int) -> None:
        text, span = self._text, self._span()
        operator = ON_SELECTED_LINES.get(key) or ON_SELECTED.get(key, key)
        act = self._on_selected.get(operator)
        if key[0] == "r":
            act = partial(self._recase, to=lambda chosen: re.sub(".", lambda _: key[1], chosen))
        if act is None:
            return
        if key in ON_SELECTED_LINES:
            span = whole_lines(text, span.start, max(span.start, span.end - 1))
        self._leave_visual()
        self._go(span.start)
        act(span, count)

    # --- the text area ----------------------------------------------------------------------------------------

    @property
    def _text(self) -> str:
        return self._area.text

    @property
    def _at(self) -> int:
        if self.mode.selects:
            return self._head
        row, column = self._area.cursor_location
        return sum(len(self._area.document.get_line(line)) + 1 for line in range(row)) + column

    def _location(self, offset: int) -> tuple[int, int]:
        before = self._text[:offset]
        return before.count("\n"), offset - line_start(self._text, offset)

    def _go(self, offset: int) -> None:
        if self.mode.selects:
            self._head = offset
            self._area.selection = self._shown()
        else:
            self._area.move_cursor(self._location(offset))

    def _replace(self, start: int, end: int, text: str) -> None:
        """Put `text` in the place of what is between, the cursor behind it."""
        begin = self._location(start)
        self._area.replace(text, begin, self._location(end), maintain_selection_offset=False)
        self._go(start + len(text))

    def _rewrite(self, span: TextSpan, text: str) -> None:
        """Put another text in the place of a part; nothing if it is the same."""
        if text != self._text[span.start : span.end]:
            self._replace(span.start, span.end, text)

    def _settle(self) -> None:
        """Outside of insert mode the cursor stands on a character, and not behind the last one of a line."""
        at = on_character(self._text, self._at)
        if at != self._at:
            self._go(at)
