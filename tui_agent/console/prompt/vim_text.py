"""Targets of Vim's motions in a text, and extents of its text objects: offsets from offsets, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple


class Motion(NamedTuple):
    """The target of a motion. An operator takes the text up to it, with it (`inclusive`), or all lines
    between.
    """

    to: int
    linewise: bool = False
    inclusive: bool = False


class TextSpan(NamedTuple):
    """A part of the text, up to the offset `end`. Whole lines are so without the line end of the last one."""

    start: int
    end: int
    linewise: bool = False


# --- targets of motions
# ---------------------------------------------------------------------------------------


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
    """The kind of a character if only spaces part words."""
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
    """The first character that is no space of line `number`, from 1; of the last one if there are fewer."""
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
    """The target of `f`, `F`, `t` or `T` with its character in the line; None if that is not there so often.

    `again`: from its earlier target, so that `t` goes on to the next one.
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
"""The target of each in a text from an offset, so many times; the lines of `gg` and `G` are counted from 1.
"""


def motion(key: str, text: str, at: int, count: int | None, *, again: bool = False) -> Motion | None:
    """The target of the motion `key` from offset `at`; None: it is no motion. `count` None: none was typed."""
    if len(key) == 2 and key[0] in "fFtT":
        place = character_on(text, at, key, count or 1, again=again)
        return None if place is None else Motion(place, inclusive=key[0] in "ft")
    steps = _MOTIONS.get(key)
    if steps is None:
        return None
    last_line = text.count("\n") + 1
    times = count or (last_line if key == "G" else 1)
    return Motion(steps(text, at, times), linewise=key in {"j", "k", "gg", "G"}, inclusive=key in {"e", "E"})


def whole_lines(text: str, start: int, end: int) -> TextSpan:
    """The lines from the one of an offset to the one of another."""
    return TextSpan(line_start(text, start), line_end(text, end), linewise=True)


def extent(text: str, at: int, moved: Motion, key: str, operator: str) -> TextSpan:
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
    return TextSpan(start, end)


def on_character(text: str, at: int) -> int:
    """The place of the cursor outside of insert mode: on a character, and not behind the last one of a line."""
    return at - 1 if at == line_end(text, at) and at > line_start(text, at) else at


# --- text objects --------------------------------------------------------------------------------------------

_PAIRS = {opener: pair for pair in ("()", "[]", "{}", "<>") for opener in pair} | {"b": "()", "B": "{}"}


def text_object(text: str, at: int, key: str) -> TextSpan | None:
    """The extent of `iw`, `a"`, `i(`, `ip`, … around offset `at`; None: nothing."""
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
    return TextSpan(start, end + 1) if around else TextSpan(start + 1, end)


def _word_around(text: str, at: int, kind: _Kind, around: bool) -> TextSpan | None:
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
    return TextSpan(start, end)


def _paragraph(text: str, at: int, around: bool) -> TextSpan:
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
    return TextSpan(start, start + len("\n".join(lines[first : last + 1])), linewise=True)


def _quoted(text: str, at: int, quote: str, around: bool) -> TextSpan | None:
    """The first quotes of the line that end at `at` or behind it; `around`: with the space behind them, or before."""
    first, last = line_start(text, at), line_end(text, at)
    places = [n for n in range(first, last) if text[n] == quote]
    pairs = zip(places[::2], places[1::2], strict=False)
    start, end = next(((a, b) for a, b in pairs if b >= at), (0, 0))
    if not end or not around:
        return TextSpan(start + 1, end) if end else None
    behind = text[end + 1 : last]
    spaces = len(behind) - len(behind.lstrip())
    before = text[first:start]
    return TextSpan(start if spaces else first + len(before.rstrip()), end + 1 + spaces)


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
