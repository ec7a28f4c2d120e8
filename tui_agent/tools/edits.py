"""Replacing pieces of a text by others, and what to say when a piece is not there or is there too often.

Pure: text in, text or `EditError` out. An exact match goes first, with line ends matched across styles,
because a model is never shown the `\\r` of a CRLF file. If there is none, whole lines that differ in nothing
but their indentation and trailing space are taken, if they are there once; the replacement is indented to fit
(`indentation`).
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tui_agent.tools.indentation import indent_of, indented_alike

_SHOWN_LINES = 20
_COMPARED_LINES = 5_000
_COMPARED_CHARACTERS = 120
"""Comparing takes cubic time in the worst case."""
_SHOWN_CHARACTERS = 400
_ALIKE_CHARACTERS = 5_000_000
"""Of a file in which white space may differ: many edits of a huge one would take long."""
_SECONDS = 0.5
"""Time that is spent on looking for similar lines."""
_LISTED_MATCHES = 10
_SPACE = " \t\r\f\v"
_NUMBERED = re.compile(r"^ *\d+(?:\t|→)", re.MULTILINE)


class EditError(ValueError):
    """The edit cannot be made as asked; the message says why and what would help."""


@dataclass(frozen=True)
class Replacement:
    """The text to look for, and the text that replaces its only occurrence, or every one."""

    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True)
class Edit:
    """A made edit: the new text, the lines (from 1) at which the replaced pieces began, and how a piece was
    found that was not there exactly ("": it was).
    """

    text: str
    lines: tuple[int, ...]
    notice: str = ""


def apply_edits(text: str, replacements: Sequence[Replacement]) -> Edit:
    """All replacements, each on what the ones before it made. Raises `EditError`, which names the one."""
    lines: list[int] = []
    notices: dict[str, None] = {}
    for number, replacement in enumerate(replacements, start=1):
        try:
            edit = apply_edit(text, replacement.old, replacement.new, replace_all=replacement.replace_all)
        except EditError as error:
            if len(replacements) == 1:
                raise
            done = " (after the edits before it)" if number > 1 else ""
            raise EditError(f"edit {number} of {len(replacements)}{done}: {error}") from None
        lines += edit.lines
        notices |= {edit.notice: None} if edit.notice else {}
        text = edit.text
    return Edit(text, tuple(lines), " ".join(notices))


def apply_edit(text: str, old: str, new: str, *, replace_all: bool = False) -> Edit:
    """Replace `old` by `new` in `text`: the only occurrence, or all of them. Raises `EditError`."""
    if not old:
        raise EditError(
            "'old' is empty, so there is nothing to look for. Use write_file to create or replace a file."
        )
    if old == new:
        raise EditError("'old' and 'new' are the same, so nothing would change.")
    fitted, replacement = _fit_line_ends(text, old, new)
    starts = _occurrences(text, fitted)
    if not starts:
        return _without_regard_to_space(text, old, new, replace_all=replace_all)
    lines = _line_numbers(text, starts)
    if len(starts) > 1 and not replace_all:
        raise EditError(
            f"'old' matches {len(starts)} times, at lines {_listed(lines)}. Nothing was changed. "
            "Add lines around it until it is unique, or set replace_all to true to change every one."
        )
    return Edit(text.replace(fitted, replacement), tuple(lines))


def _without_regard_to_space(text: str, old: str, new: str, *, replace_all: bool) -> Edit:
    """The edit on whole lines that are `old` but for indentation, trailing space and line ends."""
    wanted = old.replace("\r\n", "\n").split("\n")
    whole = len(wanted) > 1 and not wanted[-1]
    if whole:
        wanted.pop()
    lines = text.split("\n")
    found = _alike(lines, wanted)
    if not found:
        raise EditError(_not_found(text, old))
    if len(found) > 1 and not replace_all:
        raise EditError(
            f"'old' was not found exactly, and but for white space it matches {len(found)} times, at lines "
            f"{_listed([start + 1 for start in found])}. Nothing was changed. Copy it exactly, with more lines "
            "around it, or set replace_all to true to change every one."
        )
    made, end, reindented = list[str](), 0, False
    for start in found:
        there = lines[start : start + len(wanted)]
        pairs = [
            (indent_of(ours), indent_of(theirs))
            for ours, theirs in zip(wanted, there, strict=True)
            if ours.strip(_SPACE)
        ]
        fresh = indented_alike(new.replace("\r\n", "\n"), pairs)
        if fresh is None:
            raise EditError(_not_found(text, old))
        reindented = reindented or any(ours != theirs for ours, theirs in pairs)
        last = start + len(wanted) == len(lines)
        # The end of the last line is replaced with it if `old` has it, and if there is one.
        after = "" if whole or last else "\r\n" if there[-1].endswith("\r") else "\n"
        fresh = fresh.removesuffix("\n") if whole and last else fresh
        ended = there[: len(there) - last]
        crlf = sum(line.endswith("\r") for line in ended) * 2 > len(ended) if ended else _mostly_crlf(text)
        fresh = _to_crlf(fresh) if crlf else fresh
        made += ["".join(line + "\n" for line in lines[end:start]), fresh + after]
        end = start + len(wanted)
    rest = "\n".join(lines[end:])
    differed = "its indentation, and 'new' was indented to fit" if reindented else "white space at line ends"
    notice = f"'old' was not there exactly: it differed in {differed}."
    return Edit("".join(made) + rest, tuple(start + 1 for start in found), notice)


def _alike(lines: list[str], wanted: list[str]) -> list[int]:
    """Indexes (from 0) at which the lines are the wanted ones but for space around them; no two places
    overlap.
    """
    if not any(line.strip(_SPACE) for line in wanted) or sum(map(len, lines)) > _ALIKE_CHARACTERS:
        return []
    file = "".join(f"\n{line.strip(_SPACE)}" for line in lines) + "\n"
    piece = "".join(f"\n{line.strip(_SPACE)}" for line in wanted) + "\n"
    starts, at = [], file.find(piece)
    while at >= 0:
        starts.append(at)
        at = file.find(piece, at + len(piece) - 1)
    return [number - 1 for number in _line_numbers(file, starts)]


def _listed(lines: Sequence[int]) -> str:
    more = f" and {len(lines) - _LISTED_MATCHES} more" if len(lines) > _LISTED_MATCHES else ""
    return ", ".join(map(str, lines[:_LISTED_MATCHES])) + more


def _fit_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """`old` and `new` with the line ends of the text, if that makes them fit."""
    if "\r\n" in text and "\r" not in old:
        crlf = old.replace("\n", "\r\n")
        exact = old in text
        if not exact and crlf in text:
            return crlf, _to_crlf(new)
        if exact and "\n" not in old and _mostly_crlf(text):
            return old, _to_crlf(new)
    elif "\r\n" in old and old not in text and old.replace("\r\n", "\n") in text:
        return old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    return old, new


def with_line_ends_of(text: str, content: str) -> str:
    """`content` with CRLF if most lines of `text` end so and none of its own does."""
    return _to_crlf(content) if _mostly_crlf(text) and "\r\n" not in content else content


def _mostly_crlf(text: str) -> bool:
    return text.count("\r\n") * 2 > text.count("\n")


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
    found = _alike(["".join(line.split()) for line in lines], squeezed)
    return found[0] if found else None


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
