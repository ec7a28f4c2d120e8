"""Gemini CLI sessions: a message a line, in a file that is appended to, or one document in older versions.

A message is written again with each change of its calls, and the last writing holds; `$set` changes what is said of the
session or all its messages, `$rewindTo` takes back a message and what followed it (Gemini CLI,
`services/chatRecordingService.ts`). A command's exit code is a line of its output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import exited, judged
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Remarked, Result, Turn
from tui_agent.formats.importers.values import (
    content_text,
    joined,
    list_at,
    object_at,
    objects_at,
    text_at,
    time_at,
    value_at,
)

_FRAME = re.compile(r"\A<untrusted_context>\n|\n</untrusted_context>.*\Z", re.DOTALL)
_EXIT = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_AROUND = re.compile(r"^(?:Exit Code|Process Group PGID|Background PIDs): .*$\n?|^Output: ", re.MULTILINE)
COMMAND = "run_shell_command"
_EXITED = re.compile(r"Command exited with code: (\d{1,9})\b")
_BLOCKED = "Tool execution blocked:"
_INJECTED = ("<session_context>", "System: Potential loop detected")


class GeminiCLI(Format):
    """Messages, with their calls and the results of these."""

    name = "Gemini CLI"
    revises = True

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._places: dict[str, int] = {}
        """The first step of each message."""
        self._turns: dict[str, Turn] = {}
        """The newest reply of each message: calls that follow results belong to another one."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """A head with the project's hash, in the first line or in the document."""
        head = recording.objects[0] if recording.objects else {}
        return "sessionId" in head and "projectHash" in head

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        inner = objects_at(recording.document, "messages")
        return [recording.document, *inner] if inner else recording.objects

    def take(self, record: Record) -> None:
        if back := text_at(record, "$rewindTo"):
            self._go_back(self._places.get(back, 0))
        elif change := object_at(record, "$set"):
            self._about(change)
            if "messages" in change:
                self._replace(objects_at(change, "messages"))
        elif "projectHash" in record:
            self._about(record)
        elif text_at(record, "id") and text_at(record, "type"):
            self._message(record)
        else:
            self.not_known("line of an unknown kind", record)

    def _about(self, record: Record) -> None:
        self.about(record, id="sessionId", title="summary")
        folders = (folder for folder in list_at(record, "directories") if isinstance(folder, str))
        self.transcript.workspace = self.transcript.workspace or next(folders, "")

    def _go_back(self, place: int) -> None:
        self.forget(place)
        self._places = {key: first for key, first in self._places.items() if first < place}

    def _replace(self, messages: list[Record]) -> None:
        keys = {text_at(message, "id") for message in messages}
        gone = [place for key, place in self._places.items() if key not in keys]
        self._go_back(min(gone, default=len(self.transcript.steps)))
        for message in messages:
            self._message(message)

    def _message(self, record: Record) -> None:
        key, kind = text_at(record, "id"), text_at(record, "type")
        at, text = time_at(record, "timestamp"), _text(record.get("content"))
        new = key not in self._places
        self._places.setdefault(key, len(self.transcript.steps))
        if kind == "gemini":
            self._reply(key, record, text, at)
        elif new and kind == "user":
            self._user(record, text, at)
        elif new:
            self.add(Faulted(classified(text), at) if kind == "error" else Remarked(text, at))

    def _user(self, record: Record, text: str, at: float | None) -> None:
        if any("functionResponse" in part for part in objects_at(record, "content")):
            return  # the results stand with their calls
        if text.startswith(_INJECTED) or not text.strip():
            self.leave_out("text added by Gemini CLI")
        else:
            self.said(text, at)

    def _reply(self, key: str, record: Record, text: str, at: float | None) -> None:
        if key not in self._turns or self._places[key] == len(self.transcript.steps):
            self._places[key] = len(self.transcript.steps)
            self._turns[key] = self.turn(at)
        turn = self._turns[key]
        turn.model = text_at(record, "model") or turn.model
        self.transcript.model = turn.model or self.transcript.model
        used(turn, object_at(record, "tokens"), "input", "output")
        if turn is self.transcript.steps[self._places[key]]:
            turn.text = text
            thoughts = objects_at(record, "thoughts")
            turn.reasoning = "\n\n".join(
                joined(text_at(one, "subject"), text_at(one, "description")) for one in thoughts
            )
        for raw in objects_at(record, "toolCalls"):
            turn = self._tool_call(key, turn, raw, at)
        self.touch(turn)

    def _tool_call(self, key: str, turn: Turn, raw: Record, at: float | None) -> Turn:
        """A call of a message; the reply that it belongs to."""
        call_id = text_at(raw, "id") or f"{key}-{len(turn.calls)}"
        if call_id not in self.calls:
            if turn.calls and all(call.id in turn.results for call in turn.calls):
                turn = self._turns[key] = self.turn(
                    time_at(raw, "timestamp") or at, model=self.transcript.model
                )
            self.call(turn, call_id, text_at(raw, "name"), object_at(raw, "args"))
        owner, call = self.calls[call_id]
        result = _result(call, raw)
        if result is not None and owner.results.get(call_id) != result:
            self.ended_as(owner, call, result)
        return turn


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    texts = (content_text(part if isinstance(part, str) else text_at(part, "text")) for part in parts)
    return "\n".join(text for text in texts if text)


def _result(call: Call, raw: Record) -> Result | None:
    """How a call ended; None while it runs."""
    at, status = time_at(raw, "timestamp"), text_at(raw, "status")
    response: Any = next(
        (value_at(part, "functionResponse", "response") for part in objects_at(raw, "result")), None
    )
    error = text_at(response, "error")
    text = error or text_at(response, "output") or content_text(response)
    match status:
        case "cancelled":
            return Result("cancelled", text, at, "interrupted by the operator")
        case "error" if text.startswith(_BLOCKED):
            return Result("denied", text, at, text.removeprefix(_BLOCKED).strip())
        case "error" | "success":
            return replace(result_of_text(call, text, error), at=at)
    return Result("unknown", text, at) if response is not None else None


def result_of_text(call: Call, text: str, error: str = "", *, invalid: bool = False) -> Result:
    """How a call has ended, by the text that the model reads of it. `error`: why the tool itself failed; `invalid`: its
    arguments did not fit.
    """
    text = _FRAME.sub("", text)
    code = _EXIT.search(text)
    text = _AROUND.sub("", text)
    if error or code is None:
        result = judged(call, text, None, error or None)
        return replace(result, kind=FailureKind.INVALID_TOOL_CALL) if invalid else result
    return exited(call, text, None, int(code[1]))


def result_of_output(call: Call, text: str) -> Result:
    """How a call has ended that printed this, and that is a success to Gemini CLI: a command's exit code is said if it
    printed nothing.
    """
    if call.name != COMMAND:
        return judged(call, text, None, None)
    code = _EXITED.match(text)
    return Result("unknown", text) if code is None else exited(call, text, None, int(code[1]))
