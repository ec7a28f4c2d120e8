"""Many runs: which ones, side by side, with what is done kept on disk, so that a killed bench goes on.

A process gets runs of one case at a time, since it remembers the commands that it carried out; two that share a case
carry them out twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent import __version__
from tui_agent.cluster import LOCAL, spread
from tui_agent.core.recovery.rules import Rule
from tui_agent.lab.bench.behaviours import BEHAVIOURS
from tui_agent.lab.bench.case import Case, all_cases
from tui_agent.lab.bench.kept_replies import whole_lines
from tui_agent.lab.bench.operators import Kind
from tui_agent.lab.bench.policies import CONTESTANTS
from tui_agent.lab.bench.run import RealModel, Row, Unit, run_unit
from tui_agent.models.hosted import KeptHost
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.store.lock import LOCK_NAME, SessionLock

ROWS = "rows.jsonl"
"""The rows of the runs that have ended, as they ended."""
PLAN = "bench.json"
"""The plan of the rows. Rows of another plan are not mixed in."""
RUNS = "runs"
"""Folders with a journal for each run, for `agent-tui replay`."""
MOST_AT_ONCE = 300
"""Runs of a case that a process gets at a time: a killed bench has to begin them anew."""
SHARED = 0.75
"""Of all runs, those that are given out by case. The last ones are given out by unit, so that no process waits long."""

_SCRATCH = "agent-tui-bench-"
"""Begins the names of the places for workspaces, each with the lock of the bench that uses it."""


class BenchError(Exception):
    """The bench cannot go on; the message says why, and what to do."""


def unpriced(model: str) -> BenchError:
    """The error of a limit on what nobody knows."""
    return BenchError(
        f"What {model} costs is not known, so that --max-cost holds nothing. Say it in your "
        f'config.toml: [prices."{model}"] with prompt and completion in USD per million tokens '
        "(0 if it costs nothing)."
    )


@dataclass(frozen=True)
class Plan:
    """The runs: all combinations, but operators only with policies that ask somebody."""

    cases: tuple[str, ...]
    behaviours: tuple[str, ...]
    policies: tuple[str, ...]
    operators: tuple[Kind, ...]
    seeds: tuple[int, ...]
    model: str = ""
    """A real model in place of the behaviours; empty: none."""

    def runs(self) -> Iterator[Run]:
        """All runs: those of a case together, and in it those of a unit."""
        for case in self.cases:
            for behaviour in (self.model,) if self.model else self.behaviours:
                for seed in self.seeds:
                    unit = Unit(case, behaviour, seed)
                    for policy in self.policies:
                        for operator in self.operators:
                            if operator == "absent" or CONTESTANTS[policy].asks:
                                yield Run(unit, policy, operator)


class Run(NamedTuple):
    """A unit under one contestant."""

    unit: Unit
    policy: str
    operator: Kind


class Piece(NamedTuple):
    """The work of a process at a time. `max_cost`: the limit for a run of a real model, in USD."""

    runs: tuple[Run, ...]
    max_cost: float | None = None


def pieces(runs: Sequence[Run]) -> Iterator[Piece]:
    """The runs in the order in which they are given out."""
    begun = 0
    for _, same_case in groupby(runs, lambda run: run.unit.case):
        by_unit = [tuple(same_unit) for _, same_unit in groupby(same_case, lambda run: run.unit)]
        piece: tuple[Run, ...] = ()
        for same in by_unit:
            if piece and (begun >= SHARED * len(runs) or len(piece) + len(same) > MOST_AT_ONCE):
                yield Piece(piece)
                piece = ()
            piece += same
            begun += len(same)
        yield Piece(piece)


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

    `jobs` processes of this machine do it, or the workers of a `cluster` (see `cluster.spread`). Runs of a real model
    are begun one by one, each with what is left of `max_cost` (USD in all). One that this limit ends counts as cost and
    not as a result.
    """
    out.mkdir(parents=True, exist_ok=True)
    _keep_plan(plan, out)
    rows = read_rows(out)
    done = {_key(row) for row in finished(rows)}
    missing = [one for one in plan.runs() if one not in done]
    ended, began = 0, time.monotonic()

    def left() -> float | None:
        return None if max_cost is None else max_cost - sum(row.cost or 0.0 for row in rows)

    def begun() -> Iterator[Piece]:
        for one in missing:
            allowed = left()
            if allowed is not None and allowed <= 0:
                return
            yield Piece((one,), allowed)

    given = begun() if real is not None or max_cost is not None else pieces(missing)
    with (out / ROWS).open("a", encoding="utf-8") as kept:
        for results in _carry_out(given, jobs, real, cluster):
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
            if max_cost is not None and any(row.tokens and row.cost is None for row in made):
                raise unpriced(plan.model)
            ended += len(made)
            rest = (time.monotonic() - began) / ended * (len(missing) - ended)
            progress(ended, len(missing), rest)
    wanted = set(plan.runs())
    found = [row for row in finished(rows) if _key(row) in wanted]
    if max_cost is not None and len(found) < len(wanted):
        raise BenchError(
            f"The bench has cost {max_cost - (left() or 0.0):.4f} USD, and {max_cost:.4f} are allowed; "
            f"{len(found)} of {len(wanted)} runs have ended. What was run is kept; a higher --max-cost goes on with "
            "the rest."
        )
    return found


def _key(row: Row) -> tuple[Unit, str, str]:
    return Unit(row.case, row.behaviour, row.seed), row.policy, row.operator


def finished(rows: Iterable[Row]) -> list[Row]:
    """Those that are results: a run that the limit on the cost ended says nothing of its policy."""
    return [row for row in rows if row.rule != Rule.LIMIT_COST]


class Result(NamedTuple):
    """One run: its figures, and its journal."""

    row: Row
    journal: bytes


def _carry_out(
    given: Iterable[Piece], jobs: int, real: RealModel | None, cluster: str
) -> Iterator[list[Result]]:
    _clear_scratch()
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH))
    owned = SessionLock.acquire(scratch)
    try:
        work = partial(_run_piece, scratch=scratch, real=real)
        for _, ended in spread(work, given, cluster, jobs, repeatable=real is None):
            yield ended.result()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        owned.release()


def _clear_scratch() -> None:
    """Remove what benches left that were killed: the lock of such a place is free."""
    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        if (left / LOCK_NAME).is_file() and not SessionLock.held(left):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def alone(place: Path) -> Iterator[None]:
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


class _SharedHost:
    """The model host of a worker's process, and the loop that it lives in. It ends with the process."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.model = KeptHost()

    def run(self, work: Coroutine[Any, Any, Row]) -> Row:
        """Carry a run out."""
        return self._runner.run(work)


_shared_host = cache(_SharedHost)


def _run_piece(piece: Piece, scratch: Path, real: RealModel | None) -> list[Result]:
    cases = {case.id: case for case in all_cases()}
    carry_out: Callable[[Coroutine[Any, Any, Row]], Row] = asyncio.run
    if real is not None:
        shared = _shared_host()
        carry_out = shared.run
        real = RealModel(real.settings.replaced(max_cost=piece.max_cost), shared.model)
    place = scratch / f"job-{os.getpid():08d}"
    results = []
    with alone(place):
        for unit, policy, operator in piece.runs:
            journal = place / "journal"
            row = carry_out(
                run_unit(cases[unit.case], unit, CONTESTANTS[policy], operator, place, journal, real)
            )
            results.append(Result(row, (journal / JOURNAL_NAME).read_bytes()))
    return results


# --- what is kept ----------------------------------------------------------------------------------------------


def digest_of(cases: Iterable[Case]) -> str:
    """The digest that tells one set of cases and behaviours from another."""
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
    try:
        return [Row(**json.loads(line)) for line in whole_lines(path)]
    except (TypeError, ValueError) as error:
        raise BenchError(f"{path} is damaged ({error}). Move it away, and run the bench anew.") from error


def _journal(row: Row, out: Path) -> Path:
    return journal_of(out, Unit(row.case, row.behaviour, row.seed), row.policy, row.operator)


def _keep_journal(result: Result, out: Path) -> None:
    folder = _journal(result.row, out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JOURNAL_NAME).write_bytes(result.journal)
