"""Spans of agents in any form in which they are written: OTLP's JSON, as the SDKs print them, as Phoenix exports them.

The attributes are those of OpenTelemetry's GenAI conventions or of OpenInference, by their dotted names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.values import (
    content_text,
    number_at,
    object_at,
    objects_at,
    parsed,
    text_at,
    time_at,
)

_KINDS = {"chat": "model", "generate_content": "model", "text_completion": "model", "LLM": "model"} | {
    "execute_tool": "tool",
    "TOOL": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "AGENT": "agent",
    "CHAIN": "agent",
}
"""Kinds of spans by the operation of the one convention and the kind of the other."""


@dataclass(frozen=True)
class Span:
    """One span, whatever wrote it. `error` is its kind; empty: it did not fail. `why` is its message."""

    id: str
    parent: str
    trace: str
    name: str
    start: float
    end: float
    kind: str
    attributes: Record
    error: str
    why: str

    def encloses(self, other: Span) -> bool:
        """True if the other span began and ended within this one."""
        return self.start <= other.start and other.end <= self.end

    def text(self, *names: str) -> str:
        """The first of these attributes that is there, as text."""
        return next((content_text(self.attributes[name]) for name in names if self.attributes.get(name)), "")

    def messages(self, side: str) -> list[tuple[str, str, list[Record]]]:
        """Role, text and calls of the messages on one side, `input` or `output`."""
        given = self.attributes.get(f"gen_ai.{side}.messages")
        given = parsed(given) if isinstance(given, str) else given
        if given:
            return [_of_parts(one) for one in objects_at({"all": given}, "all")]
        told: list[tuple[str, str, list[Record]]] = []
        at = f"llm.{side}_messages."
        while any(name.startswith(f"{at}{len(told)}.") for name in self.attributes):
            told.append(self._message(f"{at}{len(told)}.message."))
        return told

    def results(self) -> Iterator[tuple[str, str]]:
        """Results of calls among the messages that a model was sent, by the ids of the calls."""
        given = self.attributes.get("gen_ai.input.messages")
        given = parsed(given) if isinstance(given, str) else given
        for message in objects_at({"all": given}, "all"):
            for part in objects_at(message, "parts"):
                if part.get("type") == "tool_call_response":
                    yield text_at(part, "id"), content_text(part.get("response", part.get("result")))
        for name, key in self.attributes.items():
            if name.startswith("llm.input_messages.") and name.endswith(".message.tool_call_id"):
                yield content_text(key), self.text(f"{name.removesuffix('tool_call_id')}content")

    def _message(self, at: str) -> tuple[str, str, list[Record]]:
        calls: list[Record] = []
        while name := self.text(f"{(one := f'{at}tool_calls.{len(calls)}.tool_call.')}function.name"):
            given = self.attributes.get(f"{one}function.arguments")
            calls.append({"id": self.text(f"{one}id"), "name": name, "arguments": given})
        words = self.text(f"{at}content", f"{at}contents.0.message_content.text")
        return self.text(f"{at}role"), words, calls


def _of_parts(message: Record) -> tuple[str, str, list[Record]]:
    parts = objects_at(message, "parts")
    text = "\n".join(text_at(part, "content") for part in parts if part.get("type") == "text")
    calls = [part for part in parts if part.get("type") == "tool_call"]
    return text_at(message, "role"), text or text_at(message, "content"), calls


def spans_in(record: Record) -> Iterator[Span]:
    """The spans in a line or a document."""
    resources = objects_at(record, "resourceSpans") or objects_at(record, "resource_spans")
    if not resources and "scopeSpans" in record:
        resources = [record]  # as OpenTelemetry's SDK for Java logs them
    if not resources and ("attributes" in record and "name" in record):
        yield _span(record)
    for resource in resources:
        for scope in objects_at(resource, "scopeSpans") or objects_at(resource, "scope_spans"):
            yield from map(_span, objects_at(scope, "spans"))


def _span(raw: Record) -> Span:
    attributes = _attributes(raw.get("attributes"))
    context, status = object_at(raw, "context"), object_at(raw, "status")
    thrown = [_attributes(event.get("attributes")) for event in objects_at(raw, "events")]
    kind = attributes.get("openinference.span.kind") or raw.get("span_kind")
    named = attributes.get("gen_ai.operation.name") or kind
    code = status.get("code", status.get("status_code", raw.get("status_code")))
    failed = code in (2, "ERROR", "STATUS_CODE_ERROR")
    exceptions = [text_at(one, "exception.message") for one in thrown if "exception.message" in one]
    types = [text_at(one, "exception.type") for one in thrown if "exception.type" in one]
    told = text_at(attributes, "error.type") or (next(iter(types), "") or "error") * failed
    words = text_at(status, "message") or text_at(status, "description") or text_at(raw, "status_message")
    return Span(
        text_at(raw, "spanId") or text_at(context, "span_id"),
        text_at(raw, "parentSpanId") or text_at(raw, "parent_id"),
        text_at(raw, "traceId") or text_at(context, "trace_id"),
        text_at(raw, "name"),
        _time(raw, "startTimeUnixNano", "start_time"),
        _time(raw, "endTimeUnixNano", "end_time"),
        _KINDS.get(named, "") if isinstance(named, str) else "",
        attributes,
        told,
        next(filter(None, exceptions), "") or words,
    )


def _time(raw: Record, nanoseconds: str, name: str) -> float:
    given = raw.get(nanoseconds)
    if isinstance(given, str) and given.isdecimal() and len(given) < 20:
        given = int(given)
    count = number_at({"at": given}, "at")
    return count / 1e9 if count is not None else time_at(raw, name) or 0.0


def _attributes(given: Any) -> Record:
    """Attributes by their dotted names, those within objects and lists too."""
    found: Record = {}
    if isinstance(given, list):
        given = {text_at(one, "key"): _value(one.get("value")) for one in given if isinstance(one, dict)}
    waiting = list(given.items()) if isinstance(given, dict) else []
    while waiting:
        name, value = waiting.pop()
        found[name] = value
        inner = enumerate(value) if isinstance(value, list) else object_at({"all": value}, "all").items()
        waiting += [(f"{name}.{key}", one) for key, one in inner]
    return found


def _value(given: Any) -> Any:
    """A value as OTLP's JSON writes it."""
    match given:
        case {"intValue": str() as count} if count.lstrip("-").isdecimal() and len(count) < 20:
            return int(count)
        case {"arrayValue": inner}:
            return [_value(one) for one in objects_at(inner, "values")]
        case {"kvlistValue": inner}:
            return {text_at(one, "key"): _value(one.get("value")) for one in objects_at(inner, "values")}
        case dict() if len(given) == 1:
            return next(iter(given.values()))
    return None
