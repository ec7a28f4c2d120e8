"""Our own sessions: the journal's lines, `run --output jsonl`, and the JSON export, event for event.

The one importer that yields events itself, so that an exported session is restored exactly. Older versions are
upgraded by `store.upgrade`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from tui_agent.core.events import Event, SessionStarted, parse_event
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import ImportReport, TranscriptError
from tui_agent.formats.importers.values import list_at
from tui_agent.store.upgrade import UnknownVersionError, upgrade

EXPORT_FORMAT = "agent-tui-session"
"""The `format` of our JSON export."""


class OwnSession(Format):
    """Events, as they were recorded."""

    name = "agent-tui"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.events: list[Event] = []

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """The export's `format`, or lines that begin with `session_started`."""
        if _is_export(recording.document):
            return True
        head = recording.records[:1]
        return bool(head) and head[0].get("type") == "session_started" and "session_id" in head[0]

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        return list_at(recording.document, "events") if _is_export(recording.document) else recording.records

    def take(self, record: Record) -> None:
        """Raises `TranscriptError` for an event of a newer version."""
        if record.get("type") == "result":
            self.leave_out("result of a run")
            return
        line = self.report.line
        event = _event(record, line, self.report.path)
        if event is None:
            self.report.understood -= 1
            self.report.damaged.append(line)
            return
        number = len(self.events) + 1
        if number == 1:
            if not isinstance(event, SessionStarted):
                why = "its first event is not the start of a session."
                raise TranscriptError(self.report.path, why, "Export the session again.", line)
            self.transcript.title = event.title
        if event.seq != number:
            event = event.stamped(number, event.at)
            self.report.remarks = ["Events were renumbered: some are missing."]
        self.events.append(event)


def _is_export(document: Any) -> bool:
    return isinstance(document, dict) and document.get("format") == EXPORT_FORMAT


def _event(record: Record, line: int, path: str) -> Event | None:
    try:
        return parse_event(json.dumps(upgrade(record)))
    except UnknownVersionError as error:
        why = f"it was written by a newer version ({error})."
        raise TranscriptError(path, why, "Update agent-tui and import it again.", line) from error
    except (ValidationError, ValueError, RecursionError):
        return None
