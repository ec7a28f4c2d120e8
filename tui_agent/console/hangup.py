"""A terminal that goes away (a closed window, a lost connection) must not hold the program.

Textual's writer thread ends at the first write that fails, and whoever writes next waits for it for ever. Behind a
`TerminalFile` writing to a terminal that is gone is no fault, so SIGHUP can close the session in good order.
"""

from __future__ import annotations

from contextlib import suppress
from typing import IO, Any

from textual.driver import Driver


class TerminalFile:
    """A terminal's file whose writes are lost, not refused, once the terminal is gone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write, if there is still somebody to read."""
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Bring out what was written, if it can be."""
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
