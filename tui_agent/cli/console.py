"""`agent-tui [TASK]`: the console."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent import __version__
from tui_agent.cli import COMMANDS
from tui_agent.cli.completions import SHELLS, print_script
from tui_agent.cli.errors import UsageError
from tui_agent.cli.opening import config_path, open_console
from tui_agent.cli.options import (
    Parser,
    add_agent_options,
    add_console_options,
    add_run_options,
    one_of,
    overrides,
)
from tui_agent.frontend.arguments import ConsoleArguments

_EXAMPLE = """
agent-tui "fix the failing tests" --model openai/gpt-5
agent-tui demo"""


def parser() -> Parser:
    """Options of the console, and the list of commands."""
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {purpose}" for name, purpose in COMMANDS.items())
    made = Parser(
        "",
        "A console for AI agents that recover from their own errors, and show why.\n"
        "TASK starts a run at once; without it the console waits for you.\n\n"
        f"commands:\n{commands}",
        _EXAMPLE,
        usage="agent-tui [TASK] [options]\n       agent-tui COMMAND …",
    )
    made.add_argument("task", nargs="?", metavar="TASK", help="what the agent should do, in quotes")
    made.add_argument("--version", action="version", version=f"agent-tui {__version__}")
    made.add_argument(
        "--completions",
        type=one_of(SHELLS),
        metavar="SHELL",
        help="print what makes bash, zsh or fish complete commands, options and values",
    )
    add_run_options(made)
    add_agent_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Open the console, with a task if one is given."""
    namespace = parser().parse(arguments)
    if namespace.completions is not None:
        return print_script(namespace.completions)
    if namespace.task is not None and not namespace.task.strip():
        raise UsageError(
            'agent-tui: the task is empty; say what to do, as in agent-tui "fix the failing tests".'
        )
    if namespace.agent == "list":
        from tui_agent.cli.agents import print_agents
        from tui_agent.config.settings import load_settings

        return print_agents(load_settings(overrides(namespace), namespace.config))
    return open_console(
        ConsoleArguments(
            overrides=overrides(namespace),
            config=config_path(namespace.config),
            task=namespace.task,
            step=bool(namespace.step),
        )
    )
