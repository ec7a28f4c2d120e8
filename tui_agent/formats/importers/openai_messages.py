"""Plain OpenAI chat messages, and the reader for other formats that are made of such messages.

A list of messages, `{"messages": [...]}`, a message a line, or a conversation a line. The form has no flag
for success, so a result has failed where its text says so by the conventions that `text_verdict` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.core.names import FINISH
from tui_agent.formats.importers.changes import changed_files
from tui_agent.formats.importers.faults import rejection_kind
from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.step_reader import Runs, StepReader
from tui_agent.formats.importers.transcript import Call, ImportReport, Result, Transcript, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    joined,
    json_text,
    list_at,
    object_at,
    objects_at,
    parse_arguments,
    plain,
    says_timed_out,
    text_at,
    time_at,
    value_at,
)

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

Verdict = Callable[[Call, str, Record], Result]
"""How a result's text and record are judged; each format has its own."""


class MessageReader(StepReader):
    """Messages of one conversation."""

    def __init__(
        self, report: ImportReport, judge: Verdict | None = None, transcript: Transcript | None = None
    ) -> None:
        """`judge` decides how results ended (default: `text_verdict`)."""
        super().__init__(report, transcript)
        self.judge = judge or text_verdict

    def take(self, message: Record) -> None:
        """Read one message."""
        match message.get("role"):
            case "system" | "developer":
                text = content_text(message.get("content"))
                self.transcript.system_prompt = joined(self.transcript.system_prompt, text)
            case "user":
                self.said(content_text(message.get("content")), message_time(message))
            case "assistant":
                self.reply(message)
            case "tool" | "function":
                self.result(message)
            case role:
                self.leave_out(f"role {role}" if isinstance(role, str) else "message without a role")

    def reply(self, message: Record) -> Turn:
        """An assistant's message with its calls."""
        text = content_text(message.get("content")) or text_at(message, "refusal")
        reasoning = content_text(message.get("reasoning_content") or message.get("reasoning"))
        turn = Turn(message_time(message), text, reasoning, model=text_at(message, "model"))
        usage = object_at(message, "usage") or object_at(message, "extra", "response", "usage")
        turn.prompt_tokens = count_at(usage, "prompt_tokens")
        turn.completion_tokens = count_at(usage, "completion_tokens")
        turn.finish_reason = text_at(message, "finish_reason")
        calls = list_at(message, "tool_calls")
        if not calls and isinstance(message.get("function_call"), dict):
            calls = [{"function": message["function_call"]}]
        for raw in calls:
            call = _call(raw, f"call-{len(self.transcript.steps)}-{len(turn.calls)}")
            if call is None:
                self.report.skip("tool call that is not an object")
                continue
            self.call(turn, call)
        self.add(turn)
        return turn

    def result(self, message: Record) -> None:
        """A tool's message, matched by its call's id; without one by its name and order."""
        key = text_at(message, "tool_call_id") or self._oldest_open(text_at(message, "name"))
        if (waiting := self.waiting(key)) is not None:
            turn, call = waiting
            result = self.judge(call, content_text(message.get("content")), message)
            self.ended(turn, call, result)
            if call.name == FINISH and result.status == "ok":
                turn.answer = text_at(call.input, "answer")

    def _oldest_open(self, name: str) -> str:
        """The first call of the newest reply that waits for a result, of this name where one is given."""
        for turn in reversed(self.transcript.steps):
            if not isinstance(turn, Turn):
                continue
            keys = (call.id for call in turn.calls if name in {"", call.name} and call.id not in turn.results)
            if key := next(keys, ""):
                return key
        return ""


class OpenAIMessages(Runs):
    """One conversation, or many with what stands around each."""

    name = "OpenAI messages"

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Messages with roles, in one of the four arrangements."""
        records = cls.records(recording)
        return any(is_conversation(object_at(one).get("messages")) for one in records) or is_conversation(
            records
        )

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        document = recording.document
        if isinstance(document, list):
            return document
        if isinstance(document, dict) and _holds_messages(document):
            return [document]
        return recording.records

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._only = MessageReader(report)

    def read(self, records: Sequence[Any], lines: Sequence[int] = ()) -> None:
        """Read conversations, or messages of the only one."""
        for record in records:
            if isinstance(record, dict) and _holds_messages(record):
                self.take(record)
            else:
                self.runs = [self._only.transcript]
                self._only.read([record])

    def take(self, around: Record) -> None:
        """Read one conversation."""
        reader = MessageReader(self.report)
        reader.read(around["messages"])
        transcript = reader.transcript
        transcript.model = transcript.model or text_at(around, "model")
        transcript.title = text_at(around, "task")
        transcript.reward = grade_in(around)
        transcript.finished = around.get("submitted") is True
        transcript.tools = tuple(
            name for tool in objects_at(around, "tools") if (name := text_at(tool, "function", "name"))
        )
        self.runs.append(transcript)


def _holds_messages(record: Record) -> bool:
    return isinstance(record.get("messages"), list)


def is_conversation(messages: Any) -> bool:
    """Most of the first messages have a role, and one has content."""
    head = messages[:50] if isinstance(messages, list) else []
    known = [one for one in head if isinstance(one, dict) and text_at(one, "role") in ROLES]
    return bool(known) and len(known) * 2 >= len(head) and any("content" in one for one in known)


def message_time(message: Record) -> float | None:
    """A message's own time, where its recorder kept one."""
    for path in (("timestamp",), ("extra", "timestamp"), ("created_at",)):
        at = time_at(message, *path)
        if at is not None:
            return at
    return None


def _call(raw: Any, spare_id: str) -> Call | None:
    if not isinstance(raw, dict):
        return None
    given = value_at(raw, "function", "arguments")
    name = text_at(raw, "function", "name") or text_at(raw, "name") or "unnamed"
    key = text_at(raw, "id") or spare_id
    if isinstance(given, dict):
        return Call(key, name, json_text(given), plain(given))
    arguments = text_at(raw, "function", "arguments")
    read = parse_arguments(arguments)
    if isinstance(read, dict) and read.keys() == {_MALFORMED}:
        return Call(key, name, str(read[_MALFORMED]), None)
    return Call(key, name, arguments, read)


_OWN_INVALID = "Error: Invalid call of "
"""How our own results of such calls begin; the broken arguments themselves are in no history that is sent."""

_MALFORMED = "malformed_arguments"
"""Under this name our exports of version 1 hold what a model wrote in place of arguments."""


# --- whether a result's text is a failure's -------------------------------------------------------------


_ERROR = re.compile(r"^\s*(?:<(?:tool_)?error>|error\b\s*:)", re.IGNORECASE)


def text_verdict(call: Call, content: str, record: Record) -> Result:
    """Failed where the text begins with `Error:` (or an error tag), or is an object that says so itself:
    `is_error`, `success: false`, a non-empty `error`, a non-zero `exit_code` or `returncode`."""
    message = failure_in(content)
    return judged(call, content, message_time(record), message)


def judged(call: Call, content: str, at: float | None, message: str | None) -> Result:
    """A result that succeeded (`message` None) or failed, with the kind of failure read from call and
    message.
    """
    if message is None:
        return Result("ok", content, at, changed=changed_files(call.name, call.input))
    kind = FailureKind.TOOL_EXECUTION
    if call.input is None or message.startswith(_OWN_INVALID):
        kind = FailureKind.INVALID_TOOL_CALL
    elif rejection_kind(message[:200]) is FailureKind.UNKNOWN_TOOL:
        kind = FailureKind.UNKNOWN_TOOL
    return Result(
        "failed",
        content,
        at,
        message,
        kind,
        unknown_effect=says_timed_out(message),
    )


def failure_in(content: str) -> str | None:
    """The failure in a result's text, by the rules of `text_verdict`; None for a success."""
    if _ERROR.match(content):
        return content.strip()
    if not content.lstrip().startswith("{") or len(content) > 1_000_000:
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if isinstance(error, str | dict) and error:
        return content_text(error)
    if value.get("is_error") is True or value.get("success") is False:
        return content.strip()
    for key in ("exit_code", "returncode"):
        code = value.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            return exit_message(code, content_text(value.get("output", "")))
    return None
