"""Open a screen: what every command that shows one shares. Nothing here needs the parser of options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tui_agent.cli.errors import UsageError

if TYPE_CHECKING:
    from tui_agent.frontend.arguments import ConsoleArguments


def config_path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def open_console(arguments: ConsoleArguments) -> int:
    """Show the console until it is left; its exit code. Refuses if there is no terminal to show it on."""
    if arguments.replay is None and not arguments.watch and _in_lines(arguments):
        from tui_agent.plain.program import run_plain

        return run_plain(arguments)
    from tui_agent.frontend.arguments import in_browser

    if not in_browser():
        require_terminal()
    from tui_agent.console.app import run_console

    return run_console(arguments)


def require_terminal() -> None:
    """Raises `UsageError` unless both standard input and output are a terminal that can be drawn on."""
    missing = [
        name for name, stream in (("input", sys.stdin), ("output", sys.stdout)) if not _is_terminal(stream)
    ]
    if missing:
        raise UsageError(
            f"the console needs a terminal; standard {' and '.join(missing)} {'are' if missing[1:] else 'is'} none "
            "(a pipe? a file?).\n"
            "Start it in a terminal, or in lines, which need none: agent-tui --plain\n"
            'Without a person: agent-tui run "TASK". To print a saved session: agent-tui replay --print'
        )
    if os.environ.get("TERM") == "dumb":
        raise UsageError(
            "the console cannot draw on this terminal: TERM is `dumb`.\n"
            "Set TERM to what it is (as xterm-256color), or print the session: agent-tui replay --print"
        )


def _in_lines(arguments: ConsoleArguments) -> bool:
    """True if the console is wanted in lines, or if the terminal takes nothing else, which is then said.

    Found without the whole configuration: nothing is imported before the first paint that it does not need.
    """
    from tui_agent.frontend.arguments import wanted_early

    if wanted_early("plain", arguments) in {True, "true", "1", "yes", "on"}:
        return True
    dumb = os.environ.get("TERM") == "dumb" and _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
    if dumb:
        sys.stderr.write(
            "agent-tui: TERM is `dumb`, which cannot be drawn on: lines instead, as with --plain.\n"
        )
    return dumb


def _is_terminal(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
