"""The names of a workspace's files, for completion: read once in the background, searched in a few milliseconds.

What `.gitignore` leaves out is left out here. All names stand in one text, a line each, which is searched by one
regular expression: quick also for a hundred thousand files.
"""

from __future__ import annotations

import re
import time
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
        self._read_at = float("-inf")

    @property
    def stale(self) -> bool:
        """The names should be read anew."""
        return time.monotonic() - self._read_at > STALE

    def read(self) -> None:
        """Read the names. Takes as long as walking the workspace does: not for the screen's thread."""
        from tui_agent.tools.walk import walk

        names = (entry.path for entry in walk(self._root) if not entry.is_dir)
        self._names = "\n".join(name for name in names if "\n" not in name)
        self._read_at = time.monotonic()

    def search(self, typed: str) -> list[str]:
        """The names that fit best, the best first: those whose last part begins so, hold it, hold its letters."""
        if not typed:
            return self._names.split("\n", FOUND)[:FOUND] if self._names else []
        letters = [re.escape(letter) for letter in typed if not letter.isspace()]
        if not letters:
            return []
        anything = "[^\n]*?"
        pattern = re.compile(f"^[^\n]*?{anything.join(letters)}[^\n]*$", re.MULTILINE | re.IGNORECASE)
        found: dict[str, None] = {}
        exact = re.compile(f"^[^\n]*{re.escape(typed)}[^\n]*$", re.MULTILINE | re.IGNORECASE)
        for wanted in (exact, pattern):
            for match in wanted.finditer(self._names):
                found[match.group()] = None
                if len(found) >= LOOKED_AT:
                    break
        return sorted(found, key=lambda name: _rank(name, typed.lower()))[:FOUND]


def _rank(name: str, typed: str) -> tuple[int, int, str]:
    lower = name.lower()
    last = lower.rpartition("/")[2]
    if last.startswith(typed):
        place = 0
    elif typed in last:
        place = 1
    elif typed in lower:
        place = 2
    else:
        place = 3
    return place, len(name), name
