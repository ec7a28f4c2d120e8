"""`agent-tui night`: what became of supervised tasks while nobody looked."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from pathlib import Path

from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.job_morning import job_reports
from tui_agent.agents.morning import Report, as_html, as_markdown, as_text, reports
from tui_agent.agents.night import Entry, Task, nights
from tui_agent.agents.supervision import words_after
from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser, add_place_options, one_of, overrides
from tui_agent.config.settings import load_settings
from tui_agent.disk import replace_whole
from tui_agent.formats.importers.harbor import is_job, is_trial
from tui_agent.terminal_text import one_line

_FORMS = {"text": as_text, "markdown": as_markdown, "html": as_html}
_EXAMPLE = """
agent-tui night
agent-tui night --html night.html
agent-tui night jobs/2026-11-27__22-00-00"""


def parser() -> Parser:
    """Options of `night`."""
    made = Parser(
        "night",
        "What became of the tasks that `agent-tui supervise` ran: what was done, checks, cost, waits and resumes\n"
        "with their times, what is open, and the commands to open, resume, diff and discard: at a terminal a key each.",
        _EXAMPLE,
    )
    made.add_argument(
        "name",
        nargs="?",
        metavar="NIGHT",
        help="one of --list (default: the newest), or the folder of a job of Harbor's",
    )
    made.add_argument("--list", action="store_true", help="the nights that are kept")
    made.add_argument("--form", type=one_of(_FORMS), default="text", metavar="FORM", help=", ".join(_FORMS))
    made.add_argument("--html", metavar="FILE", help="write an HTML page into FILE")
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the report. Raises `UsageError`, `ConfigError`."""
    namespace = parser().parse(arguments)
    if namespace.name and (is_job(job := Path(namespace.name).absolute()) or is_trial(job)):
        return _shown(f"Job {job.name}", job_reports(job), namespace)
    kept = nights(load_settings(overrides(namespace, "state_dir"), namespace.config).state_dir)
    if namespace.list:
        sys.stdout.writelines(f"{night.path.name}\n" for night in kept)
        return 0
    night = next((one for one in kept if namespace.name in {None, one.path.name}), None)
    if night is None:
        said = f"there is no night {namespace.name!r}" if namespace.name else "no night is kept"
        raise UsageError(
            f"agent-tui night: {said}.\nagent-tui supervise runs one; --list names those that are kept."
        )
    return _shown(f"Night {night.path.name}", reports(night, _goes_on), namespace)


def _shown(title: str, tasks: Sequence[Report], namespace: argparse.Namespace) -> int:
    title = one_line(title, 200)
    if namespace.html is not None:
        try:
            replace_whole(Path(namespace.html), as_html(title, tasks))
        except OSError as error:
            raise UsageError(f"agent-tui night: {namespace.html}: {error.strerror or error}") from error
        return 0
    sys.stdout.write(_FORMS[namespace.form](title, tasks))
    if namespace.form == "text" and sys.stdin.isatty() and sys.stdout.isatty():
        _take_keys(tasks, _key, _run)
    return 0


_KEYS = {"l": "output", "o": "open", "r": "resume", "d": "diff", "x": "discard"}


def _take_keys(tasks: Sequence[Report], key: Callable[[], str], run: Callable[[str], None]) -> None:
    """Carry out the commands of the tasks by a key each, until another key leaves. A discard takes its key twice."""
    chosen, doubted = 0, False
    while tasks:
        task = tasks[chosen]
        commands = {letter: dict(task.commands).get(what, "") for letter, what in _KEYS.items()}
        offered = ", ".join(f"{letter} {_KEYS[letter]}" for letter, command in commands.items() if command)
        others = f", 1-{min(len(tasks), 9)} another task" if len(tasks) > 1 else ""
        asks = "x again discards all of its work" if doubted else f"{offered}{others}, q leaves"
        sys.stdout.write(f"\n{task.name}: {asks} ")
        sys.stdout.flush()
        pressed = key()
        sys.stdout.write("\n")
        number = int(pressed) if pressed.isdecimal() else 0
        if 1 <= number <= len(tasks):
            chosen, doubted = number - 1, False
        elif pressed == "x" and commands["x"] and not doubted:
            doubted = True
        elif commands.get(pressed):
            run(commands[pressed])
            doubted = False
        elif doubted:
            doubted = False
        else:
            return


def _key() -> str:
    """A key of the terminal, without the Enter behind it; empty at the end of input."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace").lower()
    except KeyboardInterrupt:
        return ""
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _run(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=False)


def _goes_on(task: Task, session: str, end: Entry | None) -> str:
    dialect = DIALECTS.get(task.agent)
    if dialect is None or dialect.headless is None:
        return ""
    program = next((place for place, word in enumerate(task.command) if word.endswith(dialect.program)), 0)
    words = words_after(None if end is None else end.code)
    return shlex.join(dialect.headless.goes_on(task.command, program, session, words))
