"""Crush's sessions in its database: a row a message, which is written again while the reply comes in.

A result says whether it failed (`is_error`); the exit code of a command that failed is the last line of its output.
"""

from __future__ import annotations

import re

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import exited, judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Turn
from tui_agent.formats.importers.values import joined, object_at, objects_at, parsed, text_at, time_at

_COMMANDS = frozenset({"bash", "job_output"})
_FOLDER = re.compile(r"\s*<cwd>[^<]*</cwd>\s*\Z")
_EXITED = re.compile(r"(?:\A|\n)Exit code (-?\d{1,9})\s*\Z")
_ABORTED = "Command was aborted before completion"
_DENIED = "User denied permission"
_CANCELLED = "Error: user cancelled"
_PARTED = "$$"
"""Between the message and the call in the id of a sub-agent's session."""


class Crush(Format):
    """A session with those of its sub-agents."""

    name = "Crush"
    revises = True

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._session = ""
        self._turns: dict[str, Turn] = {}
        """By message."""
        self._seen: set[str] = set()
        """Parts of messages that were taken once for all."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Rows with the parts of a message."""
        rows = recording.records[:5]
        return any(row.get("table") == "message" and "parts" in row and "sessionID" in row for row in rows)

    def take(self, row: Record) -> None:
        key = text_at(row, "sessionID")
        self._session = self._session or key
        if key == self._session:
            self._row(row)
        else:
            lane = key.partition(_PARTED)[2]
            self.agent(key, f"subagent: {text_at(row, 'title') or key[:8]}", lane)._row(row)

    def _row(self, row: Record) -> None:
        if row.get("table") == "session":
            self.about(row, id="sessionID", title="title")
            return
        parts = objects_at({"parts": parsed(text_at(row, "parts"))}, "parts")
        at, key = time_at(row, "at"), text_at(row, "id")
        match row.get("messageID"):
            case "user":
                self._user(key, parts, at)
            case "assistant":
                self._reply(row, key, parts, at)
            case "tool":
                for told in _data(parts, "tool_result"):
                    self._ended(told, at)
            case role:
                self.not_known(f"role {role}", {"parts": parts})

    def _user(self, key: str, parts: list[Record], at: float | None) -> None:
        text = "\n\n".join(text_at(one, "text") for one in _data(parts, "text"))
        if key in self._seen:
            return
        self._seen.add(key)
        if text.strip():
            self.said(text, at)
        else:
            self.leave_out("message without text")

    def _reply(self, row: Record, key: str, parts: list[Record], at: float | None) -> None:
        if key not in self._turns:
            self._turns[key] = self.turn(at, model=text_at(row, "model"))
        turn = self._turns[key]
        turn.text = turn.reasoning = ""
        for one in _data(parts, "text"):
            turn.text = joined(turn.text, text_at(one, "text"))
        for one in _data(parts, "reasoning"):
            turn.reasoning = joined(turn.reasoning, text_at(one, "thinking"))
        for one in _data(parts, "tool_call"):
            if one.get("finished") is not False and text_at(one, "id") not in self.calls:
                self.call(turn, text_at(one, "id"), text_at(one, "name"), text_at(one, "input"))
        self.touch(turn)
        for one in _data(parts, "finish"):
            self._finished(key, one, at)

    def _finished(self, key: str, finish: Record, at: float | None) -> None:
        if key in self._seen or text_at(finish, "reason") not in {"error", "canceled"}:
            return
        self._seen.add(key)
        if finish["reason"] == "canceled":
            self.interrupted(at)
        else:
            words = joined(text_at(finish, "message"), text_at(finish, "details"))
            self.add(Faulted(classified(words), at))

    def _ended(self, told: Record, at: float | None) -> None:
        turn, call = self.calls.get(text_at(told, "tool_call_id"), (None, None))
        if turn is None or call is None or call.id not in turn.results:
            self.end(text_at(told, "tool_call_id"), _result, told, at)
        elif (result := _result(call, told, at)) != turn.results[call.id]:
            self.ended_as(turn, call, result)


def _data(parts: list[Record], kind: str) -> list[Record]:
    return [object_at(part, "data") for part in parts if part.get("type") == kind]


def _result(call: Call, told: Record, at: float | None) -> Result:
    text = _FOLDER.sub("", text_at(told, "content"))
    if text.startswith(_DENIED):
        return Result("denied", text, at, text)
    if text.startswith(_CANCELLED) or text.rstrip().endswith(_ABORTED):
        return Result("cancelled", text, at, "interrupted by the operator")
    if told.get("is_error") is True:
        return judged(call, text, at, text or "failed")
    if told.get("is_error") is not False:
        return Result("unknown", text, at)
    code = _EXITED.search(text) if call.name in _COMMANDS else None
    return (
        judged(call, text, at, None) if code is None else exited(call, text[: code.start()], at, int(code[1]))
    )
