"""Recorded runs under recovery policies: one report a run and policy, and the error patterns of each file.

Every run is read once and judged by each policy from the same facts, over as many processes as the machine, or a
cluster, has. The same files give the same reports in the same order, whatever the number of processes.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.cluster import LOCAL, spread
from tui_agent.core.names import POLICIES
from tui_agent.core.projections.incidents import Incidents
from tui_agent.core.recovery.policy import preset
from tui_agent.core.request.coherence import NO_RESULT
from tui_agent.formats.importers.judgement import Judge, judge_by
from tui_agent.formats.importers.load import find_transcripts, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.lab.analysis.patterns import patterns_of

if TYPE_CHECKING:
    from tui_agent.core import events
    from tui_agent.formats.importers.load import Imported
    from tui_agent.lab.analysis.patterns import Patterns

Presence = Literal["recorded", "present", "absent"]
"""Presence of an operator: as the recording says, yes, or no."""

TRIPS = ("pivot", "escalate", "restart", "degrade", "stop")
"""Verdicts that would have interrupted the model in its work, weakest first. `guide` only adds to the note."""

_SESSION_NAME = 36
"""Characters of a session's name by which copies of it are told."""
_PARALLEL_BYTES = 8 * 2**20
"""Below this a process takes longer to start than the work does."""
_PART_BYTES, _LARGEST_PART = 2**18, 2**24
_PART_FILES = 64
"""A part of the files goes to a process at a time: small enough that no process waits long for the last one."""
_PARTS = 500
"""The most parts: more would keep the process busy that gives them out."""


@dataclass
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
    rule: str
    reason: str
    ok_after: int = 0
    failed_after: int = 0
    answered: bool = False


@dataclass
class RunReport:
    """One recorded run under one policy. `failures` are the recovered and the unrecovered ones together: of tools,
    of replies that were not taken, and of model calls.
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
    endings: int = 0
    """Outcomes in the recording: a session holds many runs of its operator."""
    partial_answers: int = 0
    """Of these, partial answers."""
    iterations: int = 0
    model_calls: int = 0
    model_retries: int = 0
    model_faults: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    failures: int = 0
    recovered_same_call: int = 0
    recovered_worked_round: int = 0
    unrecovered: int = 0
    rejections: int = 0
    """Replies that the policy, or the recording's own harness, did not take."""
    refusals: int = 0
    not_known: int = 0
    """Calls of which nothing says how they ended: in no other figure but `tool_calls`."""
    coherence_violations: int = 0
    """Repairs of the request, and calls whose result the recording lacks."""
    firsts: dict[str, First] = field(default_factory=dict)
    """By level."""
    rules: dict[str, int] = field(default_factory=dict)
    """Rules that would have interrupted the run (see `TRIPS`), each with the step of its first verdict; a
    detector's name stands for a verdict without a rule.
    """

    @property
    def solved(self) -> bool | None:
        """The recording's grade as solved or not; None if it has none."""
        return None if self.reward is None else self.reward >= 1.0

    @property
    def trip(self) -> First | None:
        """The first verdict that would have interrupted the run."""
        return min((self.firsts[level] for level in TRIPS if level in self.firsts), key=_step, default=None)


def _step(first: First) -> int:
    return first.step


@dataclass(frozen=True)
class FileReport:
    """One file: its runs under each policy and its error patterns, or why it could not be read."""

    path: str
    rows: tuple[RunReport, ...] = ()
    patterns: Patterns = field(default_factory=dict)
    empty: int = 0
    """Runs in which nothing was said or done; they have no row and keep their number."""
    error: str = ""
    loss: str = ""
    """A sentence about what is not read or not known of it, if its figures cannot hold because of that."""


# --- one run ------------------------------------------------------------------------------------------------


class _Count:
    """Counts one run while it is judged, event by event."""

    def __init__(
        self, imported: Imported, policy: str, present: Presence, sessions: frozenset[str] = frozenset()
    ) -> None:
        """`sessions`: those that are counted as well, by their names; what is copied out of them counts there."""
        self.copies = {call for call, of in imported.copied.items() if of in sessions}
        self.row = RunReport(
            imported.report.path,
            policy,
            imported.index + 1,
            imported.title,
            imported.source,
            reward=imported.reward,
        )
        self.judge = Judge(policy, self.take, None if present == "recorded" else present == "present")
        self.run = 0
        self.iteration = 0
        self.incidents = Incidents(policy=preset(policy))
        """Those of all runs: what fails in one message of a dialogue is made good in the next."""

    def take(self, event: events.Event) -> None:
        kind = event.__dict__["type"]
        if self.copies and getattr(event, "call_id", "") in self.copies:
            return
        if kind not in _SAID:
            self.incidents = self.incidents.apply(event)
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, event)

    def _run_started(self, event: events.RunStarted) -> None:
        self.run = event.run
        self.row.model = event.model or self.row.model

    def _iteration_started(self, event: events.IterationStarted) -> None:
        self.row.iterations += 1
        self.iteration = event.iteration

    def _called(self, event: events.ModelCallStarted) -> None:
        self.row.model_calls += 1
        self.row.model_retries += event.attempt > 1

    def _replied(self, event: events.ReplyFinished) -> None:
        self.row.tool_calls += sum(call.id not in self.copies for call in event.calls)

    def _faulted(self, _: events.ModelFaulted) -> None:
        self.row.model_faults += 1

    def _succeeded(self, _: events.ToolSucceeded) -> None:
        for first in self.row.firsts.values():
            first.ok_after += 1

    def _failed(self, event: events.ToolFailed) -> None:
        self.row.tool_errors += self.incidents.counts(event)
        for first in self.row.firsts.values():
            first.failed_after += 1

    def _rejected(self, _: events.ReplyRejected) -> None:
        self.row.rejections += 1

    def _refused(self, _: events.ToolRefused) -> None:
        self.row.refusals += 1

    def _ended(self, _: events.ToolEnded) -> None:
        self.row.not_known += 1

    def _cancelled(self, event: events.ToolCancelled) -> None:
        self.row.coherence_violations += event.reason == NO_RESULT

    def _repaired(self, event: events.CoherenceRepaired) -> None:
        self.row.coherence_violations += sum(event.repairs.values())

    def _finished(self, event: events.RunFinished) -> None:
        row = self.row
        row.outcome = str(event.outcome)
        row.endings += 1
        row.partial_answers += row.outcome == "partial"
        for first in row.firsts.values():
            if first.run == self.run:
                first.answered = row.outcome == "answered"

    def _verdict(self, event: events.VerdictReached) -> None:
        """Every detector's verdict counts, not only the strongest: a pivot under an escalation was given too."""
        for record in event.verdicts:
            level = str(record.level)
            if level in TRIPS:
                self.row.rules.setdefault(record.rule or record.detector, self.row.iterations)
            if level != "continue" and level not in self.row.firsts:
                place = (self.row.iterations, self.run, self.iteration)
                self.row.firsts[level] = First(level, *place, record.detector, record.rule, record.reason)

    def closed(self) -> RunReport:
        """The report, once all events were taken."""
        row, incidents = self.row, self.incidents
        row.failures = incidents.failures
        row.recovered_same_call = incidents.recovered_same_call
        row.recovered_worked_round = incidents.recovered_worked_round
        row.unrecovered = incidents.failures - incidents.recoveries
        return row


_HANDLERS: dict[str, Callable[[_Count, Any], None]] = {
    "run_started": _Count._run_started,
    "iteration_started": _Count._iteration_started,
    "model_call_started": _Count._called,
    "reply_finished": _Count._replied,
    "model_faulted": _Count._faulted,
    "tool_succeeded": _Count._succeeded,
    "tool_failed": _Count._failed,
    "tool_cancelled": _Count._cancelled,
    "tool_ended": _Count._ended,
    "reply_rejected": _Count._rejected,
    "tool_refused": _Count._refused,
    "coherence_repaired": _Count._repaired,
    "verdict_reached": _Count._verdict,
    "run_finished": _Count._finished,
}
"""By type name."""
_SAID = frozenset({"verdict_reached", "note_prepared", "iteration_started"})
"""Fields that say something of a failure, and its time: neither makes nor recovers one."""


def reports_on(
    imported: Imported,
    policies: Sequence[str],
    present: Presence = "recorded",
    sessions: frozenset[str] = frozenset(),
) -> list[RunReport]:
    """One run under each policy; `sessions` as for `analyze_file`. Raises `ValueError` for an unknown policy."""
    counts = [_Count(imported, policy, present, sessions) for policy in policies]
    judge_by([count.judge for count in counts], imported.events)
    return [count.closed() for count in counts]


# --- many files ---------------------------------------------------------------------------------------------


_COLLECT_AFTER = 20_000
"""Objects after which garbage is looked for: judging makes values by the thousand, and few of them in circles."""


def analyze_file(
    path: Path,
    policies: Sequence[str],
    present: Presence = "recorded",
    sessions: frozenset[str] = frozenset(),
) -> FileReport:
    """Every run of one file under every policy, runs in the file's order. `sessions`: names of those that are counted
    as well. Never raises for what a file holds.
    """
    gc.set_threshold(_COLLECT_AFTER)
    try:
        runs = load_transcripts(path)
    except TranscriptError as error:
        return FileReport(str(path), error=str(error))
    rows = tuple(row for run in runs for row in reports_on(run, policies, present, sessions))
    report = runs[0].report
    return FileReport(str(path), rows, patterns_of(runs), report.empty, loss=report.loss)


Progress = Callable[[int, int, Path], None]
"""Called before the first file and after each: how many are done, of how many, and which one it is or was."""


def analyze(
    paths: Iterable[Path],
    policies: Sequence[str] = POLICIES,
    jobs: int | None = None,
    *,
    present: Presence = "recorded",
    progress: Progress | None = None,
) -> list[FileReport]:
    """See `reports`."""
    return list(reports(paths, policies, jobs, present=present, progress=progress))


def reports(
    paths: Iterable[Path],
    policies: Sequence[str] = POLICIES,
    jobs: int | None = None,
    *,
    present: Presence = "recorded",
    progress: Progress | None = None,
    cluster: str = LOCAL,
) -> Iterator[FileReport]:
    """All runs of all files (folders are searched) under all policies, in the order of the files.

    `jobs`: processes to use; None: one a core if there is enough to do; a `cluster` that has an address has
    its own workers. Raises `ValueError` for a policy that does not exist, `FileNotFoundError` if there is no
    file at all, `ClusterError`.
    """
    for policy in policies:
        preset(policy)
    files = find_transcripts(paths)
    if not files:
        raise FileNotFoundError("no transcripts")
    names = frozenset(file.stem for file in files if len(file.stem) == _SESSION_NAME)
    judge = partial(analyze_file, policies=tuple(policies), present=present, sessions=names)
    jobs = _jobs(files, jobs)
    here = ((position, judge(file)) for position, file in enumerate(files))
    alone = jobs == 1 and cluster == LOCAL
    if progress is not None:
        progress(0, len(files), files[0])
    return _in_order(files, here if alone else _spread(files, judge, cluster, jobs), progress)


def _in_order(
    files: Sequence[Path], worked: Iterable[tuple[int, FileReport]], progress: Progress | None
) -> Iterator[FileReport]:
    early: dict[int, FileReport] = {}
    following = count()
    wanted = next(following)
    for done, (position, report) in enumerate(worked, 1):
        if progress is not None:
            progress(done, len(files), files[position])
        early[position] = report
        while wanted in early:
            yield early.pop(wanted)
            wanted = next(following)


def _jobs(files: Sequence[Path], wanted: int | None) -> int:
    if wanted is not None:
        return max(1, min(wanted, len(files)))
    size = sum(file.stat().st_size for file in files if file.is_file())
    return 1 if size < _PARALLEL_BYTES else min(os.cpu_count() or 1, len(files))


Part = Sequence[tuple[int, Path]]
"""Files that go to a process together, each with its place among all."""


def _parts(files: Sequence[Path]) -> Iterator[Part]:
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    most_bytes = min(_LARGEST_PART, max(_PART_BYTES, sum(sizes) // _PARTS))
    most_files = max(_PART_FILES, len(files) // _PARTS)
    part: list[tuple[int, Path]] = []
    filled = 0
    for position, (file, size) in enumerate(zip(files, sizes, strict=True)):
        part.append((position, file))
        filled += size
        if filled >= most_bytes or len(part) == most_files:
            yield part
            part, filled = [], 0
    if part:
        yield part


def _judge_part(part: Part, judge: Callable[[Path], FileReport]) -> list[tuple[int, FileReport]]:
    return [(position, judge(file)) for position, file in part]


def _spread(
    files: Sequence[Path], judge: Callable[[Path], FileReport], cluster: str, jobs: int
) -> Iterator[tuple[int, FileReport]]:
    parts = list(_parts(files))
    while parts:
        broken: list[Part] = []
        for number, ended in spread(partial(_judge_part, judge=judge), parts, cluster, jobs):
            fault, part = ended.exception(), parts[number]
            if fault is None:
                yield from ended.result()
            elif len(part) > 1:
                broken += [[each] for each in part]
            else:
                ((position, file),) = part
                text = f"{file}: the process that read it ended ({type(fault).__name__}: {fault})."
                yield position, FileReport(str(file), error=text)
        parts = broken  # one of its files ended a process: each alone shows which
