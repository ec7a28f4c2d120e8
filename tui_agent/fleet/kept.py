"""A fleet's memory between two starts: the session of each task, and how it ended."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.store.errors import SessionBusyError
from tui_agent.store.lock import SessionLock
from tui_agent.store.private import make_private, private

if TYPE_CHECKING:
    from tui_agent.fleet.tasks import FleetTask


@dataclass(frozen=True)
class TaskRecord:
    """A task with its session and result. `result` is None while its run has not ended."""

    session: str = ""
    result: dict[str, Any] | None = None


class FleetRecord:
    """A file that only grows, a line for each session and each result. A torn last line is what a kill leaves."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError`; `SessionError` if another fleet uses the file."""
        self.path = path
        try:
            self._lock = SessionLock.acquire(path.parent)
        except SessionBusyError as busy:
            todo = "Wait until it has ended, or name another folder with --out."
            raise SessionBusyError(
                "Another fleet carries these tasks out", f"it keeps its runs in {path.parent}", todo, busy.pid
            ) from busy
        self._known: dict[tuple[str, str], TaskRecord] = {}
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        for line in whole.splitlines():
            said = json.loads(line)
            self._known[said["id"], said["digest"]] = TaskRecord(said["session"], said["result"])
        self._file = private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.truncate(self._file, len(whole))

    def of(self, task: FleetTask) -> TaskRecord:
        """The record of this very task."""
        return self._known.get((task.id, task.digest), TaskRecord())

    def put(self, task: FleetTask, known: TaskRecord) -> None:
        """Remember it. Nothing waits for the disk: what a power cut takes is in the session's journal."""
        self._known[task.id, task.digest] = known
        said = {"id": task.id, "digest": task.digest, "session": known.session, "result": known.result}
        os.write(self._file, json.dumps(said).encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        os.close(self._file)
        self._lock.release()


def kept_for(tasks: Path, out: Path | None) -> Path:
    """The file for a file of tasks: in `out`, or in a folder beside the tasks."""
    folder = out or tasks.with_name(f"{tasks.stem}.fleet")
    make_private(folder)
    return folder / "runs.jsonl"
