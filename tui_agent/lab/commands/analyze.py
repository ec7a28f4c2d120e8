"""`agent-tui analyze`: recorded runs, ours or others', judged by any policy."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, TextIO

from tui_agent.cli.errors import UsageError
from tui_agent.cli.interrupts import sigterm_interrupts
from tui_agent.cli.options import Parser, add_cluster_option, say_of_open_cluster
from tui_agent.cluster import ClusterError
from tui_agent.core.names import POLICIES
from tui_agent.lab.analysis import table
from tui_agent.lab.analysis.runs import FileReport, reports
from tui_agent.lab.analysis.table import COLUMNS, answer_text, rows_of
from tui_agent.lab.parquet import RESULTS, ParquetError, ask, results_in, rows_file
from tui_agent.terminal_text import visible

_EXAMPLE = """
agent-tui analyze runs/                          all five policies over every recording in a folder
agent-tui analyze runs/ --html report.html                       the same as one page with plots
agent-tui analyze session.jsonl --policy combined --format json
agent-tui analyze runs/ --policy combined --operator absent     as if nobody could have been asked
agent-tui analyze runs/ --out results.parquet --cluster tcp://head:8786
agent-tui analyze results.parquet --sql "SELECT policy, count(*), sum(failures) FROM runs GROUP BY policy" """


def parser() -> Parser:
    made = Parser(
        "analyze",
        "What would each recovery policy have said to these runs? Reads our own sessions and the recordings of\n"
        "other agents; nothing is run again. Grades come from the recordings, or from a resolved.json beside them.\n"
        "The policies keep their own values, so that tables can be compared: [recovery] of your configuration is not\n"
        "used. `agent-tui replay FILE --policy NAME` judges one recording with it.",
        _EXAMPLE,
    )
    made.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FILE|DIR",
        help="recorded runs, or folders of them; results.parquet for --sql",
    )
    made.add_argument(
        "--policy",
        action="append",
        choices=[*POLICIES, "all"],
        help="judge by this policy; may be repeated (default: all five)",
    )
    made.add_argument("--format", choices=["text", "json", "csv"], default="text", help="default: text")
    made.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page with plots to FILE, which needs nothing else, in place of the text",
    )
    made.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    made.add_argument(
        "--operator",
        choices=["recorded", "present", "absent"],
        default="recorded",
        help="whether somebody could have been asked (default: as in the recording)",
    )
    made.add_argument(
        "--patterns", type=int, default=10, metavar="N", help="show the N most frequent errors (default 10)"
    )
    made.add_argument("--all", action="store_true", help="list every run, also those without a verdict")
    made.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write a row for each run and policy as Parquet, and print no tables",
    )
    made.add_argument(
        "--strict",
        action="store_true",
        help="exit code 1 also when more than 2 %% of a file's records or results are lost, or most are not known",
    )
    made.add_argument("--sql", metavar="SELECT", help="query results.parquet: its rows are the table `runs`")
    add_cluster_option(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the tables. 0: every file was read; 1: some could not be (they are named); 2: nothing to read."""
    options = parser().parse(arguments)
    missing = [path for path in options.paths if not path.exists()]
    if missing:
        sys.stderr.write(f"agent-tui analyze: {missing[0]} does not exist. Check the name.\n")
        return 2
    if options.html is not None and (options.out is not None or options.sql):
        raise UsageError("agent-tui analyze: --html does not go with --out or --sql.")
    if options.html is not None and not options.html.parent.is_dir():
        sys.stderr.write(f"agent-tui analyze: the folder of {options.html} does not exist. Make it first.\n")
        return 2
    say_of_open_cluster(options.cluster)
    results = [found for path in options.paths if (found := results_in(path))]
    try:
        if not results:
            with sigterm_interrupts():
                return _analyze(options)
        if len(results) < len(options.paths) or not options.sql:
            raise UsageError(f"agent-tui analyze: {results[0]} holds results. Name it alone, with --sql.")
        _answer(results, options)
    except (ClusterError, ParquetError) as error:
        sys.stderr.write(f"agent-tui analyze: {error}\n")
        return 1
    return 0


def _analyze(options: argparse.Namespace) -> int:
    policies = tuple(dict.fromkeys(options.policy or POLICIES))
    with Progress(sys.stderr, time.monotonic) as progress:
        try:
            files = reports(
                options.paths,
                POLICIES if "all" in policies else policies,
                options.jobs,
                present=options.operator,
                progress=progress,
                cluster=options.cluster,
            )
        except FileNotFoundError:
            sys.stderr.write(
                "agent-tui analyze: no .json, .jsonl or .traj file there. Name a recorded run, or a folder of them.\n"
            )
            return 2
        if options.out is not None or options.sql:
            return _keep(files, options)
        listed = list(files)
    if options.html is not None and not _write_page(listed, options):
        return 2
    _print(listed, options)
    return 1 if any(_fails(file, options) for file in listed) else 0


def _fails(file: FileReport, options: argparse.Namespace) -> bool:
    """True if the file makes the exit code 1. Too great a loss is said here for those who do not read the
    tables.
    """
    if file.loss:
        sys.stderr.write(f"agent-tui analyze: {visible(file.path)}: {visible(file.loss)}\n")
    return bool(file.error) or (options.strict and bool(file.loss))


def _write_page(files: Sequence[FileReport], options: argparse.Namespace) -> bool:
    try:
        options.html.write_text(table.as_html(files, patterns=options.patterns), "utf-8")
    except OSError as error:
        sys.stderr.write(f"agent-tui analyze: {options.html} cannot be written: {error.strerror}.\n")
        return False
    sys.stderr.write(f"Written: {options.html}\n")
    return True


def _print(files: Sequence[FileReport], options: argparse.Namespace) -> None:
    match options.format:
        case "json":
            text = table.as_json(files)
        case "csv":
            text = table.as_csv(files)
        case _ if options.html is not None:
            text = ""
        case _:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            text = table.as_text(files, everything=options.all, patterns=options.patterns, width=width)
    sys.stdout.write(text)


def _keep(files: Iterator[FileReport], options: argparse.Namespace) -> int:
    """Write the rows as they come, so that no number of them fills the memory; then ask them."""
    unread = 0
    with TemporaryDirectory(prefix="agent-tui-") as scratch:
        out = options.out or Path(scratch) / RESULTS
        with rows_file(out, COLUMNS) as add:
            for file in files:
                add(rows_of(file))
                unread += _fails(file, options)
        if options.sql:
            _answer([out], options)
        else:
            sys.stdout.write(f"{out}\n")
    return 1 if unread else 0


def _answer(results: Sequence[Path], options: argparse.Namespace) -> None:
    sys.stdout.write(answer_text(ask(results, options.sql), options.format))


EVERY = 10.0
"""Seconds between two lines about the progress, if no bar can be drawn."""


class Progress:
    """How many files are read: a bar on a terminal, a line now and then elsewhere. `clock` counts seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream, self._clock = stream, clock
        self._bar = stream.isatty()
        self._said = clock()

    def __call__(self, done: int, total: int, path: Path) -> None:
        if self._bar:
            filled = 30 * done // total
            name = path.name if path.name.isprintable() else "…"
            count = f"{done}/{total}"
            room = max(0, shutil.get_terminal_size().columns - 35 - len(count))
            self._stream.write(f"\r\x1b[K[{'█' * filled}{'·' * (30 - filled)}] {count} {name[:room]}")
        elif self._clock() - self._said >= EVERY:
            self._said = self._clock()
            self._stream.write(f"{done} of {total} files read\n")
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing of the bar."""
        if self._bar:
            self._stream.write("\r\x1b[K")
