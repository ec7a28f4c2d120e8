"""`agent-tui fleet`: many runs at once, on one board or in lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tui_agent.cli.errors import UsageError
from tui_agent.cli.opening import config_path, open_console
from tui_agent.cli.options import (
    Parser,
    add_cluster_option,
    add_console_options,
    add_place_options,
    add_run_options,
    amount,
    count,
    one_of,
    overrides,
    say_of_open_cluster,
)
from tui_agent.cluster import ClusterError
from tui_agent.fleet.fleet import Bounds
from tui_agent.fleet.opening import FleetArguments
from tui_agent.fleet.printed import run_printed
from tui_agent.frontend.arguments import ConsoleArguments

_EXAMPLE = """
agent-tui fleet tasks.jsonl --at-once 8 --max-fleet-cost 20
agent-tui fleet tasks.jsonl --print --output json --approve all
agent-tui fleet watch jobs/today                           the same board over a folder of growing sessions
echo '{"task": "fix the tests", "workspace": "shop", "options": {"max_iterations": 20}}' > tasks.jsonl"""

_EPILOG = """
exit codes:
  0 all were answered · 1 a line is wrong, or a run could not be carried out · 2 wrong usage
  3 some ended without an answer · 130 ended before all runs (a limit, a signal): the same command goes on"""

OWN = frozenset(
    {
        "tasks",
        "at_once",
        "workers",
        "max_fleet_cost",
        "max_fleet_time",
        "print",
        "output",
        "out",
        "cluster",
        "folder",
    }
)


OF_THE_CONSOLE = frozenset({"plain", "theme", "step"})


def watch_parser() -> Parser:
    made = Parser(
        "fleet watch",
        "A board of all sessions in a folder, ours or other agents' (a Harbor job, recordings), while they grow. It\n"
        "shows how each is judged by our policy. The files are only read.",
        "agent-tui fleet watch jobs/2026-11-24__12-00-00",
    )
    made.add_argument("folder", type=Path, metavar="DIR", help="the folder, searched at every depth")
    add_place_options(made)
    add_console_options(made)
    return made


def parser() -> Parser:
    made = Parser(
        "fleet",
        "Many runs at once. Each line of TASKS is a JSON object with `task` and, if you like, `workspace`, `model`,\n"
        "`options` and `id`. Each run is an ordinary session. One board shows the runs, one inbox their questions.\n"
        "Without a terminal, or with --print, each change is a line, and a table comes at the end. Then nobody can be\n"
        "asked: what needs an approval is denied, unless --approve allows it. The same command continues a fleet that\n"
        "was ended.",
        _EXAMPLE + "\n" + _EPILOG,
    )
    made.add_argument("tasks", type=Path, metavar="TASKS.jsonl", help="the file of tasks")
    group = made.add_argument_group("options of the fleet")
    group.add_argument("--at-once", type=count, metavar="N", default=8, help="runs at a time (default 8)")
    group.add_argument("--workers", type=count, metavar="N", help="processes for them (default: one a core)")
    group.add_argument("--max-fleet-cost", type=amount, metavar="USD", help="what all runs together may cost")
    group.add_argument("--max-fleet-time", type=amount, metavar="SECONDS", help="how long all of it may take")
    group.add_argument(
        "--out", type=Path, metavar="DIR", help="where its state is kept (default: TASKS.fleet beside TASKS)"
    )
    group.add_argument("--print", action="store_true", help="lines in place of the board")
    group.add_argument(
        "--output",
        type=one_of(("text", "json")),
        default="text",
        metavar="FORM",
        help="form of the table at the end: text, json",
    )
    add_cluster_option(made)
    add_run_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """The exit code says how the runs ended; see `--help`."""
    watching = list(arguments[:1]) == ["watch"]
    options = (watch_parser() if watching else parser()).parse(arguments[watching:])
    given = {key: value for key, value in overrides(options).items() if key not in OWN}
    console = ConsoleArguments(overrides=given, config=config_path(options.config))
    if watching:
        if not options.folder.is_dir():
            raise UsageError(
                f"agent-tui fleet watch: {options.folder} is no folder. Name a folder of sessions."
            )
        return open_console(console._replace(watched_folder=options.folder.resolve()))
    if not options.tasks.is_file():
        raise UsageError(
            f"agent-tui fleet: {options.tasks} is no file. Name a file with one task on each line."
        )
    say_of_open_cluster(options.cluster)
    start = FleetArguments(
        tasks=options.tasks,
        bounds=Bounds(options.at_once, options.max_fleet_cost, options.max_fleet_time),
        overrides={key: value for key, value in given.items() if key not in OF_THE_CONSOLE},
        config=console.config,
        workers=options.workers,
        out=options.out,
        cluster=options.cluster,
    )
    if options.print or options.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _print(start, options.output)
    return open_console(console._replace(fleet=start))


def _print(start: FleetArguments, form: str) -> int:

    try:
        return asyncio.run(run_printed(start, sys.stdout, sys.stderr, form))
    except ClusterError as error:
        sys.stderr.write(f"agent-tui fleet: {error}\n")
        return 1
