"""Plain OpenAI chat messages, and the reader for other formats that are made of such messages.

A list of messages, `{"messages": [...]}`, a message a line, or a conversation a line. The form has no flag
for success, so a result has failed if its text says so by the conventions that `results.failure_in` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tui_agent.core.names import FINISH
from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import failure_in, judged
from tui_agent.formats.importers.step_reader import Runs, StepReader, used
from tui_agent.formats.importers.transcript import Call, ImportReport, Result, Said, Transcript, Turn
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

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_MALFORMED = "malformed_arguments"
"""Under this name our exports of version 1 hold what a model wrote in place of arguments."""


class MessageReader(StepReader):
    """Messages of one conversation."""

    def take(self, message: Record) -> None:
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
                kind = f"role {role}" if isinstance(role, str) else "message without a role"
                self.not_known(kind, message)

    def judge(self, call: Call, content: str, record: Record) -> Result:
        """How a call has ended, by its result's text and record; each format has its own marks."""
        return judged(call, content, message_time(record), failure_in(content))

    def reply(self, message: Record) -> Turn:
        """An assistant's message with its calls."""
        text = content_text(message.get("content")) or text_at(message, "refusal")
        reasoning = content_text(message.get("reasoning_content") or message.get("reasoning"))
        turn = Turn(message_time(message), text, reasoning, model=text_at(message, "model"))
        used(turn, object_at(message, "usage") or object_at(message, "extra", "response", "usage"))
        turn.finish_reason = text_at(message, "finish_reason")
        calls = list_at(message, "tool_calls")
        if not calls and isinstance(message.get("function_call"), dict):
            calls = [{"function": message["function_call"]}]
        for raw in calls:
            if isinstance(raw, dict):
                self._call(turn, raw)
            else:
                self.report.skip("tool call that is not an object")
        self.add(turn)
        return turn

    def _call(self, turn: Turn, raw: Record) -> None:
        given = value_at(raw, "function", "arguments")
        key = text_at(raw, "id") or f"call-{len(self.transcript.steps)}-{len(turn.calls)}"
        name = text_at(raw, "function", "name") or text_at(raw, "name")
        given = given if isinstance(given, dict) else text_at(raw, "function", "arguments")
        call = self.call(turn, key, name, given)
        if isinstance(given, str) and call.input is not None and call.input.keys() == {_MALFORMED}:
            turn.calls[-1] = Call(key, call.name, str(call.input[_MALFORMED]), None)
            self.calls[key] = turn, turn.calls[-1]

    def result(self, message: Record) -> None:
        """A tool's message, matched by its call's id; without one by its name and order."""
        key = text_at(message, "tool_call_id") or self._oldest_open(text_at(message, "name"))
        self.end(key, self._ended, message)

    def _ended(self, call: Call, message: Record) -> Result:
        result = self.judge(call, content_text(message.get("content")), message)
        if call.name == FINISH and result.status == "ok":
            self.calls[call.id][0].answer = text_at(call.input, "answer")
        return result

    def _oldest_open(self, name: str) -> str:
        """The first call of the newest reply that waits for a result, of this name if one is given."""
        for turn in reversed(self.transcript.steps):
            if isinstance(turn, Turn):
                for call in turn.calls:
                    if name in {"", call.name} and call.id not in turn.results:
                        return call.id
        return ""


class OpenAIMessages(Runs):
    """One conversation, or many with what stands around each."""

    name = "OpenAI messages"
    conversation: ClassVar[type[MessageReader]] = MessageReader

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._only = self.conversation(report)

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Messages with roles, in one of the four arrangements, and with no part that the form does not have."""
        return cls.arranged(recording) and not any(map(_of_another_form, cls.messages(recording)))

    @classmethod
    def messages(cls, recording: Recording) -> list[Any]:
        """The first messages, in whichever arrangement."""
        records = cls.records(recording)
        return [*records, *(message for one in records for message in list_at(one, "messages"))][:2_000]

    @classmethod
    def arranged(cls, recording: Recording) -> bool:
        """True if it holds messages with roles."""
        records = cls.records(recording)
        return is_conversation(records) or any(is_conversation(list_at(one, "messages")) for one in records)

    def read(self, records: Sequence[Any], lines: Sequence[int] = ()) -> None:
        """Read conversations, or messages of the only one."""
        for record in records:
            if isinstance(value_at(record, "messages"), list):
                self.take(record)
            else:
                self.runs = [self._only.transcript]
                self._only.read([record])

    def take(self, around: Record) -> None:
        reader = self.conversation(self.report)
        reader.read(around["messages"])
        reader.about(around, title="task")
        transcript = reader.transcript
        transcript.model = transcript.model or text_at(around, "model")
        transcript.reward = grade_in(around)
        transcript.finished = around.get("submitted") is True
        transcript.tools = tool_names(around, "tools")
        if self.runs and _goes_on(self.runs[-1], transcript):
            self.runs.pop()
        self.runs.append(transcript)


def _goes_on(before: Transcript, after: Transcript) -> bool:
    """True if a conversation holds the whole of the one before: kept requests repeat earlier messages."""
    if before.reward is not None or before.title != after.title:
        return False  # runs with a grade or a name are runs of their own
    tasks, calls = zip(*map(_begins, (before, after)), strict=True)
    known = any(not call.id.startswith("call-") for call in calls[0])  # others have names of ours
    return known and tasks[0] == tasks[1] and calls[0] == calls[1][: len(calls[0])]


def _begins(transcript: Transcript) -> tuple[str, list[Call]]:
    """Its first task, and its calls."""
    task = next((step.text for step in transcript.steps if isinstance(step, Said)), "")
    return task, [call for step in transcript.steps if isinstance(step, Turn) for call in step.calls]


def tool_names(record: Any, *path: str) -> tuple[str, ...]:
    """The names of the tools that a model was given."""
    names = (text_at(tool, "function", "name") for tool in objects_at(record, *path))
    return tuple(name for name in names if name)


_PARTS = frozenset({"text", "refusal", "image_url", "input_audio", "file", "video_url", "image", "audio"}) | {
    *("input_text", "output_text", "input_image", "input_file", "thinking", "reasoning", "redacted_thinking"),
}
"""Kinds of parts in the content of OpenAI's messages, with those that servers of that form add."""


def _of_another_form(message: Any) -> bool:
    """A message with a part that this form does not have."""
    parts = list_at(message, "content") if text_at(message, "role") in ROLES else []
    return any(isinstance(kind := value_at(part, "type"), str) and kind not in _PARTS for part in parts)


def is_conversation(messages: Sequence[Any]) -> bool:
    """Most of the first messages have a role, and one has content."""
    head = messages[:50]
    known = [one for one in head if isinstance(one, dict) and text_at(one, "role") in ROLES]
    return bool(known) and len(known) * 2 >= len(head) and any("content" in one for one in known)


def message_time(message: Record) -> float | None:
    """A message's own time, if its recorder kept one."""
    paths = (("timestamp",), ("extra", "timestamp"), ("created_at",), ("created",), ("ts",))
    times = (time_at(message, *path) for path in paths)
    return next((at for at in times if at is not None), None)
