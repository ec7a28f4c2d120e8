"""The program as a process in a terminal of its own (a pty): keys in, the bytes and the picture of the screen out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120.0
"""Seconds that only a program that hangs needs."""

_KEY_PROTOCOL = re.compile(rb"\x1b\[[<>=?][0-9;]*[up$]p?")


class Terminal:
    """Python with these arguments, in a terminal of `size` (columns, lines)."""

    def __init__(self, arguments: list[str], env: dict[str, str], size: tuple[int, int] = (100, 30)) -> None:
        columns, lines = size
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execvpe(
                sys.executable, [sys.executable, *arguments], {**os.environ, "TERM": "xterm-256color", **env}
            )
        self.output = b""
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._fed = 0
        self._picture = ""
        self._code: int | None = None

    @property
    def picture(self) -> str:
        """The text of the screen, a line a row."""
        data, self._fed = self.output[self._fed :], len(self.output)
        if data:
            # pyte prints the end of what it does not know: the key protocol's own sequences.
            self._stream.feed(_KEY_PROTOCOL.sub(b"", data))
            self._picture = "\n".join(self._screen.display)
        return self._picture

    def shows(self, *texts: str) -> None:
        """Wait until the screen shows all of them."""
        self.until(lambda: all(text in self.picture for text in texts))

    def until(self, holds: Callable[[], object], limit: float = LIMIT) -> None:
        """Read until something holds."""
        end = time.monotonic() + limit
        while not holds():
            assert time.monotonic() < end, f"{self.picture}\n{self.output[-500:]!r}"
            if not self._read(0.1) and self._ended():
                assert holds(), f"it ended:\n{self.picture}\n{self.output[-2_000:]!r}"
                return

    def send(self, keys: bytes | str) -> None:
        """Press keys; the program may take its time to read them."""
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            _, ready, _ = select.select([], [self._fd], [], 0.05)
            if ready:
                data = data[os.write(self._fd, data[:1024]) :]
            self._read(0.0)

    def resize(self, columns: int, lines: int, *, drawn_for: tuple[int, int] | None = None) -> None:
        """Give the terminal another size; `drawn_for`: the one that it will have once something is drawn."""
        self.picture  # noqa: B018 - what came so far was for the old size
        width, height = drawn_for or (columns, lines)
        self._screen.resize(height, width)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as the kernel has them."""
        return tuple(os.get_terminal_size(self._fd))

    def hang_up(self) -> None:
        """The terminal is gone: nobody reads any more."""
        os.close(self._fd)
        self._fd = -1

    def code(self) -> int:
        """The exit code, once it has ended."""
        self.until(self._ended)
        while self._read(0.05):
            pass
        assert self._code is not None
        return self._code

    def close(self) -> None:
        """End the program, whatever it does."""
        if not self._ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self._fd >= 0:
            os.close(self._fd)

    def _read(self, timeout: float) -> bytes:
        if self._fd < 0:
            select.select([], [], [], timeout)
            return b""
        if not select.select([self._fd], [], [], timeout)[0]:
            return b""
        try:
            data = os.read(self._fd, 65_536)
        except OSError:
            return b""
        self.output += data
        return data

    def _ended(self) -> bool:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None
