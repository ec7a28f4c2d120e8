"""What crashes and second writers leave in files of JSON lines, and the records that can still be read of it.

Padding with NUL bytes, bytes of another encoding, a record behind the beginning of another one, two in one line, and
one whose text was broken into lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_TRIES = 64
"""Places of a line at which a record is looked for."""
_LONGEST_HEAD = 60
_MOST_HEADS = 16
_PADDING = "\0\ufeff \t\r\n"

_decode = json.JSONDecoder(strict=False).raw_decode


class Heads:
    """How the records of one file begin: with `{` and the name of their first field."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def learn(self, line: bytes) -> None:
        """A line that is a record."""
        head = line[: line.find(b":", 0, _LONGEST_HEAD) + 1].lstrip()
        if head and len(self._known) < _MOST_HEADS:
            self._known[head.decode("utf-8", "replace")] = None

    def after(self, text: str, place: int) -> int:
        """Where the next record may begin behind `place`; the end of the text if nothing looks like one."""
        found = (text.find(head, place + 1) for head in self._known)
        return min((at for at in found if at >= 0), default=len(text))


def records_within(line: bytes, heads: Heads) -> tuple[list[dict[str, Any]], bool]:
    """The records that stand whole in a line, and whether anything else stands in it."""
    text = line.decode("utf-8", "replace").strip(_PADDING)
    found: list[dict[str, Any]] = []
    place, left = 0, not text
    for _ in range(_TRIES):
        if place >= len(text):
            return found, left
        value, end = _record(text, place)
        if value is not None and (end == len(text) or text[end] == "{"):
            found.append(value)
            place = end
        else:
            place, left = heads.after(text, place), True
    return found, True


def _record(text: str, place: int) -> tuple[dict[str, Any] | None, int]:
    try:
        value, end = _decode(text, place)
    except (ValueError, RecursionError):
        return None, place
    while end < len(text) and text[end] in _PADDING:
        end += 1
    return (value, end) if isinstance(value, dict) else (None, place)


def joined_lines(lines: Iterable[bytes]) -> tuple[dict[str, Any] | None, int]:
    """The record that was broken into the first of these lines by raw ends of lines in a text, and how many they are;
    None if there is none.
    """
    text = ""
    for number, line in enumerate(lines, start=1):
        piece = line.decode("utf-8", "replace").rstrip("\r\n")
        if number > 1 and piece.startswith('{"'):
            break
        text = f"{text}\n{piece}" if number > 1 else piece
        value, end = _record(text, 0) if piece.endswith("}") else (None, 0)
        if value is not None and end == len(text):
            return value, number
    return None, 0
