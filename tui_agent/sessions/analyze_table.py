"""Rows of `analyze` as text, JSON and CSV. Nothing is counted here but sums over the rows it is given."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.events import Level
from tui_agent.sessions.analyze import First, RunReport
from tui_agent.sessions.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEVELS = tuple(str(level) for level in Level if level is not Level.CONTINUE)
TRIPS = ("escalate", "degrade", "stop")
"""Verdicts that would have kept the run from going on by itself."""


@dataclass(frozen=True)
class Summary:
    """Sums over all runs under one policy; the last three count solved runs that a verdict would have cut."""

    policy: str
    runs: int
    calls: int
    failures: int
    rejections: int
    recoveries: int
    guide: int
    pivot: int
    escalate: int
    degrade: int
    stop: int
    solved: int
    solved_escalate: int
    solved_degrade: int
    solved_stop: int


def summaries(reports: Iterable[RunReport]) -> list[Summary]:
    """One summary a policy, in the order in which policies first occur."""
    groups: dict[str, list[RunReport]] = {}
    for report in reports:
        if not report.error:
            groups.setdefault(report.policy, []).append(report)
    return [_summary(policy, rows) for policy, rows in groups.items()]


def _summary(policy: str, rows: Sequence[RunReport]) -> Summary:
    with_level = {level: sum(level in row.firsts for row in rows) for level in LEVELS}
    cut = {level: sum(row.solved and level in row.firsts for row in rows) for level in TRIPS}
    return Summary(
        policy=policy,
        runs=len(rows),
        calls=sum(row.calls for row in rows),
        failures=sum(row.failures for row in rows),
        rejections=sum(row.rejections for row in rows),
        recoveries=sum(row.recoveries for row in rows),
        **with_level,
        solved=sum(row.solved for row in rows),
        **{f"solved_{level}": count for level, count in cut.items()},
    )


# --- text -------------------------------------------------------------------------------------------------


def as_text(reports: Sequence[RunReport], *, everything: bool = False) -> str:
    """Sums by policy, then a row a run and policy; runs in which nothing failed are left out unless asked
    for.
    """
    parts = []
    totals = summaries(reports)
    if totals:
        graded = any(total.solved for total in totals)
        parts.append("By policy: runs in which each verdict was reached\n\n" + _totals(totals, graded=graded))
    rows = [report for report in reports if not report.error]
    shown = [report for report in rows if everything or report.firsts]
    if shown:
        parts.append("By run: the step of the first verdict of each kind\n\n" + _rows(shown))
    hidden = len(rows) - len(shown)
    if hidden:
        parts.append(
            f"{hidden} {'row' if hidden == 1 else 'rows'} without any verdict not listed (--all lists them).\n"
        )
    errors = [f"  {visible(report.error)}\n" for report in reports if report.error]
    if errors:
        parts.append("Not read:\n" + "".join(errors))
    return "\n".join(parts)


def _totals(totals: Sequence[Summary], *, graded: bool) -> str:
    head = ["policy", "runs", "calls", "failed", "rejected", "recovered", *LEVELS]
    if graded:
        head += ["solved", *(f"of these {level}" for level in TRIPS)]
    body = []
    for total in totals:
        values = asdict(total)
        cells = [
            values[name]
            for name in ("policy", "runs", "calls", "failures", "rejections", "recoveries", *LEVELS)
        ]
        if graded:
            cells += [values["solved"], *(values[f"solved_{level}"] for level in TRIPS)]
        body.append([str(cell) for cell in cells])
    return _table(head, body, left=1)


def _rows(reports: Sequence[RunReport]) -> str:
    head = [
        "run",
        "policy",
        "calls",
        "failed",
        "rejected",
        "recovered",
        *LEVELS,
        "ended",
        "after the strongest verdict",
    ]
    body = []
    for report in reports:
        counts = [str(report.calls), str(report.failures), str(report.rejections), str(report.recoveries)]
        firsts = [_cell(report.firsts.get(level)) for level in LEVELS]
        body.append([_name(report), report.policy, *counts, *firsts, _ended(report), _after(report)])
    return _table(head, body, left=2, left_again=len(head) - 2)


def _name(report: RunReport) -> str:
    name = visible(Path(report.path).name)
    name = name if len(name) <= 28 else f"{name[:27]}…"
    return f"{name}#{report.run}" if report.run > 1 or report.reward is not None else name


def _cell(first: First | None) -> str:
    return f"{first.step} {first.detector}" if first else "·"


def _ended(report: RunReport) -> str:
    if report.reward is None:
        return report.outcome or "open"
    return "solved" if report.solved else f"reward {report.reward:g}"


def _after(report: RunReport) -> str:
    strongest = next((report.firsts[level] for level in reversed(LEVELS) if level in report.firsts), None)
    if strongest is None:
        return ""
    answer = ", answered" if strongest.answered else ""
    return f"{strongest.ok_after} ok, {strongest.failed_after} failed{answer}"


def _table(
    head: Sequence[str], body: Sequence[Sequence[str]], *, left: int, left_again: int | None = None
) -> str:
    """Columns as wide as their widest cell; the first `left` and those from `left_again` on begin at the
    left.
    """
    widths = [max(len(row[column]) for row in [head, *body]) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        texts = [
            cell.ljust(width)
            if position < left or (left_again is not None and position >= left_again)
            else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(texts).rstrip() + "\n"

    rule = "  ".join("─" * width for width in widths) + "\n"
    return line(head) + rule + "".join(line(row) for row in body)


# --- for programs -----------------------------------------------------------------------------------------


def as_json(reports: Sequence[RunReport], *, everything: bool = True) -> str:
    """One object: `summary` by policy and all `runs`, whatever failed in them."""
    document = {
        "summary": [asdict(total) for total in summaries(reports)],
        "runs": [asdict(report) for report in reports],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


_PLAIN = tuple(field.name for field in fields(RunReport) if field.name not in {"firsts", "error"})
_FIRST = ("step", "detector", "reason", "ok_after", "failed_after", "answered")


def as_csv(reports: Sequence[RunReport], *, everything: bool = True) -> str:
    """A line a run and policy; for each verdict its first step, detector, reason and what came after it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_PLAIN, *(f"{level}_{name}" for level in LEVELS for name in _FIRST), "error"])
    for report in reports:
        row: list[object] = [getattr(report, name) for name in _PLAIN]
        for level in LEVELS:
            first = report.firsts.get(level)
            row += [getattr(first, name) for name in _FIRST] if first else [""] * len(_FIRST)
        writer.writerow([_cell_for_csv(value) for value in [*row, report.error]])
    return out.getvalue()


def _cell_for_csv(value: object) -> str:
    """Text that a spreadsheet would run as a formula is marked as text."""
    if value is None:
        return ""
    text = visible(value) if isinstance(value, str) else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(("=", "+", "-", "@")) else text
