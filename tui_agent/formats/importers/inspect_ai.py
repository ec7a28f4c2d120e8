"""Logs of Inspect (`.eval`, `.json`): each sample is a run, with its messages, and the times of these in its events.

A result that failed has an `error` with its kind. Long texts stand once among the attachments of the sample. Calls that
stand in events alone (of agents that were used as tools) are counted as lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import rejection_kind
from tui_agent.formats.importers.openai_messages import MessageReader
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import judged
from tui_agent.formats.importers.step_reader import Runs
from tui_agent.formats.importers.transcript import Call, ImportReport, Result, Transcript, Turn
from tui_agent.formats.importers.values import (
    content_text,
    number_at,
    object_at,
    objects_at,
    text_at,
    time_at,
    value_at,
)

_ATTACHED = "attachment://"
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


class _SampleReader(MessageReader):
    """Messages of one sample."""

    def __init__(self, report: ImportReport, sample: Record) -> None:
        super().__init__(report, Transcript(operator_present=False))
        self._attached = object_at(sample, "attachments")
        self._times: dict[str, tuple[float | None, float | None]] = {}
        """By message, when it was whole, and what the call took."""
        for event in objects_at(sample, "events"):
            at = time_at(event, "completed") or time_at(event, "timestamp")
            for output in [text_at(event, "message_id"), *_outputs(event)]:
                self._times.setdefault(output, (at, number_at(event, "working_time")))

    def take(self, message: Record) -> None:
        content = _whole(message.get("content"), self._attached)
        at, _ = self._times.get(text_at(message, "id"), (None, None))
        super().take({**message, "content": content, "timestamp": at})

    def _call(self, turn: Turn, raw: Record) -> None:
        given = _whole(raw.get("arguments"), self._attached)
        key = text_at(raw, "id") or f"call-{len(self.calls)}"
        if raw.get("parse_error"):
            given = text_at(given, "raw") or content_text(given)
        self.call(turn, key, text_at(raw, "function"), given)

    def judge(self, call: Call, content: str, record: Record) -> Result:
        """How a call has ended, by the kind of its error."""
        error, kind = object_at(record, "error"), text_at(record, "error", "type")
        at, seconds = self._times.get(text_at(record, "id"), (None, None))
        if not error:
            return judged(call, content, at, None, seconds)
        message = _whole(error.get("message"), self._attached) or kind
        if kind == "cancelled":
            return Result("cancelled", content, at, message)
        if kind == "approval":
            return Result("denied", content, at, message)
        result = judged(call, content or message, at, message, seconds)
        unknown = rejection_kind(message) is FailureKind.UNKNOWN_TOOL
        if kind == "parsing" and not unknown:
            return replace(result, kind=FailureKind.INVALID_TOOL_CALL)
        return replace(result, unknown_effect=result.unknown_effect or kind == "timeout")


class InspectAI(Runs):
    """The samples of a log."""

    name = "Inspect"

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """A log with its evaluation and samples."""
        document = object_at(recording.document)
        return "samples" in document and "task" in object_at(document, "eval")

    @classmethod
    def records(cls, recording: Recording) -> list[Any]:
        return objects_at(recording.document, "samples")

    def take(self, sample: Record) -> None:
        reader = _SampleReader(self.report, sample)
        reader.read(objects_at(sample, "messages"))
        asked = [event for event in objects_at(sample, "events") if event.get("event") == "tool"]
        lost = sum(text_at(event, "id") not in reader.calls for event in asked)
        self.report.results += lost
        self.report.lost_results += lost
        transcript = reader.transcript
        transcript.id = text_at(sample, "uuid")
        transcript.title = f"sample {sample.get('id')}, epoch {sample.get('epoch')}"
        transcript.reward = _grade(sample)
        transcript.ending = text_at(sample, "error", "message") or text_at(sample, "limit", "type")
        self.runs.append(transcript)

    def around(self, recording: Recording) -> None:
        """The model of the evaluation."""
        for transcript in self.runs:
            transcript.model = transcript.model or text_at(recording.document, "eval", "model")


def _outputs(event: Record) -> list[str]:
    choices = objects_at(event, "output", "choices")
    return [text_at(choice, "message", "id") for choice in choices]


def _whole(value: Any, attached: Record) -> Any:
    """The value with the texts that stand among the attachments."""
    if isinstance(value, str):
        return attached.get(value.removeprefix(_ATTACHED), value) if value.startswith(_ATTACHED) else value
    if isinstance(value, list):
        return [_whole(item, attached) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item, attached) for key, item in value.items()}
    return value


def _grade(sample: Record) -> float | None:
    """The first score of a sample."""
    score = value_at(next(iter(object_at(sample, "scores").values()), None), "value")
    return _GRADES.get(score) if isinstance(score, str) else number_at({"value": score}, "value")
