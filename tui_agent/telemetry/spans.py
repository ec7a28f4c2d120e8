"""Events of a session as spans and metrics: a run, each call of a model and of a tool, verdicts as events of the run.

A sub-agent's run stands in the span of the call that started it. Times are those of the events; what others wrote is
left out unless it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_agent import __version__
from tui_agent.core import events
from tui_agent.core.names import Outcome
from tui_agent.telemetry import names

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

_SECONDS = tuple(0.01 * 2**power for power in range(14))
_CALLS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Bounds of the histograms' buckets: of durations as the conventions have them, of calls in a run as for ours."""

Attributes = dict[str, Any]


@dataclass
class _Open:
    """A span that has not ended, and when it began."""

    span: Span
    at: float
    attributes: Attributes
    """Those that its metrics have too."""


@dataclass
class _Lane:
    """One conversation: the session's own, or a sub-agent's."""

    run: _Open | None = None
    model: _Open | None = None
    tools: dict[str, _Open] = field(default_factory=dict)
    inference_calls: int = 0
    tool_calls: int = 0


class Spans:
    """The spans of one session. `content`: with the words of operator, model and tools."""

    def __init__(self, tracer: Tracer, meter: Meter, session: str, *, content: bool = False) -> None:
        self._tracer = tracer
        self._session = session
        self._content = content
        self._lanes: dict[str, _Lane] = {}
        self._durations = {
            name: meter.create_histogram(name, "s", explicit_bucket_boundaries_advisory=_SECONDS)
            for name in (names.AGENT_DURATION, names.TOOL_DURATION, names.INFERENCE_DURATION)
        }
        self._calls = {
            name: meter.create_histogram(name, "{call}", explicit_bucket_boundaries_advisory=_CALLS)
            for name in (names.AGENT_INFERENCE_CALLS, names.AGENT_TOOL_CALLS)
        }
        self._tokens = {
            name: meter.create_counter(name, "{token}")
            for name in (names.INFERENCE_INPUT_TOKENS, names.INFERENCE_OUTPUT_TOKENS)
        }

    def take(self, event: events.Event) -> None:
        """Follow the session by one event."""
        key = ""
        if isinstance(event, events.LaneEvent):
            key, event = event.lane, event.placed
        lane = self._lanes.setdefault(key, _Lane())
        match event:
            case events.RunStarted():
                self._run_started(key, lane, event)
            case events.ModelCallStarted() | events.CompactionStarted():
                self._model_called(lane, event)
            case events.ReplyFinished(by="model") | events.Compacted():
                self._model_answered(lane, event)
            case events.ModelFaulted():
                self._model_ended(lane, event.at, event.fault.kind.value, event.fault.message)
            case events.CompactionFailed():
                self._model_ended(lane, event.at, "compaction_failed", event.reason)
            case events.ToolStarted():
                lane.tools[event.call_id] = self._tool(lane, event)
            case events.ToolResult():
                self._tool_ended(lane, event)
            case events.VerdictReached() if lane.run is not None:
                self._verdict(lane.run.span, event)
            case events.IterationFinished(cancelled=True):
                self._model_ended(lane, event.at, "cancelled")
            case events.RunFinished():
                self._run_finished(lane, event)

    def close(self, at: float) -> None:
        """End what has not ended."""
        for lane in self._lanes.values():
            self._abandon(lane, at)

    # --- runs ---------------------------------------------------------------------------------------------

    def _run_started(self, key: str, lane: _Lane, event: events.RunStarted) -> None:
        self._abandon(lane, event.at)
        agent = f"{names.AGENT}/{key}" if key else names.AGENT
        provider, model = names.provider_and_model(event.model)
        shared = {names.OPERATION: names.INVOKE_AGENT, names.AGENT_NAME: names.AGENT}
        more = {
            names.AGENT_VERSION: __version__,
            names.PROVIDER: provider,
            names.REQUEST_MODEL: model,
        }
        if self._content:
            more[names.INPUT_MESSAGES] = _message("user", event.task)
        parent = self._lanes.get("", lane).tools.get(key)
        lane.run = self._begin(f"{names.INVOKE_AGENT} {agent}", event.at, shared, more, parent)
        lane.inference_calls = lane.tool_calls = 0

    def _run_finished(self, lane: _Lane, event: events.RunFinished) -> None:
        run, lane.run = lane.run, None
        self._abandon(lane, event.at)
        if run is None:
            return
        run.span.set_attribute(names.OUTCOME, event.outcome.value)
        if event.rule:
            run.span.set_attribute(names.RULE, event.rule)
        if self._content and event.answer:
            run.span.set_attribute(names.OUTPUT_MESSAGES, _message("assistant", event.answer))
        for name, count in (
            (names.AGENT_INFERENCE_CALLS, lane.inference_calls),
            (names.AGENT_TOOL_CALLS, lane.tool_calls),
        ):
            self._calls[name].record(count, run.attributes)
        failed = "" if event.outcome is Outcome.ANSWERED else event.outcome.value
        self._end(run, event.at, names.AGENT_DURATION, failed, event.reason)

    def _verdict(self, run: Span, event: events.VerdictReached) -> None:
        attributes = {
            names.LEVEL: event.level.value,
            names.RULE: event.rule,
            names.DETECTOR: event.detector,
        }
        run.add_event(names.VERDICT, attributes, _nanoseconds(event.at))

    def _abandon(self, lane: _Lane, at: float) -> None:
        """End what a run leaves open, innermost first."""
        self._model_ended(lane, at, "cancelled")
        for tool in lane.tools.values():
            self._end(tool, at, names.TOOL_DURATION, "cancelled")
        lane.tools.clear()
        if lane.run is not None:
            self._end(lane.run, at, names.AGENT_DURATION, "cancelled")
            lane.run = None

    # --- models -------------------------------------------------------------------------------------------

    def _model_called(self, lane: _Lane, event: events.ModelCallStarted | events.CompactionStarted) -> None:
        self._model_ended(lane, event.at, "cancelled")
        provider, model = names.provider_and_model(event.model)
        shared: Attributes = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: provider,
            names.REQUEST_MODEL: model,
        }
        if isinstance(event, events.ModelCallStarted) and event.server:
            host, _, port = event.server.rpartition(":")
            shared[names.SERVER_ADDRESS] = host or port
            if host and port.isdecimal():
                shared[names.SERVER_PORT] = int(port)
        lane.inference_calls += 1
        lane.model = self._begin(f"{names.CHAT} {model}", event.at, shared, {}, lane.run, client=True)

    def _model_answered(self, lane: _Lane, event: events.ReplyFinished | events.Compacted) -> None:
        if lane.model is None:
            return
        more: Attributes = {
            names.RESPONSE_MODEL: event.model or None,
            names.INPUT_TOKENS: event.prompt_tokens,
            names.OUTPUT_TOKENS: event.completion_tokens,
            names.CACHE_READ_TOKENS: event.cached_tokens,
            names.CACHE_WRITE_TOKENS: event.cache_write_tokens,
        }
        if isinstance(event, events.ReplyFinished):
            more[names.FINISH_REASONS] = (event.finish_reason,) if event.finish_reason else None
            if self._content:
                more[names.OUTPUT_MESSAGES] = _reply(event)
        lane.model.span.set_attributes({name: value for name, value in more.items() if value is not None})
        tokens = (
            (names.INFERENCE_INPUT_TOKENS, event.prompt_tokens),
            (names.INFERENCE_OUTPUT_TOKENS, event.completion_tokens),
        )
        for name, count in tokens:
            if count is not None:
                self._tokens[name].add(count, {**lane.model.attributes, names.MODALITY: "unknown"})
        self._model_ended(lane, event.at)

    def _model_ended(self, lane: _Lane, at: float, error: str = "", why: str = "") -> None:
        if lane.model is not None:
            self._end(lane.model, at, names.INFERENCE_DURATION, error, why)
            lane.model = None

    # --- tools --------------------------------------------------------------------------------------------

    def _tool(self, lane: _Lane, event: events.ToolStarted | events.ToolResult) -> _Open:
        shared = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: event.tool}
        more: Attributes = {names.TOOL_CALL_ID: event.call_id, names.TOOL_TYPE: "function"}
        if self._content:
            more[names.ARGUMENTS] = json.dumps(event.input, ensure_ascii=False)
        lane.tool_calls += 1
        return self._begin(f"{names.EXECUTE_TOOL} {event.tool}", event.at, shared, more, lane.run)

    def _tool_ended(self, lane: _Lane, event: events.ToolResult) -> None:
        """A call that never ran has a span of no length, so that its failure is counted."""
        tool = lane.tools.pop(event.call_id, None) or self._tool(lane, event)
        if self._content:
            tool.span.set_attribute(names.RESULT, event.content)
        error = why = ""
        match event:
            case events.ToolFailed():
                error, why = event.failure.kind.value, event.failure.message
            case events.ToolRefused():
                error, why = event.refusal, event.reason
            case events.ToolCancelled():
                error, why = "cancelled", event.reason
        if isinstance(event, events.ToolFailed | events.ToolSucceeded) and event.exit_code is not None:
            tool.span.set_attribute(names.EXIT_CODE, event.exit_code)
        self._end(tool, event.at, names.TOOL_DURATION, error, why)

    # --- spans --------------------------------------------------------------------------------------------

    def _begin(
        self,
        name: str,
        at: float,
        shared: Attributes,
        more: Attributes,
        parent: _Open | None,
        *,
        client: bool = False,
    ) -> _Open:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        context = Context() if parent is None else set_span_in_context(parent.span, Context())
        span = self._tracer.start_span(
            name,
            context,
            SpanKind.CLIENT if client else SpanKind.INTERNAL,
            {**shared, **more, names.CONVERSATION: self._session},
            start_time=_nanoseconds(at),
        )
        return _Open(span, at, shared)

    def _end(self, opened: _Open, at: float, duration: str, error: str = "", why: str = "") -> None:
        attributes: Mapping[str, Any] = opened.attributes
        if error:
            from opentelemetry.trace import StatusCode

            attributes = {**attributes, names.ERROR_TYPE: error}
            opened.span.set_attribute(names.ERROR_TYPE, error)
            opened.span.set_status(StatusCode.ERROR, why if self._content else None)
        opened.span.end(_nanoseconds(at))
        self._durations[duration].record(max(at - opened.at, 0.0), attributes)


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)


def _message(role: str, text: str, *parts: Attributes, **more: str) -> str:
    said = [{"type": "text", "content": text}] if text else []
    return json.dumps([{"role": role, "parts": [*said, *parts], **more}], ensure_ascii=False)


def _reply(event: events.ReplyFinished) -> str:
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": _arguments(call.arguments)}
        for call in event.calls
    ]
    return _message("assistant", event.text, *calls, finish_reason=event.finish_reason or "stop")


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
