"""Textual's terminal driver with our reading of the input, and without what it does when a terminal goes away.

Textual's writer thread ends at the first write that fails, and the next write then waits without end; its reader ends
the program at a byte that is no UTF-8 (issue 6456 there), and turns round at the end of the input (6690). Here a
terminal that is gone drops what is written, and its end is SIGHUP, so that the session is closed in good order.

Textual reads the terminal's new size inside the signal's handler, which the next signal interrupts: the newer size is
then sent before the older one, which stays. Here the loop reads it, one signal after the other.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import selectors
import signal
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, cast

from textual import events
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size

from tui_agent.console.terminal.input import InputParser
from tui_agent.frontend.ascii_glyphs import AsciiGlyphs

LOOK = 0.1
"""Seconds between two looks at what time decides: an ESC without more, the driver's end."""

NARROWEST, LOWEST = 16, 3
"""Columns and lines that are drawn at least: widgets cannot wrap to nothing. A smaller terminal cuts them off."""


class TerminalFile:
    """A terminal's file that drops what is written once the terminal is gone; `glyphs`: in these characters alone."""

    def __init__(self, file: IO[str], glyphs: AsciiGlyphs | None = None) -> None:
        self._file = file
        self._glyphs = glyphs

    def write(self, text: str) -> int:
        """Write; a terminal that is gone gets nothing."""
        with suppress(OSError):
            self._file.write(text if self._glyphs is None else self._glyphs.text(text))
        return len(text)

    def flush(self) -> None:
        """Flush; nothing happens if the terminal is gone."""
        with suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def terminal_driver(driver_class: type[Driver], glyphs: AsciiGlyphs | None = None) -> type[Driver]:
    """The driver for this program; one that has no terminal of its own (tests, a browser) stays as it is.

    `glyphs`: what is written goes through this table.
    """
    if driver_class is not LinuxDriver:
        return driver_class
    return type("TerminalDriver", (TerminalDriver,), {"glyphs": glyphs})


def has_shell() -> bool:
    """A shell that controls jobs started this program, in a process group of its own, and can continue it."""
    return os.getpgrp() != os.getsid(0)


class TerminalDriver(LinuxDriver):
    """Textual's driver of a terminal on Linux and macOS, changed as the module says."""

    glyphs: AsciiGlyphs | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._file = cast(Any, TerminalFile(cast(IO[str], self._file), self.glyphs))
        self._lent = False

    def _sigtstp_application(self, *_: object) -> None:
        """Stop, with a program that started this one and for which the shell waits (issue 6298 of Textual's)."""
        if not has_shell():
            return
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        # What the terminal is lent to has had the signal itself.
        os.kill(0 if self._auto_restart else os.getpid(), signal.SIGSTOP)

    def suspend_application_mode(self) -> None:
        super().suspend_application_mode()
        self._lent = True

    def resume_application_mode(self) -> None:
        self._lent = False
        if not self._auto_restart and self.attrs_before is not None:
            # A program that was killed leaves modes of its own; a shell gives its jobs theirs back.
            with suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
        super().resume_application_mode()

    def write(self, data: str) -> None:
        """Write; nothing while another program has the terminal."""
        if not self._lent:
            super().write(data)

    def _get_terminal_size(self) -> tuple[int, int]:
        try:
            # Not from COLUMNS and LINES, which know nothing of a resize.
            columns, lines = os.get_terminal_size(self.fileno)
        except OSError:
            columns = lines = 0
        if not columns or not lines:
            columns, lines = super()._get_terminal_size()
        return max(columns, NARROWEST), max(lines, LOWEST)

    def start_application_mode(self) -> None:
        """Take the terminal; the loop hears of its sizes."""
        start: Callable[[], None] = super().start_application_mode
        start()
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, self._resized)

    def _resized(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self.process_message(events.Resize(size, size))

    def run_input_thread(self) -> None:
        """Read until the driver stops, or the terminal is gone."""
        parser = InputParser()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(LOOK):
                    data = _read(self.fileno)
                    if not data:
                        os.kill(os.getpid(), signal.SIGHUP)
                        return
                    for message in parser.feed(decoder.decode(data)):
                        self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1 << 16)
    except OSError:
        return b""
