"""The content of the places of `run_later` before commands began, written down while any of them runs.

Should this program be killed, the record stays; the next start in the workspace compares, and takes back what the
commands left. It is kept outside of all that commands may read. A lock tells the record of a living program.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.sandbox.links_refused import FileState

_LARGEST = 16_000_000
"""Bytes of all files that can be put back."""
GRACE = 15.0
"""Seconds after the last sign of life in which a command may still have written: its end, and the longest look."""


@dataclass(frozen=True)
class Left:
    """The record that a killed program has left: the earlier content, and the time until which its commands
    may have written.
    """

    held: Mapping[Path, FileState]
    until: int
    """Nanoseconds since 1970."""


@dataclass
class WorkspaceRecord:
    """The record of one program in one workspace. All but `left` expect to be called by one thread at a time."""

    folder: Path
    """That of all records of the workspace; made when there is one."""
    _name: str = field(default_factory=lambda: secrets.token_hex(8))
    _lock: int | None = None

    @classmethod
    def of(cls, state_dir: Path, workspace: Path) -> WorkspaceRecord:
        """For a workspace, in the state folder."""
        name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]
        return cls(state_dir / "sandbox" / name)

    @property
    def _open(self) -> Path:
        return self.folder / f"{self._name}.json"

    @property
    def _resting(self) -> Path:
        return self.folder / f"{self._name}.rest"

    def begin(self, held: Mapping[Path, FileState], *, changed: bool) -> None:
        """Commands run from now on; `changed`: since it was written last."""
        with suppress(OSError):  # without a record commands run all the same
            if self._lock is None:
                self.folder.parent.mkdir(mode=0o700, exist_ok=True)
                self.folder.mkdir(mode=0o700, exist_ok=True)
                self._lock = os.open(
                    self.folder / f"{self._name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
                )
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                changed = True
            if changed:
                self._write(held)
            elif self._resting.exists():
                self._resting.replace(self._open)
                self.lives()

    def _write(self, held: Mapping[Path, FileState]) -> None:
        rows, room = [], _LARGEST
        for path, form in held.items():
            room -= len(form.content)
            whole = form.whole and room >= 0
            content = base64.b64encode(form.content if whole else b"").decode()
            rows.append([os.fsencode(path).hex(), form.kind, content, form.mode, whole])
        new = self.folder / f"{self._name}.new"
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(rows, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._open)

    def lives(self) -> None:
        """A sign of life: what is written from now on may still be a command's."""
        with suppress(OSError):
            os.utime(self._open)

    def rest(self) -> None:
        """No command runs any more."""
        with suppress(OSError):
            self._open.replace(self._resting)

    def close(self) -> None:
        """The session has ended."""
        if self._lock is not None:
            self._forget(self._name)
            os.close(self._lock)
            self._lock = None

    def _forget(self, name: str) -> None:
        for kind in ("json", "rest", "new", "lock"):
            with suppress(OSError):
                (self.folder / f"{name}.{kind}").unlink()

    def left(self) -> Iterator[Left]:
        """Records of programs that were killed while a command ran, the oldest first; each is forgotten when
        the next is asked for.
        """
        for lock in sorted(self.folder.glob("*.lock"), key=_changed):
            with suppress(OSError):
                descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    record = lock.with_suffix(".json")
                    with suppress(FileNotFoundError, ValueError, TypeError):
                        until = record.stat().st_mtime_ns + int(GRACE * 1e9)
                        yield Left(_read(record), until)
                    self._forget(lock.stem)
                finally:
                    os.close(descriptor)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(record: Path) -> dict[Path, FileState]:
    """Raises `OSError`, and `ValueError` or `TypeError` if it is damaged."""
    return {
        Path(os.fsdecode(bytes.fromhex(path))): FileState(kind, base64.b64decode(content), mode, whole)
        for path, kind, content, mode, whole in json.loads(record.read_text("utf-8"))
    }
