"""What `gemini -p --output-format stream-json` prints: a line for each message, call and result.

A command that fails is a success to it, and its exit code is left out if it printed anything: how such a command ended
is not known. The session's own file knows.
"""

from __future__ import annotations

from dataclasses import replace

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.gemini_cli import result_of_output
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, Remarked, Result
from tui_agent.formats.importers.values import content_text, object_at, text_at, time_at


class GeminiStream(Format):
    """One conversation."""

    name = "Gemini CLI stream"

    @classmethod
    def knows(cls, record: Record) -> bool:
        """The head of a stream, or a call with its id."""
        return (record.get("type") == "init" and "session_id" in record) or "tool_id" in record

    def take(self, record: Record) -> None:
        at = time_at(record, "timestamp")
        match record.get("type"):
            case "init":
                self.about(record, id="session_id", model="model")
            case "message":
                self._message(record, at)
            case "tool_use":
                given = object_at(record, "parameters")
                self.call(self.open_turn(at), text_at(record, "tool_id"), text_at(record, "tool_name"), given)
            case "tool_result":
                self.end(text_at(record, "tool_id"), _result, record, at)
            case "error":
                self.add(Remarked(text_at(record, "message"), at, "warning"))
            case "result":
                if message := text_at(record, "error", "message"):
                    self.add(Faulted(classified(message), at))
            case kind:
                self.not_known(kind, record)

    def _message(self, record: Record, at: float | None) -> None:
        text = content_text(record.get("content"))
        if record.get("role") == "user":
            self.said(text, at)
        else:
            self.open_turn(at).text += text


def _result(call: Call, record: Record, at: float | None) -> Result:
    text, error = content_text(record.get("output")), object_at(record, "error")
    match record.get("status"):
        case "success":
            return replace(result_of_output(call, text), at=at)
        case "error":
            result = judged(call, text, at, text_at(error, "message") or text or "failed")
            invalid = text_at(error, "type") == "invalid_tool_params"
            return replace(result, kind=FailureKind.INVALID_TOOL_CALL) if invalid else result
    return Result("unknown", text, at)
