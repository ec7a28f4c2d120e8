"""Many runs: which ones, side by side, with what is done kept on disk, so that a killed bench goes on."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tui_agent import __version__
from tui_agent.bench.behaviours import BEHAVIOURS
from tui_agent.bench.case import Case, all_cases
from tui_agent.bench.operators import Kind
from tui_agent.bench.policies import CONTESTANTS
from tui_agent.bench.run import RealModel, Row, Unit, run_unit
from tui_agent.cluster import LOCAL, spread
from tui_agent.store.journal import JOURNAL_NAME

ROWS = "rows.jsonl"
"""The rows of the runs that have ended, as they ended."""
PLAN = "bench.json"
"""What the rows are of. Rows of another plan are not mixed in."""
RUNS = "runs"
"""Folders with a journal for each run, for `agent-tui replay`."""


class BenchError(Exception):
    """The bench cannot go on; the message says why, and what to do."""


@dataclass(frozen=True)
class Plan:
    """What is run: all combinations, but operators only where somebody may be asked."""

    cases: tuple[str, ...]
    behaviours: tuple[str, ...]
    policies: tuple[str, ...]
    operators: tuple[Kind, ...]
    seeds: tuple[int, ...]
    model: str = ""
    """A real model in place of the behaviours; empty: none."""

    def groups(self) -> Iterator[list[tuple[Unit, str, Kind]]]:
        """Runs of one unit under every contestant: what one process does at a time."""
        for case in self.cases:
            for behaviour in (self.model,) if self.model else self.behaviours:
                for seed in self.seeds:
                    unit = Unit(case, behaviour, seed)
                    yield [
                        (unit, policy, operator)
                        for policy in self.policies
                        for operator in self.operators
                        if operator == "absent" or CONTESTANTS[policy].asks
                    ]


def journal_of(out: Path, unit: Unit, policy: str, operator: str) -> Path:
    """The folder with the journal of a run."""
    who = unit.behaviour.replace("/", "-")
    name = policy if operator == "absent" else f"{policy}+{operator}"
    return out / RUNS / unit.case.replace("/", "-") / f"{who}-{unit.seed}" / name


Progress = Callable[[int, int, float], None]
"""Runs done, runs in all, and seconds until the end by what they took so far."""


def run(
    plan: Plan,
    out: Path,
    jobs: int,
    progress: Progress,
    real: RealModel | None = None,
    max_cost: float | None = None,
    cluster: str = LOCAL,
) -> list[Row]:
    """Run what is missing of the plan and give all its rows. Raises `BenchError`, `ClusterError`.

    `max_cost` in USD ends a bench with a real model before the next run begins. `jobs` processes of this machine do it,
    or the workers of a `cluster` (see `cluster.spread`).
    """
    out.mkdir(parents=True, exist_ok=True)
    _keep_plan(plan, out)
    rows = read_rows(out)
    done = {_key(row) for row in rows}
    groups = [
        missing
        for group in plan.groups()
        if (missing := [one for one in group if (one[0], one[1], one[2]) not in done])
    ]
    total = sum(map(len, groups))
    finished, began = 0, time.monotonic()
    with (out / ROWS).open("a", encoding="utf-8") as kept:
        for results in _carry_out(groups, jobs, real, lambda: _stop_at(max_cost, rows), cluster):
            made = [result.row for result in results]
            for result in results:
                _keep_journal(result, out)
            if broken := next((row for row in made if row.outcome == "error"), None):
                raise BenchError(
                    f"A run broke: {_journal(broken, out)} says how (`agent-tui replay --print`)."
                )
            rows.extend(made)
            kept.write("".join(json.dumps(asdict(row)) + "\n" for row in made))
            kept.flush()
            os.fsync(kept.fileno())
            finished += len(made)
            rest = (time.monotonic() - began) / finished * (total - finished)
            progress(finished, total, rest)
    wanted = {one for group in plan.groups() for one in group}
    return [row for row in rows if _key(row) in wanted]


def _key(row: Row) -> tuple[Unit, str, str]:
    return Unit(row.case, row.behaviour, row.seed), row.policy, row.operator


def _stop_at(limit: float | None, rows: Iterable[Row]) -> None:
    if limit is not None and (spent := sum(row.cost or 0.0 for row in rows)) >= limit:
        raise BenchError(
            f"The bench has cost {spent:.2f} USD, and {limit:.2f} are allowed. What was run is kept; a higher "
            "--max-cost goes on with the rest."
        )


class Result(NamedTuple):
    """One run: its figures, and its journal."""

    row: Row
    journal: bytes


def _carry_out(
    groups: Sequence[list[tuple[Unit, str, Kind]]],
    jobs: int,
    real: RealModel | None,
    before: Callable[[], None],
    cluster: str,
) -> Iterator[list[Result]]:
    def begun() -> Iterator[list[tuple[Unit, str, Kind]]]:
        for group in groups:
            before()
            yield group

    scratch = Path(tempfile.mkdtemp(prefix="agent-tui-bench-"))
    try:
        run_group = partial(_run_group, scratch=scratch, real=real)
        for _, ended in spread(run_group, begun(), cluster, jobs, repeatable=real is None):
            yield ended.result()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """The operator's own instructions and skills have no say in a benchmark. What was in `place` is removed."""
    place.mkdir(0o700, parents=True, exist_ok=True)
    before = os.environ.get("XDG_CONFIG_HOME")
    os.environ["XDG_CONFIG_HOME"] = str(place / "config")
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CONFIG_HOME"]
        else:
            os.environ["XDG_CONFIG_HOME"] = before
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):  # another process has its place there
            place.parent.rmdir()


def _run_group(
    group: Sequence[tuple[Unit, str, Kind]], scratch: Path, real: RealModel | None
) -> list[Result]:
    cases = {case.id: case for case in all_cases()}
    place = scratch / f"job-{os.getpid():08d}"
    results = []
    with _alone(place):
        for unit, policy, operator in group:
            journal = place / "journal"
            row = asyncio.run(
                run_unit(cases[unit.case], unit, CONTESTANTS[policy], operator, place, journal, real)
            )
            results.append(Result(row, (journal / JOURNAL_NAME).read_bytes()))
    return results


# --- what is kept ----------------------------------------------------------------------------------------------


def digest_of(cases: Iterable[Case]) -> str:
    """What tells one set of cases and behaviours from another."""
    made = hashlib.sha256(repr((tuple(cases), tuple(BEHAVIOURS.values()))).encode())
    return made.hexdigest()[:16]


def _keep_plan(plan: Plan, out: Path) -> None:
    cases = [case for case in all_cases() if case.id in plan.cases]
    now = {"version": __version__, "cases": digest_of(all_cases()), "model": plan.model, "count": len(cases)}
    path = out / PLAN
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        if any(before.get(key) != now[key] for key in ("version", "cases", "model")):
            raise BenchError(
                f"{out} holds the results of other cases, another version or another model. Name another folder with "
                "--out."
            )
    path.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


def read_rows(out: Path) -> list[Row]:
    """The rows that are there; a torn last line, which a kill leaves, is cut off. Raises `BenchError`."""
    path = out / ROWS
    if not path.is_file():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    try:
        return [Row(**json.loads(line)) for line in whole.splitlines()]
    except (TypeError, ValueError) as error:
        raise BenchError(f"{path} is damaged ({error}). Move it away, and run the bench anew.") from error


def _journal(row: Row, out: Path) -> Path:
    return journal_of(out, Unit(row.case, row.behaviour, row.seed), row.policy, row.operator)


def _keep_journal(result: Result, out: Path) -> None:
    folder = _journal(result.row, out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JOURNAL_NAME).write_bytes(result.journal)


def all_runs(plan: Plan) -> int:
    """How many runs a plan has."""
    return sum(1 for _ in chain.from_iterable(plan.groups()))
