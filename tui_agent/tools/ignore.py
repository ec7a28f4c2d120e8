"""`.gitignore` files: which paths the rules of a directory and of those above it leave out.

The rules are git's, applied as a walk from the top meets the paths: a path is judged by itself, since what
is in an ignored directory is never met. Only the files of the workspace count, whether or not it is a git
repository.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path

from tui_agent.globs import GlobError, translate

_LARGEST = 1_000_000
_MOST_RULES = 3_000
"""Rules of one file that count: making the expressions of a hostile file's million bytes takes 20 s."""
_LONGEST_LINE = 4_096
"""Characters of a line, as of the longest path that it could mean."""


@dataclass(frozen=True)
class IgnoreRules:
    """The rules of one `.gitignore`: runs of lines that all ignore or all keep, each run one expression."""

    runs: tuple[tuple[re.Pattern[str], bool], ...]

    @classmethod
    @lru_cache(maxsize=256)
    def parse(cls, text: str) -> IgnoreRules:
        """Rules from the text of a file; lines that are no pattern are left out, as git does."""
        lines = _as_bytes(text.removeprefix("\ufeff")).split("\n")
        found = (rule for line in lines if len(line) <= _LONGEST_LINE and (rule := _rule(line)) is not None)
        rules = list(islice(found, _MOST_RULES))
        runs = []
        for ignores, run in groupby(rules, key=lambda rule: rule[1]):
            runs.append((re.compile("|".join(source for source, _ in run), re.DOTALL | re.ASCII), ignores))
        return cls(tuple(runs))

    @classmethod
    def load(cls, directory: Path) -> IgnoreRules | None:
        """The rules of `directory`'s `.gitignore`; None if there is none that can be read."""
        try:
            # A named pipe would hold its reader without end, a link lead out of the workspace.
            descriptor = os.open(
                directory / ".gitignore", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            )
            with os.fdopen(descriptor, "rb") as stream:
                data = stream.read(_LARGEST) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        except OSError:
            return None
        rules = cls.parse(os.fsdecode(data))
        return rules if rules.runs else None

    def judge(self, path: str, *, directory: bool) -> bool | None:
        """True if `path` (relative to the file's directory) is ignored; None if no line matches it."""
        subject = _as_bytes(f"{path}/" if directory else path)
        for pattern, ignores in reversed(self.runs):
            if pattern.fullmatch(subject):
                return ignores
        return None


@dataclass(frozen=True)
class IgnoreChain:
    """The rules in force in one directory: its own and those of the directories above, nearest first."""

    rules: tuple[tuple[str, IgnoreRules], ...] = ()
    """(path of the directory with a trailing "/", or "" at the top; its rules)"""

    def entering(self, path: str, directory: Path) -> IgnoreChain:
        """The chain inside `directory`, which is `path` (as above) from the top."""
        rules = IgnoreRules.load(directory)
        return self if rules is None else IgnoreChain(((path, rules), *self.rules))

    def ignores(self, path: str, *, directory: bool) -> bool:
        """True if `path` (from the top) is left out. git's own folder always is."""
        if path == ".git" or path.endswith("/.git"):
            return True
        for prefix, rules in self.rules:
            verdict = rules.judge(path[len(prefix) :], directory=directory)
            if verdict is not None:
                return verdict
        return False


def _as_bytes(text: str) -> str:
    """A character for each byte: git's wildcards stand for bytes, so that `?` is not `é`."""
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


def _rule(line: str) -> tuple[str, bool] | None:
    """One line as (expression on a path with "/" after directories, whether it ignores)."""
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    stripped = line.rstrip(" \t")
    if stripped.endswith("\\") and len(stripped) < len(line):
        stripped += line[len(stripped)]
    line = stripped
    ignores = not line.startswith("!")
    line = line.removeprefix("!")
    only_directories = line.endswith("/")
    line = line.removesuffix("/")
    anchored = "/" in line
    line = line.removeprefix("/")
    if not line:
        return None
    try:
        source = translate(line)
    except GlobError:
        return None
    prefix = "" if anchored else "(?:.*/)?"
    return f"{prefix}{source}{'/' if only_directories else '/?'}", ignores
