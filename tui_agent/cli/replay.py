"""`agent-tui replay`: a saved session, played in the console or printed."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.cli.opening import config_path, open_console
from tui_agent.cli.options import (
    Parser,
    add_console_options,
    add_place_options,
    add_policy_option,
    amount,
    count,
    overrides,
    place,
)

_EXAMPLE = """
agent-tui replay                       the newest session
agent-tui replay 20260102-101112-ab12cd34 --speed 4
agent-tui replay events.jsonl --print | less
agent-tui replay airline-runs.json --run 7 --policy hpd"""


def parser() -> Parser:
    made = Parser("replay", "Watch a saved session again, event by event, in the same panes.", _EXAMPLE)
    made.add_argument("session", nargs="?", metavar="SESSION|FILE", help="default: the newest session")
    made.add_argument("--speed", type=amount, metavar="X", help="2 is twice as fast as it was (default 1)")
    made.add_argument("--at", type=place, metavar="N", help="open at event N")
    add_policy_option(
        made,
        "judge it by this policy (default: a session keeps its verdicts; other agents' runs are judged by combined)",
    )
    made.add_argument(
        "--run", type=count, metavar="N", help="which run of a file that holds many (default 1)"
    )
    made.add_argument(
        "--print",
        action="store_true",
        default=None,
        help="no screen: the transcript and the recovery timeline as text",
    )
    add_place_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    namespace = parser().parse(arguments)
    from tui_agent.config.settings import load_settings
    from tui_agent.frontend.arguments import LATEST, ConsoleArguments

    given = overrides(namespace)
    settings = load_settings(given, namespace.config)
    if settings.print_only or settings.plain:
        from tui_agent.cli.transcript import print_session

        return print_session(settings, namespace.session)
    return open_console(
        ConsoleArguments(
            overrides=given,
            config=config_path(namespace.config),
            replay=namespace.session or LATEST,
            replay_speed=settings.speed,
            at_event=settings.at or 0,
        )
    )
