"""OpenCode sessions: rows of its database, or the document of `opencode export`.

Messages have parts, which change while they come in: a row that is given again takes the place of the one before. A
command that fails is `completed` to it, with the exit code in the metadata of its part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.opencode_messages import ONCE_MORE, WholeMessages
from tui_agent.formats.importers.opencode_results import result_of_error, result_of_output
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Said, Transcript, Turn
from tui_agent.formats.importers.values import count_at, object_at, objects_at, text_at, time_at


class OpenCode(WholeMessages):
    """A session with those of its sub-agents."""

    name = "OpenCode"
    revises = True

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._session: str | None = None
        """The main one."""
        self._said: dict[str, int] = {}
        """The places of the operator's messages."""
        self._texts: dict[tuple[str, str], dict[str, str]] = {}
        """Texts by message and kind, then by part."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Rows of its tables, or its export."""
        if any(record.get("table") == "session" for record in recording.records[:5]):
            return True
        inner = objects_at(recording.document, "messages")
        return "info" in object_at(recording.document) and any(
            "parts" in one and "info" in one for one in inner[:5]
        )

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        return list(_rows(recording.document)) if recording.document is not None else recording.records

    def take(self, row: Record) -> None:
        key = text_at(row, "sessionID")
        if self._session is None:
            self._session = key
        (self if key == self._session else self.agent(key))._row(row)

    @property
    def lanes(self) -> list[Transcript]:
        started = dict(self._started)
        for agent in self.agents.values():
            started |= agent._started
        for key, agent in self.agents.items():
            agent.transcript.lane = started.get(key, key)
        return super().lanes

    def _row(self, row: Record) -> None:
        match row.get("table"):
            case "session":
                self.about(row, workspace="directory", title="title")
                self.transcript.id = text_at(row, "id") or text_at(row, "sessionID")
            case "message":
                self._message(row)
            case "session_message":
                self.whole_message(row)
            case _:
                self._part(row)

    def _message(self, row: Record) -> None:
        key, at = text_at(row, "id"), time_at(row, "time", "created")
        if row.get("role") == "user":
            self._said.setdefault(key, -1)
            return
        if key not in self._turns:
            self._turns[key] = self.turn(at)
        turn = self._turns[key]
        turn.model = text_at(row, "modelID")
        self.transcript.model = turn.model or self.transcript.model
        self.spent(turn, row)
        self._broke(key, object_at(row, "error"), at)

    def _broke(self, key: str, error: Record, at: float | None) -> None:
        if not error or (key, "error") in self._texts:
            return
        self._texts[key, "error"] = {}
        if text_at(error, "name") == "MessageAbortedError":
            self.interrupted(at)
        else:
            message = text_at(error, "data", "message") or text_at(error, "name")
            self.add(Faulted(classified(message, count_at(error, "data", "statusCode")), at))

    def _part(self, row: Record) -> None:
        owner, kind = text_at(row, "messageID"), text_at(row, "type")
        if owner in self._said:
            self._words(owner, row)
        elif (turn := self._turns.get(owner)) is None:
            self.leave_out("part without its message")
        elif kind in {"text", "reasoning"}:
            text = self._text(owner, kind, row)
            turn.text, turn.reasoning = (text, turn.reasoning) if kind == "text" else (turn.text, text)
            self.touch(turn)
        elif kind == "tool":
            self._tool(turn, row)
        elif kind == "compaction":
            self.compacted(time_at(row, "at"))
        else:
            self.leave_out(f"part {kind or 'without a type'}")

    def _text(self, owner: str, kind: str, row: Record) -> str:
        texts = self._texts.setdefault((owner, kind), {})
        texts[text_at(row, "id")] = text_at(row, "text")
        return "\n\n".join(text for text in texts.values() if text)

    def _words(self, owner: str, row: Record) -> None:
        if row.get("type") != "text" or row.get("synthetic") is True or row.get("ignored") is True:
            self.leave_out("part added by OpenCode")
            return
        said = Said(self._text(owner, "text", row), time_at(row, "at"))
        if self._said[owner] < 0:
            self._said[owner] = len(self.transcript.steps)
            self.add(said)
        else:
            self.transcript.steps[self._said[owner]] = said
            self.touch(said)

    def _tool(self, turn: Turn, row: Record) -> None:
        key, state = text_at(row, "callID") or text_at(row, "id"), object_at(row, "state")
        call = Call.of(key, text_at(row, "tool"), object_at(state, "input"))
        if not self.placed(turn, call, _result(call, state)):
            self.leave_out(ONCE_MORE)
            return
        if session := text_at(state, "metadata", "sessionId"):
            self._started[session] = key
        self.touch(turn)


def _rows(export: Any) -> Iterator[Record]:
    """The rows that an export was made of."""
    info = object_at(export, "info")
    session = text_at(info, "id")
    yield {**info, "table": "session", "sessionID": session}
    for message in objects_at(export, "messages"):
        about = object_at(message, "info")
        yield {**about, "table": "message", "sessionID": session}
        for part in objects_at(message, "parts"):
            yield {**part, "table": "part", "sessionID": session, "messageID": text_at(about, "id")}


def _result(call: Call, state: Record) -> Result | None:
    """How a call ended; None while it runs."""
    at = time_at(state, "time", "end")
    match state.get("status"):
        case "completed":
            metadata = object_at(state, "metadata")
            text = text_at(metadata, "output") if "exit" in metadata else text_at(state, "output")
            return replace(result_of_output(call, text or text_at(state, "output"), metadata), at=at)
        case "error":
            return replace(result_of_error(call, text_at(state, "error")), at=at)
        case "pending" | "running" | None:
            return None
    return Result("unknown", text_at(state, "output"), at)
