"""What `analyze` found as text, JSON and CSV. Nothing is counted here."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from tui_agent.analysis.patterns import joined
from tui_agent.analysis.runs import FileReport, First, RunReport
from tui_agent.analysis.summary import LEVELS, Summary, Trips, summaries
from tui_agent.core.names import FailureKind
from tui_agent.parquet import Answer, columns_of
from tui_agent.terminal_text import clipped, json_text, visible

Table = Callable[[Sequence[str], Sequence[Sequence[str]], int], str]
"""Head, rows, and how many columns begin at the left."""

MOST_ROWS = 60
"""Rows of the list by run that are shown unless all are asked for."""
MOST_PATTERNS = 10


def as_text(files: Sequence[FileReport], *, everything: bool = False, patterns: int = MOST_PATTERNS) -> str:
    """Sums by policy, error patterns, then a row a run and policy; runs without a verdict only if `everything`."""
    totals = summaries(files)
    parts = []
    if totals:
        parts.append(_verdicts(totals))
        parts.append(_rules(totals))
        parts.append("By policy: what failed, and what became of it\n\n" + failure_table(totals))
        parts.append(_patterns(files, patterns))
        parts.append(_runs([row for file in files for row in file.rows], everything=everything))
    empty = sum(file.empty for file in files)
    if empty:
        parts.append(f"Empty runs, not judged: {empty}.\n")
    errors = [f"  {visible(file.error)}\n" for file in files if file.error]
    if errors:
        parts.append("Not read:\n" + "".join(errors))
    return "\n".join(part for part in parts if part)


# --- sums by policy -----------------------------------------------------------------------------------------


def _verdicts(totals: Sequence[Summary]) -> str:
    title = "By policy: runs in which each verdict was reached"
    if _graded(totals):
        title += " (false/true trips: on solved and on unsolved runs)"
    return f"{title}\n\n{verdict_table(totals)}"


def _graded(totals: Sequence[Summary]) -> bool:
    return any(total.solved or total.unsolved for total in totals)


def verdict_table(totals: Sequence[Summary], table: Table | None = None) -> str:
    """Runs in which each verdict was reached; false and true trips where runs are graded."""
    graded = _graded(totals)
    head = [
        "policy",
        "runs",
        *(["solved"] if graded else []),
        *LEVELS,
        "pivot or stronger",
        "ended",
        "first at step",
    ]
    body = []
    for total in totals:
        cells = [total.policy, str(total.runs), *([str(total.solved)] if graded else [])]
        kinds = (*total.levels.values(), total.interrupted, total.ended)
        cells += [_trips(trips, graded=graded) for trips in kinds]
        body.append([*cells, _or_dot(total.interrupted.first_step)])
    return (table or text_table)(head, body, 1)


def failure_table(totals: Sequence[Summary], table: Table | None = None) -> str:
    """What failed, and what became of it."""
    head = [
        "policy", "calls", "errors", "error rate", "failures", "same call", "worked round", "unrecovered",
        "recovery rate", "partial answers", "rejected", "model faults", "retries", "coherence",
    ]  # fmt: skip
    body = [
        [
            total.policy,
            str(total.tool_calls),
            str(total.tool_errors),
            percent(total.error_rate),
            str(total.failures),
            str(total.recovered_same_call),
            str(total.recovered_worked_round),
            str(total.unrecovered),
            percent(total.recovery_rate),
            percent(total.partial_answer_rate),
            str(total.rejections),
            str(total.model_faults),
            str(total.model_retries),
            str(total.coherence_violations),
        ]
        for total in totals
    ]
    return (table or text_table)(head, body, 1)


def _rules(totals: Sequence[Summary]) -> str:
    graded = _graded(totals)
    body = [
        [total.policy, rule, _trips(trips, graded=graded), _or_dot(trips.first_step)]
        for total in totals
        for rule, trips in total.rules.items()
    ]
    if not body:
        return ""
    table = text_table(["policy", "rule", "runs", "first at step"], body, 2)
    return f"By rule: runs that it would have interrupted (pivot or stronger)\n\n{table}"


def _trips(trips: Trips, *, graded: bool) -> str:
    return f"{trips.runs} ({trips.false_trips}/{trips.true_trips})" if graded else str(trips.runs)


def _or_dot(value: int | None) -> str:
    return "·" if value is None else str(value)


def percent(rate: float | None) -> str:
    """A rate as per cent with one decimal."""
    return "·" if rate is None else f"{100 * rate:.1f} %"


# --- patterns and runs --------------------------------------------------------------------------------------


def _patterns(files: Sequence[FileReport], most: int) -> str:
    found = joined(file.patterns for file in files)
    if not found or not most:
        return ""
    body = [
        [
            str(seen.failures),
            str(seen.runs),
            FailureKind(pattern.kind).in_words,
            visible(pattern.tool),
            visible(pattern.line),
        ]
        for pattern, seen in found[:most]
    ]
    more = f"\n{len(found) - most} more patterns (--patterns N shows N).\n" if len(found) > most else ""
    table = text_table(["failures", "runs", "kind", "tool", "message"], body, 0, 2)
    return f"Error patterns: failures with the same kind, tool and message\n\n{table}{more}"


def _runs(rows: Sequence[RunReport], *, everything: bool) -> str:
    judged = [row for row in rows if everything or row.firsts]
    shown = judged if everything else judged[:MOST_ROWS]
    head = ["run", "policy", "calls", "failed", "rejected", *LEVELS, "ended", "after the strongest verdict"]
    body = []
    for row in shown:
        counts = [str(row.tool_calls), str(row.tool_errors), str(row.rejections)]
        firsts = [_first(row.firsts.get(level)) for level in LEVELS]
        body.append([_name(row), row.policy, *counts, *firsts, _ended(row), _after(row)])
    table = text_table(head, body, 2, len(head) - 2) if body else ""
    hidden = [
        f"{count} {'row' if count == 1 else 'rows'} {what} not listed (--all lists them).\n"
        for count, what in (
            (len(judged) - len(shown), "more"),
            (len(rows) - len(judged), "without any verdict"),
        )
        if count
    ]
    title = "By run: the step of the first verdict of each kind\n\n" if body else ""
    return title + "\n".join([table, *hidden] if table else hidden)


def _name(row: RunReport) -> str:
    name = clipped(visible(Path(row.path).name), 28)
    return f"{name}#{row.run}" if row.run > 1 or row.reward is not None else name


def _first(first: First | None) -> str:
    return f"{first.step} {first.rule or first.detector}" if first else "·"


def _ended(row: RunReport) -> str:
    if row.reward is None:
        return row.outcome or "open"
    return "solved" if row.solved else f"reward {row.reward:g}"


def _after(row: RunReport) -> str:
    strongest = next((row.firsts[level] for level in reversed(LEVELS) if level in row.firsts), None)
    if strongest is None:
        return ""
    answer = ", answered" if strongest.answered else ""
    return f"{strongest.ok_after} ok, {strongest.failed_after} failed{answer}"


# --- tables -------------------------------------------------------------------------------------------------


def text_table(
    head: Sequence[str], body: Sequence[Sequence[str]], left: int, left_again: int | None = None
) -> str:
    """Columns as wide as their widest cell; the first `left` and those from `left_again` on begin at the left."""
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


# --- for programs -------------------------------------------------------------------------------------------


def as_json(files: Sequence[FileReport]) -> str:
    """One object: `summary` by policy, the error `patterns`, all `runs`, the number of `empty` ones, `errors`."""
    document = {
        "summary": [asdict(total) for total in summaries(files)],
        "patterns": [
            {**pattern._asdict(), **asdict(seen)} for pattern, seen in joined(file.patterns for file in files)
        ],
        "runs": [_run(row) for file in files for row in file.rows],
        "empty": sum(file.empty for file in files),
        "errors": [{"path": file.path, "error": file.error} for file in files if file.error],
    }
    return json_text(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"


def _run(row: RunReport) -> dict[str, object]:
    """All of a row; `trip` is its first verdict of pivot or stronger."""
    return {**asdict(row), "solved": row.solved, "trip": asdict(row.trip) if row.trip else None}


_FIRST = {name: kind for name, kind in columns_of(First).items() if name not in {"level", "run", "iteration"}}
COLUMNS = {
    **columns_of(RunReport),
    "trip": str,
    "trip_step": int,
    **{f"{level}_{name}": kind for level in LEVELS for name, kind in _FIRST.items()},
    "error": str,
}
"""Of a row, with their types."""


def rows_of(file: FileReport) -> Iterator[dict[str, object]]:
    """A row a run and policy; for each verdict its first step, rule, reason and what came after it."""
    for report in file.rows or (RunReport(file.path, ""),):
        row = {name: getattr(report, name, None) for name in COLUMNS} | {"error": file.error}
        if report.trip:
            row |= {"trip": report.trip.level, "trip_step": report.trip.step}
        for level, first in report.firsts.items():
            row |= {f"{level}_{name}": getattr(first, name) for name in _FIRST}
        yield row


def as_csv(files: Iterable[FileReport]) -> str:
    """See `rows_of`."""
    return csv_text(tuple(COLUMNS), (tuple(row.values()) for file in files for row in rows_of(file)))


def csv_text(head: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """A head and its rows."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell_for_csv(value) for value in row] for row in body)
    return out.getvalue()


def answer_text(answer: Answer, form: str) -> str:
    """What SQL gave, as text, JSON (a list of objects) or CSV."""
    match form:
        case "json":
            rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
            return json_text(json.dumps(rows, ensure_ascii=False, indent=2, default=str)) + "\n"
        case "csv":
            return csv_text(answer.columns, answer.rows)
        case _:
            body = [["" if value is None else visible(str(value)) for value in row] for row in answer.rows]
            return text_table([visible(name) for name in answer.columns], body, len(answer.columns))


def _cell_for_csv(value: object) -> str:
    """Text that a spreadsheet would run as a formula is marked as text."""
    if value is None:
        return ""
    text = visible(value) if isinstance(value, str) else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(("=", "+", "-", "@")) else text
