"""Vim's keys for a text area: insert and normal mode, motions, operators, text objects, counts, and one register.

`VimKeys` gets the keys of normal mode and changes the text area; in insert mode only Esc is its own. Where a motion
leads is found by pure functions over the text and the offset of the cursor in it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from textual import events
    from textual.widgets import TextArea


AWAITING = frozenset("gfFtTr")
"""Keys that need another one to be a command."""

OPENERS = frozenset("/!@")
"""Typed into an empty prompt also in normal mode: they begin a command or a name."""


class Mode(StrEnum):
    """What a letter does: it is typed, or it is a command."""

    INSERT = "INSERT"
    NORMAL = "NORMAL"


class Motion(NamedTuple):
    """Where a motion leads. An operator takes the text up to there, with it (`inclusive`), or all lines between."""

    to: int
    linewise: bool = False
    inclusive: bool = False


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


def extent(text: str, at: int, moved: Motion, key: str, operator: str) -> tuple[int, int]:
    """The text that an operator takes with a motion from `at`: from the first offset up to the second."""
    start, end = sorted((at, moved.to))
    if moved.linewise:
        return line_start(text, start), min(len(text), line_end(text, end) + 1)
    if moved.inclusive:
        end = min(len(text), end + 1)
    if key in {"w", "W"} and operator == "c" and at < len(text) and not text[at].isspace():
        # As Vim has it, changing a word leaves the space behind it.
        while end > at and text[end - 1].isspace():
            end -= 1
    elif key in {"w", "W"} and "\n" in text[start:end] and not text[line_start(text, end) : end].strip():
        # The last word of a line does not take the line's end along.
        end = max(start, text.rfind("\n", start, end))
    return start, end


# --- text objects --------------------------------------------------------------------------------------------

_PAIRS = {opener: pair for pair in ("()", "[]", "{}", "<>") for opener in pair} | {"b": "()", "B": "{}"}


def text_object(text: str, at: int, key: str) -> tuple[int, int] | None:
    """What `iw`, `a"`, `i(`, … name around offset `at`, up to the second offset; None: nothing."""
    if len(key) != 2 or key[0] not in "ia":
        return None
    around, what = key[0] == "a", key[1]
    if what in "wW":
        return _word_around(text, at, _kind if what == "w" else _big, around)
    if what in "\"'`":
        found = _quoted(text, at, what)
    else:
        found = _bracketed(text, at, _PAIRS[what]) if what in _PAIRS else None
    if found is None:
        return None
    start, end = found
    return (start, end + 1) if around else (start + 1, end)


def _word_around(text: str, at: int, kind: _Kind, around: bool) -> tuple[int, int] | None:
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
    return start, end


def _quoted(text: str, at: int, quote: str) -> tuple[int, int] | None:
    """The first quotes of the line that end at `at` or behind it."""
    places = [n for n in range(line_start(text, at), line_end(text, at)) if text[n] == quote]
    return next(((a, b) for a, b in zip(places[::2], places[1::2], strict=False) if b >= at), None)


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


class VimKeys:
    """The keys of one text area."""

    def __init__(self, area: TextArea) -> None:
        self.mode = Mode.INSERT
        self._area = area
        self._count = ""
        self._operator = ""
        self._outer = ""
        """The count that was typed before the operator."""
        self._prefix = ""
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

    def insert(self) -> None:
        """Letters are typed from now on."""
        self._forget()
        self.mode = Mode.INSERT

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
        if event.key == "escape":
            cancelled = bool(self.pending)
            self._forget()
            return cancelled
        if event.character in OPENERS and not self._text:
            self.insert()
            return False
        if event.key == "ctrl+r":
            self._times(self._redo)
            return True
        key = {"backspace": "h", "delete": "x"}.get(
            event.key, event.character if event.is_printable else None
        )
        if key is None:
            self._forget()
            return False
        self._typed(key)
        return True

    def _typed(self, key: str) -> None:
        self._keys.append(key)
        if key.isdigit() and not self._prefix and (key != "0" or self._count):
            self._count = (self._count + key)[-4:]
            return
        if not self._prefix and (key in AWAITING or (self._operator and key in "ia")):
            self._prefix = key
            return
        key = self._prefix + key
        if not self._operator and key in {"d", "c", "y"}:
            self._operator, self._outer, self._count, self._prefix = key, self._count, "", ""
            return
        count, operator, typed = self._counted(), self._operator, self._keys
        self._forget()
        if not operator and self._moved(key, count):
            return
        before = self._text
        depth = len(self._area.history.undo_stack)
        self._area.history.checkpoint()
        if operator:
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
        if key in {"j", "k"}:
            # As the arrows do it: at the edges to the texts before and after.
            step = self._area.action_cursor_down if key == "j" else self._area.action_cursor_up
            for _ in range(count or 1):
                step()
        else:
            self._go(moved.to)
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
        self._depths.append(len(self._area.history.undo_stack))
        for _ in range(self._undone.pop() if self._undone else 1):
            self._area.redo()

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
        for _ in range(self._counted() or 1):
            act()
        self._forget()
        self._settle()

    def _operate(self, operator: str, key: str, count: int | None) -> None:
        text, at = self._text, self._at
        named = text_object(text, at, key)
        if key == operator:
            moved: Motion | None = Motion(lines_on(text, at, (count or 1) - 1), linewise=True)
        else:
            moved = Motion(at) if named is not None else self._motion(key, count)
        if moved is None:
            return
        start, end = named or extent(text, at, moved, key, operator)
        last = moved.linewise and line_end(text, max(at, moved.to)) == len(text)
        self._register = (text[start:end] + ("\n" if last else ""), moved.linewise)
        if operator == "y":
            self._go(at if moved.linewise and moved.to >= at else start)
            return
        if operator == "c":
            self._replace(start, end - 1 if moved.linewise and not last else end, "")
            self.insert()
            return
        # The last line goes with the line end before it.
        self._replace(max(0, start - 1) if last else start, end, "")
        if moved.linewise:
            self._go(first_nonblank(self._text, len(self._text) if last else start))
        self._settle()

    def _command(self, key: str, count: int) -> None:
        text, at = self._text, self._at
        before, after = line_start(text, at), line_end(text, at)
        inserting_at = {"i": at, "I": first_nonblank(text, at), "a": min(after, at + 1), "A": after}
        operators = {"D": "d$", "C": "c$", "Y": "yy", "s": "cl", "S": "cc"}
        if key in inserting_at:
            self._go(inserting_at[key])
            self.insert()
        elif key in operators:
            self._operate(operators[key][0], operators[key][1], count)
        elif key in {"o", "O"}:
            place = after if key == "o" else before
            self._replace(place, place, "\n")
            self._go(place + 1 if key == "o" else place)
            self.insert()
        elif key in {"x", "X"}:
            self._cut(*((at, min(after, at + count)) if key == "x" else (max(before, at - count), at)))
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
                self._go(end)
                self._replace(end, first_nonblank(text, end + 1), " " if end > line_start(text, end) else "")
                self._go(end)
        self._settle()

    def _cut(self, start: int, end: int) -> None:
        if end > start:
            self._register = (self._text[start:end], False)
            self._replace(start, end, "")
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

    # --- the text area ----------------------------------------------------------------------------------------

    @property
    def _text(self) -> str:
        return self._area.text

    @property
    def _at(self) -> int:
        row, column = self._area.cursor_location
        return sum(len(self._area.document.get_line(line)) + 1 for line in range(row)) + column

    def _location(self, offset: int) -> tuple[int, int]:
        before = self._text[:offset]
        return before.count("\n"), offset - line_start(self._text, offset)

    def _go(self, offset: int) -> None:
        self._area.move_cursor(self._location(offset))

    def _replace(self, start: int, end: int, text: str) -> None:
        """Put `text` in the place of what is between, the cursor behind it."""
        begin = self._location(start)
        self._area.replace(text, begin, self._location(end), maintain_selection_offset=False)
        self._go(start + len(text))

    def _settle(self) -> None:
        """In normal mode the cursor stands on a character, and not behind the last one of a line."""
        at, text = self._at, self._text
        if at == line_end(text, at) and at > line_start(text, at):
            self._go(at - 1)
