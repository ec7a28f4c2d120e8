"""Messages of OpenCode 2: one row each, with the texts, calls and results of a reply in it.

A row is written anew as the reply goes on. How a call ended is said as in version 1, with the exit code of a command
in the metadata.
"""

from __future__ import annotations

from dataclasses import replace

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.opencode_results import result_of_error, result_of_output
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    number_at,
    object_at,
    objects_at,
    text_at,
    time_at,
)

ONCE_MORE = "interruption of a call that had ended"


class WholeMessages(Format):
    """The part of OpenCode's reader that takes messages of version 2."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._started: dict[str, str] = {}
        """Calls by the sessions that they began."""
        self._turns: dict[str, Turn] = {}
        """By message."""
        self._once: set[str] = set()
        """Rows of which all was said."""

    def whole_message(self, row: Record) -> None:
        """Take a row; its kind stands where a part has its message."""
        key, kind, at = text_at(row, "id"), text_at(row, "messageID"), time_at(row, "time", "created")
        match kind:
            case "assistant":
                self._reply(key, row, at)
            case "user" if self._first(key):
                self.said(text_at(row, "text"), at)
            case "compaction" if row.get("status", "completed") == "completed" and self._first(key):
                self.compacted(at)
            case "idle" if row.get("outcome") == "interrupted" and self._first(key):
                self.interrupted(at)
            case _:
                self.leave_out(f"message {kind or 'without a type'}")

    def _first(self, key: str) -> bool:
        new = key not in self._once
        self._once.add(key)
        return new

    def _reply(self, key: str, row: Record, at: float | None) -> None:
        if key not in self._turns:
            self._turns[key] = self.turn(at)
        turn, content = self._turns[key], objects_at(row, "content")
        turn.model = text_at(row, "model", "id")
        self.transcript.model = turn.model or self.transcript.model
        turn.text, turn.reasoning = (
            "\n\n".join(
                text for part in content if part.get("type") == kind and (text := text_at(part, "text"))
            )
            for kind in ("text", "reasoning")
        )
        turn.calls.clear()
        for part in content:
            if part.get("type") == "tool":
                self._call(turn, part)
        self.spent(turn, row)
        error = object_at(row, "error")
        if error and self._first(key):
            self._reply_broke(error, at)

    def spent(self, turn: Turn, told: Record, reason: str = "finish") -> None:
        """A reply has ended: why, in the field of this name, its cost and its tokens."""
        turn.finish_reason = text_at(told, reason).replace("tool-calls", "")
        turn.cost = number_at(told, "cost") or None
        used(turn, object_at(told, "tokens"), "input", "output")
        self.touch(turn)

    def _reply_broke(self, error: Record, at: float | None) -> None:
        if "abort" in text_at(error, "type") or "interrupt" in text_at(error, "type"):
            self.interrupted(at)
        else:
            words = text_at(error, "message") or text_at(error, "type")
            self.add(Faulted(classified(words, count_at(error, "status")), at))

    def _call(self, turn: Turn, part: Record) -> None:
        state = object_at(part, "state")
        call = Call.of(text_at(part, "id"), text_at(part, "name"), object_at(state, "input"))
        result = _result(call, state)
        if result is not None:
            result = replace(result, at=time_at(part, "time", "completed"))
        if not self.placed(turn, call, result):
            self.report.skip(ONCE_MORE)
            return
        metadata = object_at(state, "metadata")
        if session := text_at(metadata, "sessionID") or text_at(metadata, "sessionId"):
            self._started[session] = call.id

    def placed(self, turn: Turn, call: Call, result: Result | None) -> bool:
        """The call, as it is now, stands once in the reply. False: it had ended, and is said to be interrupted."""
        known = next((place for place, one in enumerate(turn.calls) if one.id == call.id), len(turn.calls))
        ended = turn.results.get(call.id) if known < len(turn.calls) else None
        if result is not None and result.status == "cancelled" and ended is not None and ended != result:
            return False
        turn.calls[known : known + 1] = [call]
        self.calls[call.id] = turn, call
        if result is not None:
            self.ended_as(turn, call, result)
        return True


def _result(call: Call, state: Record) -> Result | None:
    """How a call ended; None while it runs."""
    text = content_text(state.get("content"))
    match state.get("status"):
        case "completed":
            return result_of_output(call, text, object_at(state, "metadata"))
        case "error":
            return result_of_error(call, text_at(state, "error", "message") or text)
        case "streaming" | "pending" | "running" | None:
            return None
    return Result("unknown", text)
