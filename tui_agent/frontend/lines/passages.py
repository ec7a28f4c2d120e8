"""The subject of a question as passages of text, each in one role: whole, with nothing hidden."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from tui_agent.terminal_text import is_safe

_SPACES = re.compile(" {41,}")
_EMPTY_LINES = re.compile(r"\n(?:[ ]*\n){5,}")


class Passage(NamedTuple):
    """A piece of text in one role. `verbatim`: spaces kept (commands, diffs, code). `indent`: cells before each of its
    lines. `number`: of the line, before its first row. `squeezed`: rules drawn across it are cut to the room there is.
    """

    text: str
    role: str = ""
    verbatim: bool = False
    indent: int = 0
    number: str = ""
    squeezed: bool = False


GAP = Passage("")
"""An empty line between two parts of a text, given up if rows are scarce."""


def numbered(text: str, *, always: bool = False) -> Iterable[Passage]:
    """Text as it stands, its lines numbered if there are several, or `always`."""
    lines = text.split("\n")
    if len(lines) == 1 and not always:
        return [Passage(text, "code", verbatim=True)]
    return _without_gaps(
        Passage(line, "code", verbatim=True, number=str(number)) for number, line in enumerate(lines, 1)
    )


def diff_passages(text: str) -> Iterable[Passage]:
    """A preview line by line; of a unified diff, with the numbers of the new file's lines, of removed ones the old."""
    if not any(_HUNK.match(line) for line in text.split("\n", 64)[:64]):
        return _without_gaps(Passage(line, "code", verbatim=True) for line in text.split("\n"))
    return _without_gaps(_diff_lines(text))


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


_ROLES = {
    "+": "diff-add on:diff-add-background",
    "-": "diff-remove on:diff-remove-background",
}


def _diff_lines(text: str) -> Iterable[Passage]:
    """Draw a diff with the numbers of its lines, and with the file's name for its head. Further heads stay as they are:
    a changed line may look like one.
    """
    head = _HEAD.match(text)
    if head is not None:
        yield Passage(_file_named(head[1], head[2]), "bold", verbatim=True)
        text = text[head.end() :]
    yield from _numbered_diff(text, named=head is not None)


def _numbered_diff(text: str, *, named: bool) -> Iterable[Passage]:
    """Draw hunks; below a file's name the head of a hunk says no more than the numbers of its lines."""
    old = new = 0
    for place, line in enumerate(text.split("\n")):
        sign = line[:1]
        hunk = _HUNK.match(line)
        number, role = "", "muted"
        if hunk is not None:
            old, new = int(hunk[1]), int(hunk[2])
            line = f"⋯{line[hunk.end() :]}" if named else line
            if named and not place and line == "⋯":
                continue
        elif old or new:
            role = _ROLES.get(sign, "code")
            number = str(old if sign == "-" else new) if sign in {"+", "-", " "} else ""
            old, new = old + (sign in {"-", " "}), new + (sign in {"+", " "})
        yield Passage(line, role, verbatim=True, number=number)


def _file_named(old: str, new: str) -> str:
    """Name the file that a diff is about, and say if it comes, goes or moves."""
    if old == _NOWHERE:
        return f"{new.removeprefix('b/')} · a new file"
    if new == _NOWHERE:
        return f"{old.removeprefix('a/')} · is deleted"
    before, after = old.removeprefix("a/"), new.removeprefix("b/")
    return after if before == after else f"{before} → {after}"


_HEAD = re.compile(r"--- (.*)\n\+\+\+ (.*)\n(?=@@ -\d)")
"""The head of a file: its old name and its new one."""
_NOWHERE = "/dev/null"


_MOST_EMPTY = 4
"""Empty lines in a row that are shown as such."""


def _without_gaps(passages: Iterable[Passage]) -> Iterable[Passage]:
    """Empty lines that would push what follows out of sight, counted instead."""
    for empty, group in groupby(passages, key=lambda passage: not passage.text.strip("+- ")):
        lines = list(group)
        if empty and len(lines) > _MOST_EMPTY:
            yield Passage(f"⋯ {len(lines):,} empty lines ⋯", "muted")
        else:
            yield from lines


def blanks_said(text: str) -> str:
    """Blanks that would push what follows out of sight, counted instead."""
    text = _SPACES.sub(lambda run: f" ⋯ {len(run.group()):,} spaces ⋯ ", text)
    return _EMPTY_LINES.sub(lambda run: f"\n⋯ {run.group().count(chr(10)) - 1:,} empty lines ⋯\n", text)


class Choice(NamedTuple):
    """A choice: the key that takes it, its label, and its value. `lasting`: it leaves a rule behind. `short`: a label
    that says the same in less room. `rare`: it is shown if there is room.
    """

    key: str
    label: str
    value: str
    lasting: bool = False
    short: str = ""
    rare: bool = False


def is_plain(value: object) -> bool:
    """True if `value` is a text that an editor shows as it is: nothing hides in it."""
    return isinstance(value, str) and all(is_safe(part) for part in value.split("\t"))


class Row(NamedTuple):
    """A choice: its row, the text about it, and the value that the screen is dismissed with."""

    text: str
    about: str
    value: Any
