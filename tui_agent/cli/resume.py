"""`agent-tui resume`: go on with a saved session in the console."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.cli.opening import config_path, open_console
from tui_agent.cli.options import Parser, add_agent_options, add_console_options, add_run_options, overrides

_EXAMPLE = """
agent-tui resume                       the newest session
agent-tui resume 20260102-101112-ab12cd34"""


def parser() -> Parser:
    made = Parser(
        "resume", "Go on with a session where it stopped, also after a crash: nothing is lost.", _EXAMPLE
    )
    made.add_argument("session", nargs="?", metavar="SESSION", help="default: the newest session")
    add_run_options(made)
    add_agent_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    namespace = parser().parse(arguments)
    from tui_agent.frontend.arguments import LATEST, ConsoleArguments

    return open_console(
        ConsoleArguments(
            overrides=overrides(namespace),
            config=config_path(namespace.config),
            resume=namespace.session or LATEST,
            step=bool(namespace.step),
        )
    )
