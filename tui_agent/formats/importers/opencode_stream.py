"""What `opencode run --format json` prints: the parts of the model's messages, each when it is whole.

The task is not among them, nor what a sub-agent does, nor a call that has not ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_agent.formats.importers.opencode import OpenCode
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.values import object_at, text_at, time_at


class OpenCodeStream(OpenCode):
    """One conversation."""

    name = "OpenCode stream"

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        return super(OpenCode, cls).matches(recording)

    @classmethod
    def knows(cls, record: Record) -> bool:
        """A part of a message, or an error, under the session's id."""
        part = object_at(record, "part")
        return "sessionID" in record and (
            "messageID" in part or (record.get("type") == "error" and "data" in object_at(record, "error"))
        )

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        return super(OpenCode, cls).records(recording)

    def _row(self, row: Record) -> None:
        self.about(row, id="sessionID")
        part, at = object_at(row, "part"), time_at(row, "timestamp")
        if row.get("type") == "error":
            self._broke(f"record {self.report.records}", object_at(row, "error"), at)
            return
        if not part:
            self.not_known(row.get("type"), row)
            return
        key = text_at(part, "messageID")
        turn = self._turns.get(key) or self.turn(at)
        self._turns[key] = turn
        if part.get("type") == "step-finish":
            self.spent(turn, part, "reason")
        else:
            self._part(part)
