"""`agent-tui hook`: one event of another agent on standard input, the answer on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tui_agent.agents import hook_client
from tui_agent.cli.options import Parser, one_of

ADVISE = ("off", "note", "refuse")

_EXAMPLE = """
echo '{"hook_event_name": "Stop", "session_id": "1", "cwd": "."}' | agent-tui hook --agent claude-code"""


def parser() -> Parser:
    """Options of `hook`."""
    made = Parser(
        "hook",
        "One event of another agent's hooks, as JSON on standard input; the answer, in that agent's form, on standard\n"
        "output. When something goes wrong, nothing is answered, the exit code is 0, and hooks.log says why.",
        _EXAMPLE,
    )
    made.add_argument(
        "--agent", metavar="NAME", default="", help="whose event it is (default: recognised from the event)"
    )
    add_advice_options(made)
    return made


def add_advice_options(made: Parser) -> None:
    """The way in which the agent is advised, and the policy that decides."""
    made.add_argument(
        "--advise",
        metavar="WHAT",
        type=one_of(ADVISE),
        default="refuse",
        help="off: only record; note: notes for the model; refuse: refuse repeated failing calls too (default)",
    )
    made.add_argument(
        "--policy", metavar="NAME", default="", help="recovery policy (default: the configured one)"
    )


def main(arguments: Sequence[str]) -> int:
    """Answer the event; always 0."""
    options = parser().parse(arguments)
    sys.argv[1:] = [options.agent, options.advise, options.policy]
    hook_client.main()
    return 0
