"""The findings of `analyze` as text, HTML, JSON and CSV. Nothing is counted here."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tui_agent.core.names import FailureKind
from tui_agent.lab.analysis import plots
from tui_agent.lab.analysis.patterns import joined
from tui_agent.lab.analysis.runs import FileReport, First, RunReport
from tui_agent.lab.analysis.summary import LEVELS, PolicySummary, Trips, summaries
from tui_agent.lab.parquet import Answer, columns_of
from tui_agent.quantities import counted
from tui_agent.terminal_text import clipped, json_text, visible

Table = Callable[[Sequence[str], Sequence[Sequence[str]], int], str]
"""Head, rows, and how many columns begin at the left."""

MOST_ROWS = 60
"""Rows of the list by run that are shown unless all are asked for."""
MOST_PATTERNS = 10
LEVEL_COLOURS = (plots.NEUTRAL, plots.FAIR, plots.SERIOUS, plots.GRAVE, plots.BAD, plots.WORST)
ENDS_OF_FAILURES = {"same call": plots.GOOD, "worked round": plots.FAIR, "unrecovered": plots.BAD}
NARROWEST = 40
"""Columns below which nothing is made narrower."""


class Section(NamedTuple):
    """A table of the report. The first `left` columns and those from `words` on hold words and begin at the left."""

    title: str
    head: Sequence[str]
    body: Sequence[Sequence[str]]
    left: int
    words: int | None = None
    more: str = ""
    """A line about things that the table leaves out."""


def as_text(
    files: Sequence[FileReport],
    *,
    everything: bool = False,
    patterns: int = MOST_PATTERNS,
    width: int | None = None,
) -> str:
    """Sums by policy, error patterns, then each run; runs without a verdict only if `everything`. `width`: columns that
    no line goes beyond, None: as many as it takes.
    """
    width = None if width is None else max(NARROWEST, width)
    parts = [_as_text(section, width) for section in _sections(files, patterns)]
    if parts:
        parts.append(_runs([row for file in files for row in file.rows], width, everything=everything))
    parts += [_wrapped(line, width) for line in _unread(files)]
    return "\n".join(part for part in parts if part)


def _as_text(section: Section, width: int | None) -> str:
    table = text_table(section.head, section.body, section.left, section.words, width)
    return f"{_wrapped(section.title, width)}\n{table}" + (f"\n{section.more}\n" if section.more else "")


def _wrapped(text: str, width: int | None, indent: str = "") -> str:
    """Lines that end with one each."""
    if width is None:
        return f"{text}\n"
    return textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False) + "\n"


def as_html(files: Sequence[FileReport], *, patterns: int = MOST_PATTERNS) -> str:
    """One page that needs nothing else: drawings of what the policies would have done, then the tables."""
    totals = summaries(files)
    rows = [row for file in files for row in file.rows if row.firsts]
    sections = [*_sections(files, patterns), *([_run_table(rows)] if rows else [])]
    tables = "".join(
        f"<h2>{escape(section.title)}</h2>"
        f"{plots.table(section.head, section.body, section.left, section.words)}"
        + (f"<p>{escape(section.more)}</p>" if section.more else "")
        for section in sections
    )
    unread = "".join(f"<p>{escape(line)}</p>" for line in _unread(files))
    read = len({(row.path, row.run) for file in files for row in file.rows})
    policies = f"{len(totals)} {'policy' if len(totals) == 1 else 'policies'}"
    head = f"{counted(read, 'recorded run')} under {policies} of recovery"
    return plots.page(head, list(_drawings(files, totals)), tables + unread)


def _drawings(files: Sequence[FileReport], totals: Sequence[PolicySummary]) -> Iterator[tuple[str, str]]:
    """Each with its heading."""
    graded = [total for total in totals if total.solved and total.unsolved]
    if graded:
        points = [
            plots.Point(
                total.policy,
                total.interrupted.false_trips / total.solved,
                total.interrupted.true_trips / total.unsolved,
                total.policy == "combined",
            )
            for total in graded
        ]
        yield (
            "Whom each policy would have interrupted",
            plots.plane(points, "solved runs interrupted", "unsolved runs interrupted"),
        )
    if totals:
        strongest = [plots.Bar(total.policy, _by_strongest(files, total.policy)) for total in totals]
        yield (
            "Runs by their strongest verdict",
            plots.bars(strongest, dict(zip(LEVELS, LEVEL_COLOURS, strict=True))),
        )
        failures = [
            plots.Bar(
                total.policy, (total.recovered_same_call, total.recovered_worked_round, total.unrecovered)
            )
            for total in totals
        ]
        yield "What became of failures", plots.bars(failures, ENDS_OF_FAILURES)


def _by_strongest(files: Sequence[FileReport], policy: str) -> tuple[int, ...]:
    """How many runs have each level as their strongest verdict, weakest first."""
    rows = [row for file in files for row in file.rows if row.policy == policy]
    strongest = [next((level for level in reversed(LEVELS) if level in row.firsts), "") for row in rows]
    return tuple(strongest.count(level) for level in LEVELS)


def _sections(files: Sequence[FileReport], patterns: int) -> list[Section]:
    """The sums by policy and the error patterns, as far as there are any."""
    totals = summaries(files)
    if not totals:
        return []
    sections = [
        _verdicts(totals),
        _rules(totals),
        Section("By policy: what failed, and what became of it", *_failure_rows(totals)),
        _patterns(files, patterns),
    ]
    return [section for section in sections if section.body]


def _unread(files: Sequence[FileReport]) -> Iterator[str]:
    empty = sum(file.empty for file in files)
    if empty:
        yield f"Empty runs, not judged: {empty}."
    yield from (f"Not read: {visible(file.error)}" for file in files if file.error)
    yield from (f"{visible(file.path)}: {visible(file.loss)}" for file in files if file.loss)


# --- sums by policy -----------------------------------------------------------------------------------------


def _verdicts(totals: Sequence[PolicySummary]) -> Section:
    title = "By policy: runs in which each verdict was reached"
    if _graded(totals):
        title += " (false/true trips: on solved and on unsolved runs)"
    return Section(title, *_verdict_rows(totals))


def _graded(totals: Sequence[PolicySummary]) -> bool:
    return any(total.solved or total.unsolved for total in totals)


def verdict_table(totals: Sequence[PolicySummary], table: Table) -> str:
    """Runs in which each verdict was reached; false and true trips if runs are graded."""
    return table(*_verdict_rows(totals))


def _verdict_rows(totals: Sequence[PolicySummary]) -> tuple[list[str], list[list[str]], int]:
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
    return head, body, 1


def failure_table(totals: Sequence[PolicySummary], table: Table) -> str:
    """Failures, and their fate."""
    return table(*_failure_rows(totals))


def _failure_rows(totals: Sequence[PolicySummary]) -> tuple[list[str], list[list[str]], int]:
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
    return head, body, 1


def _rules(totals: Sequence[PolicySummary]) -> Section:
    graded = _graded(totals)
    body = [
        [total.policy, rule, _trips(trips, graded=graded), _or_dot(trips.first_step)]
        for total in totals
        for rule, trips in total.rules.items()
    ]
    title = "By rule: runs that it would have interrupted (pivot or stronger)"
    return Section(title, ["policy", "rule", "runs", "first at step"], body, 2)


def _trips(trips: Trips, *, graded: bool) -> str:
    return f"{trips.runs} ({trips.false_trips}/{trips.true_trips})" if graded else str(trips.runs)


def _or_dot(value: int | None) -> str:
    return "·" if value is None else str(value)


def percent(rate: float | None) -> str:
    """A rate as per cent with one decimal."""
    return "·" if rate is None else f"{100 * rate:.1f} %"


# --- patterns and runs --------------------------------------------------------------------------------------


def _patterns(files: Sequence[FileReport], most: int) -> Section:
    found = joined(file.patterns for file in files) if most else []
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
    more = f"{len(found) - most} more patterns (--patterns N shows N)." if len(found) > most else ""
    title = "Error patterns: failures with the same kind, tool and message"
    return Section(title, ["failures", "runs", "kind", "tool", "message"], body, 0, 2, more)


def _runs(rows: Sequence[RunReport], width: int | None, *, everything: bool) -> str:
    """Each run with what the policies said to it, a line a policy."""
    judged = [row for row in rows if everything or row.firsts]
    shown = judged if everything else judged[:MOST_ROWS]
    title = "By run: the step and rule of the first verdict of each kind, and what came after the strongest"
    lines = [_wrapped(title, width), "\n"]
    policies = max((len(row.policy) for row in shown), default=0)
    for _, of_run in groupby(shown, lambda row: (row.path, row.run)):
        said = list(of_run)
        row = said[0]
        facts = f"{_name(row)}: {counted(row.tool_calls, 'call')}, {row.tool_errors} failed, {_ended(row)}"
        lines.append(_wrapped(facts, width, "    "))
        indent = " " * (policies + 4)
        for row in said:
            rejected = f" · {row.rejections} rejected" if row.rejections else ""
            after = f" · then {_after(row)}" if row.firsts else ""
            words = f"  {row.policy:<{policies}}  {_firsts(row)}{rejected}{after}"
            lines.append(_wrapped(words, width, indent))
    hidden = [
        f"{count} {'row' if count == 1 else 'rows'} {what} not listed (--all lists them).\n"
        for count, what in (
            (len(judged) - len(shown), "more"),
            (len(rows) - len(judged), "without any verdict"),
        )
        if count
    ]
    return "".join(lines if shown else []) + ("\n" if shown and hidden else "") + "\n".join(hidden)


def _run_table(rows: Sequence[RunReport]) -> Section:
    head = ["run", "policy", "first verdicts", "calls", "failed", "rejected", "ended", "after the strongest"]
    body = [
        [
            *(_name(row), row.policy, _firsts(row)),
            *(str(row.tool_calls), str(row.tool_errors), str(row.rejections)),
            *(_ended(row), _after(row)),
        ]
        for row in rows
    ]
    return Section("By run: the step and rule of the first verdict of each kind", head, body, 3, 6)


def _name(row: RunReport) -> str:
    name = clipped(visible(Path(row.path).name), 40)
    return f"{name}#{row.run}" if row.run > 1 or row.reward is not None else name


def _firsts(row: RunReport) -> str:
    """Step and rule of the first verdict of each level, weakest first."""
    firsts = (row.firsts[level] for level in LEVELS if level in row.firsts)
    return ", ".join(f"{first.step} {first.rule or first.detector}" for first in firsts) or "nothing"


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


GAP = 2
"""Between columns."""
READABLE = 40
"""Columns of words below which too little of them is left."""


def text_table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    left: int,
    words: int | None = None,
    width: int | None = None,
) -> str:
    """Columns as wide as their widest cell; the first `left` and those from `words` on begin at the left.

    If that is wider than `width`, the last column of words is cut, or stands below its row if too little of
    it would be left; a table with one column of names lies on its side, in several parts if need be.
    """
    widths = [max(len(row[column]) for row in [head, *body]) for column in range(len(head))]
    over = 0 if width is None else sum(widths) + GAP * (len(head) - 1) - width
    if over > 0 and width is not None and left == 1:
        return "\n".join(_on_its_side(head, body, width))
    if over > 0 and width is not None:
        longest = left - 1 if words is None else len(head) - 1
        room = max(len(head[longest]), widths[longest] - over)
        if words is not None and room < READABLE:
            return _with_words_below(head, body, left, words, width)
        cut = [
            [clipped(cell, room) if place == longest else cell for place, cell in enumerate(row)]
            for row in body
        ]
        return text_table(head, cut, left, words)

    def line(cells: Sequence[str]) -> str:
        texts = [
            cell.ljust(room) if place < left or (words is not None and place >= words) else cell.rjust(room)
            for place, (cell, room) in enumerate(zip(cells, widths, strict=True))
        ]
        return (" " * GAP).join(texts).rstrip() + "\n"

    rule = (" " * GAP).join("─" * room for room in widths) + "\n"
    return line(head) + rule + "".join(line(row) for row in body)


def _with_words_below(
    head: Sequence[str], body: Sequence[Sequence[str]], left: int, words: int, width: int
) -> str:
    """The table without its last column, which stands below each row."""
    others = text_table(head[:-1], [row[:-1] for row in body], left, words).splitlines(keepends=True)
    below = (_wrapped(f"    {row[-1]}", width, "    ") for row in body)
    rows = (f"{line}{text}" for line, text in zip(others[2:], below, strict=True))
    return "".join((*others[:2], *rows))


def _on_its_side(head: Sequence[str], body: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Tables with a column for each row, as many in each as fit."""
    room = width - max(map(len, head))
    columns: list[Sequence[str]] = []
    for row in body:
        wide = sum(GAP + max(map(len, each)) for each in (*columns, row))
        if columns and wide > room:
            yield _turned(head, columns)
            columns = []
        columns.append(row)
    if columns:
        yield _turned(head, columns)


def _turned(head: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    first, *rest = zip(head, *columns, strict=True)
    return text_table(first, rest, 1)


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
        "losses": [{"path": file.path, "loss": file.loss} for file in files if file.loss],
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
    """The rows from SQL as text, JSON (a list of objects) or CSV."""
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
