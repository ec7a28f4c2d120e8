"""Faults of sessions as people see them: what happened, why, what to do next.

Every error that leaves `store/` is one of these, so that front doors print it as it is, without a traceback.
"""

from __future__ import annotations

import errno
from pathlib import Path


class SessionError(Exception):
    """A session could not be kept, read or changed. `str()` joins the three parts."""

    def __init__(self, what: str, why: str, todo: str) -> None:
        super().__init__(f"{what}: {why}. {todo}")
        self.what = what
        self.why = why
        self.todo = todo


class JournalError(SessionError):
    """The journal: missing, damaged, newer, not writable. `line` counts from 1; 0: no line is meant."""

    def __init__(self, what: str, why: str, todo: str, line: int = 0) -> None:
        super().__init__(what, why, todo)
        self.line = line


class SessionBusyError(SessionError):
    """Another process writes this session. `pid` is None if it is not known."""

    def __init__(self, what: str, why: str, todo: str, pid: int | None = None) -> None:
        super().__init__(what, why, todo)
        self.pid = pid


class CheckpointError(SessionError):
    """The workspace could not be saved or restored."""


_NOT_ALLOWED = (
    "permission is denied",
    "Make the folder yours, or choose another with AGENT_TUI_STATE_DIR",
)
_REASONS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: (
        "the disk is full",
        "Free some space; what is not written yet is kept in memory until then",
    ),
    errno.EDQUOT: ("the disk quota is used up", "Free some space; what is not written yet is kept in memory"),
    errno.EFBIG: (
        "the file reached the largest size allowed",
        "Raise the limit (`ulimit -f`) or start a new session",
    ),
    errno.EROFS: ("the file system is read-only", "Choose another state folder with AGENT_TUI_STATE_DIR"),
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.ESTALE: (
        "it was deleted while the session was open",
        "Nothing of this session can be saved any more; start a new one",
    ),
    errno.ENOENT: ("it does not exist", "See `agent-tui sessions` for those that do"),
    errno.EISDIR: ("it is a folder", "Name a session, or a file of events"),
    errno.EIO: ("the disk reports a fault", "Check the disk; copy the session folder elsewhere first"),
}


def disk_error(what: str, path: Path, fault: OSError) -> JournalError:
    """A fault of the operating system in three parts."""
    why, todo = _REASONS.get(
        fault.errno or 0, (fault.strerror or str(fault), "Check the folder and the disk, then try again")
    )
    return JournalError(what, f"{why} ({path})", f"{todo}.")
