"""The options that commands share, and a parser that says what is wrong, why, and what would be right.

Values are checked lightly here, so that a slip is reported before a screen opens; the settings check them again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from textwrap import indent
from typing import TYPE_CHECKING, Any, NoReturn

from tui_agent.cli.errors import UsageError
from tui_agent.cli.foreign_options import here
from tui_agent.config.errors import nearest
from tui_agent.core.names import APPROVALS, ON_LIMIT, POLICIES, REASONING_EFFORTS, SANDBOX_MODES

if TYPE_CHECKING:
    from tui_agent.session.goal import Goal


class Parser(argparse.ArgumentParser):
    """argparse with errors in our words: raised, with the nearest option, never printed by itself."""

    def __init__(self, command: str, description: str, example: str, **kwargs: Any) -> None:
        super().__init__(
            prog=f"agent-tui {command}".strip(),
            description=description,
            epilog=f"example:\n{indent(example.strip(), '  ')}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **kwargs,
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"{self.prog}: {message}.\n`{self.prog} --help` shows what it takes, with an example."
        )

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The parsed options. Raises `UsageError`; ends the process only for `--help`."""
        for argument in takewhile("--".__ne__, arguments):
            if argument.startswith("--") and argument.endswith("=--"):  # argparse makes a list of it
                self.error(f"argument {argument[:-3]}: '--' is no value")
        namespace, unknown = self.parse_known_args(list(arguments))
        if unknown:
            self._refuse(unknown[0])
        return namespace

    def takes_value(self, option: str) -> bool | None:
        """True if `option` takes a value; None if there is no such option."""
        action = self._option_string_actions.get(option)
        return None if action is None else action.nargs != 0

    def _refuse(self, argument: str) -> NoReturn:
        if not argument.startswith("-"):
            takes_task = any(action.dest == "task" for action in self._actions)
            raise UsageError(
                f"{self.prog}: there is one word too many, {argument!r}.\n"
                + (
                    f'Put a task of several words in quotes: {self.prog} "fix the failing tests"'
                    if takes_task
                    else f"`{self.prog} --help` shows what it takes, with an example."
                )
            )
        name = argument.partition("=")[0]
        near = nearest(name.lstrip("-"), (option.lstrip("-") for option in self._option_string_actions), 0.6)
        ours = here(name, self._option_string_actions) or (f"--{near}" if near and near != "h" else "")
        hint = f"; did you mean {ours}?" if ours else ""
        raise UsageError(
            f"{self.prog}: there is no option {name}{hint or '.'}\n"
            f"`{self.prog} --help` shows what it takes, with an example."
        )


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """A check that a value is one of `names`; its message names them and the nearest."""
    allowed = tuple(names)

    def check(text: str) -> str:
        if text in allowed:
            return text
        near = nearest(text, allowed)
        hint = f" (did you mean {near}?)" if near else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(allowed)}{hint}")

    check.allowed = allowed  # type: ignore[attr-defined]  # for completions
    return check


def count(text: str) -> int:
    """A whole number from 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def place(text: str) -> int:
    """A whole number from 0."""
    return 0 if text == "0" else count(text)


def amount(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def add_policy_option(group: argparse._ActionsContainer, purpose: str) -> None:
    """`--policy`, for every command that judges."""
    group.add_argument("--policy", type=one_of(POLICIES), metavar="NAME", help=purpose)


def add_run_options(parser: Parser) -> None:
    """Options of console, demo, run and resume."""
    group = parser.add_argument_group("options of every run")
    group.add_argument("--model", metavar="NAME", help="the model, as litellm names it (openai/gpt-5)")
    group.add_argument("--profile", metavar="NAME", help="a model profile of your configuration")
    group.add_argument(
        "--reasoning-effort",
        dest="parameters.reasoning_effort",
        type=one_of(REASONING_EFFORTS),
        metavar="LEVEL",
        help=f"how much the model thinks: {', '.join(REASONING_EFFORTS)}",
    )
    group.add_argument("--api-base", metavar="URL", help="address of an OpenAI-compatible server")
    add_policy_option(group, f"{'|'.join(POLICIES)} (default combined)")
    group.add_argument("--workspace", metavar="DIR", help="folder to work in (default: here)")
    group.add_argument(
        "--approve",
        type=one_of(APPROVALS),
        metavar="MODE",
        help="plan: it reads and plans, edits are refused; ask: writes and commands ask (default); "
        "writes: file edits run; all: nothing asks",
    )
    group.add_argument(
        "--sandbox",
        type=one_of(SANDBOX_MODES),
        metavar="MODE",
        help="sandbox of commands: auto (what works here, default), off, or require",
    )
    group.add_argument(
        "--max-iterations",
        type=count,
        metavar="N",
        help="end with a partial answer after N steps (default 50)",
    )
    group.add_argument(
        "--context-tokens",
        type=count,
        metavar="N",
        help="longest request in tokens (default: what the model takes)",
    )
    group.add_argument(
        "--model-timeout", type=amount, metavar="SECONDS", help="longest silence of the model (default 120)"
    )
    group.add_argument(
        "--command-timeout", type=amount, metavar="SECONDS", help="longest time of a command (default 120)"
    )
    group.add_argument(
        "--max-cost",
        type=amount,
        metavar="USD",
        help="what a run may cost; then it asks, or ends with a partial answer where nobody is there",
    )
    group.add_argument(
        "--max-session-cost", type=amount, metavar="USD", help="the same for the whole session"
    )
    group.add_argument("--max-run-tokens", type=count, metavar="N", help="tokens that a run may take")
    group.add_argument("--max-session-tokens", type=count, metavar="N", help="the same for the whole session")
    group.add_argument("--max-run-time", type=amount, metavar="SECONDS", help="how long a run may work")
    group.add_argument(
        "--max-session-time", type=amount, metavar="SECONDS", help="the same for the whole session"
    )
    group.add_argument(
        "--fallback-models", metavar="A,B", help="models to try, in order, when the first cannot be reached"
    )
    group.add_argument(
        "--on-limit",
        choices=ON_LIMIT,
        help="what happens where the model's limit of use is reached (else you are asked; alone: fallback)",
    )
    group.add_argument(
        "--wait-at-most",
        type=amount,
        metavar="SECONDS",
        help="how long a run waits by itself for a limit to reset (default: 21600)",
    )
    group.add_argument("--summary-model", metavar="NAME", help="the model for summaries, perhaps a cheap one")
    group.add_argument(
        "--compact-at",
        metavar="SHARE",
        help="share of the context window at which older parts of a conversation are summarised (0: never)",
    )
    add_place_options(parser)


def add_agent_options(parser: Parser) -> None:
    """Options of the commands in which another agent may take the steps."""
    group = parser.add_argument_group("another agent")
    group.add_argument(
        "--agent",
        metavar="NAME",
        help="let another agent take the steps, by its name or its command, over the Agent Client Protocol; list: all",
    )
    group.add_argument(
        "--advise",
        type=one_of(("off", "note", "steer")),
        metavar="HOW",
        help="what that agent is told of its failures: note (with its next prompt, default), steer (a turn that goes "
        "wrong is cancelled for it), off",
    )


def add_cluster_option(parser: Parser) -> None:
    """`--cluster`, for commands whose work can be spread over machines."""
    parser.add_argument(
        "--cluster",
        default="local",
        metavar="WHERE",
        help="local: processes of this machine (default); dask: a Dask cluster on it; or the address of a Dask\n"
        "scheduler, as tcp://HOST:8786 (docs/FLEET.md)",
    )


def say_of_open_cluster(address: str) -> None:
    """Warn on standard error if anybody on the way to a cluster could have code run, here too."""
    from tui_agent.cluster import is_open
    from tui_agent.terminal_text import one_line

    if is_open(address):
        sys.stderr.write(
            f"agent-tui: {one_line(address, 80)} is known by no certificate: whoever is on the way to it can run code "
            "on its workers and here. With tls:// it is (docs/FLEET.md).\n"
        )


def add_check_options(parser: Parser) -> None:
    """Options for a goal that a command checks."""
    group = parser.add_argument_group("the goal")
    group.add_argument(
        "--check",
        metavar="COMMAND",
        help="run this when the agent says that it is done; while it fails, the agent is sent back with its output",
    )
    group.add_argument("--goal", metavar="TEXT", help="the goal in words, for an agent whose check fails")
    group.add_argument(
        "--check-timeout", type=amount, metavar="SECONDS", help="longest time of a check (default: 1800)"
    )


def goal_of(namespace: argparse.Namespace, command: str) -> Goal | None:
    """The goal that is to be reached; None without a check. Raises `UsageError`."""
    if namespace.check is None:
        if namespace.goal is not None or namespace.check_timeout is not None:
            raise UsageError(
                f"agent-tui {command}: --goal and --check-timeout need --check.\n"
                'Only a command can say if the goal is reached: --check "pytest -q"'
            )
        return None
    if not namespace.check.strip():
        raise UsageError(
            f'agent-tui {command}: the check is empty; name a command, as in --check "pytest -q"'
        )
    from tui_agent.session.goal import Goal

    goal = Goal(namespace.check, namespace.goal or "")
    return replace(goal, seconds=namespace.check_timeout) if namespace.check_timeout else goal


def add_place_options(parser: Parser) -> None:
    """Options for the places of settings and sessions, which every command has."""
    group = parser.add_argument_group("places")
    group.add_argument("--config", metavar="FILE", help="read FILE in place of your own config.toml")
    group.add_argument("--state-dir", metavar="DIR", help="where sessions are kept")


def add_console_options(parser: Parser) -> None:
    """Options of the commands that open a screen."""
    group = parser.add_argument_group("options of the console")
    group.add_argument("--step", action="store_true", default=None, help="start paused before every step")
    group.add_argument(
        "--plain",
        action="store_true",
        default=None,
        help="lines instead of a screen: for screen readers, dumb terminals and pipes",
    )
    group.add_argument("--theme", metavar="NAME", help="how the console looks")


_NO_SETTINGS = frozenset(
    {"config", "task", "name", "list", "session", "resume", "json", "forget_habits", "login"}
) | {
    "check",
    "check_timeout",
    "goal",
}


def overrides(namespace: argparse.Namespace, *only: str) -> dict[str, object]:
    """The options that were given, by the key of their setting; `only`: these keys, for a command that has
    other options, too.
    """
    given = {key: value for key, value in vars(namespace).items() if value is not None}
    return {key: value for key, value in given.items() if (key in only if only else key not in _NO_SETTINGS)}


def take_verb(words: list[str], verbs: Iterable[str], command: str, advice: str = "") -> str:
    """Take the verb from the front of the words; "" if none stands there. Raises `UsageError` for one that is
    none, with the nearest, or all of them, and the advice.
    """
    verb = words.pop(0) if words and not words[0].startswith("-") else ""
    if verb and verb not in verbs:
        near = nearest(verb, verbs)
        hint = f"did you mean `agent-tui {command} {near}`?" if near else f"there are {', '.join(verbs)}."
        raise UsageError(f"agent-tui {command}: there is no verb {verb!r}; {hint}\n{advice}".rstrip())
    return verb
