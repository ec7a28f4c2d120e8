"""Files of the workspace that git does not have, of those that a command takes away.

What this session made itself does not count, nor what a tool makes again (caches). Nothing is run but git, to read its
index; none of a checkout's programs runs by it. Bounded.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tui_agent import processes
from tui_agent.permissions.taken_away import Aim, What, aims
from tui_agent.quantities import counted
from tui_agent.untrusted_files import content

_MOST = 5_000
"""Files that are looked at for one command."""
_LARGEST = 16_000_000
"""Bytes of a file that is compared with what git has."""
_PATIENCE = 5.0
_SHOWN = 5
MADE_AGAIN = frozenset({
    "node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache",
})  # fmt: skip
"""Folders that tools make again by themselves."""
_TAG = "CACHEDIR.TAG"


@dataclass(frozen=True)
class Loss:
    """Files that would be lost: paths relative to the workspace, the bytes of all, and a mark if that is all
    of it.
    """

    paths: tuple[str, ...]
    bytes: int
    whole: bool = True

    def __str__(self) -> str:
        shown = ", ".join(self.paths[:_SHOWN])
        more = f" and {len(self.paths) - _SHOWN:,} more" if len(self.paths) > _SHOWN else ""
        least = "" if self.whole else "at least "
        files = counted(len(self.paths), "file")
        return f"{least}{files} that git does not have would be lost ({_size(self.bytes)}): {shown}{more}"


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number:,} bytes"


def loss_of(command: str, root: Path, since: float) -> Loss | None:
    """Find what a command would lose of the files that nothing has touched since then (seconds since 1970). Blocks."""
    git = _Git(root)
    found: dict[str, int] = {}
    whole = True
    for aim in dict.fromkeys(aims(command, root)):
        for path, status in _files(aim, Path(os.path.realpath(root))):
            if len(found) >= _MOST:
                whole = False
                break
            if status.st_ctime < since and path not in found and git.would_lose(path, aim.what, status):
                found[path] = status.st_size
    return Loss(tuple(found), sum(found.values()), whole) if found else None


def _files(aim: Aim, root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """List files at and below a place, as far as it is in the workspace, but for what is made again and git's own."""
    place = Path(os.path.realpath(aim.path.parent)) / aim.path.name
    if root.is_relative_to(place):
        place = root
    if not place.is_relative_to(root):
        return
    queue, seen = [place], 0
    for one in queue:  # grows
        try:
            status = one.lstat()
            if not stat.S_ISDIR(status.st_mode):
                named = not aim.names or any(fnmatch(one.name, name) for name in aim.names)
                if named and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                    yield one.relative_to(root).as_posix(), status
                continue
            if one.name in MADE_AGAIN or one.name == ".git" or os.path.lexists(one / _TAG):
                continue
            inside = sorted(one.iterdir())
        except OSError:
            continue
        seen += len(inside)
        if seen > 4 * _MOST:
            return
        queue += inside


class _Git:
    """A workspace's paths in git's index, and paths that git ignores."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._index: dict[str, str] | None = None
        self._ignored: frozenset[str] | None = None

    def would_lose(self, path: str, what: What, status: os.stat_result) -> bool:
        """Tell if a file of this path is of the kind, and nothing of git's holds it as it is."""
        known = self.index.get(path)
        if what == "unsaved":
            return known is not None and not self._is(known, path, status)
        if known is not None:
            return what == "any" and not self._is(known, path, status)
        if what == "untracked":
            return path not in self.ignored
        if what == "ignored":
            return path in self.ignored
        return True

    def _is(self, blob: str, path: str, status: os.stat_result) -> bool:
        if status.st_size > _LARGEST:
            return False
        full = self._root / path
        try:
            data = os.fsencode(full.readlink()) if stat.S_ISLNK(status.st_mode) else content(full, _LARGEST)
        except OSError:
            return True
        make = hashlib.sha256 if len(blob) == 64 else hashlib.sha1
        bare = data.replace(b"\r\n", b"\n")  # as it is kept under core.autocrlf
        return any(make(b"blob %d\0" % len(one) + one).hexdigest() == blob for one in (data, bare))

    @property
    def index(self) -> dict[str, str]:
        """Blobs by their paths, relative to the workspace."""
        if self._index is None:
            rows = self._run("ls-files", "--stage", "-z").split(b"\0")
            fields = (row.partition(b"\t") for row in rows if row)
            self._index = {os.fsdecode(path): info.split()[1].decode() for info, _, path in fields}
        return self._index

    @property
    def ignored(self) -> frozenset[str]:
        """Files that git ignores."""
        if self._ignored is None:
            rows = self._run("ls-files", "--others", "--ignored", "--exclude-standard", "-z").split(b"\0")
            self._ignored = frozenset(map(os.fsdecode, filter(None, rows)))
        return self._ignored

    def _run(self, *words: str) -> bytes:
        git = processes.own_program("git", self._root)
        if git is None:
            return b""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        safe = (
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.untrackedCache=false",
        )
        try:
            done = subprocess.run(
                [git, *safe, *words],
                cwd=self._root,
                env={**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return b""
        return done.stdout if done.returncode == 0 else b""
