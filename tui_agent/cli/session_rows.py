"""Rows of the session list as text and as JSON. Titles are other people's words: made safe before they are shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tui_agent.console.sanitize import one_line
from tui_agent.sessions.summary import SessionRow


def as_json(row: SessionRow) -> str:
    """One object on one line."""
    return json.dumps(asdict(row))


def as_table(rows: Iterable[SessionRow]) -> list[str]:
    """One line a session: id, when it was used last, outcome, failures recovered of those there were, title."""
    cells = [
        (row.id, when(row.ended_at), row.outcome or row.source or "–", _recovered(row), _title(row))
        for row in rows
    ]
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    return [
        f"{name:<{widths[0]}}  {used:<{widths[1]}}  {outcome:<{widths[2]}}  {recovered:>{widths[3]}}  {title}"
        for name, used, outcome, recovered, title in cells
    ]


def as_facts(row: SessionRow, folder: Path) -> list[str]:
    """Everything that is known of one session, a line each, and what can be done with it."""
    facts = [
        ("session", row.id),
        ("title", _title(row)),
        ("workspace", one_line(row.workspace)),
        ("model", one_line(row.model)),
        ("policy", row.policy),
        ("outcome", row.outcome or "not finished"),
        ("started", when(row.started_at)),
        ("last used", when(row.ended_at)),
        ("runs", f"{row.runs}, {row.iterations} iterations"),
        ("calls", f"{row.tool_calls}, {row.errors} failed"),
        ("failures", f"{row.failures}, {row.recoveries} recovered"),
        ("escalations", str(row.escalations)),
        ("usage", f"{row.tokens:,} tokens, {'cost unknown' if row.cost is None else f'{row.cost:.4f} USD'}"),
        ("imported from", row.source),
        ("forked from", f"{row.parent}, event {row.parent_seq}" if row.parent else ""),
        ("problem", one_line(row.problem)),
        ("folder", f"{folder} ({row.size:,} bytes, {row.events:,} events)"),
    ]
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts if value]
    return [*lines, "", f"agent-tui replay {row.id} plays it, agent-tui resume {row.id} goes on with it."]


def when(seconds: float) -> str:
    """A time in the local zone; a dash where none is known."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "–"


def _recovered(row: SessionRow) -> str:
    return f"{row.recoveries}/{row.failures} recovered" if row.failures else ""


def _title(row: SessionRow) -> str:
    return one_line(row.problem or row.title or "(no title)", 80)
