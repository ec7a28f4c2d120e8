"""Rows of the session list as text and as JSON. Titles are other people's words: made safe before they are shown."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tui_agent.quantities import counted, of_failures
from tui_agent.store.summary import SessionRow
from tui_agent.terminal_text import clipped, one_line

SHORTEST_TITLE = 24
"""Columns."""

_DERIVED = ("recoveries", "unrecovered", "error_rate", "recovery_rate", "partial_answer_rate")


def as_json(row: SessionRow) -> str:
    """One object on one line."""
    return json.dumps({**asdict(row), **{name: getattr(row, name) for name in _DERIVED}})


def as_table(rows: Iterable[SessionRow]) -> list[str]:
    """One line a session: id, time of last use, outcome, failures recovered of those there were, title. On a
    terminal the title is cut to its width, and if little of it would be left, the failures are left out.
    """
    cells = [(row.id, when(row.ended_at), _outcome(row), _recovered(row), _title(row)) for row in rows]
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    room = shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths) if sys.stdout.isatty() else None
    if room is not None and room < SHORTEST_TITLE:
        room, cells, widths[3] = room + widths[3], [(*cell[:3], "", cell[4]) for cell in cells], 0
    return [
        f"{name:<{widths[0]}}  {used:<{widths[1]}}  {outcome:<{widths[2]}}  {recovered:>{widths[3]}}  "
        f"{title if room is None else clipped(title, max(SHORTEST_TITLE, room))}"
        for name, used, outcome, recovered, title in cells
    ]


def _outcome(row: SessionRow) -> str:
    """How it ended; of a recording that does not say, which program it is of."""
    return row.source if row.source and not (row.outcome or row.problem) else row.outcome_in_words


def as_facts(row: SessionRow, folder: Path) -> list[str]:
    """All facts of one session, a line each, and the commands that open it."""
    counts = [
        ("runs", f"{row.runs}, {counted(row.iterations, 'step')}"),
        ("answers", f"{row.partial_answers} of {row.endings} partial{_percent(row.partial_answer_rate)}"),
        ("calls", f"{row.tool_calls}, {row.tool_errors} failed{_percent(row.error_rate)}"),
        ("failures", of_failures(row.failures, row.recoveries, ended=bool(row.outcome))),
        (
            "recovered",
            f"{row.recovered_same_call} by the same call, {row.recovered_worked_round} worked round",
        ),
        ("escalations", str(row.escalations)),
        ("model retries", str(row.model_retries)),
        ("coherence violations", str(row.coherence_violations)),
        ("usage", f"{row.tokens:,} tokens, {'cost unknown' if row.cost is None else f'{row.cost:.4f} USD'}"),
    ]
    facts = [
        ("session", row.id),
        ("title", _title(row) if row.events else ""),
        ("workspace", one_line(row.workspace)),
        ("model", one_line(row.model)),
        ("policy", row.policy),
        ("outcome", row.outcome_in_words),
        ("problem", one_line(row.problem)),
        ("started", when(row.started_at) if row.events else ""),
        ("last used", when(row.ended_at)),
        *(counts if row.events else ()),
        ("imported from", row.source),
        ("forked from", f"{row.parent}, event {row.parent_seq}" if row.parent else ""),
        ("folder", f"{folder} ({row.size:,} bytes, {counted(row.events, 'event')})"),
    ]
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts if value]
    if row.problem:
        return [*lines, "", f"agent-tui replay {row.id} plays what can be read."] if row.events else lines
    return [*lines, "", f"agent-tui replay {row.id} plays it, agent-tui resume {row.id} goes on with it."]


def when(seconds: float) -> str:
    """A time in the local zone; a dash if none is known."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "–"


def _percent(rate: float | None) -> str:
    return "" if rate is None else f" ({rate:.0%})"


def _recovered(row: SessionRow) -> str:
    return f"{row.recoveries}/{row.failures} recovered" if row.failures else ""


def _title(row: SessionRow) -> str:
    return one_line(row.title or row.problem or "(no title)", 80)
