"""Real paths of one command's words at this moment: `~`, `..`, links and wildcards followed, within a budget.

Nothing is opened or walked: names are looked up one by one, and a wildcard lists each folder once.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tui_agent.disk import with_home
from tui_agent.permissions.budget import JudgementBudget, TooMuchToJudge

_LONGEST = 4_096
"""Bytes of a path; the kernel opens none that is longer."""
_MOST_LINKS = 40
"""Links in one path; the kernel follows no more."""
_MOST_ENTRIES = 20_000
"""Names in folders that the wildcards of one command are compared with."""
_MAGIC = re.compile(r"[*?\[]|[+@!]\(")
_OF_A_PROCESS = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|fd|map_files)(?:/|$)|/dev/fd(?:/|$)")
"""Links that lead elsewhere for the process that opens them."""


class Paths:
    """The paths of one command, below or outside of `root`, which is a real path."""

    def __init__(self, root: str, budget: JudgementBudget) -> None:
        self._root = root
        self._budget = budget
        self._links: dict[str, str | None] = {}
        self._names: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self._matches: dict[tuple[str, str], list[tuple[str, ...]]] = {}
        self._missing: set[str] = set()
        self._entries = 0

    def names(self, path: str, folder: str) -> tuple[str, ...] | None:
        """A path as rules see it, as written and as it is: relative inside the workspace, else absolute.

        None if it cannot be known: too long, too many links, or another one for each process. Raises
        `TooMuchToJudge`.
        """
        key = path, folder
        if key not in self._names:
            self._budget.step(4)
            full = self.joined(folder, path)
            written = os.path.normpath(full)
            # Of what is too long for the kernel, a tool may still open the rest behind `./` and `x/..`.
            real = self.real(full if len(full) <= _LONGEST else written)
            self._names[key] = None if real is None else self._seen(written, real)
        return self._names[key]

    def joined(self, folder: str, path: str) -> str:
        """A path from the root, nothing taken out of it."""
        return os.path.join(folder, with_home(path.replace("\0", "")))  # noqa: PTH118 - nothing is taken out

    def real(self, path: str) -> str | None:
        """The target of an absolute path, as the kernel would follow it; None if that cannot be known."""
        if len(path) > _LONGEST or _OF_A_PROCESS.match(path):
            return None
        rest, here, links = path.split("/")[::-1], "", 0
        while rest:
            part = rest.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                here = here.rpartition("/")[0]
                continue
            at = f"{here}/{part}"
            target = None if here in self._missing else self._link(at)
            if here in self._missing:
                self._missing.add(at)
            if target is None:
                here = at
                continue
            links += 1
            if links > _MOST_LINKS or _OF_A_PROCESS.match(target):
                return None
            if target.startswith("/"):
                here = ""
            rest.extend(reversed(target.split("/")))
        return here or "/"

    def _link(self, path: str) -> str | None:
        """The target in a link; None if it is no link."""
        if path not in self._links:
            self._budget.step(4)
            self._links[path] = None
            try:
                if stat.S_ISLNK(os.lstat(path).st_mode):
                    self._links[path] = os.readlink(path)  # noqa: PTH115 - a text
            except (FileNotFoundError, NotADirectoryError):
                self._missing.add(path)
            except (OSError, ValueError):
                pass
        return self._links[path]

    def _seen(self, written: str, real: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.relative(written), self.relative(real))))

    def relative(self, path: str) -> str:
        """An absolute path as rules see it."""
        if path == self._root:
            return "."
        base = self._root.rstrip("/") + "/"
        return path.removeprefix(base)

    def matching(self, pattern: str, folder: str) -> list[tuple[str, ...]]:
        """The names that a wildcard finds, and the pattern itself, which stays if nothing is found.

        A folder that is reached on several ways is listed once. Raises `TooMuchToJudge`.
        """
        key = pattern, folder
        if key not in self._matches:
            self._matches[key] = list(self._found(pattern, folder))
        return self._matches[key]

    def _found(self, pattern: str, folder: str) -> Iterator[tuple[str, ...]]:
        full = self.joined(folder, pattern)
        parts = [part for part in full.split("/") if part and part != "."]
        plain = next((place for place, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
        start = "/" + "/".join(parts[:plain])
        real = self.real(start)
        if real is None or len(pattern) > _LONGEST:
            raise TooMuchToJudge("it is not known what its wildcards stand for")
        yield self._seen(os.path.normpath(full), real)
        # Real folders, each with one way of writing it.
        folders = {real: os.path.normpath(start)}
        for place in range(plain, len(parts)):
            found: dict[str, str] = {}
            for real, written in folders.items():
                self._budget.step(4)
                for name, target in self._in_folder(parts[place], real):
                    shown = f"{written}/{name}"
                    if place == len(parts) - 1:
                        yield self._seen(shown, target)
                    else:
                        found.setdefault(target, shown)
            folders = found

    def _in_folder(self, part: str, folder: str) -> Iterator[tuple[str, str]]:
        """The names in a real folder that one part of a path stands for, each with what it really is."""
        if part == "..":
            yield part, folder.rpartition("/")[0] or "/"
        elif not _MAGIC.search(part):
            yield from self._one(folder, part)
        else:
            self._budget.step(len(part))
            matches = _part_pattern(part).match
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self._entries += 1
                        if self._entries > _MOST_ENTRIES:
                            raise TooMuchToJudge("its wildcards stand for too many files")
                        self._budget.step()
                        if not matches(entry.name):
                            continue
                        if entry.is_symlink():
                            yield from self._one(folder, entry.name)
                        else:
                            yield entry.name, f"{folder.rstrip('/')}/{entry.name}"
            except (OSError, ValueError):
                return

    def _one(self, folder: str, name: str) -> Iterator[tuple[str, str]]:
        real = self.real(f"{folder}/{name}")
        if real is None:
            raise TooMuchToJudge("it is not known what its wildcards stand for")
        if f"{folder}/{name}" not in self._missing:
            yield name, real


_LONGEST_PART = 500
"""Characters of a part whose expression is made in 7 ms at most; of one of 2,500 it takes 150."""


@lru_cache(maxsize=256)
def _part_pattern(part: str) -> re.Pattern[str]:
    """The names that one part of a wildcard stands for; more than those if bash's own patterns say less."""
    if len(part) > _LONGEST_PART or re.search(r"[+@!?*]\(|\[[\^:=.]|\[\[", part):
        return re.compile("")
    return re.compile(fnmatch.translate(part), re.DOTALL)


def is_folder(path: str) -> bool:
    """True if there is a folder at `path`."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False
