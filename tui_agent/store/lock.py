"""One writer for each session: a lock that the operating system frees when its process ends in any way.

The file beside the journal only carries the lock and, for the message, who holds it; it is never removed,
since removing it would let two processes lock two files of one name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from pathlib import Path

from tui_agent.store.errors import SessionBusyError, disk_error

LOCK_NAME = "lock"


class SessionLock:
    """Held from `acquire` to `release`, or to the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, folder: Path) -> SessionLock:
        """Lock the session in `folder`, or raise `SessionBusyError` (held) or `JournalError` (no way to
        lock)."""
        path = folder / LOCK_NAME
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise disk_error("The session cannot be opened for writing", path, fault) from fault
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = b""
            with contextlib.suppress(OSError):
                holder = os.pread(descriptor, 200, 0)
            os.close(descriptor)
            raise _busy(folder, holder.decode("utf-8", "replace").split()) from None
        except OSError as fault:
            os.close(descriptor)
            raise disk_error("The session cannot be locked", path, fault) from fault
        # Who holds it is for the message only; a full disk must not matter.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        return cls(descriptor)

    @staticmethod
    def held(folder: Path) -> bool:
        """True if some process writes the session in `folder` now."""
        try:
            descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False

    def release(self) -> None:
        """Let the next writer in. May be called twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _busy(folder: Path, holder: list[str]) -> SessionBusyError:
    pid = int(holder[0]) if holder and holder[0].isdigit() else None
    who = "another process" if pid is None else f"process {pid}"
    if len(holder) > 1 and holder[1] != socket.gethostname():
        who += f" on {holder[1]}"
    return SessionBusyError(
        f"Session {folder.name} is in use",
        f"{who} is writing to it",
        "Close it there, or fork the session to work on a copy.",
        pid,
    )
