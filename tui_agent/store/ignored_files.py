"""Small files that git ignores, saved beside a checkpoint: a local database, a file of settings, notes.

They have an index of their own in the store of the checkpoints, so that no later look at the workspace takes a change
of theirs for one of the run. What tools make again by themselves is left out.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tui_agent.permissions.losses import MADE_AGAIN
from tui_agent.store.file_changes import FileChange
from tui_agent.store.shadow_git import ShadowGit

_INDEX = "ignored.index"
_TAG = "CACHEDIR.TAG"
_REFS = "refs/sessions"
_LOOKED_AT = 4
"""So many times the files that are saved are looked at, in folders that are ignored as a whole."""

Signature = tuple[tuple[str, int, int, int], ...]


class IgnoredFiles:
    """Those of one workspace. Methods expect that the store is locked, and raise `CheckpointError`."""

    def __init__(
        self,
        git: ShadowGit,
        session: str,
        files: int,
        total: int,
        one_file: int,
        left_out: Callable[[Path, os.stat_result], str],
    ) -> None:
        """`files`, `total` and `one_file` (bytes) are limits; `left_out` says why a file may not be saved at all."""
        self._git = git
        self._session = session
        self._files, self._total, self._one_file = files, total, one_file
        self._left_out = left_out
        self._newest: tuple[Signature, str] = ((), "")
        self._known: dict[str, str] = {}
        """Of checkpoints, those that go with them."""

    async def saved(self) -> str:
        """Save them as they are now. Gives a commit, or "" if there are none."""
        options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
        rows = (await self._git.run("ls-files", *options)).split(b"\0")
        wanted = await asyncio.to_thread(self._small, [os.fsdecode(row) for row in rows if row])
        signature = tuple(wanted)
        if signature == self._newest[0]:
            return self._newest[1]
        commit = ""
        if wanted:
            index = self._git.store / _INDEX
            listed = b"".join(os.fsencode(path) + b"\0" for path, *_ in wanted)
            known = await self._git.run("ls-files", "-z", index=index)
            here = set(listed.split(b"\0"))
            gone = b"".join(path + b"\0" for path in known.split(b"\0") if path and path not in here)
            if gone:
                await self._git.run(
                    "update-index", "--force-remove", "-z", "--stdin", stdin=gone, index=index
                )
            update = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            await self._git.run(*update, stdin=listed, sandboxed=True, index=index)
            tree = (await self._git.run("write-tree", index=index)).decode().strip()
            commit = (await self._git.run("commit-tree", "-m", "ignored", tree)).decode().strip()
        self._newest = (signature, commit)
        return commit

    async def belongs(self, commit: str, checkpoint: str) -> None:
        """Say that these go with a checkpoint."""
        if commit and self._known.get(checkpoint) != commit:
            await self._git.run("update-ref", self._ref(checkpoint), commit)
            self._known[checkpoint] = commit

    def _ref(self, checkpoint: str) -> str:
        return f"{_REFS}/{self._session}/ignored-{checkpoint}"

    async def of(self, checkpoint: str) -> str | None:
        """The commit that goes with a checkpoint, of whatever session."""
        if checkpoint in self._known:
            return self._known[checkpoint]
        pattern = f"{_REFS}/*/ignored-{checkpoint}"
        out = await self._git.run("for-each-ref", "--format=%(objectname)", pattern)
        return out.decode().partition("\n")[0].strip() or None

    async def changes(self, checkpoint: str) -> list[FileChange]:
        """Those of them that are gone or changed now."""
        commit = await self.of(checkpoint)
        if commit is None:
            return []
        rows = (await self._git.run("ls-tree", "-r", "-z", commit)).split(b"\0")
        fields = [row.partition(b"\t") for row in rows if row]
        there = [(os.fsdecode(path), info.split()[2]) for info, _, path in fields]
        lost, regular = await asyncio.to_thread(self._missing, there)
        listed = "".join(f"{path}\n" for path, _ in regular if "\n" not in path)
        blobs = (
            await self._git.run("hash-object", "--no-filters", "--stdin-paths", stdin=os.fsencode(listed))
        ).split()
        now = dict(zip(listed.splitlines(), blobs, strict=False))
        changed = [path for path, blob in regular if now.get(path, blob) != blob]
        return [
            *(FileChange("create", path) for path in lost),
            *(FileChange("change", path) for path in changed),
        ]

    def _missing(self, there: Sequence[tuple[str, bytes]]) -> tuple[list[str], list[tuple[str, bytes]]]:
        """Those that are gone, and those in whose place a regular file is."""
        lost, regular = [], []
        for path, blob in there:
            try:
                if stat.S_ISREG((self._git.workspace / path).lstat().st_mode):
                    regular.append((path, blob))
            except OSError:
                lost.append(path)
        return lost, regular

    async def restore(self, commit: str | None, changes: Sequence[FileChange]) -> None:
        """Bring these files back, of a commit. No file is deleted, and a folder in the way stays."""
        if commit is None or not changes:
            return
        index = self._git.store / f"{_INDEX}.restored"
        index.unlink(missing_ok=True)
        try:
            await self._git.run("read-tree", commit, index=index)
            listed = b"".join(os.fsencode(change.path) + b"\0" for change in changes)
            await self._git.run(
                "checkout-index", "--force", "-z", "--stdin", stdin=listed, sandboxed=True, index=index
            )
        finally:
            index.unlink(missing_ok=True)

    def _small(self, rows: Sequence[str]) -> list[tuple[str, int, int, int]]:
        """The files among them, and in the folders among them, that can be saved: path, size, time, inode."""
        found: list[tuple[str, int, int, int]] = []
        room = self._total
        for path, status in self._walk(rows):
            if status.st_size > self._one_file or status.st_size > room or len(found) >= self._files:
                continue
            if not self._left_out(self._git.workspace / path, status):
                room -= status.st_size
                found.append((path, status.st_size, status.st_mtime_ns, status.st_ino))
        return sorted(found)

    def _walk(self, rows: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
        """Files first that are ignored by themselves, then what is in ignored folders, the uppermost first."""
        looked = 0
        queue = sorted(rows, key=lambda row: (row.endswith("/"), row.count("/")))
        for row in queue:  # grows
            place = self._git.workspace / row
            try:
                status = place.lstat()
                if not stat.S_ISDIR(status.st_mode):
                    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                        yield row, status
                    continue
                if (
                    place.name in MADE_AGAIN
                    or os.path.lexists(place / _TAG)
                    or os.path.lexists(place / ".git")
                ):
                    continue
                names = sorted(os.listdir(place))  # noqa: PTH208 - names are wanted
            except OSError:
                continue
            looked += len(names)
            if looked > _LOOKED_AT * self._files:
                return
            queue += [f"{row.rstrip('/')}/{name}" for name in names]
