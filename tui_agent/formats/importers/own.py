"""Our own sessions: the journal's lines, `run --output jsonl`, and the JSON export, event for event.

The one importer that yields events itself, so that an exported session is restored exactly. Older versions are
upgraded by `store.upgrade`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tui_agent.core.events import Event, SessionStarted, parse_event
from tui_agent.formats.importers.transcript import ImportReport, TranscriptError
from tui_agent.store.upgrade import UnknownVersionError, upgrade

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording

NAME = "agent-tui"

EXPORT_FORMAT = "agent-tui-session"
"""The `format` of our JSON export."""


def matches(recording: Recording) -> bool:
    """The export's `format`, or lines that begin with `session_started`."""
    if isinstance(recording.document, dict) and recording.document.get("format") == EXPORT_FORMAT:
        return True
    head = recording.records[:1]
    return bool(head) and head[0].get("type") == "session_started" and "session_id" in head[0]


def read_events(recording: Recording, report: ImportReport) -> list[Event]:
    """The session's events, numbered without gaps. Raises `TranscriptError` for a newer version."""
    records, lines = _records(recording)
    report.records += len(records)
    events: list[Event] = []
    for record, line in zip(records, lines, strict=True):
        if record.get("type") == "result":
            report.skip("result of a run")
            continue
        event = _event(record, line, str(recording.path))
        if event is None:
            report.damaged.append(line)
            continue
        report.understood += 1
        events.append(event)
    if not events or not isinstance(events[0], SessionStarted):
        why = "its first event is not the start of a session."
        raise TranscriptError(
            str(recording.path), why, "Export the session again.", lines[0] if lines else None
        )
    if any(event.seq != number for number, event in enumerate(events, start=1)):
        report.remarks.append("Events were renumbered: some are missing.")
        events = [event.stamped(number, event.at) for number, event in enumerate(events, start=1)]
    return events


def _records(recording: Recording) -> tuple[list[Record], list[int]]:
    document: Any = recording.document
    if isinstance(document, dict) and document.get("format") == EXPORT_FORMAT:
        listed = document.get("events")
        records = [one if isinstance(one, dict) else {} for one in listed] if isinstance(listed, list) else []
        return records, list(range(1, len(records) + 1))
    return recording.records, recording.lines


def _event(record: Record, line: int, path: str) -> Event | None:
    try:
        return parse_event(json.dumps(upgrade(record)))
    except UnknownVersionError as error:
        why = f"it was written by a newer version ({error})."
        raise TranscriptError(path, why, "Update agent-tui and import it again.", line) from error
    except (ValidationError, ValueError, RecursionError):
        return None
