"""The task of a command whose call was handed over: its memory, its handles, the files that it names. Loaded with the
gate (`gate.py`) by the supervisor; only the standard library is used.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
from contextlib import suppress

from .socket_filter import LIBC, PIDFD_GETFD

_OPENAT2 = 437
_IN_ROOT = 0x10
_THREAD = os.O_EXCL
"""The handle is on one thread, whose table of handles may be its own (Linux 6.9)."""


def checked(result: int) -> int:
    """The result of a call of the C library. Raises `OSError`."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def handed(process: int, number: int) -> int:
    """A handle of our own on what is open under `number` in a process, by its handle. Raises `OSError`."""
    return checked(LIBC.syscall(PIDFD_GETFD, process, number, 0))


class Caller:
    """A task, from `open` to `close`, by handles, which never come to mean another one. Methods raise `OSError`."""

    def __init__(self) -> None:
        self._folder = self._memory = self._process = -1
        self._opened: list[int] = []

    def open(self, task: int) -> None:
        """Take hold of the task of a number."""
        self._folder = self._open(f"/proc/{task}", os.O_PATH)
        self._memory = self._open("mem", os.O_RDWR, self._folder)
        try:
            self._process = self._kept(os.pidfd_open(task, _THREAD))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            leader = int(self.read_file("status").partition(b"\nTgid:")[2].split(None, 1)[0])
            self._process = self._kept(os.pidfd_open(leader))

    def _open(self, path: str, flags: int, dir_fd: int | None = None) -> int:
        return self._kept(os.open(path, flags | os.O_CLOEXEC, dir_fd=dir_fd))

    def _kept(self, handle: int) -> int:
        self._opened.append(handle)
        return handle

    def close(self) -> None:
        """Let go of all that was taken from it."""
        while self._opened:
            os.close(self._opened.pop())

    def handle(self, number: int) -> int:
        """A handle of our own on what it has open, until `close`."""
        return self._kept(handed(self._process, number))

    def read_file(self, name: str) -> bytes:
        """A file of the kernel about it."""
        with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder), "rb") as file:
            return file.read()

    def is_alone(self) -> bool:
        """True if nobody shares its handles: it has one thread, and other processes cannot
        (`socket_filter.py`).
        """
        return b"\nThreads:\t1\n" in self.read_file("status")

    def read(self, place: int, size: int) -> bytes:
        """The bytes of its memory at that moment."""
        try:
            found = os.pread(self._memory, size, place) if size else b""
        except (OSError, OverflowError):
            found = b""
        if len(found) < size:
            raise OSError(errno.EFAULT, "")
        return found

    def write(self, place: int, data: bytes) -> None:
        """Change its memory."""
        with suppress(OverflowError):
            if os.pwrite(self._memory, data, place) == len(data):
                return
        raise OSError(errno.EFAULT, "")

    def broken_pipe(self) -> None:
        """The kernel's signal to a sender that has no reader."""
        with suppress(OSError):
            signal.pidfd_send_signal(self._process, signal.SIGPIPE)

    def named(self, path: bytes) -> int:
        """The file that a path leads to as the task sees it: a handle that only names it, until `close`."""
        whole = os.path.join(os.fsencode(os.readlink("cwd", dir_fd=self._folder)), path)
        root = self._open("root", os.O_PATH, self._folder)
        how = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT)
        return self._kept(checked(LIBC.syscall(_OPENAT2, root, whole, how, ctypes.c_size_t(len(how)))))

    def mount_of(self, handle: int) -> tuple[int, bool]:
        """The device of the mount that a file was reached by, as the kernel numbers it, and whether it is written."""
        with open(f"/proc/self/fdinfo/{handle}", "rb") as file:
            number = file.read().partition(b"mnt_id:")[2].split(None, 1)[0]
        for line in self.read_file("mountinfo").splitlines():
            fields = line.split()
            if fields[0] == number:
                major, minor = map(int, fields[2].split(b":"))
                return major << 20 | minor, b"ro" not in fields[5].split(b",")
        raise OSError(errno.EACCES, "")
