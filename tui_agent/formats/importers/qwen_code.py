"""Qwen Code sessions: a record a line, with messages of Gemini's form (`parts`), and a record for each result.

Its code came from Gemini CLI's: a command's exit code is a line of its output. Records of sub-agents have an `agentId`.
"""

from __future__ import annotations

from dataclasses import replace

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.gemini_cli import result_of_text
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import judged
from tui_agent.formats.importers.step_reader import Branching, used
from tui_agent.formats.importers.transcript import Call, Faulted, Result, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    joined,
    list_at,
    object_at,
    objects_at,
    text_at,
    time_at,
)

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_NOT_TYPED = frozenset({"notification", "cron", "goal_runtime", "agent_launch_prompt"})
_ADDED = ("<system-reminder>", "<session_context>", "System: ")


class QwenCode(Branching):
    """The conversation, and a lane for each sub-agent."""

    name = "Qwen Code"
    in_parts = True

    @classmethod
    def knows(cls, record: Record) -> bool:
        """A record of a session with a message in parts."""
        return (
            "parentUuid" in record
            and text_at(record, "type") in _TYPES
            and bool(list_at(record, "message", "parts") or object_at(record, "systemPayload"))
        )

    def take(self, record: Record) -> None:
        agent = text_at(record, "agentId")
        if agent and record.get("isSidechain") is not False:
            self.agent(agent, f"subagent: {text_at(record, 'agentName') or agent}")._read(record)
        else:
            self._read(record)

    def _read(self, record: Record) -> None:
        at, transcript = time_at(record, "timestamp"), self.transcript
        transcript.id = transcript.id or text_at(record, "sessionId")
        transcript.workspace = transcript.workspace or text_at(record, "cwd")
        match record.get("type"):
            case "user":
                self._user(record, at)
            case "assistant":
                self._reply(record, at)
            case "tool_result":
                for response in _parts(record, "functionResponse"):
                    self.end(text_at(response, "id"), _result, response, record, at)
            case "system":
                self._system(record, at)
            case kind:
                self.not_known(kind, record)
        self.stand(text_at(record, "uuid"))

    def _user(self, record: Record, at: float | None) -> None:
        text = content_text([one for one in objects_at(record, "message", "parts") if "text" in one])
        if text_at(record, "subtype") in _NOT_TYPED or text.startswith(_ADDED) or not text.strip():
            self.leave_out("text added by Qwen Code")
        else:
            self.said(text_at(record, "systemPayload", "displayText") or text, at)

    def _reply(self, record: Record, at: float | None) -> None:
        turn = self.turn(at, model=text_at(record, "model"))
        used(turn, object_at(record, "usageMetadata"), "promptTokenCount", "candidatesTokenCount")
        origin = text_at(record, "forkedFrom", "sessionId")
        for part in objects_at(record, "message", "parts"):
            text = text_at(part, "text")
            if part.get("thought") is True:
                turn.reasoning = joined(turn.reasoning, text)
            else:
                turn.text = joined(turn.text, text)
            if asked := object_at(part, "functionCall"):
                self._asked(turn, asked, origin)

    def _asked(self, turn: Turn, asked: Record, origin: str) -> None:
        key = text_at(asked, "id") or f"call-{len(self.calls)}"
        if key in self.calls and key not in self.calls[key][0].results:
            self.report.skip("call that is given again")
            return
        self.call(turn, key, text_at(asked, "name"), object_at(asked, "args"))
        if origin:
            self.transcript.copied[key] = origin

    def _system(self, record: Record, at: float | None) -> None:
        payload, subtype = object_at(record, "systemPayload"), text_at(record, "subtype")
        event = object_at(payload, "uiEvent")
        if subtype == "chat_compression":
            self.compacted(at)
        elif subtype == "custom_title":
            self.about(payload, title="customTitle")
        elif text_at(event, "event.name").endswith("api_error"):
            words = text_at(event, "error_message") or text_at(event, "error") or "API error"
            self.add(Faulted(classified(words, count_at(event, "status_code")), at))
        elif subtype == "rewind":
            self.follow(text_at(record, "parentUuid"))
        else:
            self.leave_out(f"system {subtype}")


def _parts(record: Record, kind: str) -> list[Record]:
    return [found for part in objects_at(record, "message", "parts") if (found := object_at(part, kind))]


def _result(call: Call, response: Record, record: Record, at: float | None) -> Result:
    told, told_by = object_at(response, "response"), object_at(record, "toolCallResult")
    error = content_text(told.get("error"))
    text = error or content_text(told.get("output"))
    match told_by.get("status"):
        case "cancelled":
            return Result("cancelled", text, at, "interrupted by the operator")
        case "error" if text_at(told_by, "errorType") in {"execution_denied", "permission_denied"}:
            return Result("denied", text, at, text)
        case "error" | "success":
            failed = bool(error) or told_by["status"] == "error"
            result = result_of_error(call, text) if failed else result_of_text(call, text)
            if told_by.get("errorType") == "invalid_tool_params":
                result = replace(result, kind=FailureKind.INVALID_TOOL_CALL)
            return replace(result, at=at)
    return Result("unknown", text, at)


def result_of_error(call: Call, text: str) -> Result:
    """How a call has ended that is a failure to Qwen Code; newer versions (0.24) count commands by their exit code."""
    result = result_of_text(call, text)
    return result if result.status == "failed" else judged(call, text, None, text or "failed")
