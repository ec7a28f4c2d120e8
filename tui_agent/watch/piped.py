"""A session that another program prints into our standard input, as a file that grows (`claude -p … | agent-tui
watch -`).

What is watched is read again and again, which a pipe does not allow.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

_PIECE = 1 << 16


class Piped:
    """The file, which is gone when the program ends."""

    def __init__(self, descriptor: int) -> None:
        """`descriptor`: where the session comes from; it is closed at its end."""
        folder = tempfile.mkdtemp(prefix="agent-tui-watch-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.path = Path(folder, "session.jsonl")
        self._over = threading.Event()
        self._file = self.path.open("wb", buffering=0)
        threading.Thread(target=self._copy, args=(descriptor,), daemon=True).start()

    @property
    def over(self) -> bool:
        """The other program has ended, and all that it printed is in the file."""
        return self._over.is_set()

    def _copy(self, descriptor: int) -> None:
        with suppress(OSError), self._file, os.fdopen(descriptor, "rb", buffering=0) as source:
            while piece := source.read(_PIECE):
                self._file.write(piece)
        self._over.set()


def keyboard_instead() -> int | None:
    """Give the terminal's keyboard the place of standard input, and return what was there; None without a terminal."""
    try:
        keyboard = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    piped = os.dup(0)
    os.dup2(keyboard, 0)
    os.close(keyboard)
    return piped
