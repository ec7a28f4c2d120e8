"""Finding a text: the words of an entry, and their places in drawn lines, also in those that were wrapped."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tui_agent.core.projections.entries import AnyEntry, OpenReply

UNSAID = frozenset({"kind", "call_id", "key", "rule", "output_file", "fresh", "model", "severity", "source"})
"""Texts of an entry that its block does not show."""

LONGEST = 200
"""Characters of a text that is looked for."""

_BREAK = r"(?:\n\s*)?"
"""Between two characters, at the break of a long word."""


class LinePart(NamedTuple):
    """Characters of one line."""

    line: int
    start: int
    end: int


class Match(NamedTuple):
    """The place of one of the words: a part, or one on each line that it goes over."""

    word: str
    parts: tuple[LinePart, ...]


def said(entry: AnyEntry | OpenReply) -> str:
    """The text of a block, as it came."""
    texts = []
    if entry.kind == "call":
        texts.append(" ".join([entry.tool, *map(str, entry.input.values())]))
    elif entry.kind == "fault":
        texts.append(entry.fault.message)
    named = (getattr(entry, field.name) for field in fields(entry) if field.name not in UNSAID | {"tool"})
    return "\n".join([*texts, *(value for value in named if type(value) is str and value)])


def pattern_of(words: Iterable[str]) -> re.Pattern[str] | None:
    """An expression that finds any of the words, small letters or not; None if there are none."""
    longest_first = sorted({word.strip()[:LONGEST] for word in words} - {""}, key=len, reverse=True)
    alternatives = (_BREAK.join(map(_character, " ".join(word.split()))) for word in longest_first)
    return re.compile("|".join(alternatives), re.IGNORECASE) if longest_first else None


def _character(character: str) -> str:
    return r"\s+" if character == " " else re.escape(character)


def matches(lines: Iterable[tuple[int, str]], pattern: re.Pattern[str]) -> list[Match]:
    """All places, top down. Each line comes with the characters of its margin, which are no part of the text."""
    begins, rows, margins = [0], [], []
    for margin, text in lines:
        rows.append(text[margin:].rstrip())
        margins.append(margin)
        begins.append(begins[-1] + len(rows[-1]) + 1)
    return [
        Match(found[0].lower(), tuple(_parts(found, begins, rows, margins)))
        for found in pattern.finditer("\n".join(rows))
        if found[0].strip()
    ]


def _parts(
    found: re.Match[str], begins: Sequence[int], rows: Sequence[str], margins: Sequence[int]
) -> Iterable[LinePart]:
    line = bisect_right(begins, found.start()) - 1
    while line < len(rows) and begins[line] < found.end():
        indent = len(rows[line]) - len(rows[line].lstrip())
        start = max(found.start() - begins[line], indent)
        end = min(found.end() - begins[line], len(rows[line]))
        if start < end:
            yield LinePart(line, margins[line] + start, margins[line] + end)
        line += 1


def best(found: Sequence[Match]) -> int:
    """The first match on the line that has the most of the words."""
    on_line: dict[int, set[str]] = {}
    for match in found:
        on_line.setdefault(match.parts[0].line, set()).add(match.word)
    counts = [len(on_line[match.parts[0].line]) for match in found]
    return counts.index(max(counts)) if counts else 0
