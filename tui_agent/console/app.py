"""Start of the console: from the command line's values to an exit code.

It refuses if there is no terminal, and prints its last words on the normal screen after the program was left.
Textual is imported inside, with the collector of garbage at rest: start-up makes many objects and drops
hardly any.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from tui_agent.frontend.arguments import ConsoleArguments, in_browser

if TYPE_CHECKING:
    from tui_agent.console.program import ConsoleApp

NOT_A_TERMINAL = """\
agent-tui needs a terminal: its standard input and output are not one (a pipe, a file, or a job without a screen).
Without a screen, use: agent-tui run "TASK"    (and --output json for scripts)"""


def is_terminal() -> bool:
    """True if there is a terminal to draw on and to read from."""
    streams = (sys.stdin, sys.stdout, sys.__stderr__)
    return (
        all(stream is not None and stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"
    )


def run_console(arguments: ConsoleArguments) -> int:
    """The console from start to end.

    The exit code: 0 left, 1 a fault of its own, 2 wrong usage or configuration, 130 ended by a signal.
    """
    if not is_terminal() and not in_browser():
        sys.stderr.write(NOT_A_TERMINAL + "\n")
        return 2
    gc.disable()  # until the session is open, see `garbage.begin`
    from tui_agent.console.program import ConsoleApp

    return asyncio.run(_run(ConsoleApp(arguments)))


async def _run(app: ConsoleApp) -> int:
    try:
        await app.run_async()
    finally:
        closed = await app.close_sessions()
        await app.put_away()
    if app.resume_text:
        # The terminal may be gone; what is left in a buffer would be tried again at exit.
        with suppress(OSError):
            os.write(sys.stdout.fileno(), app.in_glyphs(app.resume_text).encode("utf-8", "replace"))
    if app.exit_text:
        sys.stderr.write(app.in_glyphs(app.exit_text) + "\n")
    return (app.return_code or 0) or (0 if closed else 1)
