"""Writes docs/lab/PLAYBOOK.md: what the playbook brings on recorded runs and on the benchmark.

    python -m tui_agent.lab.evaluation.playbook --bench DIR NAME=FOLDER…

Each folder holds recorded runs; a run is known by its project: what stands before `__` in its file's name, or before
the number of its task; else the name of the file. DIR: what
`agent-tui bench --policies combined,playbook-6 --operators absent --out DIR` wrote. The cases of
docs/lab/playbook/recurring.toml are run here.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.lab.bench.behaviours import BEHAVIOURS
from tui_agent.lab.bench.bench import read_rows
from tui_agent.lab.bench.case import all_cases
from tui_agent.lab.bench.figures import Estimate, Measure, difference, estimate, interrupted, solved
from tui_agent.lab.bench.policies import CONTESTANTS
from tui_agent.lab.bench.run import Row, Unit, run_unit
from tui_agent.lab.evaluation import PAGES
from tui_agent.lab.evaluation.next_step.counting import recordings
from tui_agent.lab.evaluation.policies import Recordings, markdown_table, recordings_of
from tui_agent.playbook.book import SAID, Book, Counted, PlaybookEntry, carries, is_evident
from tui_agent.playbook.learning import runs_of
from tui_agent.playbook.lessons import Lesson
from tui_agent.store.redaction import Redactor

TARGET = PAGES / "PLAYBOOK.md"
CASES = PAGES / "playbook"
TEXT = CASES / "text.md"
WITHOUT, WITH = "combined", "playbook-6"
SEEDS = (1, 2, 3)
DRAWS = 1_000

Gate = Callable[[PlaybookEntry, Counted], bool]
Runs = Mapping[str, Sequence[tuple[Lesson, ...]]]
"""The lessons of each run, by project."""


@dataclass(frozen=True)
class Held:
    """One failure of a run that was left out, against what the other runs of its project know."""

    project: str
    run: int
    recurs: bool
    """Another run of the project has a failure of the same shape."""
    said: bool
    right: bool
    """The suggestion is the repair that recovered it in the recording."""
    vain: bool
    """The suggestion was tried in the recording, and did not work."""
    at_once: bool
    """The next step recovered it, without being told."""
    kind: str
    """Of what was missing."""
    form: str
    """Of the repair that was named, or would have been."""


def runs_by_project(recorded: Recordings) -> Runs:
    """The lessons of all runs. Raises `FileNotFoundError` if there is no recording."""
    found: dict[str, list[tuple[Lesson, ...]]] = defaultdict(list)
    redactor = Redactor({})
    for path, imported in recordings(recorded.paths):
        found[project_of(path)].append(
            tuple(one for run in runs_of(imported, redactor) for one in run.lessons)
        )
    return found


_NUMBERED = re.compile(r"(.+__[^.]+)-\d+(?:\.|$)")
"""A file that is named by its project and the number of a task."""


def project_of(path: Path) -> str:
    """The project that the runs of a file are of."""
    numbered = _NUMBERED.match(path.name)
    return numbered[1] if numbered else path.name.partition("__" if "__" in path.name else ".")[0]


def held_out(runs: Runs, may: Gate = carries) -> Iterator[Held]:
    """Each failure, with the run that it is of left out; `may`: which repairs may be named."""
    for project, known in runs.items():
        by_shape: dict[str, list[tuple[int, Lesson]]] = defaultdict(list)
        for number, lessons in enumerate(known):
            for lesson in lessons:
                by_shape[lesson.sign.shape].append((number, lesson))
        books: dict[tuple[str, int], Book] = {}
        for number, lessons in enumerate(known):
            for lesson in lessons:
                shape = lesson.sign.shape
                others = [one for run, one in by_shape[shape] if run != number]
                if (shape, number) not in books:
                    books[shape, number] = Book().learned("the others", others, 0.0, general=False)
                yield _held(project, number, lesson, books[shape, number], recurs=bool(others), may=may)


def _held(
    project: str,
    number: int,
    lesson: Lesson,
    book: Book,
    *,
    recurs: bool,
    general: bool = False,
    may: Gate = carries,
) -> Held:
    said = book.suggestion(lesson.sign, 0.0, general=general, may=may)
    outcomes = {
        one.worked
        for one in lesson.tries
        if said is not None and (one.repair.form, one.repair.name) == (said.form, said.repair)
    }
    return Held(
        project,
        number,
        recurs,
        said is not None,
        True in outcomes,
        outcomes == {False},
        lesson.at_once,
        lesson.sign.kind,
        said.form if said is not None else "",
    )


def share(part: Sequence[bool], clusters: Sequence[object]) -> str:
    """A share with its interval, by drawing runs anew."""
    if not part:
        return "–"
    groups: dict[object, list[bool]] = defaultdict(list)
    for value, cluster in zip(part, clusters, strict=True):
        groups[cluster].append(value)
    drawn = random.Random(0)
    means = []
    for _ in range(DRAWS):
        values = [value for one in drawn.choices(list(groups.values()), k=len(groups)) for value in one]
        means.append(sum(values) / len(values))
    means.sort()
    low, high = means[DRAWS // 40], means[-DRAWS // 40 - 1]
    return f"{sum(part) / len(part):.0%} ({low:.0%}–{high:.0%})"


def recorded_section(sets: Sequence[Recordings]) -> str:
    """The worth of the suggestions on recorded runs."""
    head = (
        "runs",
        "failures",
        "of them recur",
        "said",
        "said what worked",
        "tried without success",
        "next step without it",
    )
    body, places = [], []
    for one in sets:
        runs = runs_by_project(one)
        held = list(held_out(runs))
        said = [each for each in held if each.said]
        clusters = [(each.project, each.run) for each in said]
        body.append((
            one.name,
            f"{sum(map(len, runs.values())):,}",
            f"{len(held):,}",
            f"{sum(each.recurs for each in held):,}",
            f"{len(said):,}",
            share([each.right for each in said], clusters),
            share([each.vain for each in said], clusters),
            share([each.at_once for each in said], clusters),
        ))  # fmt: skip
        names = sorted({each.project for each in said})
        if names:
            places.append(f"{one.name}: {', '.join(names)} ({len(names)} of {len(runs)} projects)")
    table = markdown_table(("recordings", *head), body, 1)
    where = "; ".join(places) or "nowhere"
    return f"{table}\nProjects in which something was said: {where}.\n"


def kinds_section(sets: Sequence[Recordings]) -> str:
    """The worth of each kind of lesson, those that are held back too: with the run left out, and with its project."""
    body = []
    for one in sets:
        runs = runs_by_project(one)
        own, others = (
            _by_kind(found) for found in (held_out(runs, is_evident), project_left_out(runs, is_evident))
        )
        body += [
            (one.name, kind or "nothing named", form, *(_right(by.get((kind, form), [])) for by in (own, others)),
             "yes" if (kind, form) in SAID else "held back")
            for kind, form in sorted({*own, *others})
        ]  # fmt: skip
    head = (
        "recordings",
        "missing",
        "repair",
        "its run left out: right",
        "its project left out: right",
        "said",
    )
    return markdown_table(head, body, 3)


def _by_kind(found: Iterator[Held]) -> dict[tuple[str, str], list[bool]]:
    by: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for held in found:
        if held.said:
            by[held.kind, held.form].append(held.right)
    return by


def _right(found: Sequence[bool]) -> str:
    return f"{sum(found)} of {len(found)}" if found else "–"


def project_left_out(runs: Runs, may: Gate) -> Iterator[Held]:
    """Each failure, with its whole project left out: a workspace's book learned from all others."""
    by_shape: dict[str, list[tuple[str, int, Lesson]]] = defaultdict(list)
    for project, known in runs.items():
        for number, lessons in enumerate(known):
            for lesson in lessons:
                by_shape[lesson.sign.shape].append((project, number, lesson))
    for alike in by_shape.values():
        books: dict[str, Book] = {}
        for project, number, lesson in alike:
            if project not in books:
                others = [one for name, _, one in alike if name != project]
                books[project] = Book().learned("the others", others, 0.0, general=False)
            yield _held(project, number, lesson, books[project], recurs=True, may=may)


def elsewhere_section(sets: Sequence[Recordings]) -> str:
    """Suggestions of the user's level for each project, learned from all others."""
    body = []
    for one in sets:
        runs = runs_by_project(one)
        found = [held for project in runs for held in _from_others(runs, project)]
        said = [held for held in found if held.said]
        right, failed = sum(held.right for held in said), sum(held.vain for held in said)
        body.append((one.name, f"{len(found):,}", f"{len(said):,}", f"{right:,}", f"{failed:,}"))
    head = ("recordings", "failures", "said", "said what worked", "tried without success")
    return markdown_table(head, body, 1)


def _from_others(runs: Runs, project: str) -> Iterator[Held]:
    others = [lesson for name, known in runs.items() if name != project for run in known for lesson in run]
    book = Book().learned("the others", others, 0.0, general=True)
    for number, lessons in enumerate(runs[project]):
        for lesson in lessons:
            yield _held(project, number, lesson, book, recurs=True, general=True)


async def recurring(folder: Path) -> list[Row]:
    """The recurring cases under both contestants, paired."""
    rows = []
    for case in all_cases(CASES):
        for behaviour in BEHAVIOURS:
            for seed in SEEDS:
                for policy in (WITHOUT, WITH):
                    unit = Unit(case.id, behaviour, seed)
                    ran = run_unit(
                        case, unit, CONTESTANTS[policy], "absent", folder / "work", folder / "kept"
                    )
                    rows.append(await ran)
        sys.stderr.write(f"{case.id}\n")
    return rows


def paired_table(rows: Sequence[Row]) -> str:
    """Without and with the playbook, and the difference."""
    before, after = ([row for row in rows if row.policy == policy] for policy in (WITHOUT, WITH))
    faulty = [[row for row in side if not row.negative] for side in (before, after)]
    healthy = [[row for row in side if row.negative] for side in (before, after)]
    measures: list[tuple[str, list[list[Row]], Measure, int, str]] = [
        ("success", faulty, solved, 100, " %"),
        ("healthy runs harmed", healthy, interrupted, 100, " %"),
        ("steps", faulty, lambda row: row.iterations, 1, ""),
        ("tokens", faulty, lambda row: row.tokens, 1, ""),
    ]
    body = [
        (name, _mean(estimate(one, measure), scale, unit), _mean(estimate(other, measure), scale, unit),
         _change(difference(other, one, measure), scale))
        for name, (one, other), measure, scale, unit in measures
        if one and other
    ]  # fmt: skip
    return markdown_table(("", "without", "with, after 6 runs", "difference"), body, 1)


def _mean(found: Estimate, scale: float, unit: str) -> str:
    return f"{found.mean * scale:,.{0 if scale == 100 or found.mean > 99 else 1}f}{unit}"


def _change(found: Estimate, scale: float) -> str:
    text = f"{found.mean * scale:+.1f} ({found.low * scale:+.1f} to {found.high * scale:+.1f})"
    return f"**{text}**" if found.decided else text


def main(arguments: Sequence[str]) -> int:
    """Write the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bench", type=Path, metavar="DIR", required=True)
    parser.add_argument("sets", nargs="+", metavar="NAME=FOLDER")
    options = parser.parse_args(arguments)
    try:
        sets = [recordings_of(one) for one in options.sets]
    except FileNotFoundError as absent:
        sys.stderr.write(f"skipped: {absent} does not exist, and without recorded runs nothing is measured\n")
        return 0
    bench = [row for row in read_rows(options.bench) if row.policy in {WITHOUT, WITH}]
    with tempfile.TemporaryDirectory(prefix="playbook-") as folder:
        own = asyncio.run(recurring(Path(folder)))
    text = TEXT.read_text("utf-8")
    filled = {
        "RECORDED": recorded_section(sets),
        "KINDS": kinds_section(sets),
        "ELSEWHERE": elsewhere_section(sets),
        "BENCH": paired_table(bench),
        "BENCH_CASES": f"{len({row.case for row in bench})}",
        "RECURRING": paired_table(own),
        "RECURRING_CASES": f"{len({row.case for row in own})}",
    }
    for name, part in filled.items():
        text = text.replace(f"<!-- {name} -->", part.rstrip("\n"))
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    sys.exit(main(sys.argv[1:]))
