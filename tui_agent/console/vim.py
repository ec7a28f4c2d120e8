"""Vim's keys for a text area: its modes, motions, operators, text objects, counts, and one register.

`VimKeys` gets the keys of normal and visual mode and changes the text area; in insert mode only Esc is its own. Where a
motion leads is found by pure functions over the text and the offset of the cursor in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from textual import events
    from textual.widgets import TextArea
    from textual.widgets.text_area import Selection


AWAITING = frozenset("gfFtTr")
"""Keys that need another one to be a command."""

OPENERS = {"/": "/", ":": "/", "!": "!", "@": "@"}
"""What is typed into an empty prompt also in normal mode, by its key: it begins a command or a name."""


class Mode(StrEnum):
    """What a letter does: it is typed, it is a command, or a command for what is selected."""

    INSERT = "INSERT"
    NORMAL = "NORMAL"
    VISUAL = "VISUAL"
    LINES = "VISUAL LINE"

    @property
    def selects(self) -> bool:
        """Motions move one end of a selection."""
        return self in {Mode.VISUAL, Mode.LINES}


VISUAL_MODES = {"v": Mode.VISUAL, "V": Mode.LINES}
"""By the key that begins one, goes over to it, or ends it."""


class Motion(NamedTuple):
    """Where a motion leads. An operator takes the text up to there, with it (`inclusive`), or all lines between."""

    to: int
    linewise: bool = False
    inclusive: bool = False


class Span(NamedTuple):
    """A part of the text, up to the offset `end`. Whole lines are so without the line end of the last one."""

    start: int
    end: int
    linewise: bool = False


# --- where motions lead ---------------------------------------------------------------------------------------


def line_start(text: str, at: int) -> int:
    """Offset of the first character of the line."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Offset behind the last character of the line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def first_nonblank(text: str, at: int) -> int:
    """Offset of the first character of the line that is no space, or of its end."""
    start, end = line_start(text, at), line_end(text, at)
    return start + len(text[start:end]) - len(text[start:end].lstrip())


def _kind(character: str) -> int:
    if character.isspace():
        return 0
    return 2 if character.isalnum() or character == "_" else 1


def _big(character: str) -> int:
    """The kind of a character where only spaces part words."""
    return min(1, _kind(character))


_Kind = Callable[[str], int]


def word_on(text: str, at: int, kind: _Kind = _kind) -> int:
    """The beginning of the next word; an empty line is one."""
    place, first = at, kind(text[at]) if at < len(text) else 0
    while place < len(text) and first and kind(text[place]) == first:
        place += 1
    while place < len(text) and not kind(text[place]):
        place += 1
        if place < len(text) and text[place] == "\n" and text[place - 1] == "\n":
            break
    return place


def word_back(text: str, at: int, kind: _Kind = _kind) -> int:
    """The beginning of this word, or of the one before."""
    place = at - 1
    while place > 0 and not kind(text[place]):
        if text[place] == "\n" and text[place - 1] == "\n":
            return place
        place -= 1
    while place > 0 and kind(text[place - 1]) == kind(text[place]) != 0:
        place -= 1
    return max(0, place)


def word_end(text: str, at: int, kind: _Kind = _kind) -> int:
    """The last character of this word, or of the next one."""
    place = at + 1
    while place < len(text) and not kind(text[place]):
        place += 1
    while place + 1 < len(text) and kind(text[place + 1]) == kind(text[place]):
        place += 1
    return min(place, max(0, len(text) - 1))


def lines_on(text: str, at: int, count: int) -> int:
    """The same column, so many lines on (or back, below 0), as far as there are lines."""
    column, start = at - line_start(text, at), line_start(text, at)
    for _ in range(abs(count)):
        if count > 0:
            end = line_end(text, start)
            if end == len(text):
                break
            start = end + 1
        elif start:
            start = line_start(text, start - 1)
    return min(start + column, line_end(text, start))


def line_number(text: str, number: int) -> int:
    """The first character that is no space of line `number`, from 1; of the last one where there are fewer."""
    start = 0
    for _ in range(number - 1):
        end = line_end(text, start)
        if end == len(text):
            break
        start = end + 1
    return first_nonblank(text, start)


def _repeated(step: Callable[[str, int], int], text: str, at: int, count: int) -> int:
    for _ in range(min(count, len(text) + 1)):
        at = step(text, at)
    return at


def character_on(text: str, at: int, key: str, times: int, *, again: bool = False) -> int | None:
    """Where `f`, `F`, `t` or `T` with its character leads in the line; None where that is not there so often.

    `again`: from where it led before, so that `t` goes on to the next one.
    """
    how, wanted = key[0], key[1]
    short = {"t": 1, "T": -1}.get(how, 0)
    place = at + short if again else at
    for _ in range(times):
        if how in "ft":
            place = text.find(wanted, place + 1, line_end(text, at))
        else:
            place = text.rfind(wanted, line_start(text, at), max(0, place))
        if place < 0:
            return None
    return place - short


_Steps = Callable[[str, int, int], int]

_MOTIONS: dict[str, _Steps] = {
    "h": lambda text, at, times: max(line_start(text, at), at - times),
    "l": lambda text, at, times: min(line_end(text, at), at + times),
    " ": lambda text, at, times: min(line_end(text, at), at + times),
    "j": lines_on,
    "k": lambda text, at, times: lines_on(text, at, -times),
    "w": lambda text, at, times: _repeated(word_on, text, at, times),
    "b": lambda text, at, times: _repeated(word_back, text, at, times),
    "e": lambda text, at, times: _repeated(word_end, text, at, times),
    "W": lambda text, at, times: _repeated(partial(word_on, kind=_big), text, at, times),
    "B": lambda text, at, times: _repeated(partial(word_back, kind=_big), text, at, times),
    "E": lambda text, at, times: _repeated(partial(word_end, kind=_big), text, at, times),
    "0": lambda text, at, _: line_start(text, at),
    "^": lambda text, at, _: first_nonblank(text, at),
    "$": lambda text, at, times: line_end(text, lines_on(text, line_start(text, at), times - 1)),
    "gg": lambda text, _, times: line_number(text, times),
    "G": lambda text, _, times: line_number(text, times),
}
"""Where each leads in a text from an offset, so many times; the lines of `gg` and `G` are counted from 1."""


def motion(key: str, text: str, at: int, count: int | None, *, again: bool = False) -> Motion | None:
    """Where the motion `key` leads from offset `at`; None: it is no motion. `count` None: none was typed."""
    if len(key) == 2 and key[0] in "fFtT":
        place = character_on(text, at, key, count or 1, again=again)
        return None if place is None else Motion(place, inclusive=key[0] in "ft")
    steps = _MOTIONS.get(key)
    if steps is None:
        return None
    last_line = text.count("\n") + 1
    times = count or (last_line if key == "G" else 1)
    return Motion(steps(text, at, times), linewise=key in {"j", "k", "gg", "G"}, inclusive=key in {"e", "E"})


def whole_lines(text: str, start: int, end: int) -> Span:
    """The lines from the one of an offset to the one of another."""
    return Span(line_start(text, start), line_end(text, end), linewise=True)


def extent(text: str, at: int, moved: Motion, key: str, operator: str) -> Span:
    """The text that an operator takes with a motion from `at`."""
    start, end = sorted((at, moved.to))
    if moved.linewise:
        return whole_lines(text, start, end)
    if moved.inclusive:
        end = min(len(text), end + 1)
    if key in {"w", "W"} and operator == "c" and at < len(text) and not text[at].isspace():
        # As Vim has it, changing a word leaves the space behind it.
        while end > at and text[end - 1].isspace():
            end -= 1
    elif key in {"w", "W"} and "\n" in text[start:end] and not text[line_start(text, end) : end].strip():
        # The last word of a line does not take the line's end along.
        end = max(start, text.rfind("\n", start, end))
    return Span(start, end)


def on_character(text: str, at: int) -> int:
    """Where the cursor stands outside of insert mode: on a character, and not behind the last one of a line."""
    return at - 1 if at == line_end(text, at) and at > line_start(text, at) else at


# --- text objects --------------------------------------------------------------------------------------------

_PAIRS = {opener: pair for pair in ("()", "[]", "{}", "<>") for opener in pair} | {"b": "()", "B": "{}"}


def text_object(text: str, at: int, key: str) -> Span | None:
    """What `iw`, `a"`, `i(`, `ip`, … name around offset `at`; None: nothing."""
    if len(key) != 2 or key[0] not in "ia":
        return None
    around, what = key[0] == "a", key[1]
    if what in "wW":
        return _word_around(text, at, _kind if what == "w" else _big, around)
    if what == "p":
        return _paragraph(text, at, around)
    if what in "\"'`":
        return _quoted(text, at, what, around)
    found = _bracketed(text, at, _PAIRS[what]) if what in _PAIRS else None
    if found is None:
        return None
    start, end = found
    return Span(start, end + 1) if around else Span(start + 1, end)


def _word_around(text: str, at: int, kind: _Kind, around: bool) -> Span | None:
    first, last = line_start(text, at), line_end(text, at)
    if at >= last:
        return None

    def run(place: int) -> int:
        """The end of the characters of one kind from `place` on."""
        return next((n for n in range(place, last) if kind(text[n]) != kind(text[place])), last)

    start = at
    while start > first and kind(text[start - 1]) == kind(text[at]):
        start -= 1
    end = run(at)
    if around and end < last and (not kind(text[at]) or not kind(text[end])):
        end = run(end)
    elif around:
        while start > first and not kind(text[start - 1]):
            start -= 1
    return Span(start, end)


def _paragraph(text: str, at: int, around: bool) -> Span:
    """The lines around that are blank as this one is, or are not; `around`: with those behind them, or before."""
    lines = text.split("\n")
    blank = [not line.strip() for line in lines]

    def run(row: int, step: int) -> int:
        """The last row of those like `row` in a direction."""
        while 0 <= row + step < len(lines) and blank[row + step] == blank[row]:
            row += step
        return row

    here = text.count("\n", 0, at)
    first, last = run(here, -1), run(here, 1)
    if around and last + 1 < len(lines):
        last = run(last + 1, 1)
    elif around and first:
        first = run(first - 1, -1)
    start = sum(len(line) + 1 for line in lines[:first])
    return Span(start, start + len("\n".join(lines[first : last + 1])), linewise=True)


def _quoted(text: str, at: int, quote: str, around: bool) -> Span | None:
    """The first quotes of the line that end at `at` or behind it; `around`: with the space behind them, or before."""
    first, last = line_start(text, at), line_end(text, at)
    places = [n for n in range(first, last) if text[n] == quote]
    pairs = zip(places[::2], places[1::2], strict=False)
    start, end = next(((a, b) for a, b in pairs if b >= at), (0, 0))
    if not end or not around:
        return Span(start + 1, end) if end else None
    behind = text[end + 1 : last]
    spaces = len(behind) - len(behind.lstrip())
    before = text[first:start]
    return Span(start if spaces else first + len(before.rstrip()), end + 1 + spaces)


def _bracketed(text: str, at: int, pair: str) -> tuple[int, int] | None:
    """The innermost brackets around `at`, or at it."""
    opener, closer = pair[0], pair[1]
    depth, start = 0, at
    while start >= 0 and (depth or text[start : start + 1] != opener):
        if start != at and text[start] == closer:
            depth += 1
        elif text[start : start + 1] == opener:
            depth -= 1
        start -= 1
    end, depth = start, 0
    while 0 <= end < len(text):
        depth += (text[end] == opener) - (text[end] == closer)
        if not depth:
            return start, end
        end += 1
    return None


# --- keys -----------------------------------------------------------------------------------------------------


SHORT_FOR = {"D": "d$", "C": "c$", "Y": "yy", "s": "cl", "S": "cc"}
"""An operator with its motion, by the one key that stands for both."""

ON_SELECTED = {"x": "d", "s": "c", "u": "gu", "U": "gU", "~": "g~"}
"""The operators that have a key of their own where something is selected."""

ON_SELECTED_LINES = {"D": "d", "X": "d", "C": "c", "S": "c", "R": "c", "Y": "y"}
"""The operators for all lines of the selection."""

ARROWS = {"left": "h", "right": "l", "up": "k", "down": "j", "home": "0", "end": "$"}
"""The motions of keys that are the text area's own where nothing is selected."""


def same_amount(text: str, span: Span) -> list[str]:
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
        self.mode = Mode.INSERT
        self._area = area
        self._operators: dict[str, Callable[[Span, int], None]] = {
            "d": self._delete,
            "c": self._substitute,
            "y": self._copy,
            ">": self._indent,
            "<": self._outdent,
            "gu": partial(self._recase, to=str.lower),
            "gU": partial(self._recase, to=str.upper),
            "g~": partial(self._recase, to=str.swapcase),
        }
        """What is done with a part of the text, by the key that waits for a motion; the number is a count."""
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
        self._selected: tuple[Mode, int, int] | None = None
        """The last selection, for `gv`."""
        self._register = ("", False)
        """What was cut or copied last, and whether it is whole lines."""
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
        """What was typed of a command that is not complete."""
        return f"{self._outer}{self._operator}{self._count}{self._prefix}"

    @property
    def selected_text(self) -> str:
        """What is selected in visual mode, with the character under the cursor."""
        start, end, _ = self._span() if self.mode.selects else Span(0, 0)
        return self._text[start:end]

    def insert(self) -> None:
        """Letters are typed from now on."""
        self._forget()
        self.mode = Mode.INSERT

    def follow(self) -> bool:
        """End visual mode where the mouse, a paste or another text took the selection away; whether that is so."""
        gone = self.mode.selects and self._area.selection != self._shown()
        if gone:
            self._forget()
            self.mode = Mode.NORMAL
        return gone

    def take(self, event: events.Key) -> bool:
        """Whether the key was one of Vim's here; then it has done its work. Other keys are as without Vim."""
        if self.mode is Mode.INSERT:
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
        inserting = self.mode is Mode.INSERT
        if self._text != before or inserting:
            self._change = (typed, self._change[1] if typed == self._change[0] else "")
            self._depths.append(depth)
            self._undone.clear()
        if inserting:
            self._around = (self._text[: self._at], self._text[self._at :])

    def _moved(self, key: str, count: int | None) -> bool:
        """Whether the key is a motion; then the cursor has moved."""
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
            if self.mode is Mode.INSERT:
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
        self.mode = Mode.NORMAL
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
                Span(at, min(after, at + count)) if key == "x" else Span(max(before, at - count), at)
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

    def _copy(self, span: Span, _count: int = 1) -> None:
        if span.linewise or span.end > span.start:
            self._register = (self._text[span.start : span.end] + "\n" * span.linewise, span.linewise)

    def _delete(self, span: Span, _count: int = 1) -> None:
        self._copy(span)
        start, end, linewise = span
        last = end == len(self._text)
        if linewise:
            # The last line goes with the line end before it.
            start, end = (max(0, start - 1), end) if last else (start, end + 1)
        self._rewrite(Span(start, end), "")
        self._go(first_nonblank(self._text, min(span.start, len(self._text))) if linewise else start)
        self._settle()

    def _substitute(self, span: Span, _count: int) -> None:
        self._copy(span)
        self._replace(span.start, span.end, "")
        self.insert()

    def _recase(self, span: Span, _count: int, *, to: Callable[[str], str]) -> None:
        at = self._at
        self._rewrite(span, to(self._text[span.start : span.end]))
        self._go(min(at, len(self._text)))
        self._settle()

    def _indent(self, span: Span, count: int) -> None:
        margin = " " * (self._area.indent_width * count)
        self._shift(span, lambda lines: re.sub(r"^(?=.*\S)", margin, lines, flags=re.MULTILINE))

    def _outdent(self, span: Span, count: int) -> None:
        width = self._area.indent_width * count
        self._shift(span, lambda lines: re.sub(rf"^[ \t]{{1,{width}}}", "", lines, flags=re.MULTILINE))

    def _shift(self, span: Span, to: Callable[[str], str]) -> None:
        lines = whole_lines(self._text, span.start, max(span.start, span.end - (not span.linewise)))
        self._rewrite(lines, to(self._text[lines.start : lines.end]))
        self._go(first_nonblank(self._text, lines.start))
        self._settle()

    def _join_lines(self, span: Span, _count: int) -> None:
        self._join(max(2, self._text.count("\n", span.start, span.end) + 1))

    def _put_in_place(self, span: Span, count: int, *, keep: bool = False) -> None:
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
        """Whether the key says what is selected; then it is."""
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
            self.mode = Mode.LINES if named.linewise else Mode.VISUAL
            self._select(named.start, max(named.start, named.end - 1))
        else:
            return False
        return True

    def _object(self, key: str) -> Span | None:
        """What a text object selects: itself; where more than one character is selected, up to the next one too."""
        text, at = self._text, self._at
        more = at > self._anchor
        named = text_object(text, min(len(text), at + more), key)
        if named is None or (named.start == named.end and not named.linewise):
            return None
        return named._replace(start=min(named.start, self._anchor)) if more else named

    def _select(self, anchor: int, head: int) -> None:
        self._anchor = anchor
        self._go(head)

    def _span(self) -> Span:
        """What is selected."""
        start, end = sorted((self._anchor, self._head))
        if self.mode is Mode.LINES:
            return whole_lines(self._text, start, end)
        return Span(start, min(len(self._text), end + 1))

    def _shown(self) -> Selection:
        """What the text area shows as selected; the character under its cursor is seen as such too."""
        from textual.widgets.text_area import Selection

        start, end, linewise = self._span()
        if self._head < self._anchor:
            return Selection(self._location(end), self._location(start))
        return Selection(self._location(start), self._location(end if linewise else self._head))

    def _leave_visual(self) -> None:
        if self.mode.selects:
            self._selected = self.mode, self._anchor, self._head
            self.mode = Mode.NORMAL
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

    def _rewrite(self, span: Span, text: str) -> None:
        """Put another text in the place of a part; nothing where it is the same."""
        if text != self._text[span.start : span.end]:
            self._replace(span.start, span.end, text)

    def _settle(self) -> None:
        """Outside of insert mode the cursor stands on a character, and not behind the last one of a line."""
        at = on_character(self._text, self._at)
        if at != self._at:
            self._go(at)
