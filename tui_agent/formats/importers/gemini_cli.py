"""Gemini CLI sessions: a message a line, in a file that is appended to, or one document in older versions.

A message is written again with each change of its calls, and the last writing holds; `$set` changes what is said of the
session or all its messages, `$rewindTo` takes back a message and what followed it (Gemini CLI,
`services/chatRecordingService.ts`). A command's exit code is a line of its output.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.openai_messages import judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Remarked, Result, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    joined,
    json_text,
    list_at,
    object_at,
    objects_at,
    plain,
    text_at,
    time_at,
    value_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.formats.importers.reading import Record, Recording

_FRAME = re.compile(r"\A<untrusted_context>\n|\n</untrusted_context>.*\Z", re.DOTALL)
_EXIT = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_AROUND = re.compile(r"^(?:Exit Code|Process Group PGID|Background PIDs): .*$\n?|^Output: ", re.MULTILINE)
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
        """Read one line."""
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
            self.leave_out("line of an unknown kind")

    def _about(self, record: Record) -> None:
        transcript = self.transcript
        transcript.id = text_at(record, "sessionId") or transcript.id
        transcript.title = text_at(record, "summary") or transcript.title
        folders = [folder for folder in list_at(record, "directories") if isinstance(folder, str)]
        transcript.workspace = transcript.workspace or next(iter(folders), "")

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
        if kind == "gemini":
            if key not in self._places:
                self._places[key] = len(self.transcript.steps)
                self._begin(key, at)
            self._reply(key, record, text, at)
        elif key in self._places:
            return
        else:
            self._places[key] = len(self.transcript.steps)
            if kind == "user":
                self._user(record, text, at)
            elif kind == "error":
                self.add(Faulted(classified(text), at))
            else:
                self.add(Remarked(text, at))

    def _user(self, record: Record, text: str, at: float | None) -> None:
        if any("functionResponse" in part for part in objects_at(record, "content")):
            return  # the results stand with their calls
        if text.startswith(_INJECTED) or not text.strip():
            self.leave_out("text added by Gemini CLI")
        else:
            self.said(text, at)

    def _begin(self, key: str, at: float | None) -> Turn:
        turn = self._turns[key] = Turn(at)
        self.add(turn)
        return turn

    def _reply(self, key: str, record: Record, text: str, at: float | None) -> None:
        turn = self._turns[key]
        turn.model = text_at(record, "model") or turn.model
        self.transcript.model = turn.model or self.transcript.model
        turn.prompt_tokens = count_at(record, "tokens", "input")
        turn.completion_tokens = count_at(record, "tokens", "output")
        if turn is self.transcript.steps[self._places[key]]:
            turn.text = text
            thoughts = (
                joined(text_at(one, "subject"), text_at(one, "description"))
                for one in objects_at(record, "thoughts")
            )
            turn.reasoning = "\n\n".join(thoughts)
        for raw in objects_at(record, "toolCalls"):
            turn = self._tool_call(key, turn, raw, at)
        self.touch(turn)

    def _tool_call(self, key: str, turn: Turn, raw: Record, at: float | None) -> Turn:
        """A call of a message; the reply that it belongs to."""
        call_id = text_at(raw, "id") or f"{key}-{len(turn.calls)}"
        if call_id not in self.calls:
            if turn.calls and all(call.id in turn.results for call in turn.calls):
                turn = self._begin(key, time_at(raw, "timestamp") or at)
                turn.model = self.transcript.model
            given = plain(object_at(raw, "args"))
            self.call(turn, Call(call_id, text_at(raw, "name") or "unnamed", json_text(given), given))
        owner, call = self.calls[call_id]
        result = _result(call, raw)
        if result is not None and owner.results.get(call_id) != result:
            self.ended(owner, call, result)
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
    return None


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
    return judged(call, text, None, exit_message(int(code[1]), text) if int(code[1]) else None)
