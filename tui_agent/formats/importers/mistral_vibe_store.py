"""mistral-vibe 3 sessions: the journals of its store, what the model was asked, answered, and what its tools did.

A command that fails is a success to it; its exit code stands in the structured result. Journals are cut when a new
generation is written: what only a generation holds is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.openai_messages import judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    joined,
    object_at,
    objects_at,
    parse_arguments,
    text_at,
    time_at,
    value_at,
)

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording

_KINDS = {"command_reserved", "core_input", "action_intent", "action_result", "projection_delta"}


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
    def matches(cls, recording: Recording) -> bool:
        """Records of its journal."""
        return any(
            "recovery_journal_record_version" in record and text_at(record, "type") in _KINDS
            for record in recording.records[:20]
        )

    def take(self, record: Record) -> None:
        """Read one record."""
        payload = object_at(record, "payload")
        match record.get("type"):
            case "projection_delta":
                for change in objects_at(payload, "delta"):
                    self._shown(object_at(change, "entry"))
            case "core_input":
                moment = time_at(payload, "input", "determinism", "time_unix_ms")
                self._at = moment / 1_000 if moment and moment > 1e11 else moment or self._at
            case "action_intent" if text_at(payload, "request", "hook") == "pre_tool_call":
                call = text_at(payload, "request", "input", "tool_call", "call_id")
                self._hooked[text_at(payload, "action_id")] = call
            case "action_result":
                self._result(object_at(payload, "result", "result"), object_at(payload, "result"), payload)
            case kind:
                self.leave_out(kind if isinstance(kind, str) else "record without a type")

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
                self._skipped(self._hooked.get(text_at(payload, "action_id"), ""), object_at(inner, "output"))
            case kind if kind.startswith("tool_"):
                self._tool_ended(result, failed=payload.get("state") != "succeeded")
            case _:
                self.leave_out("action_result of another kind")

    def _tool_ended(self, result: Record, *, failed: bool) -> None:
        if (waiting := self.waiting(text_at(result, "call_id"))) is not None:
            self.ended(*waiting, _ended(waiting[1], result, self._at, failed=failed))

    def _skipped(self, key: str, output: Record) -> None:
        if (waiting := self.waiting(key)) is not None:
            reason = content_text(output.get("reason"))
            self.ended(*waiting, Result("denied", reason, self._at, reason))

    def _reply(self, result: Record) -> None:
        turn = Turn(self._at, model=self.transcript.model)
        turn.finish_reason = text_at(result, "finish_reason").replace("tool_call", "")
        turn.prompt_tokens = count_at(result, "usage", "prompt_tokens")
        turn.completion_tokens = count_at(result, "usage", "completion_tokens")
        self.add(turn)
        for part in objects_at(result, "parts"):
            match part.get("type"):
                case "text":
                    turn.text = joined(turn.text, text_at(part, "text"))
                case "reasoning" | "thinking":
                    turn.reasoning = joined(turn.reasoning, text_at(part, "text"))
                case "tool_call":
                    raw = text_at(part, "arguments_json")
                    self.call(
                        turn, Call(text_at(part, "id"), text_at(part, "name"), raw, parse_arguments(raw))
                    )

    def around(self, recording: Recording) -> None:
        """The session's metadata."""
        meta, transcript = recording.meta, self.transcript
        transcript.id = text_at(meta, "session_id") or transcript.id
        transcript.title = text_at(meta, "title") or transcript.title
        transcript.workspace = text_at(meta, "environment", "working_directory") or transcript.workspace
        transcript.model = text_at(meta, "config", "active_model") or transcript.model


def _ended(call: Call, record: Record, at: float | None, *, failed: bool) -> Result:
    result = object_at(record, "result")
    shell = object_at(result, "structured_content")
    said = joined(text_at(shell, "stdout").rstrip(), text_at(shell, "stderr").rstrip())
    text = said or content_text(result.get("content")) or content_text(value_at(result, "structured_content"))
    error = content_text(record.get("error")) or content_text(result.get("error"))
    kind = text_at(record, "type")
    if kind in {"tool_denied", "tool_rejected", "tool_skipped"} or text_at(result, "type") in {
        "denied",
        "skipped",
    }:
        return Result("denied", text or error, at, error or text)
    if kind == "tool_cancelled":
        return Result("cancelled", text, at, "interrupted by the operator")
    if failed or kind == "tool_failed":
        return Result("failed", text or error, at, error or text, FailureKind.TOOL_EXECUTION)
    code = count_at(shell, "returncode")
    return judged(call, text, at, exit_message(code, text) if code else None)
