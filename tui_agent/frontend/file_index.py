"""The names of a workspace's files, for completion: read once in the background, searched in a few milliseconds.

What `.gitignore` leaves out is left out here. All names stand in one text, a line each, which is searched by regular
expressions that begin with a letter and never go back: quick also for a hundred thousand files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

FOUND = 30
"""Names that are offered."""

LOOKED_AT = 300
"""Matches that are compared with each other."""

STALE = 20.0
"""Seconds after which the names are read anew, when they are next wanted."""


class FileIndex:
    """The files of one workspace."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names = ""
        """Each name behind a line feed and a slash."""
        self._folded = ""
        """The same in small letters, each at its place."""
        self._read_at = float("-inf")

    @property
    def stale(self) -> bool:
        """The names should be read anew."""
        return time.monotonic() - self._read_at > STALE

    def read(self) -> None:
        """Read the names. Takes as long as walking the workspace does: not for the screen's thread."""
        from tui_agent.tools.walk import walk

        paths = (entry.path for entry in walk(self._root) if not entry.is_dir)
        names = [f"\n/{path}" for path in paths if "\n" not in path]
        self._folded = "".join(low if len(low := name.lower()) == len(name) else name for name in names)
        self._names = "".join(names)
        self._read_at = time.monotonic()

    def search(self, typed: str) -> list[str]:
        """The names that fit best, the best first: those whose last part begins so, hold it, hold its letters."""
        if not typed:
            return [line[1:] for line in self._names.split("\n", FOUND + 1)[1 : FOUND + 1]]
        typed = typed.lower()
        letters = [re.escape(letter) for letter in typed if not letter.isspace()]
        if not letters:
            return []
        found: dict[str, None] = {}
        for pattern in _patterns(re.escape(typed), letters):
            for match in re.finditer(pattern, self._folded):
                found[self._line(match.end())] = None
                if len(found) >= LOOKED_AT:
                    break
            if len(found) >= FOUND:
                break
        scattered = re.compile(".*?".join(letters))
        return sorted(found, key=lambda name: _rank(name, typed, scattered))[:FOUND]

    def _line(self, place: int) -> str:
        """The name around this place of the text."""
        end = self._names.find("\n", place)
        return self._names[self._names.rfind("\n", 0, place) + 2 : end if end >= 0 else None]


def _patterns(typed: str, letters: list[str]) -> Iterator[str]:
    """Kinds of matches, the better before the worse."""
    yield rf"/{typed}(?=[^\n/]*+(?:\n|$))"
    yield rf"{typed}(?=[^\n/]*+(?:\n|$))"
    yield typed
    yield r"\n" + "".join(rf"[^\n{letter}]*+{letter}" for letter in letters)


def _rank(name: str, typed: str, scattered: re.Pattern[str]) -> tuple[int, int, int, str]:
    """Behind the names that hold what was typed, those that hold its letters: the closer together, the better."""
    lower = name.lower()
    last = lower.rpartition("/")[2]
    if last.startswith(typed):
        place = 0
    elif typed in last:
        place = 1
    elif typed in lower:
        place = 2
    else:
        within = scattered.search(last)
        spread = within or scattered.search(lower)
        return 3 if within else 4, len(spread.group()) if spread else 0, len(name), name
    return place, 0, len(name), name
