"""Places of code in a text: fences and inline code, as Markdown has them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[^`\n]*)$", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_ANYTHING = re.compile(r"[^\n]")


class Fence(NamedTuple):
    """A fenced block: the whole of it, what is in it, and what stands behind its opening."""

    start: int
    end: int
    inner: int
    inner_end: int
    label: str
    closed: bool


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks of a text in their order; one that is not closed goes on to the end."""
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(text):
        if opened is None:
            opened = found
        elif (
            found["fence"][0] == opened["fence"][0]
            and len(found["fence"]) >= len(opened["fence"])
            and not found["label"].strip()
        ):
            inner = min(opened.end() + 1, found.start())
            yield Fence(opened.start(), found.end(), inner, found.start(), opened["label"].strip(), True)
            opened = None
    if opened is not None:
        inner = min(opened.end() + 1, len(text))
        yield Fence(opened.start(), len(text), inner, len(text), opened["label"].strip(), False)


def without_code(text: str, *, keep_open: bool = False, keep: frozenset[str] = frozenset()) -> str:
    """Put blanks in the place of all code, so that every place stays the same.

    `keep_open`: a fence that is never closed is no code. `keep`: labels of fences that are none.
    """
    if "`" not in text and "~~~" not in text:
        return text
    parts: list[str] = []
    place = 0
    for fence in fences(text):
        if fence.label.casefold() in keep or (keep_open and not fence.closed):
            continue
        parts += [_INLINE.sub(_blank, text[place : fence.start]), _blanks(text[fence.start : fence.end])]
        place = fence.end
    parts.append(_INLINE.sub(_blank, text[place:]))
    return "".join(parts)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _blanks(text: str) -> str:
    return _ANYTHING.sub(" ", text)
