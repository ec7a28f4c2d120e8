"""`agent-tui analyze`: recorded runs, ours or others', judged by any policy."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.cli.options import Parser

_EXAMPLE = """
agent-tui analyze runs/                          all five policies over every recording in a folder
agent-tui analyze session.jsonl --policy combined --format json"""


def parser() -> Parser:
    """Options of `analyze`."""
    from tui_agent.sessions.analyze import add_arguments

    made = Parser(
        "analyze",
        "What would each recovery policy have said to these runs? Reads our own sessions and the recordings of\n"
        "other agents; nothing is run again.",
        _EXAMPLE,
    )
    add_arguments(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the table; the exit code is the analysis's own."""
    from tui_agent.sessions import analyze

    return analyze.main(parser().parse(arguments))
