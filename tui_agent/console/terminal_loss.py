"""A terminal that goes away (a closed window, a lost connection) must not hold the program.

Textual's writer thread ends at the first write that fails, and the next write then waits without end. A `TerminalFile`
drops what is written to a terminal that is gone, so that SIGHUP can close the session in good order.
"""

from __future__ import annotations

from contextlib import suppress
from typing import IO, Any

from textual.driver import Driver


class TerminalFile:
    """A terminal's file that drops what is written once the terminal is gone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write; a terminal that is gone gets nothing."""
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush; nothing happens where the terminal is gone."""
        with suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def surviving(driver_class: type[Driver]) -> type[Driver]:
    """The driver over a `TerminalFile`; a driver that writes to no file stays as it is."""

    class SurvivingDriver(driver_class):  # type: ignore[valid-type, misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            file = getattr(self, "_file", None)
            if file is not None:
                self._file = TerminalFile(file)

    return SurvivingDriver
