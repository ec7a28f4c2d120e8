"""`agent-tui demo`: the console on a scripted model that works with real tools in a throwaway workspace."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tui_agent.cli.errors import UsageError
from tui_agent.cli.opening import config_path, open_console
from tui_agent.cli.options import Parser, add_console_options, add_run_options, overrides
from tui_agent.config.errors import nearest

_EXAMPLE = """
agent-tui demo
agent-tui demo --list"""


def parser() -> Parser:
    made = Parser(
        "demo",
        "Watch an agent recover, without a key and without a network. The model is a script. The tools, the files and\n"
        "the commands are real. The workspace is removed afterwards.",
        _EXAMPLE,
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="which demo (--list names them)")
    made.add_argument("--list", action="store_true", help="name the demos and leave")
    made.add_argument(
        "--captions",
        action=argparse.BooleanOptionalAction,
        help="explain the screen on the way (default; --no-captions for recordings)",
    )
    add_run_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    from tui_agent.models.scenario_file import load_scenario, scenario_names

    namespace = parser().parse(arguments)
    names = scenario_names()
    if namespace.list:
        for name in names:
            sys.stdout.write(f"{name:<20}  {load_scenario(name).title}\n")
        return 0
    name = namespace.name or default_demo(names)
    if name not in names:
        near = nearest(name, names)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"agent-tui demo: there is no demo {name!r}{hint}\nThere are: {', '.join(names)}.")
    from tui_agent.frontend.arguments import ConsoleArguments

    return open_console(
        ConsoleArguments(
            overrides=overrides(namespace),
            config=config_path(namespace.config),
            demo=name,
            step=bool(namespace.step),
        )
    )


def default_demo(names: Sequence[str]) -> str:
    """The demo that shows the whole of recovery."""
    return "recovery" if "recovery" in names else names[0]
