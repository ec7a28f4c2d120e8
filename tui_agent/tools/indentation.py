"""Text that was written with one indentation, in that of a file: how many levels deeper, and in which unit.

Pure. If the lines that are known in both do not agree on one change, there is none: a guess would change the
program's meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

_Way = Callable[[str], str | None]
"""From an indentation as written to that in the file; None if it cannot be one."""


def indent_of(line: str) -> str:
    """The spaces and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def indented_alike(text: str, pairs: Sequence[tuple[str, str]]) -> str | None:
    """`text` with its indentation changed as that of the pairs (as written, as in the file) is; None if they
    do not agree. Blank lines stay as they are.
    """
    known = dict(pairs)
    if any(known[written] != there for written, there in pairs):
        return None
    if all(written == there for written, there in known.items()):
        return text
    lines = text.split("\n")
    wanted = {indent_of(line) for line in lines if line.strip()}
    for way in _ways(known, wanted):
        made = {indent: known[indent] if indent in known else way(indent) for indent in wanted}
        if None not in made.values():
            return "\n".join(
                (made[indent_of(line)] or "") + line.lstrip(" \t") if line.strip() else line for line in lines
            )
    return None


def _ways(known: Mapping[str, str], wanted: set[str]) -> Iterator[_Way]:
    """The ways that fit all that is known, the likeliest first."""
    written, there = "".join((*known, *wanted)), "".join(known.values())
    units_differ = ("\t" in there and " " in written) or (" " in there and "\t" in written)
    shift = _shift(known)
    if shift is not None and not units_differ:
        yield shift
    for unit, their_unit in _units(known, wanted):
        levels = {
            None if (n := _times(unit, ours)) is None or (m := _times(their_unit, theirs)) is None else m - n
            for ours, theirs in known.items()
        }
        deeper = levels.pop()
        if not levels and deeper is not None:
            yield _by_levels(unit, their_unit, deeper)
    if shift is not None and units_differ:
        yield shift


def _shift(known: Mapping[str, str]) -> _Way | None:
    """Every line begins with the same more, or the same less."""
    written, there = min(known.items(), key=lambda pair: len(pair[0]))
    more, less = there.removesuffix(written), written.removesuffix(there)
    if there.endswith(written) and all(theirs == more + ours for ours, theirs in known.items()):
        return lambda indent: more + indent
    if written.endswith(there) and all(ours == less + theirs for ours, theirs in known.items()):
        return lambda indent: indent.removeprefix(less) if indent.startswith(less) else None
    return None


def _units(known: Mapping[str, str], wanted: set[str]) -> Iterator[tuple[str, str]]:
    """Possible levels as written and in the file: first as if no line lay deeper or less deep than written."""
    tab_written, tab_there = any("\t" in w for w in (*known, *wanted)), any("\t" in f for f in known.values())
    step = math.gcd(*(len(indent) for indent in (*known, *wanted)))
    their_step = math.gcd(*(len(indent) for indent in known.values()))
    if tab_there:
        steps = [len(w) // len(f) for w, f in known.items() if f and "\t" in f]
        yield from (("\t" if tab_written else " " * size, "\t") for size in (*steps, step) if size)
        return
    unit = "\t" if tab_written else " " * step
    if unit:
        their_steps = [len(f) * len(unit) // len(w) for w, f in known.items() if w]
        yield from ((unit, " " * size) for size in (*their_steps, their_step) if size)


def _by_levels(unit: str, their_unit: str, deeper: int) -> _Way:
    def way(indent: str) -> str | None:
        level = _times(unit, indent)
        return None if level is None or level + deeper < 0 else their_unit * (level + deeper)

    return way


def _times(unit: str, text: str) -> int | None:
    count = len(text) // len(unit)
    return count if unit * count == text else None
