"""`agent-tui bench`: recovery policies on equal faults, and the report of what came of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui_agent.cli.errors import UsageError
from tui_agent.cli.interrupts import sigterm_interrupts
from tui_agent.cli.options import Parser, add_cluster_option, overrides, say_of_open_cluster
from tui_agent.cluster import ClusterError
from tui_agent.config.settings import Settings, load_settings
from tui_agent.lab.bench.behaviours import BEHAVIOURS
from tui_agent.lab.bench.bench import BenchError, Plan, finished, read_rows, run
from tui_agent.lab.bench.case import Case, CaseError, all_cases, chosen
from tui_agent.lab.bench.operators import OPERATORS
from tui_agent.lab.bench.policies import ADVISED, CONTESTANTS, STANDARD
from tui_agent.lab.bench.report import in_lines, write
from tui_agent.lab.bench.run import RealModel, Row
from tui_agent.models.hosted import KeptHost

_EXAMPLE = """
agent-tui bench --out results                          every case, behaviour and policy
agent-tui bench polling same-call --policies combined,retries
agent-tui bench --model openai/gpt-5-mini --repeat 3 --max-cost 5 --policies retries,combined
agent-tui bench report results                         tables (BENCHMARK.md), plots (report.html), results.parquet
agent-tui bench notes --model openai/small --max-cost 1 --out notes   the next reply at failing steps, by the note
agent-tui bench real --model openai/small --max-cost 1 --out real     whole runs of a small model, its replies kept"""


def parser() -> Parser:
    made = Parser(
        "bench",
        "Compare recovery policies on equal faults: real tools in real workspaces, faults that are put in, and\n"
        "scripted models whose habits were counted in recorded runs, or a real model. Results are kept in --out, and\n"
        "the same command continues an unfinished bench.\n"
        "`agent-tui replay DIR/runs/CASE/MODEL-SEED/POLICY` opens one run.",
        _EXAMPLE,
    )
    made.add_argument(
        "cases",
        nargs="*",
        metavar="CASES",
        help="cases, families, kinds of fault, `negative` (default: all); `report DIR`; `notes` or `real` and cases",
    )
    made.add_argument("--policies", metavar="NAMES", help="names with commas between them (default: all)")
    made.add_argument("--behaviours", metavar="NAMES", help="scripted models (default: all)")
    made.add_argument(
        "--operators",
        metavar="NAMES",
        default="absent",
        help="absent, well, badly, late, never: who is there to be asked (default: absent)",
    )
    made.add_argument("--model", metavar="NAME", help="a real model in place of the scripted ones")
    made.add_argument("--api-base", metavar="URL", help="address of its server")
    made.add_argument("--max-cost", type=float, metavar="USD", help="what all runs together may cost")
    made.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="runs of each case, with different seeds (default 1)",
    )
    made.add_argument("--seed", type=int, default=1, metavar="N", help="the first seed (default 1)")
    made.add_argument(
        "--out", type=Path, default=Path("bench-results"), metavar="DIR", help="default: bench-results"
    )
    made.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    add_cluster_option(made)
    made.add_argument(
        "--list", action="store_true", help="list cases, policies and behaviours, and run nothing"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    """0: all was run and reported; 1: it could not go on; 2: wrong usage."""
    options = parser().parse(arguments)
    try:
        if options.cases[:1] == ["report"]:
            return _report(options.cases[1:])
        if options.cases[:1] == ["notes"]:
            return _notes(options)
        if options.cases[:1] == ["real"]:
            return _runs(options)
        return _list() if options.list else _bench(options)
    except CaseError as error:
        raise UsageError(f"agent-tui bench: {error}") from error
    except (BenchError, ClusterError) as error:
        sys.stderr.write(f"agent-tui bench: {error}\n")
        return 1


def _notes(options: argparse.Namespace) -> int:
    """Sample the next reply of a real model at failing steps; without a model, write the page of what is kept."""
    from tui_agent.lab.bench import next_moves, notes

    page = options.out / next_moves.PAGE
    if options.model:
        if options.max_cost is None:
            raise UsageError(_COSTS)
        cases, settings = chosen(options.cases[1:]), _real(options).settings
        try:
            with sigterm_interrupts():
                asyncio.run(_sampled(cases, settings, options))
        except KeyboardInterrupt:
            _say_of_interrupt(options.out)
            raise
    elif not (options.out / notes.REPLIES).is_file():
        raise UsageError("agent-tui bench notes: name a --model, or a folder with replies as --out.")
    page.write_text(
        next_moves.page(notes.read_scene(options.out), notes.read_replies(options.out)), encoding="utf-8"
    )
    sys.stdout.write(f"{page}\n")
    return 0


async def _sampled(cases: Sequence[Case], settings: Settings, options: argparse.Namespace) -> None:
    from tui_agent.lab.bench.notes import carry_out

    host = KeptHost()
    try:
        await carry_out(cases, settings, host, options.repeat, options.seed, options.out)
    finally:
        await host.end()


def _runs(options: argparse.Namespace) -> int:
    """Play whole runs of a small real model; without a model, write the page of what is kept."""
    from tui_agent.lab.bench import real, real_page

    page = options.out / real_page.PAGE
    if options.model:
        if options.max_cost is None:
            raise UsageError(_COSTS)
        policies = _names(options.policies, CONTESTANTS, "--policies") if options.policies else real.POLICIES
        cases, settings = chosen(options.cases[1:] or real.CASES), _real(options).settings
        try:
            with sigterm_interrupts():
                asyncio.run(_played(cases, policies, settings, options))
        except KeyboardInterrupt:
            _say_of_interrupt(options.out)
            raise
    elif not read_rows(options.out):
        raise UsageError("agent-tui bench real: name a --model, or a folder with results as --out.")
    page.write_text(real_page.page(read_rows(options.out)), encoding="utf-8")
    sys.stdout.write(f"{page}\n")
    return 0


async def _played(
    cases: Sequence[Case], policies: Sequence[str], settings: Settings, options: argparse.Namespace
) -> None:
    from tui_agent.lab.bench import real
    from tui_agent.lab.bench.kept_replies import KeptReplies

    host = KeptHost()
    model = real.SmallModel(settings, host, replies=KeptReplies(options.out))
    wanted = real.units(cases, settings.model, range(options.seed, options.seed + options.repeat))
    try:
        await real.carry_out(wanted, policies, model, options.jobs or 1, options.out)
    finally:
        await host.end()


_COSTS = "agent-tui bench: a real model costs money; say how much at most with --max-cost USD."


def _bench(options: argparse.Namespace) -> int:
    if options.repeat < 1 or (options.jobs is not None and options.jobs < 1):
        raise UsageError("agent-tui bench: --repeat and --jobs are 1 or more.")
    if options.model and options.max_cost is None:
        raise UsageError(_COSTS)
    policies = _names(options.policies, CONTESTANTS, "--policies") if options.policies else STANDARD
    if options.model and (advised := [name for name in policies if name in ADVISED]):
        raise UsageError(
            f"agent-tui bench: {advised[0]} advises the scripted models alone; leave out --model."
        )
    say_of_open_cluster(options.cluster)
    plan = Plan(
        cases=tuple(case.id for case in chosen(options.cases)),
        behaviours=_names(options.behaviours, BEHAVIOURS, "--behaviours"),
        policies=policies,
        operators=_names(options.operators, OPERATORS, "--operators"),
        seeds=tuple(range(options.seed, options.seed + options.repeat)),
        model=options.model or "",
    )
    jobs = options.jobs or (1 if options.model else os.cpu_count() or 1)
    progress, real = _Progress(), _real(options)
    try:
        with sigterm_interrupts():
            rows = run(plan, options.out, jobs, progress, real, options.max_cost, options.cluster)
    except KeyboardInterrupt:
        _say_of_interrupt(options.out)
        raise
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return _written(rows, options.out)


def _say_of_interrupt(out: Path) -> None:
    sys.stderr.write(
        f"\nagent-tui bench: interrupted. What was run is kept in {out}; the same command goes on.\n"
    )


def _written(rows: Sequence[Row], out: Path) -> int:
    paths = "".join(f"{path}\n" for path in write(rows, out))
    sys.stdout.write(f"{in_lines(rows)}\n{paths}")
    return 0


def _real(options: argparse.Namespace) -> Any:
    if not options.model:
        return None
    return RealModel(load_settings(overrides(options, "model", "api_base", "max_cost")))


def _report(folders: Sequence[str]) -> int:
    if len(folders) != 1 or not (rows := finished(read_rows(Path(folders[0])))):
        raise UsageError("agent-tui bench report: name one folder with results, as --out named it.")
    return _written(rows, Path(folders[0]))


def _names(given: str | None, known: Any, option: str) -> Any:
    names = (
        tuple(known) if given is None else tuple(name.strip() for name in given.split(",") if name.strip())
    )
    for name in names:
        if name not in known:
            raise UsageError(
                f"agent-tui bench: {option}: there is no {name!r}; there are {', '.join(known)}."
            )
    return names


def _list() -> int:
    for case in all_cases():
        sys.stdout.write(f"{case.id:<40} {case.square:<22} {case.kind}\n")
    sys.stdout.write(f"\npolicies: {', '.join(CONTESTANTS)}\nbehaviours: {', '.join(BEHAVIOURS)}\n")
    return 0


class _Progress:
    """One line on a terminal; elsewhere one now and then."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, done: int, total: int, rest: float) -> None:
        terminal = sys.stderr.isatty()
        now = time.monotonic()
        if done < total and now - self._last < (0.2 if terminal else 30.0):
            return
        self._last = now
        minutes, seconds = divmod(int(rest), 60)
        text = f"{done:,} of {total:,} runs, about {minutes}:{seconds:02d} to go"
        sys.stderr.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
        sys.stderr.flush()
