"""Recorded runs as counts: how many steps stood in each cell, and how many of them succeeded.

No text of a run is kept. A run is in one fold as a whole, chosen by its file's name and its place in it.
"""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from tui_agent.core import events
from tui_agent.core.recovery.iteration import CallResult, Iteration, close, result_of_call
from tui_agent.core.recovery.next_step import Cause, Cell, NextStep
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.formats.importers.load import Imported, find_transcripts, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError

FOLDS = 5
FULL_WEIGHT = 1_000
"""Steps from which on a source has the weight of one source; a smaller one has less, or a few of its steps would
weigh as much as hundreds of others."""

SETS = frozenset({
    "swebench-gemini-3-pro", "tau-retail", "repolaunch", "openclaw-monthly", "openclaw-terminal",
})  # fmt: skip
"""Folders that are a set of their own."""


class Row(NamedTuple):
    """Steps of one source and fold that stood in one cell, and how many of them succeeded."""

    source: str
    fold: int
    cell: Cell
    steps: int
    successes: int


def recordings(folders: Iterable[Path]) -> Iterator[tuple[Path, Imported]]:
    """The runs of every transcript below `folders`; a file that is none is left out with a remark."""
    for path in find_transcripts(list(folders)):
        try:
            runs = load_transcripts(path)
        except TranscriptError as error:
            sys.stderr.write(f"left out: {path.name} ({error})\n")
            continue
        yield from ((path, run) for run in runs)


def source_of(path: Path, format_name: str) -> str:
    """The folder, or the format of a recording that is no part of a set; sets of several environments and models in
    files named `environment__model--…` are split.
    """
    match path.parent.name:
        case "intercode":
            return f"intercode-{path.name.split('--')[0].replace('__', '-')}"
        case name if name in SETS:
            return name
        case _:
            return format_name


def facts(recorded: Iterable[events.Event]) -> Iterator[events.RunStarted | events.ModelFaulted | Iteration]:
    """Events that the state is folded from: starts of runs, failed model calls, finished iterations."""
    results: list[CallResult] = []
    rejected: events.Failure | None = None
    for event in recorded:
        match event:
            case events.RunStarted() | events.ModelFaulted():
                yield event
            case events.IterationStarted():
                results, rejected = [], None
            case events.ToolResult():
                results.append(result_of_call(event, PRESETS["combined"]))
            case events.ReplyRejected():
                rejected = event.failure
            case events.IterationFinished():
                yield close(
                    event.iteration,
                    tuple(results),
                    rejected,
                    seq=event.seq,
                    at=event.at,
                    cancelled=event.cancelled,
                )


def steps(recorded: Iterable[events.Event]) -> Iterator[tuple[NextStep, bool]]:
    """The state before each step but the first, and whether the step held a successful call."""
    state = NextStep()
    for fact in facts(recorded):
        match fact:
            case events.RunStarted():
                state = state.next_run()
            case events.ModelFaulted():
                state = state.model_faulted(fact.iteration)
            case Iteration():
                if state.chance is not None and not fact.cancelled and (fact.succeeded or fact.failed):
                    yield state, fact.succeeded
                state = state.apply(fact)


def count(folders: list[Path]) -> list[Row]:
    """Every transcript below `folders`."""
    counted: dict[tuple[str, int, Cell], list[int]] = defaultdict(lambda: [0, 0])
    for path, run in recordings(folders):
        source = source_of(path, run.source)
        name = f"{source} {path.name} {run.index}".encode()
        fold = int.from_bytes(blake2b(name, digest_size=4).digest(), "big") % FOLDS
        for state, succeeded in steps(run.events):
            entry = counted[source, fold, state.cell]
            entry[0] += 1
            entry[1] += succeeded
    return [Row(source, fold, cell, *numbers) for (source, fold, cell), numbers in sorted(counted.items())]


def write_data(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["source", "fold", "stall", "repeated", "cause", "record", "evidence", "steps", "successes"]
    )
    for source, fold, cell, number, successes in rows:
        stall, repeated, cause, record, evidence = cell
        writer.writerow(
            [source, fold, stall, int(repeated), cause.value, record, evidence, number, successes]
        )
    return text.getvalue()


def read_data(text: str) -> list[Row]:
    return [
        Row(
            line["source"],
            int(line["fold"]),
            Cell(
                int(line["stall"]),
                line["repeated"] == "1",
                Cause(line["cause"]),
                int(line["record"]),
                int(line["evidence"]),
            ),
            int(line["steps"]),
            int(line["successes"]),
        )
        for line in csv.DictReader(io.StringIO(text))
    ]


def weights(rows: list[Row]) -> dict[str, float]:
    """Weight of one step of each source; all together weigh as much as there are steps."""
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row.source] += row.steps
    each = {source: 1.0 / max(size, FULL_WEIGHT) for source, size in sizes.items()}
    scale = sum(sizes.values()) / sum(each[source] * size for source, size in sizes.items())
    return {source: weight * scale for source, weight in each.items()}
