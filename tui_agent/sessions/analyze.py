"""`agent-tui analyze`: recorded runs, ours or others', judged by any policy, one row a run and policy.

Every run is read once and judged by each policy from the same facts. A file that cannot be read is a row
with its error, never the end of the work. How rows are shown is `analyze_table`'s.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import argparse

    from tui_agent import events as e
    from tui_agent.sessions.importers.load import Imported

POLICIES = ("forge", "gigi", "funnelcanary", "hpd", "combined")
Presence = Literal["recorded", "present", "absent"]

_PARALLEL_BYTES = 8 * 2**20
"""Below this a process takes longer to start than the work does."""


@dataclass(frozen=True)
class First:
    """The first verdict of one level, and what the recording shows after it.

    `step` counts iterations of the whole recording from 1; `run` and `iteration` place it as the screen does.
    `ok_after` and `failed_after` count calls; `answered` says that the same run still came to an answer.
    """

    level: str
    step: int
    run: int
    iteration: int
    detector: str
    reason: str
    ok_after: int = 0
    failed_after: int = 0
    answered: bool = False


@dataclass(frozen=True)
class RunReport:
    """One recorded run under one policy. `error` is set, and all else empty, where a file could not be
    read.
    """

    path: str
    policy: str
    run: int = 1
    """Its place in the file, from 1."""
    title: str = ""
    source: str = ""
    model: str = ""
    reward: float | None = None
    outcome: str = ""
    iterations: int = 0
    model_calls: int = 0
    calls: int = 0
    failures: int = 0
    rejections: int = 0
    """Text-only replies that the policy, or the recording's own harness, did not take as an answer."""
    refusals: int = 0
    recoveries: int = 0
    """Failures of any kind (rejected replies and model faults too) that were made good."""
    model_faults: int = 0
    firsts: dict[str, First] = field(default_factory=dict)
    error: str = ""

    @property
    def solved(self) -> bool:
        """Graded by its own recording as solved."""
        return self.reward is not None and self.reward >= 1.0


@dataclass
class _Open:
    """A first verdict while the events after it are still counted."""

    level: str
    step: int
    run: int
    iteration: int
    detector: str
    reason: str
    ok: int = 0
    failed: int = 0
    answered: bool = False

    def closed(self) -> First:
        return First(
            self.level,
            self.step,
            self.run,
            self.iteration,
            self.detector,
            self.reason,
            self.ok,
            self.failed,
            self.answered,
        )


class _Count:
    """Counts one judged run, event by event."""

    def __init__(self) -> None:
        self.step = 0
        self.run = 0
        self.iteration = 0
        self.model_calls = self.calls = self.failures = self.rejections = self.refusals = self.faults = 0
        self.outcome = ""
        self.model = ""
        self.firsts: dict[str, _Open] = {}

    def take(self, event: e.Event) -> None:
        handler = _HANDLERS.get(event.__dict__["type"])
        if handler is not None:
            handler(self, event)

    def _run_started(self, event: e.RunStarted) -> None:
        self.run = event.run
        self.model = event.model or self.model

    def _iteration_started(self, event: e.IterationStarted) -> None:
        self.step += 1
        self.iteration = event.iteration

    def _model_called(self, _: e.ModelCallStarted) -> None:
        self.model_calls += 1

    def _replied(self, event: e.ReplyFinished) -> None:
        self.calls += len(event.calls)

    def _faulted(self, _: e.ModelFaulted) -> None:
        self.faults += 1

    def _succeeded(self, _: e.ToolSucceeded) -> None:
        for first in self.firsts.values():
            first.ok += 1

    def _failed(self, _: e.ToolFailed) -> None:
        self.failures += 1
        for first in self.firsts.values():
            first.failed += 1

    def _rejected(self, _: e.ReplyRejected) -> None:
        self.rejections += 1

    def _refused(self, _: e.ToolRefused) -> None:
        self.refusals += 1

    def _finished(self, event: e.RunFinished) -> None:
        self.outcome = str(event.outcome)
        for first in self.firsts.values():
            if first.run == self.run:
                first.answered = self.outcome == "answered"

    def _verdict(self, event: e.VerdictReached) -> None:
        """Every detector's verdict counts, not only the strongest: a pivot under an escalation was said
        too.
        """
        said = {record.level: record for record in reversed(event.verdicts)}
        for level, record in said.items():
            if level.rank > 0 and level not in self.firsts:
                self.firsts[str(level)] = _Open(
                    str(level), self.step, self.run, self.iteration, record.detector, record.reason
                )


_HANDLERS: dict[str, Callable[[_Count, Any], None]] = {
    "run_started": _Count._run_started,
    "iteration_started": _Count._iteration_started,
    "model_call_started": _Count._model_called,
    "reply_finished": _Count._replied,
    "model_faulted": _Count._faulted,
    "tool_succeeded": _Count._succeeded,
    "tool_failed": _Count._failed,
    "reply_rejected": _Count._rejected,
    "tool_refused": _Count._refused,
    "verdict_reached": _Count._verdict,
    "run_finished": _Count._finished,
}
"""By type name: the events' classes are not imported before there is something to read."""


def report_on(imported: Imported, policy: str, present: Presence = "recorded") -> RunReport:
    """One run under one policy. Raises `ValueError` for an unknown policy."""
    from tui_agent.folds.metrics import Metrics
    from tui_agent.sessions.importers.load import judge

    operator = None if present == "recorded" else present == "present"
    count, metrics, recoveries = _Count(), Metrics(), 0
    for event in judge(imported, policy, operator_present=operator).events:
        count.take(event)
        metrics = metrics.apply(event)
        if event.__dict__["type"] == "run_finished":
            recoveries += metrics.recoveries
            metrics = Metrics()
    recoveries += metrics.recoveries
    return RunReport(
        path=imported.report.path,
        policy=policy,
        run=imported.index + 1,
        title=imported.title,
        source=imported.source,
        model=count.model,
        reward=imported.reward,
        outcome=count.outcome,
        iterations=count.step,
        model_calls=count.model_calls,
        calls=count.calls,
        failures=count.failures,
        rejections=count.rejections,
        refusals=count.refusals,
        recoveries=recoveries,
        model_faults=count.faults,
        firsts={level: first.closed() for level, first in count.firsts.items()},
    )


def analyze_file(path: Path, policies: Sequence[str], present: Presence = "recorded") -> list[RunReport]:
    """Every run of one file under every policy, runs in the file's order. Never raises for what a file
    holds.
    """
    from tui_agent.sessions.importers.load import load_transcripts
    from tui_agent.sessions.importers.transcript import TranscriptError

    try:
        runs = load_transcripts(path)
    except TranscriptError as error:
        return [RunReport(str(path), policy="", error=str(error))]
    return [report_on(run, policy, present) for run in runs for policy in policies]


Progress = Callable[[int, int, Path], None]
"""Called after each file: how many are done, of how many, and which one it was."""


def analyze(
    paths: Iterable[Path],
    policies: Sequence[str] = POLICIES,
    jobs: int | None = None,
    *,
    present: Presence = "recorded",
    progress: Progress | None = None,
) -> list[RunReport]:
    """All runs of all files (folders are searched) under all policies, in the order of the files.

    `jobs`: processes to use; None: one a core where there is enough to do. Raises `ValueError` for a policy
    that does not exist, `FileNotFoundError` where there is no file at all.
    """
    from tui_agent.recovery.policy import preset
    from tui_agent.sessions.importers.load import find_transcripts

    for policy in policies:
        preset(policy)
    files = find_transcripts(paths)
    if not files:
        raise FileNotFoundError("no transcripts")
    rows: dict[int, list[RunReport]] = {}
    for done, (position, reports) in enumerate(
        _worked(files, tuple(policies), _jobs(files, jobs), present), 1
    ):
        rows[position] = reports
        if progress is not None:
            progress(done, len(files), files[position])
    return [report for position in sorted(rows) for report in rows[position]]


def _jobs(files: Sequence[Path], wanted: int | None) -> int:
    if wanted is not None:
        return max(1, min(wanted, len(files)))
    size = sum(file.stat().st_size for file in files if file.is_file())
    return 1 if size < _PARALLEL_BYTES else min(os.cpu_count() or 1, len(files))


def _worked(
    files: Sequence[Path], policies: tuple[str, ...], jobs: int, present: Presence
) -> Iterator[tuple[int, list[RunReport]]]:
    if jobs == 1:
        for position, file in enumerate(files):
            yield position, analyze_file(file, policies, present)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[list[RunReport]], int] = {
            pool.submit(analyze_file, file, policies, present): position
            for position, file in enumerate(files)
        }
        for future in as_completed(waiting):
            position = waiting[future]
            fault = future.exception()
            if fault is None:
                yield position, future.result()
            else:
                text = f"{files[position]}: the process that read it ended ({type(fault).__name__}: {fault})."
                yield position, [RunReport(str(files[position]), policy="", error=text)]


# --- the command ------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `agent-tui analyze`."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE|DIR", help="recorded runs, or folders of them"
    )
    parser.add_argument(
        "--policy",
        action="append",
        choices=[*POLICIES, "all"],
        help="judge by this policy; may be repeated (default: all five)",
    )
    parser.add_argument("--format", choices=["text", "json", "csv"], default="text", help="default: text")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    parser.add_argument(
        "--operator",
        choices=["recorded", "present", "absent"],
        default="recorded",
        help="whether somebody could have been asked (default: as in the recording)",
    )
    parser.add_argument("--all", action="store_true", help="also list runs in which nothing failed")


def main(args: argparse.Namespace) -> int:
    """Run the command. 0: every file was read; 1: some could not be (their rows say why); 2: nothing to
    read.
    """
    from tui_agent.sessions import analyze_table

    policies = tuple(dict.fromkeys(args.policy or POLICIES))
    if "all" in policies:
        policies = POLICIES
    missing = [path for path in args.paths if not path.exists()]
    if missing:
        sys.stderr.write(f"agent-tui analyze: {missing[0]} does not exist. Check the name.\n")
        return 2
    progress = _bar if sys.stderr.isatty() else None
    try:
        reports = analyze(args.paths, policies, args.jobs, present=args.operator, progress=progress)
    except FileNotFoundError:
        text = "agent-tui analyze: no .json, .jsonl or .traj file there. Name a recorded run, or a folder of them."
        sys.stderr.write(text + "\n")
        return 2
    finally:
        if progress is not None:
            sys.stderr.write("\r\x1b[K")
    writers = {"text": analyze_table.as_text, "json": analyze_table.as_json, "csv": analyze_table.as_csv}
    sys.stdout.write(writers[args.format](reports, everything=args.all))
    return 1 if any(report.error for report in reports) else 0


def _bar(done: int, total: int, path: Path, width: int = 30) -> None:
    filled = width * done // total
    name = path.name if path.name.isprintable() else "…"
    sys.stderr.write(f"\r\x1b[K[{'█' * filled}{'·' * (width - filled)}] {done}/{total} {name[:40]}")
    sys.stderr.flush()
