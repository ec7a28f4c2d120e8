"""Entry point: finds out which command is meant, parses its options, and runs it.

Nothing heavy is imported here: the console's first paint waits for this module. A command lives in a file of
its own and is imported when it is called.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from tui_agent.cli.errors import UsageError

if TYPE_CHECKING:
    from tui_agent.cli.options import Parser

OK = 0
INTERNAL_ERROR = 1
USAGE = 2
INTERRUPTED = 130

COMMANDS = {
    "demo": "the console on a built-in scripted model; no key, no network",
    "run": "the same engine without a screen, for scripts and CI",
    "serve": "the console in a browser on this machine",
    "acp": "our engine as an agent for editors and harnesses (Agent Client Protocol)",
    "replay": "the console over a saved session",
    "resume": "go on with a session",
    "sessions": "list, show, search, export, import, fork, rename and delete sessions",
    "analyze": "recorded runs, ours or others', judged by any policy",
    "fleet": "many runs at once, from a file of tasks: one board, one inbox",
    "playbook": "what helped against failures in earlier runs: list, show, learn, forget, edit, export",
    "bench": "recovery policies on equal faults: what each brings, and what it costs",
    "watch": "another agent's session while it runs: panes, or lines for a log",
    "hooks": "recovery for another agent (Claude Code, Codex, OpenCode, …), through its own hooks",
    "supervise": "another agent's headless command: resumed after overloads, ended when it is stuck",
    "night": "what became of supervised tasks: done, open, checks, cost, waits, and how to go on",
    "hook": "one event of another agent's hooks, and the answer to it",
    "explain": "a rule of the rule book: what it does, why, its keys, its source",
    "permissions": "what may run unasked, what asks, what never runs, and why",
    "mcp": "MCP servers: list, add, remove and trust them",
    "models": "models that can be used now: profiles, local servers, providers with keys",
    "doctor": "what is configured, reachable and missing, and what to do about it",
}
"""Every command and what it is for, in the order of `--help`."""
OF_THE_LABORATORY = frozenset({"analyze", "bench"})
"""Commands whose modules stand in `lab.commands`, found by name alone."""


class CommandModule(Protocol):
    """The interface of a command's module."""

    def parser(self) -> Parser: ...

    def main(self, arguments: Sequence[str]) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run `agent-tui`: its exit code. What goes wrong is said in words, never by a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except UsageError as error:
        return _report(str(error), USAGE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left; what is buffered is dropped, without a complaint at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return INTERRUPTED
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else OK
    except Exception as bug:  # noqa: BLE001 - people get words, not a traceback
        return _report_error(bug)
    return code


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        # The first paint does not wait for a parser that has nothing to parse.
        from tui_agent.cli.opening import open_console
        from tui_agent.frontend.arguments import ConsoleArguments

        return open_console(ConsoleArguments())
    place = _first_word(arguments)
    if place is not None and arguments[place] in COMMANDS:
        name = arguments.pop(place)
        return command_module(name).main(arguments)
    if place is not None:
        _refuse_misspelt_command(arguments[place])
    return command_module("console").main(arguments)


def command_module(name: str) -> CommandModule:
    """Import the module of a command."""
    room = "lab.commands" if name in OF_THE_LABORATORY else "cli"
    return cast("CommandModule", importlib.import_module(f"tui_agent.{room}.{name}"))


def _first_word(arguments: Sequence[str]) -> int | None:
    """Index of the first argument that is neither an option nor an option's value; None after `--`."""
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "--":
            return None
        if not argument.startswith("-") or argument == "-":
            return position
        position += 2 if "=" not in argument and _takes_value(argument) else 1
    return None


def _takes_value(option: str) -> bool:
    """True if an option is followed by its value, by the first command that has the option."""
    answers = (command_module(name).parser().takes_value(option) for name in ("console", *COMMANDS))
    return next((answer for answer in answers if answer is not None), False)


def _refuse_misspelt_command(word: str) -> None:
    """Raises `UsageError` for one word that is almost a command, or a verb of `sessions`: as a task it would start a
    run that costs money.
    """
    if any(char.isspace() for char in word) or word[:1].isupper():
        # Commands begin with a small letter; "Explain" is a task.
        return
    from tui_agent.cli.sessions import VERBS
    from tui_agent.config.errors import nearest

    near = f"sessions {word}" if word in VERBS else nearest(word, COMMANDS, 0.75)
    if near is not None:
        raise UsageError(
            f"agent-tui has no command {word!r}; did you mean `agent-tui {near}`?\n"
            f"If {word!r} is the task, say so: agent-tui -- {word}"
        )


def _report_error(fault: Exception) -> int:
    """Report what is wrong with a configuration, a session or the system in words, and anything else as a bug."""
    from tui_agent.config.errors import ConfigError

    if isinstance(fault, ConfigError):
        return _report(fault.message, USAGE)
    if os.environ.get("AGENT_TUI_DEBUG"):
        raise fault
    from tui_agent.formats.importers.transcript import TranscriptError
    from tui_agent.store.errors import SessionError

    if isinstance(fault, SessionError):
        return _report(f"{fault.what}: {fault.why}.\n{fault.todo}", USAGE)
    if isinstance(fault, TranscriptError):
        return _report(f"{fault.path}: {fault.why}\n{fault.advice}".strip(), USAGE)
    if isinstance(fault, OSError):
        where = f" ({fault.filename})" if fault.filename else ""
        if fault.errno in {errno.ENAMETOOLONG, errno.ELOOP}:
            # A path that was given, which no file can have.
            return _report(f"There can be no such file: {fault.strerror}{where}.\nGive another path.", USAGE)
        return _report(
            f"agent-tui could not go on: {fault.strerror or fault}{where}.\n"
            "Check that place and the space on its disk; `agent-tui doctor` looks at both.",
            INTERNAL_ERROR,
        )
    return _report(
        f"agent-tui failed ({type(fault).__name__}: {fault}). This is a fault of agent-tui, not yours.\n"
        "Sessions are kept as they were. AGENT_TUI_DEBUG=1 shows where it happened; please report that.",
        INTERNAL_ERROR,
    )


def _report(message: str, code: int) -> int:
    """Print `message` on the stream that the command's own output does not use."""
    from tui_agent.terminal_text import visible, without_middle

    line = message if message.startswith("agent-tui") else f"agent-tui: {message}"
    line = "\n".join(map(without_middle, visible(line).split("\n")[:_MOST_LINES]))
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(line + "\n")
    return code


_MOST_LINES = 60
