"""A program in a terminal of its own (a pty), for the benchmarks: keys in, screen bytes out, times taken.

Answers the few questions that Textual asks a terminal, so that nothing waits for an answer that never comes.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self


class Terminal:
    """Runs `command` in a pty of the given size. Times are `time.perf_counter` seconds."""

    def __init__(
        self, command: list[str], size: tuple[int, int] = (120, 40), env: dict[str, str] | None = None
    ) -> None:
        self.started = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            inherited = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program's modules are compiled
            os.execvpe(command[0], command, {**inherited, **(env or {})})
        self.resize(*size)
        self.seen = bytearray()
        self.code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, timeout: float) -> bytes:
        """What comes within `timeout`; empty where nothing does, or the program has ended."""
        ready, _, _ = select.select([self._fd], [], [], max(0.0, timeout))
        if not ready:
            return b""
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:
            data = b""
        self.seen += data
        return data

    def wait_for(self, marker: bytes, timeout: float = 20.0, start: int = 0) -> float:
        """The time at which `marker` stood in the output after byte `start`. Raises `TimeoutError`."""
        end = time.perf_counter() + timeout
        while marker not in self.seen[start:]:
            left = end - time.perf_counter()
            if left <= 0 or (not self.read(min(left, 0.5)) and self.poll() is not None):
                raise TimeoutError(f"{marker!r} did not come; the last bytes: {bytes(self.seen[-400:])!r}")
        return time.perf_counter()

    def wait_until(self, holds: Callable[[], bool], timeout: float = 20.0) -> None:
        """Read on until something holds. Raises `TimeoutError`."""
        end = time.perf_counter() + timeout
        while not holds():
            if time.perf_counter() > end:
                raise TimeoutError("what was waited for did not come")
            self.drain(0.02)

    def send(self, keys: bytes) -> float:
        """Press keys; the time at which they went out."""
        now = time.perf_counter()
        os.write(self._fd, keys)
        return now

    def drain(self, seconds: float) -> None:
        """Read for a while."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def rss(self) -> int:
        """Resident memory in bytes of the program itself (not its children); 0 where it cannot be known."""
        try:
            with Path(f"/proc/{self.pid}/statm").open(encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0

    def cpu(self) -> float:
        """Seconds of processor time that the program's threads have used (not its children's)."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(file.read_text(encoding="ascii").split()[0]) for file in threads) / 1e9

    def poll(self) -> int | None:
        """The exit code, once there is one."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def close(self) -> int | None:
        """End the program and the terminal."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.poll() is not None:
                break
            os.kill(self.pid, number)
            end = time.perf_counter() + 5
            while self.poll() is None and time.perf_counter() < end:
                self.read(0.05)
        os.close(self._fd)
        return self.code
