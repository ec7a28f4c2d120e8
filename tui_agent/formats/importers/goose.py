"""goose's sessions in its database; its files of lines are messages in blocks too (`anthropic_messages`)."""

from __future__ import annotations

from tui_agent.formats.importers.anthropic_messages import BlockReader
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import ImportReport
from tui_agent.formats.importers.values import parsed, text_at


class Goose(BlockReader, Format):
    """One session, row by row."""

    name = "goose"

    def __init__(self, report: ImportReport) -> None:
        Format.__init__(self, report)

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Rows with the content of a message."""
        rows = recording.records[:5]
        return any(row.get("table") == "message" and "content" in row and "sessionID" in row for row in rows)

    def take(self, row: Record) -> None:
        if row.get("table") == "session":
            self.about(row, workspace="directory", title="title")
            self.transcript.id = text_at(row, "sessionID")
            return
        content = parsed(text_at(row, "content"))
        super().take({"role": row.get("messageID"), "content": content, "ts": row.get("at")})
