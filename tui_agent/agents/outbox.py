"""Notices that wait to be sent, on the disk: those of a process that was killed are sent by the next one.

Each process has a file of its own, under a lock that ends with it, and takes over files that nobody locks any more. A
notice is written before it is sent: after a kill it may come twice, and is never lost.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.store.private import make_private, private

_LARGEST = 1 << 22
"""Bytes of a file that is taken over."""


@dataclass(frozen=True)
class Notice:
    """What a person is told. `answers`: label and body of each button."""

    title: str
    text: str
    answers: tuple[tuple[str, str], ...] = ()
    link: str = ""
    """The address at which it is answered."""


@dataclass
class Outbox:
    """The notices of this process. All raise `OSError` if the disk takes nothing."""

    folder: Path
    _path: Path | None = None
    _descriptor: int = -1
    _open: dict[int, set[str]] = field(default_factory=dict)
    """By the number of each notice, the ways that it has still to go."""

    def keep(self, notice: Notice, ways: Iterable[str]) -> int:
        """Write a notice down: its number."""
        number = len(self._open)
        self._open[number] = set(ways)
        line = {
            "notice": number,
            "title": notice.title,
            "text": notice.text,
            "ways": sorted(self._open[number]),
        }
        self._write(line)
        return number

    def gone(self, number: int, way: str) -> None:
        """Note that a notice went this way."""
        self._open[number].discard(way)
        self._write({"gone": number, "way": way})

    def left_behind(self) -> Iterator[tuple[Notice, list[str]]]:
        """The notices of processes that are gone, each with the ways it has to go; their files are removed after."""
        with suppress(OSError):
            for path in sorted(self.folder.glob("*.jsonl")):
                if path != self._path:
                    yield from _taken_over(path)

    def close(self) -> None:
        """Remove the file, unless something in it has still to be sent."""
        if self._path is not None:
            if not any(self._open.values()):
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._path = None

    def _write(self, line: dict[str, Any]) -> None:
        while self._path is None:
            self._begin()
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")

    def _begin(self) -> None:
        """Make the file. One that another process took over before the lock held it is left to that process."""
        make_private(self.folder)
        path = self.folder / f"{time.time_ns()}-{os.getpid()}.jsonl"
        self._descriptor = private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        if os.fstat(self._descriptor).st_nlink:
            self._path = path
        else:
            os.close(self._descriptor)


def _taken_over(path: Path) -> Iterator[tuple[Notice, list[str]]]:
    """Notices that stand open in a file that nobody locks."""
    with suppress(OSError), path.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield from _still_open(untrusted_files.content(path, _LARGEST).splitlines())
        path.unlink()


def _still_open(lines: Iterable[bytes]) -> list[tuple[Notice, list[str]]]:
    found: dict[int, tuple[Notice, list[str]]] = {}
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):  # torn, or not ours
            said = json.loads(line)
            if "gone" in said:
                found[said["gone"]][1].remove(said["way"])
            else:
                found[said["notice"]] = (Notice(str(said["title"]), str(said["text"])), list(said["ways"]))
    return [each for each in found.values() if each[1]]
