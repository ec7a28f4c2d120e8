"""Traces of a crash of the console: three lines on the screen, the traceback in a file."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

from platformdirs import user_state_path

from tui_agent.store.private import make_private, private
from tui_agent.store.redaction import Redactor
from tui_agent.terminal_text import sanitize


def crash_text(error: BaseException | None) -> str:
    """Words after a crash: the event, the place of the details, the next step."""
    mask = Redactor.from_environment(os.environ).text
    details = mask("".join(traceback.format_exception(error))) if error is not None else "no traceback\n"
    said = (
        mask(f"{type(error).__name__}: {error}".partition("\n")[0])
        if error is not None
        else "an unknown fault"
    )
    where = _crash_log(details)
    return (
        f"agent-tui stopped by a fault of its own: {sanitize(said)}.\n"
        "The session is saved up to here; agent-tui resume goes on with it.\n"
        f"The details are in {where}; please report them."
    )


def _crash_log(details: str) -> Path | str:
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}.log"
    folders = [
        Path(os.environ.get("AGENT_TUI_STATE_DIR") or user_state_path("agent-tui", appauthor=False)),
        Path(tempfile.gettempdir()),
    ]
    for folder in folders:
        with suppress(OSError):
            make_private(folder)
            with open(folder / name, "x", encoding="utf-8", errors="replace", opener=private) as file:
                file.write(details)
            return folder / name
    return "no file (none could be written)"
