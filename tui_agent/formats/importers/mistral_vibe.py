"""mistral-vibe sessions: a folder of `messages.jsonl` and `meta.json`, or the older single file of both.

Failures are wrapped in `<tool_error>`, refusals and interrupts in `<user_cancellation>`
(mistral-vibe, `core/agent_loop.py`); everything else is a success.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.openai_messages import ROLES, MessageReader, judged, message_time
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, ImportReport, Result
from tui_agent.formats.importers.values import (
    content_text,
    exit_message,
    list_at,
    object_at,
    objects_at,
    text_at,
    value_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.formats.importers.reading import Record, Recording

_TOOL_ERROR = re.compile(r"^\s*<tool_error>(.*?)(?:</tool_error>\s*)?$", re.DOTALL)
_CANCELLED = "<user_cancellation>"
_OWN_KEYS = {"message_id", "injected", "reasoning_message_id", "reasoning_state"}
_RETURN_CODE = re.compile(r"^returncode: (-?\d{1,10})$", re.MULTILINE)


class MistralVibe(MessageReader, Format):
    """Messages of a session; some were put in by the harness."""

    name = "mistral-vibe"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report, _verdict)

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Metadata with vibe's `environment` beside messages, or lines of messages with vibe's own keys."""
        meta, head = _meta(recording), cls.records(recording)[:20]
        head = [one for one in head if isinstance(one, dict)]
        if not any(text_at(message, "role") in ROLES for message in head):
            return False
        if isinstance(meta.get("environment"), dict) and ("session_id" in meta or "start_time" in meta):
            return True
        return any(_OWN_KEYS & one.keys() for one in head)

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        inner = list_at(recording.document, "messages")
        return inner or recording.records

    def take(self, message: Record) -> None:
        """Read one message."""
        if message.get("injected") is True:
            self.leave_out("message added by mistral-vibe")
        else:
            super().take(message)

    def around(self, recording: Recording) -> None:
        """The session's metadata."""
        meta, transcript = _meta(recording), self.transcript
        transcript.id = text_at(meta, "session_id")
        transcript.title = text_at(meta, "title")
        transcript.workspace = text_at(meta, "environment", "working_directory")
        prompt = value_at(meta, "system_prompt")
        transcript.system_prompt = transcript.system_prompt or content_text(value_at(prompt, "content") or "")
        names = (text_at(tool, "function", "name") for tool in objects_at(meta, "tools_available"))
        transcript.tools = tuple(name for name in names if name)
        active = text_at(meta, "config", "active_model") or text_at(meta, "agent_config", "active_model")
        transcript.model = active or transcript.model


def _meta(recording: Recording) -> Record:
    return object_at(recording.document, "metadata") or recording.meta


def _verdict(call: Call, content: str, record: Record) -> Result:
    at = message_time(record)
    if content.lstrip().startswith(_CANCELLED):
        text = content.strip().removeprefix(_CANCELLED).removesuffix("</user_cancellation>")
        return Result("cancelled" if "interrupt" in text.lower() else "denied", content, at, text)
    error = _TOOL_ERROR.match(content)
    if error is None:
        code = _RETURN_CODE.search(content) if call.name == "bash" else None
        message = exit_message(int(code[1]), content) if code and code[1] != "0" else None
        return judged(call, content, at, message)
    message = error[1].strip()
    if "Unknown tool" in message[:200]:
        return Result("failed", content, at, message, FailureKind.UNKNOWN_TOOL)
    if "Invalid arguments" in message[:300] or "validation error" in message[:300]:
        return Result("failed", content, at, message, FailureKind.INVALID_TOOL_CALL)
    return judged(call, content, at, message)
