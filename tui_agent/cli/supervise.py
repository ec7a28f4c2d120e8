"""`agent-tui supervise`: another agent's headless command, resumed after overloads, ended when it is stuck."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.agents.dialect import Dialect
from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.follower import Follower
from tui_agent.agents.night import Task, TaskFolder, new_night, night_of
from tui_agent.agents.notices import HASTE, PATIENCE, Notices, notices_of
from tui_agent.agents.shift import Shift, TasksError, laid_out, read_tasks
from tui_agent.agents.supervision import INTERRUPTED, PARTIAL, Limits, Supervisor
from tui_agent.agents.units import UNITS
from tui_agent.agents.waiting import moment
from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import (
    Parser,
    add_check_options,
    add_place_options,
    add_policy_option,
    amount,
    goal_of,
    overrides,
    place,
)
from tui_agent.config.settings import Settings, load_settings, require_workspace
from tui_agent.core.recovery.policy import preset
from tui_agent.terminal_text import one_line

_EXAMPLE = """
agent-tui supervise -- claude -p "fix the failing tests" --permission-mode acceptEdits
agent-tui supervise --check "pytest -q" -- claude -p "fix the failing tests"
agent-tui supervise --until 07:00 --on-limit wait --max-cost 20 -- claude -p "port the parser"
agent-tui supervise --tasks nightly.toml --until 07:00
agent-tui supervise --max-resumes 3 --timeout 3600 -- codex exec "fix the build"
"""

_EPILOG = """
exit codes:
  the agent's own, unless recovery ended it: 3 its cost, or its resumes while the check fails, are used up
  4 stuck (rounds in which the check failed as before, too), or stopped by you
  5 a question nobody could answer · 6 its model could not be used · 130 interrupted (signal, --timeout)"""


def parser() -> Parser:
    """Options of `supervise`."""
    made = Parser(
        "supervise",
        "Run another agent's command that does a task without a person (claude -p, codex exec, gemini -p, vibe -p,\n"
        "opencode run, copilot -p). After an overload or a dropped connection it is resumed. Where it is stuck it is\n"
        "ended, or you are asked once. Its output and its exit code stay as they are.",
        _EXAMPLE + "\n" + _EPILOG,
        usage="agent-tui supervise [options] -- COMMAND...\n       agent-tui supervise [options] --tasks FILE",
    )
    made.add_argument("command", nargs="*", metavar="COMMAND", help="the agent's command, behind --")
    made.add_argument(
        "--tasks",
        metavar="FILE",
        help="run the tasks of this file, each in a git worktree; go on if it was cut off",
    )
    made.add_argument(
        "--go-on", action="store_true", help="with --tasks: go on with what is open, and begin no new night"
    )
    made.add_argument(
        "--print-unit",
        choices=tuple(UNITS),
        help="with --tasks: print a unit that goes on with them after a reboot; nothing is installed",
    )
    made.add_argument("--record", help=argparse.SUPPRESS)
    add_policy_option(made, "recovery policy (default: the configured one)")
    made.add_argument(
        "--max-resumes",
        type=place,
        default=10,
        metavar="N",
        help="most resumes in all (default 10)",
    )
    made.add_argument(
        "--timeout", type=amount, metavar="SECONDS", help="end it after this time, resumes included"
    )
    made.add_argument(
        "--max-cost",
        type=amount,
        metavar="USD",
        help="end it when it has cost this much, where the cost is known",
    )
    made.add_argument(
        "--max-tokens",
        type=amount,
        metavar="N",
        help="end it when it has read and written so many tokens, where they are known",
    )
    made.add_argument(
        "--max-window",
        type=amount,
        metavar="PERCENT",
        help="end it when so much of its window of use is used up, where its records say it (Codex CLI with a plan)",
    )
    made.add_argument(
        "--until",
        type=_moment,
        metavar="HH:MM",
        help="end it at this time, the next time that a clock shows it",
    )
    made.add_argument(
        "--max-silence",
        type=amount,
        metavar="SECONDS",
        help="end it after so long a stall: no output, no processor time, no other processes, no new record\n"
        "(default: you are told after ten minutes, and nothing is ended)",
    )
    made.add_argument(
        "--on-limit",
        choices=("ask", "wait", "stop"),
        help="where its limit of use is reached: ask once for all limits (default at a terminal), wait until it\n"
        "resets and go on (default elsewhere), or stop",
    )
    made.add_argument("--workspace", metavar="DIR", help="where it works (default: here)")
    add_check_options(made)
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the command to its end. Raises `UsageError`, `ConfigError`."""
    namespace = parser().parse(arguments)
    settings = load_settings(overrides(namespace, "policy", "workspace", "state_dir"), namespace.config)
    require_workspace(settings)
    goal = goal_of(namespace, "supervise")
    if namespace.tasks is not None:
        if namespace.command or goal is not None or namespace.workspace:
            raise UsageError(
                "agent-tui supervise: with --tasks, commands, checks and the workspace stand in the file.\n"
                "docs/AGENTS.md shows one."
            )
        source = Path(namespace.tasks).absolute()
        if namespace.print_unit:
            return _printed(source, namespace)
        return asyncio.run(_shift(source, settings, namespace))
    if namespace.go_on or namespace.print_unit:
        raise UsageError("agent-tui supervise: --go-on and --print-unit need --tasks FILE.")
    dialect, program = _agent(namespace.command)
    record = _record(namespace.record, dialect, namespace.command, settings, namespace.check)
    terminal = _Terminal() if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() else None
    notices = notices_of(settings, _say)
    person = _Anybody(terminal, notices) if terminal is not None or notices.answers else None
    policy = preset(settings.policy, **settings.recovery.overrides())
    with Follower(dialect.name, settings.workspace, policy) as follower:
        supervisor = Supervisor(
            dialect,
            namespace.command,
            program,
            workspace=settings.workspace,
            policy=policy,
            limits=Limits(
                namespace.max_resumes,
                namespace.timeout,
                namespace.max_cost,
                namespace.max_tokens,
                namespace.max_window,
                namespace.until,
                namespace.max_silence,
                namespace.on_limit or ("wait" if terminal is None else "ask"),
            ),
            goal=goal,
            follower=follower,
            environment=dict(os.environ),
            person=person,
            record=record,
            notices=notices,
            stdin=asyncio.subprocess.DEVNULL
            if sys.stdin is None or terminal is not None
            else sys.stdin.buffer,
        )
        code = asyncio.run(_interruptible(supervisor, notices, in_a_night=namespace.record is not None))
    supervisor.say(supervisor.summary(code))
    return code


def _moment(text: str) -> float:
    """A moment that comes, in seconds since 1970."""
    try:
        return moment(text, time.time())
    except (ValueError, OverflowError, OSError) as error:
        said = "it has passed" if "passed" in str(error) else "no time as 07:00, or 2026-11-28 07:00"
        raise argparse.ArgumentTypeError(f"{text!r} is {said}") from error


async def _interruptible(supervisor: Supervisor, notices: Notices, *, in_a_night: bool) -> int:
    """Its run; a signal ends it with all that the agent started. In a night, the signal is for the night to explain."""
    notices.begin()
    code = await _run(supervisor)
    if not (in_a_night and supervisor.interrupted):
        supervisor.over(code)
    await notices.close(HASTE if code == INTERRUPTED else PATIENCE)
    return code


async def _run(supervisor: Supervisor) -> int:
    run = asyncio.ensure_future(supervisor.run())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, run.cancel)
    try:
        return await run
    except asyncio.CancelledError:
        supervisor.why, supervisor.interrupted = "it was interrupted", True
        return INTERRUPTED


def _record(
    given: str | None, dialect: Dialect, command: Sequence[str], settings: Settings, check: str | None
) -> TaskFolder | None:
    """The record of this task: that of the night that runs it, or one of its own."""
    if given is not None:
        return TaskFolder(Path(given))
    folder = new_night(settings.state_dir, settings.workspace.name).folder(1, dialect.name)
    task = Task(
        name=dialect.name,
        agent=dialect.name,
        command=tuple(command),
        workspace=str(settings.workspace),
        check=check or "",
    )
    try:
        folder.keep(task)
    except OSError as error:
        _say(f"nothing of it is kept for the morning: {error.strerror or error}")
        return None
    return folder


async def _shift(source: Path, settings: Settings, namespace: argparse.Namespace) -> int:
    """Run a file of tasks, or what is open of it: 0 if all ended well."""
    try:
        given = read_tasks(source)
    except TasksError as error:
        raise UsageError(f"agent-tui supervise: {error}") from error
    agents = [_agent(task.command)[0].name for task in given.tasks]
    night = night_of(settings.state_dir, source)
    if night is None and namespace.go_on:
        _say(f"no task of {source} is open")
        return 0
    night = night or new_night(settings.state_dir, source.stem)
    try:
        with night.alone():
            if not night.tasks:
                laid_out(night, given, source, agents)
            shift = Shift(night, given, _for_each(namespace), _say, namespace.until)
            run = asyncio.ensure_future(shift.run())
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, run.cancel)
            try:
                code = 0 if await run else PARTIAL
            except asyncio.CancelledError:
                code = INTERRUPTED
    except BlockingIOError as error:
        raise UsageError(f"agent-tui supervise: {source} runs already, in another process.") from error
    _say("agent-tui night shows what became of them")
    return code


def _printed(source: Path, namespace: argparse.Namespace) -> int:
    """Print the unit that goes on with a file of tasks."""
    command = [sys.executable, "-P", "-m", "tui_agent", "supervise", f"--tasks={source}", "--go-on"]
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG"}}
    make = UNITS[namespace.print_unit]
    sys.stdout.write(make([*command, *_for_each(namespace)], source.parent, kept))
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"agent-tui: {one_line(text, 400)}\n")
    sys.stderr.flush()


_OF_EACH_TASK = (
    *("policy", "max_resumes", "timeout", "on_limit"),
    *("max_cost", "max_tokens", "max_window", "max_silence"),
)


def _for_each(namespace: argparse.Namespace) -> list[str]:
    """The options that hold for each task."""
    given = {name: getattr(namespace, name) for name in _OF_EACH_TASK}
    for name in ("config", "state_dir"):
        place = getattr(namespace, name)
        given[name] = None if place is None else Path(place).absolute()
    if namespace.until is not None:
        given["until"] = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(namespace.until))
    return [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]


class _Terminal:
    """Whoever sits at the terminal."""

    async def ask(self, subject: str, question: str) -> str | None:
        """The line that was typed; None at the end of input."""
        sys.stderr.write(
            f"\a{subject}: {question}\nEnter lets it go on, s stops it. Any other text is what the agent is told: "
        )
        sys.stderr.flush()
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin, typed.set)
        try:
            await typed.wait()
        finally:
            loop.remove_reader(sys.stdin)
        return sys.stdin.readline() or None


@dataclass(frozen=True)
class _Anybody:
    """Whoever answers first: at the terminal, or from away."""

    terminal: _Terminal | None
    notices: Notices

    async def ask(self, subject: str, question: str) -> str | None:
        """A line; None if nobody answers."""
        away = asyncio.ensure_future(self.notices.ask(f"{subject}: a question", question, ("go on", "stop")))
        asked = [away]
        if self.terminal is not None:
            asked.append(asyncio.ensure_future(self.terminal.ask(subject, question)))
        try:
            for first in asyncio.as_completed(asked):
                if (said := await first) is not None:
                    if away.done() and away.result() is said:
                        _say(f"answered from away: {said}")
                    return said
        finally:
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        return None


def _agent(command: Sequence[str]) -> tuple[Dialect, int]:
    """The agent that a command runs, and the place of its program. Raises `UsageError`."""
    headless = {one.program: one for one in DIALECTS.values() if one.headless is not None}
    for number, word in enumerate(command):
        if (name := Path(word).name) in headless:
            return headless[name], number
    said = "there is no command" if not command else f"{command[0]!r} is no agent that is known"
    raise UsageError(
        f"agent-tui supervise: {said}; it runs {', '.join(headless)}, as in\n"
        'agent-tui supervise -- claude -p "fix the failing tests"'
    )
