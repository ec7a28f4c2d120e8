"""Nights: supervised tasks and what became of them, on the disk line by line, so that one that was cut off goes on.

A night is a folder below the state folder, with a folder for each task: the task itself, and its record. What a record
comes to is folded here; running the tasks is not.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from tui_agent import untrusted_files
from tui_agent.disk import replace_whole
from tui_agent.store.private import make_private, private

_NIGHTS = "nights"
_TASK, _RECORD, _LOCK, _AGREED = "task.json", "record.jsonl", "lock", "agreed"
_LIMIT = "limit-"
OUTPUT = "output.log"
"""What a task's agent wrote."""
_END = 20_000
"""Bytes of the output, from its end, in which its last line stands."""
What = Literal[
    "begun", "session", "waits", "held", "stalled", "lost", "doubted", "resumed", "checked", "ended"
]


class Entry(BaseModel, frozen=True):
    """One thing that happened to a task. `at` in seconds since 1970."""

    at: float
    what: What
    text: str = ""
    code: int | None = None
    """The exit code of the end; 0 for a check that passed."""
    session: str = ""
    path: str = ""
    """The file of the session."""
    until: float | None = None
    """The end of a wait."""
    spent: float | None = None
    tokens: int | None = None
    calls: int = 0
    failed: int = 0


class Task(BaseModel, frozen=True):
    """A task as it was given, and where it is done."""

    name: str
    agent: str
    command: tuple[str, ...]
    workspace: str
    check: str = ""
    repository: str = ""
    """The repository of its worktree; empty: it works in the workspace itself."""
    branch: str = ""
    base: str = ""
    """The commit from which its branch began."""


@dataclass(frozen=True)
class TaskFolder:
    """A task on the disk."""

    path: Path

    def keep(self, task: Task) -> None:
        make_private(self.path)
        replace_whole(self.path / _TASK, task.model_dump_json())

    @property
    def task(self) -> Task | None:
        """The task; None if it was not kept, or not by us."""
        with suppress(OSError, ValidationError):
            return Task.model_validate_json((self.path / _TASK).read_bytes())
        return None

    @property
    def agreed(self) -> bool:
        """Somebody has agreed, this night, that limits of use are waited for."""
        return (self.path.parent / _AGREED).exists()

    def agree(self) -> None:
        """Keep that for all tasks of the night. Raises `OSError`."""
        (self.path.parent / _AGREED).touch(mode=0o600)

    def limited(self, agent: str, until: float) -> None:
        """Keep, for all tasks of the night, that the limit of an agent is reached until then. Raises `OSError`."""
        replace_whole(self.path.parent / f"{_LIMIT}{_plain(agent)}", str(until))

    def add(self, what: What, **fields: Any) -> None:
        """Write an entry to the disk. A line that a kill left torn stays a line of its own."""
        entry = Entry(at=time.time(), what=what, **fields)
        with open(self.path / _RECORD, "ab+", opener=private) as file:
            torn = file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n"
            file.write(b"\n" * bool(torn) + entry.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, without a line that is torn."""
        found = []
        with suppress(OSError):
            for line in (self.path / _RECORD).read_bytes().splitlines():
                with suppress(ValidationError):
                    found.append(Entry.model_validate_json(line))
        return tuple(found)

    @property
    def ended(self) -> Entry | None:
        """The end of the task; None if it is open."""
        return next((entry for entry in reversed(self.entries) if entry.what == "ended"), None)

    @property
    def begun(self) -> bool:
        """It was begun, perhaps by a process that is gone."""
        return any(entry.what == "begun" for entry in self.entries)

    @property
    def resumes(self) -> int:
        """Resumes so far."""
        return sum(entry.what == "resumed" for entry in self.entries)

    @property
    def session(self) -> str:
        """The agent's newest session; empty if none is known."""
        return next((one.session for one in reversed(self.entries) if one.session), "")

    @property
    def session_file(self) -> str:
        """The file of the agent's newest session; empty if none is known."""
        return next((one.path for one in reversed(self.entries) if one.path), "")

    @property
    def said(self) -> str:
        """The last line of the agent's output, without ours; empty if it is not kept, or there is none."""
        with suppress(OSError):
            lines = untrusted_files.tail(self.path / OUTPUT, _END).decode("utf-8", "replace").splitlines()
            return next(
                (one for one in reversed(lines) if one.strip() and not one.startswith("agent-tui:")), ""
            )
        return ""


@dataclass(frozen=True)
class Night:
    """The tasks of one start."""

    path: Path

    @property
    def tasks(self) -> tuple[TaskFolder, ...]:
        """Its tasks in their order."""
        with suppress(OSError):
            return tuple(TaskFolder(one) for one in sorted(self.path.iterdir()) if (one / _TASK).is_file())
        return ()

    def limited_until(self, agent: str) -> float:
        """The moment until which the limit of an agent is reached, in seconds since 1970; 0 if it is not known."""
        with suppress(OSError, ValueError):
            return float((self.path / f"{_LIMIT}{_plain(agent)}").read_bytes())
        return 0.0

    def folder(self, number: int, name: str) -> TaskFolder:
        return TaskFolder(self.path / f"{number:03d}-{_plain(name)}")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other process from going on with this night. Raises `BlockingIOError` if one does."""
        make_private(self.path)
        with open(self.path / _LOCK, "ab", opener=private) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield


def nights(state_dir: Path) -> list[Night]:
    """The nights that are kept, the newest first."""
    with suppress(OSError):
        return [Night(one) for one in sorted((state_dir / _NIGHTS).iterdir(), reverse=True) if one.is_dir()]
    return []


def new_night(state_dir: Path, name: str) -> Night:
    """A night that begins now."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Night(state_dir / _NIGHTS / f"{stamp}-{_plain(name)}-{os.getpid()}")


def night_of(state_dir: Path, source: Path) -> Night | None:
    """The newest night of a file of tasks that is still open: a task was not begun, or was cut off."""
    for night in nights(state_dir):
        with suppress(OSError, ValueError):
            if json.loads((night.path / "source.json").read_bytes()) == str(source):
                open_tasks = any(folder.ended is None for folder in night.tasks)
                return night if open_tasks else None
    return None


def keep_source(night: Night, source: Path) -> None:
    """Write down from which file of tasks a night is, after all of its tasks are kept."""
    replace_whole(night.path / "source.json", json.dumps(str(source)))


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:40] or "task"
