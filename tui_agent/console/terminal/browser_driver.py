"""Textual's driver for a console in a browser's tab, which ends with the server that started it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from textual.drivers.web_driver import WebDriver


class BrowserDriver(WebDriver):
    """A server that is gone drops what is written; its end is SIGHUP, so that the session is closed in good order."""

    def write(self, data: str) -> None:
        with suppress(BrokenPipeError):
            super().write(data)

    def write_meta(self, data: dict[str, object]) -> None:
        with suppress(BrokenPipeError):
            super().write_meta(data)

    def run_input_thread(self) -> None:
        """Read until the driver stops, or the server is gone."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            os.kill(os.getpid(), signal.SIGHUP)
