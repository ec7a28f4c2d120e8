"""`agent-tui supervise`: another agent's headless command, resumed after overloads, ended when it is stuck."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tui_agent.agents.dialect import Dialect
from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.follower import Follower
from tui_agent.agents.supervision import INTERRUPTED, Limits, Supervisor
from tui_agent.agents.waiting import moment
from tui_agent.cli.options import (
    Parser,
    UsageError,
    add_check_options,
    add_place_options,
    add_policy_option,
    amount,
    goal_of,
    overrides,
    place,
)
from tui_agent.config.settings import load_settings, require_workspace
from tui_agent.core.recovery.policy import preset

_EXAMPLE = """
agent-tui supervise -- claude -p "fix the failing tests" --permission-mode acceptEdits
agent-tui supervise --check "pytest -q" -- claude -p "fix the failing tests"
agent-tui supervise --until 07:00 --on-limit wait --max-cost 20 -- claude -p "port the parser"
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
        usage="agent-tui supervise [options] -- COMMAND...",
    )
    made.add_argument("command", nargs="*", metavar="COMMAND", help="the agent's command, behind --")
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
        "--until",
        type=_moment,
        metavar="HH:MM",
        help="end it at this time, the next time that a clock shows it",
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
    dialect, program = _agent(namespace.command)
    goal = goal_of(namespace, "supervise")
    person = _Terminal() if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() else None
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
                namespace.until,
                namespace.on_limit or ("wait" if person is None else "ask"),
            ),
            goal=goal,
            follower=follower,
            environment=dict(os.environ),
            person=person,
            stdin=asyncio.subprocess.DEVNULL if sys.stdin is None or person is not None else sys.stdin.buffer,
        )
        code = asyncio.run(_interruptible(supervisor))
    supervisor.say(supervisor.summary(code))
    return code


def _moment(text: str) -> float:
    """A moment that comes, in seconds since 1970."""
    try:
        return moment(text, time.time())
    except (ValueError, OverflowError, OSError) as error:
        said = "it has passed" if "passed" in str(error) else "no time as 07:00, or 2026-11-28 07:00"
        raise argparse.ArgumentTypeError(f"{text!r} is {said}") from error


async def _interruptible(supervisor: Supervisor) -> int:
    """Its run; a signal ends it with all that the agent started."""
    run = asyncio.ensure_future(supervisor.run())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, run.cancel)
    try:
        return await run
    except asyncio.CancelledError:
        supervisor.why = "it was interrupted"
        return INTERRUPTED


class _Terminal:
    """Whoever sits at the terminal."""

    async def ask(self, question: str) -> str | None:
        """The line that was typed; None at the end of input."""
        sys.stderr.write(
            f"\a{question}\nEnter lets it go on, s stops it. Any other text is what the agent is told: "
        )
        sys.stderr.flush()
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin, typed.set)
        try:
            await typed.wait()
        finally:
            loop.remove_reader(sys.stdin)
        return sys.stdin.readline() or None


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
