"""Events become the spans and metrics that the GenAI conventions name, and no contents unless they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tui_agent.core import events
from tui_agent.core.names import FailureKind, FaultKind, Level, Outcome
from tui_agent.telemetry import names
from tui_agent.telemetry.names import provider_and_model
from tui_agent.telemetry.spans import Spans

NOT_THERE = "the extra [otel] is not installed"
SECRET_WORDS = ("fix the tests", "make all", "no rule to make", "All done", "looks stuck")


def spans_of(told: Iterable[events.Event], *, content: bool = False) -> tuple[list[Any], dict[str, Any]]:
    """The spans in the order of their ends, and the metrics' points by name, of the events at 1, 2, 3 … seconds."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason=NOT_THERE)
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracing = sdk.TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    metering = MeterProvider([reader])
    spans = Spans(tracing.get_tracer("t"), metering.get_meter("t"), "session-1", content=content)
    at = 0
    for at, event in enumerate(told, 1):
        spans.take(event.stamped(at, float(at)))
    spans.close(float(at + 1))
    data = reader.get_metrics_data()
    scopes = [scope for one in data.resource_metrics for scope in one.scope_metrics] if data else []
    metrics = {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}
    return list(exporter.get_finished_spans()), metrics


def started(key: str = "c1", tool: str = "bash") -> events.ToolStarted:
    return events.ToolStarted(call_id=key, tool=tool, input={"command": "make all"})


def failed(key: str = "c1", kind: FailureKind = FailureKind.TOOL_EXECUTION) -> events.ToolFailed:
    failure = events.Failure(kind=kind, message="no rule to make", tool="bash")
    return events.ToolFailed(
        call_id=key, tool="bash", content="no rule to make", failure=failure, exit_code=2
    )


RUN = events.RunStarted(run=1, task="fix the tests", policy="combined", model="anthropic/claude-x")
CALLED = events.ModelCallStarted(iteration=1, model="anthropic/claude-x", server="127.0.0.1:8080")
REPLY = events.ReplyFinished(
    text="All done.",
    calls=(events.ToolCall(id="c1", name="bash", arguments='{"command": "make all"}'),),
    finish_reason="tool_calls",
    model="claude-x-1",
    prompt_tokens=30,
    cached_tokens=20,
    completion_tokens=4,
)
VERDICT = events.VerdictReached(
    iteration=1, level=Level.GUIDE, detector="ladder", rule="ladder.guide", reason="looks stuck"
)
ENDED = events.RunFinished(outcome=Outcome.ANSWERED, answer="All done.")
SESSION = (RUN, CALLED, REPLY, started(), failed(), VERDICT, ENDED)


def test_a_run_is_a_span_around_its_calls_with_the_names_of_the_conventions() -> None:
    (chat, tool, run), metrics = spans_of(SESSION)
    assert [span.name for span in (chat, tool, run)] == [
        "chat claude-x",
        "execute_tool bash",
        "invoke_agent agent-tui",
    ]
    assert [span.kind.name for span in (chat, tool, run)] == ["CLIENT", "INTERNAL", "INTERNAL"]
    assert {chat.parent.span_id, tool.parent.span_id} == {run.context.span_id}
    assert run.parent is None
    assert (chat.start_time, chat.end_time) == (2 * 10**9, 3 * 10**9)
    assert chat.attributes[names.PROVIDER] == "anthropic"
    assert chat.attributes[names.RESPONSE_MODEL] == "claude-x-1"
    assert (chat.attributes[names.SERVER_ADDRESS], chat.attributes[names.SERVER_PORT]) == ("127.0.0.1", 8080)
    assert chat.attributes[names.FINISH_REASONS] == ("tool_calls",)
    used = (names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.CACHE_READ_TOKENS)
    assert [chat.attributes[name] for name in used] == [30, 4, 20]
    assert names.CACHE_WRITE_TOKENS not in chat.attributes
    assert {span.attributes[names.CONVERSATION] for span in (chat, tool, run)} == {"session-1"}
    assert (tool.status.status_code.name, tool.attributes[names.ERROR_TYPE]) == ("ERROR", "tool_execution")
    assert (tool.attributes[names.TOOL_CALL_ID], tool.attributes[names.EXIT_CODE]) == ("c1", 2)
    assert (run.status.status_code.name, run.attributes[names.OUTCOME]) == ("UNSET", "answered")
    (verdict,) = run.events
    assert (verdict.name, verdict.attributes[names.RULE]) == (names.VERDICT, "ladder.guide")
    (seconds,) = metrics[names.TOOL_DURATION]
    assert (seconds.sum, seconds.attributes[names.ERROR_TYPE]) == (1.0, "tool_execution")
    assert [point.sum for point in metrics[names.AGENT_TOOL_CALLS]] == [1]
    assert [point.value for point in metrics[names.INFERENCE_INPUT_TOKENS]] == [30]
    assert metrics[names.AGENT_DURATION][0].sum == 6.0


@pytest.mark.parametrize("content", [False, True])
def test_contents_go_out_only_when_asked_for(content: bool) -> None:
    spans, metrics = spans_of(SESSION, content=content)
    text = "".join(span.to_json() for span in spans)
    assert [word in text for word in SECRET_WORDS] == [*([content] * 4), False]
    assert not any(word in str(metrics) for word in SECRET_WORDS)
    if content:
        chat, tool, run = spans
        assert json.loads(chat.attributes[names.OUTPUT_MESSAGES])[0]["parts"][1]["name"] == "bash"
        assert json.loads(tool.attributes[names.ARGUMENTS]) == {"command": "make all"}
        assert json.loads(run.attributes[names.INPUT_MESSAGES])[0]["role"] == "user"


def refused() -> events.ToolRefused:
    return events.ToolRefused(call_id="c9", tool="bash", refusal="blocked", reason="three times")


FAULT = events.ModelFaulted(fault=events.Fault(kind=FaultKind.OVERLOADED, message="529"), action="retry")


@pytest.mark.parametrize(
    ("told", "ended"),
    [
        ([RUN, refused()], [("execute_tool bash", "blocked"), ("invoke_agent agent-tui", "cancelled")]),
        (
            [RUN, failed(kind=FailureKind.INVALID_TOOL_CALL), ENDED],
            [("execute_tool bash", "invalid_tool_call"), ("invoke_agent agent-tui", None)],
        ),
        (
            [RUN, CALLED, FAULT, CALLED, REPLY, ENDED],
            [("chat claude-x", "overloaded"), ("chat claude-x", None), ("invoke_agent agent-tui", None)],
        ),
        (
            [RUN, CALLED, events.IterationFinished(iteration=1, cancelled=True), ENDED],
            [("chat claude-x", "cancelled"), ("invoke_agent agent-tui", None)],
        ),
        (
            [RUN, started(), RUN, ENDED],
            [
                ("execute_tool bash", "cancelled"),
                ("invoke_agent agent-tui", "cancelled"),
                ("invoke_agent agent-tui", None),
            ],
        ),
        (
            [RUN, events.RunFinished(outcome=Outcome.PARTIAL, rule="ladder.stop")],
            [("invoke_agent agent-tui", "partial")],
        ),
        ([failed(), ENDED], [("execute_tool bash", "tool_execution")]),
    ],
    ids=["refused", "never ran", "retried", "interrupted", "left open", "partial", "resumed in between"],
)
def test_every_call_ends_in_one_span_with_the_kind_of_its_error(
    told: list[events.Event], ended: list[tuple[str, str | None]]
) -> None:
    spans, _ = spans_of(told)
    assert [(span.name, span.attributes.get(names.ERROR_TYPE)) for span in spans] == ended
    assert all(span.end_time >= span.start_time for span in spans)


def test_a_sub_agent_stands_in_the_call_that_started_it() -> None:
    def inside(event: Any) -> events.LaneEvent:
        return events.LaneEvent(lane="c1", name="look", event=event)

    told = [
        RUN,
        started(tool="task"),
        inside(RUN),
        inside(started("d1")),
        inside(failed("d1")),
        inside(ENDED),
    ]
    spans, _ = spans_of([*told, events.ToolSucceeded(call_id="c1", tool="task"), ENDED])
    _, sub, task, run = spans
    assert [span.parent and span.parent.span_id for span in spans] == [
        sub.context.span_id,
        task.context.span_id,
        run.context.span_id,
        None,
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gpt-5", ("openai", "gpt-5")),
        ("mistral/devstral", ("mistral_ai", "devstral")),
        ("bedrock/anthropic.claude", ("aws.bedrock", "anthropic.claude")),
        ("openrouter/qwen/qwen3-coder", ("openrouter", "qwen/qwen3-coder")),
        ("", ("openai", "")),
    ],
)
def test_models_are_named_without_their_provider(name: str, told: tuple[str, str]) -> None:
    assert provider_and_model(name) == told
