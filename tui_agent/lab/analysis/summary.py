"""Sums over all runs under one policy: verdicts on solved and unsolved runs, failures and their fate.

A *false trip* is a verdict on a run that its recording calls solved, a *true trip* one on a run that it calls
unsolved. Runs without a grade count in neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from tui_agent.core.events import Level
from tui_agent.lab.analysis.runs import FileReport, RunReport

LEVELS = tuple(str(level) for level in Level if level is not Level.CONTINUE)
ENDS = (str(Level.DEGRADE), str(Level.STOP))


@dataclass(frozen=True)
class Trips:
    """Runs with a verdict of one kind, and how the graded ones of them ended."""

    runs: int
    false_trips: int
    """On solved runs."""
    true_trips: int
    """On unsolved runs."""
    first_step: int | None
    """Iteration of the recording, from 1, of the first such verdict: the median over these runs."""


@dataclass(frozen=True)
class PolicySummary:
    """Sums over all runs under one policy. Rates are None if there is nothing to divide by."""

    policy: str
    runs: int
    solved: int
    unsolved: int
    levels: dict[str, Trips]
    interrupted: Trips
    """Runs with a verdict of pivot or stronger."""
    ended: Trips
    """Runs with a verdict that ends a run: degrade or stop."""
    rules: dict[str, Trips]
    """The same by the rule that gave the verdict."""
    tool_calls: int
    tool_errors: int
    failures: int
    recovered_same_call: int
    recovered_worked_round: int
    unrecovered: int
    rejections: int
    refusals: int
    not_known: int
    model_calls: int
    model_faults: int
    model_retries: int
    coherence_violations: int
    error_rate: float | None
    """Failed calls of all calls."""
    recovery_rate: float | None
    """Recovered failures of all failures."""
    partial_answer_rate: float | None
    """Partial answers of all outcomes."""


def summaries(files: Iterable[FileReport]) -> list[PolicySummary]:
    """One summary a policy, in the order in which policies first occur."""
    groups: dict[str, list[RunReport]] = {}
    for file in files:
        for row in file.rows:
            groups.setdefault(row.policy, []).append(row)
    return [_summary(policy, rows) for policy, rows in groups.items()]


def _summary(policy: str, rows: Sequence[RunReport]) -> PolicySummary:
    def total(name: str) -> int:
        return sum(getattr(row, name) for row in rows)

    names = sorted({rule for row in rows for rule in row.rules})
    recovered = total("recovered_same_call") + total("recovered_worked_round")
    return PolicySummary(
        policy=policy,
        runs=len(rows),
        solved=sum(row.solved is True for row in rows),
        unsolved=sum(row.solved is False for row in rows),
        levels={level: _trips(rows, _step_of(level)) for level in LEVELS},
        interrupted=_trips(rows, lambda row: row.trip.step if row.trip else None),
        ended=_trips(rows, _step_of_end),
        rules={name: _trips(rows, _step_of_rule(name)) for name in names},
        error_rate=_rate(total("tool_errors"), total("tool_calls")),
        recovery_rate=_rate(recovered, total("failures")),
        partial_answer_rate=_rate(total("partial_answers"), total("endings")),
        **{name: total(name) for name in _SUMS},
    )


_SUMS = (
    "model_calls",
    "model_retries",
    "model_faults",
    "tool_calls",
    "tool_errors",
    "failures",
    "recovered_same_call",
    "recovered_worked_round",
    "unrecovered",
    "coherence_violations",
    "rejections",
    "refusals",
    "not_known",
)


def _step_of(level: str) -> Callable[[RunReport], int | None]:
    return lambda row: row.firsts[level].step if level in row.firsts else None


def _step_of_end(row: RunReport) -> int | None:
    return min((row.firsts[level].step for level in ENDS if level in row.firsts), default=None)


def _step_of_rule(rule: str) -> Callable[[RunReport], int | None]:
    return lambda row: row.rules.get(rule)


def _trips(rows: Iterable[RunReport], step: Callable[[RunReport], int | None]) -> Trips:
    """`step` says in which iteration a run had the verdict; None: never."""
    tripped = [(row, at) for row in rows if (at := step(row)) is not None]
    return Trips(
        len(tripped),
        sum(row.solved is True for row, _ in tripped),
        sum(row.solved is False for row, _ in tripped),
        median_low(at for _, at in tripped) if tripped else None,
    )


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
