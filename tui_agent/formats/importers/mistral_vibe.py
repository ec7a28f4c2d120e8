"""mistral-vibe sessions: up to version 2 a folder of `messages.jsonl` and `meta.json`, or one file of both; in version
3 the journals of its store, what the model was asked, answered, and what its tools did.

In messages, failures are wrapped in `<tool_error>`, refusals and interrupts in `<user_cancellation>` (mistral-vibe,
`core/agent_loop.py`); everything else is a success. A command that fails is a success to it. Journals are cut when a
new generation is written: what only a generation holds is left out.
"""

from __future__ import annotations

import re

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.openai_messages import ROLES, MessageReader, message_time, tool_names
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import exited, failed, judged, streams
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result
from tui_agent.formats.importers.values import (
    code_at,
    content_text,
    joined,
    object_at,
    objects_at,
    parsed,
    text_at,
    time_at,
    value_at,
)

_TOOL_ERROR = re.compile(r"^\s*<tool_error>(.*?)(?:</tool_error>\s*)?$", re.DOTALL)
_NO_SUCH_TOOL = "unsupported top-level tool"
_CANCELLED = "<user_cancellation>"
_OWN_KEYS = {"message_id", "injected", "reasoning_message_id", "reasoning_state"}
_RETURN_CODE = re.compile(r"^returncode: (-?\d{1,10})$", re.MULTILINE)
_DENIED = {"tool_denied", "tool_rejected", "tool_skipped", "denied", "skipped"}
_KINDS = {"command_reserved", "core_input", "action_intent", "action_result", "projection_delta"}
_ABOUT = {"id": "session_id", "title": "title", "workspace": "environment.working_directory"}
"""The metadata of a session."""


class MistralVibe(MessageReader, Format):
    """Messages of a session; some were put in by the harness."""

    name = "mistral-vibe"
    inside = "messages"

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Metadata with vibe's `environment` beside messages, or lines of messages with vibe's own keys."""
        meta = _meta(recording)
        head = [one for one in cls.records(recording)[:20] if isinstance(one, dict)]
        if not any(text_at(message, "role") in ROLES for message in head):
            return False
        if isinstance(meta.get("environment"), dict) and ("session_id" in meta or "start_time" in meta):
            return True
        return any(_OWN_KEYS & one.keys() for one in head)

    def take(self, message: Record) -> None:
        if message.get("injected") is True:
            self.leave_out("message added by mistral-vibe")
        else:
            super().take(message)

    def around(self, recording: Recording) -> None:
        """The session's metadata."""
        meta, transcript = _meta(recording), self.transcript
        self.about(meta, **_ABOUT)
        self.about(meta, model="agent_config.active_model")
        self.about(meta, model="config.active_model")
        prompt = content_text(value_at(meta, "system_prompt", "content") or "")
        transcript.system_prompt = transcript.system_prompt or prompt
        transcript.tools = tool_names(meta, "tools_available")

    def judge(self, call: Call, content: str, record: Record) -> Result:
        """By the marks of the harness, then by the exit code."""
        at = message_time(record)
        if content.lstrip().startswith(_CANCELLED):
            text = content.strip().removeprefix(_CANCELLED).removesuffix("</user_cancellation>")
            return Result("cancelled" if "interrupt" in text.lower() else "denied", content, at, text)
        error = _TOOL_ERROR.match(content)
        if error is None:
            code = _RETURN_CODE.search(content) if call.name == "bash" else None
            return exited(call, content, at, int(code[1]) if code else None)
        message = error[1].strip()
        if "Unknown tool" in message[:200]:
            return failed(content, at, message, FailureKind.UNKNOWN_TOOL)
        if "Invalid arguments" in message[:300] or "validation error" in message[:300]:
            return failed(content, at, message, FailureKind.INVALID_TOOL_CALL)
        return judged(call, content, at, message)


def _meta(recording: Recording) -> Record:
    return object_at(recording.document, "metadata") or recording.meta


class MistralVibeStore(Format):
    """Records of the journals; the time of each is the one of the projection before it."""

    name = "mistral-vibe 3"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._at: float | None = None
        self._said: set[str] = set()
        self._hooked: dict[str, str] = {}
        """Calls by the actions that ask hooks about them."""

    @classmethod
    def knows(cls, record: Record) -> bool:
        """Records of its journal."""
        return "recovery_journal_record_version" in record and text_at(record, "type") in _KINDS

    def take(self, record: Record) -> None:
        payload = object_at(record, "payload")
        match record.get("type"):
            case "projection_delta":
                for change in objects_at(payload, "delta"):
                    self._shown(object_at(change, "entry"))
            case "core_input":
                self._at = time_at(payload, "input", "determinism", "time_unix_ms") or self._at
            case "action_intent" if text_at(payload, "request", "hook") == "pre_tool_call":
                call = text_at(payload, "request", "input", "tool_call", "call_id")
                self._hooked[text_at(payload, "action_id")] = call
            case "action_intent" if payload.get("kind") == "completion":
                for message in objects_at(payload, "request", "model_input", "messages", "messages"):
                    self._rejected(message)
            case "action_result":
                self._result(object_at(payload, "result", "result"), object_at(payload, "result"), payload)
            case kind:
                self.leave_out(kind, "record without a type")

    def _rejected(self, message: Record) -> None:
        """A call that was not run has its end in the next request alone."""
        turn, call = self.calls.get(text_at(message, "tool_call_id"), (None, None))
        if turn is None or call is None or call.id in turn.results or message.get("outcome") != "failure":
            return
        text = content_text(message.get("content"))
        error = object_at(parsed(text), "result", "error")
        reason = text_at(error, "message") or text
        unknown = reason.startswith(_NO_SUCH_TOOL)
        kind = FailureKind.UNKNOWN_TOOL if unknown else FailureKind.INVALID_TOOL_CALL
        self.ended_as(turn, call, failed(text, self._at, reason, kind))

    def _shown(self, entry: Record) -> None:
        self._at = time_at(entry, "updatedAt") or self._at
        key = text_at(entry, "id")
        if entry.get("type") == "message" and entry.get("role") == "user" and key not in self._said:
            self._said.add(key)
            self.said(content_text(entry.get("content")), self._at)

    def _result(self, inner: Record, result: Record, payload: Record) -> None:
        match text_at(result, "type"):
            case "completion_succeeded":
                self._reply(inner)
            case "completion_failed":
                message = text_at(result, "error", "message") or content_text(result.get("error"))
                self.add(Faulted(classified(message), self._at))
            case "hook_completed" if text_at(inner, "output", "type") == "skip":
                reason = content_text(value_at(inner, "output", "reason"))
                hooked = self._hooked.get(text_at(payload, "action_id"), "")
                self.end(hooked, lambda _: Result("denied", reason, self._at, reason))
            case kind if kind.startswith("tool_"):
                unmarked = payload.get("state") == "succeeded" and kind != "tool_failed"
                self.end(text_at(result, "call_id"), _ended, result, self._at, unmarked=unmarked)
            case _:
                self.leave_out("action_result of another kind")

    def _reply(self, result: Record) -> None:
        turn = self.turn(self._at, model=self.transcript.model)
        turn.finish_reason = text_at(result, "finish_reason").replace("tool_call", "")
        used(turn, object_at(result, "usage"))
        for part in objects_at(result, "parts"):
            match part.get("type"):
                case "text":
                    turn.text = joined(turn.text, text_at(part, "text"))
                case "reasoning" | "thinking":
                    turn.reasoning = joined(turn.reasoning, text_at(part, "text"))
                case "tool_call":
                    raw = text_at(part, "arguments_json")
                    self.call(turn, text_at(part, "id"), text_at(part, "name"), raw)

    def around(self, recording: Recording) -> None:
        """The session's metadata."""
        self.about(recording.meta, **_ABOUT, model="config.active_model")


def _ended(call: Call, record: Record, at: float | None, *, unmarked: bool) -> Result:
    result = object_at(record, "result")
    shell = result.get("structured_content")
    text = streams(shell) or content_text(result.get("content")) or content_text(shell)
    error = content_text(record.get("error")) or content_text(result.get("error"))
    if not _DENIED.isdisjoint((text_at(record, "type"), text_at(result, "type"))):
        return Result("denied", text or error, at, error or text)
    if text_at(record, "type") == "tool_cancelled":
        return Result("cancelled", text, at, "interrupted by the operator")
    if not unmarked:
        return Result("failed", text or error, at, error or text)
    return exited(call, text, at, code_at(shell, "returncode"))
