"""Replacing one piece of a text by another, and what to say when the piece is not there or is there too
often.

Pure: text in, text or `EditError` out. The match is exact; only line ends are matched across styles, because
a model is never shown the `\\r` of a CRLF file.
"""

from __future__ import annotations

import difflib
import re
import time
from dataclasses import dataclass

_SHOWN_LINES = 20
_COMPARED_LINES = 5_000
_COMPARED_CHARACTERS = 120
"""Comparing takes cubic time in the worst case."""
_SHOWN_CHARACTERS = 400
_SECONDS = 0.5
"""Time that is spent on looking for similar lines."""
_LISTED_MATCHES = 10
_NUMBERED = re.compile(r"^ *\d+(?:\t|→)", re.MULTILINE)


class EditError(ValueError):
    """The edit cannot be made as asked; the message says why and what would help."""


@dataclass(frozen=True)
class Edit:
    """A made edit: the new text and the lines (from 1) at which the replaced pieces began."""

    text: str
    lines: tuple[int, ...]


def apply_edit(text: str, old: str, new: str, *, replace_all: bool = False) -> Edit:
    """Replace `old` by `new` in `text`: the only occurrence, or all of them. Raises `EditError`."""
    if not old:
        raise EditError(
            "'old' is empty, so there is nothing to look for. Use write_file to create or replace a file."
        )
    if old == new:
        raise EditError("'old' and 'new' are the same, so nothing would change.")
    old, new = _fit_line_ends(text, old, new)
    starts = _occurrences(text, old)
    if not starts:
        raise EditError(_not_found(text, old))
    lines = _line_numbers(text, starts)
    if len(starts) > 1 and not replace_all:
        listed = ", ".join(map(str, lines[:_LISTED_MATCHES]))
        more = f" and {len(lines) - _LISTED_MATCHES} more" if len(lines) > _LISTED_MATCHES else ""
        raise EditError(
            f"'old' matches {len(starts)} times, at lines {listed}{more}. Nothing was changed. "
            "Add lines around it until it is unique, or set replace_all to true to change every one."
        )
    return Edit(text.replace(old, new), tuple(lines))


def _fit_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """`old` and `new` with the line ends of the text where that is what makes them fit."""
    if "\r\n" in text and "\r" not in old:
        crlf = old.replace("\n", "\r\n")
        exact = old in text
        if not exact and crlf in text:
            return crlf, _to_crlf(new)
        mostly = text.count("\r\n") * 2 > text.count("\n")
        if exact and "\n" not in old and mostly:
            return old, _to_crlf(new)
    elif "\r\n" in old and old not in text and old.replace("\r\n", "\n") in text:
        return old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    return old, new


def _to_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _occurrences(text: str, piece: str) -> list[int]:
    starts, at = [], text.find(piece)
    while at >= 0:
        starts.append(at)
        at = text.find(piece, at + len(piece))
    return starts


def _line_numbers(text: str, starts: list[int]) -> list[int]:
    numbers, line, position = [], 1, 0
    for start in starts:
        line += text.count("\n", position, start)
        position = start
        numbers.append(line)
    return numbers


def _not_found(text: str, old: str) -> str:
    head = "'old' was not found in the file. Nothing was changed. "
    if _NUMBERED.search(old) and _NUMBERED.sub("", old) in text.replace("\r\n", "\n"):
        return (
            head + "It holds the line numbers that read_file shows: leave them out, with the tab after them."
        )
    lines = text.replace("\r\n", "\n").split("\n")
    wanted = old.replace("\r\n", "\n").strip("\n").split("\n")
    if not text.strip():
        return head + "The file is empty."
    same = _same_but_for_space(lines, wanted)
    if same is not None:
        return (
            f"{head}What begins at line {same + 1} differs from it only in white space; it is exactly:\n"
            f"{_numbered(lines, same, len(wanted))}"
        )
    near = _closest(lines, wanted)
    if near is None:
        return head + "No line of the file is like it. Read the file again before editing."
    return (
        f"{head}The closest lines are:\n{_numbered(lines, near, len(wanted))}\n"
        "Copy the text exactly as it stands there, without the line numbers."
    )


def _same_but_for_space(lines: list[str], wanted: list[str]) -> int | None:
    squeezed = ["".join(line.split()) for line in wanted]
    if not any(squeezed):
        return None
    file = ["".join(line.split()) for line in lines]
    for start in range(len(file) - len(squeezed) + 1):
        if file[start] == squeezed[0] and file[start : start + len(squeezed)] == squeezed:
            return start
    return None


def _closest(lines: list[str], wanted: list[str]) -> int | None:
    """First line of the piece of the file that is most like `wanted`, found by its most telling line."""
    anchor = max(range(len(wanted)), key=lambda i: len(wanted[i].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[anchor].strip()[:_COMPARED_CHARACTERS])
    best, found = 0.5, None
    deadline = time.monotonic() + _SECONDS
    for number, line in enumerate(lines[:_COMPARED_LINES]):
        if time.monotonic() > deadline:
            break
        line = line.strip()[:_COMPARED_CHARACTERS]
        if not line:
            continue
        matcher.set_seq1(line)
        if (
            matcher.real_quick_ratio() > best
            and matcher.quick_ratio() > best
            and (ratio := matcher.ratio()) > best
        ):
            best, found = ratio, number
    return None if found is None else max(0, found - anchor)


def _numbered(lines: list[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, _SHOWN_LINES)]
    text = "\n".join(f"{start + i + 1:>6}\t{line[:_SHOWN_CHARACTERS]}" for i, line in enumerate(shown))
    return text + ("\n       ..." if count > _SHOWN_LINES else "")
