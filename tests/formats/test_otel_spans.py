"""Traces in each form in which they are written give the same conversation, failures and sub-agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.formats import samples
from tests.formats.loading import load_transcript
from tui_agent.core import events
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.watch.watched import Watched

Span = dict[str, Any]

OPERATIONS = {"AGENT": "invoke_agent", "LLM": "chat", "TOOL": "execute_tool"}
ASKED = {"id": "c1", "name": "bash", "arguments": '{"command": "make"}'}
SPANS: list[Span] = [
    {"id": "b1", "kind": "LLM", "start": 2, "end": 3, "said": "fix it", "asks": [ASKED], "tokens": 9},
    {
        "id": "b2",
        "kind": "TOOL",
        "start": 3,
        "end": 5,
        "call": ASKED,
        "output": "no rule",
        "error": "tool_execution",
    },
    {
        "id": "b3",
        "kind": "LLM",
        "start": 5,
        "end": 6,
        "said": "fix it",
        "error": "overloaded",
        "why": "529 later",
    },
    {"id": "b4", "kind": "LLM", "start": 6, "end": 7, "said": "fix it", "output": "I gave up."},
    {"id": "b0", "kind": "AGENT", "start": 1, "end": 8, "said": "fix it", "output": "I gave up."},
]
"""As they end; `b0` is around all others."""


def genai(span: Span) -> dict[str, Any]:
    """Attributes by the GenAI conventions."""
    found = {"gen_ai.operation.name": OPERATIONS[span["kind"]], "gen_ai.conversation.id": "s-1"}
    if said := span.get("said"):
        parts = [{"role": "user", "parts": [{"type": "text", "content": said}]}]
        found["gen_ai.input.messages"] = json.dumps(parts)
    if span["kind"] == "LLM" and "error" not in span:
        asks = [
            {"type": "tool_call", **call, "arguments": json.loads(call["arguments"])}
            for call in span.get("asks", [])
        ]
        parts = [*([{"type": "text", "content": span["output"]}] if "output" in span else []), *asks]
        found["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
        found["gen_ai.usage.input_tokens"] = span.get("tokens", 0)
        found["gen_ai.request.model"] = "m"
    if call := span.get("call"):
        found |= {"gen_ai.tool.name": call["name"], "gen_ai.tool.call.id": call["id"]}
        found |= {"gen_ai.tool.call.arguments": call["arguments"], "gen_ai.tool.call.result": span["output"]}
    return found | ({"error.type": span["error"]} if "error" in span else {})


def openinference(span: Span) -> dict[str, Any]:
    """Attributes by OpenInference, whose tools name no call."""
    found: dict[str, Any] = {"openinference.span.kind": span["kind"], "session.id": "s-1"}
    if span["kind"] == "LLM":
        at = "llm.input_messages.0.message."
        found |= {f"{at}role": "user", f"{at}content": span["said"], "llm.model_name": "m"}
        found["llm.token_count.prompt"] = span.get("tokens", 0)
        at = "llm.output_messages.0.message."
        if "error" not in span:
            found |= {f"{at}role": "assistant", f"{at}content": span.get("output", "")}
        for number, call in enumerate(span.get("asks", [])):
            one = f"{at}tool_calls.{number}.tool_call."
            found |= {f"{one}id": call["id"], f"{one}function.name": call["name"]}
            found[f"{one}function.arguments"] = call["arguments"]
    elif call := span.get("call"):
        found |= {"tool.name": call["name"], "input.value": call["arguments"], "output.value": span["output"]}
    else:
        found["input.value"] = span["said"]
    return found | ({"error.type": span["error"]} if "error" in span else {})


def parent(span: Span) -> str | None:
    return span.get("parent", None if span["kind"] == "AGENT" else "b0")


def otlp(spans: list[Span]) -> str:
    """One document, as a collector writes it."""

    def value(given: Any) -> dict[str, Any]:
        return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": given}

    written = [
        {
            "traceId": "t",
            "spanId": span["id"],
            "parentSpanId": parent(span) or "",
            "name": f"{OPERATIONS[span['kind']]} x",
            "startTimeUnixNano": str(span["start"] * 10**9),
            "endTimeUnixNano": str(span["end"] * 10**9),
            "attributes": [{"key": key, "value": value(one)} for key, one in genai(span).items()],
            "status": {"code": 2, "message": span.get("why", "")} if "error" in span else {},
        }
        for span in spans
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}, indent=1)


def printed(
    attributes: Callable[[Span], dict[str, Any]], *, nested: bool = False
) -> Callable[[list[Span]], str]:
    """A line a span, as the SDK's `to_json` and Phoenix write them."""

    def written(spans: list[Span]) -> str:
        return samples.lines(
            {
                "name": f"{OPERATIONS[span['kind']]} x",
                "context": {"trace_id": "t", "span_id": span["id"]},
                "parent_id": parent(span),
                "start_time": f"1970-01-01T00:00:{span['start']:02}Z",
                "end_time": f"1970-01-01T00:00:{span['end']:02}Z",
                "status": {
                    "status_code": "ERROR" if "error" in span else "UNSET",
                    "description": span.get("why"),
                },
                "attributes": tree(attributes(span)) if nested else attributes(span),
            }
            for span in spans
        )

    return written


def tree(flat: dict[str, Any]) -> dict[str, Any]:
    """Attributes as Phoenix keeps them: objects within objects."""
    top: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        inner = top
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return top


FORMS = {
    "otlp": otlp,
    "lines": printed(genai),
    "openinference": printed(openinference),
    "phoenix": printed(openinference, nested=True),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_task_calls_faults_and_answer(form: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(FORMS[form](SPANS))
    (run,) = load_transcripts(path)
    assert run.source == "OpenTelemetry"
    told = [event for event in run.events if not isinstance(event, events.Notice)]
    (task,) = (event for event in told if isinstance(event, events.RunStarted))
    assert (task.task, task.operator_present) == ("fix it", False)
    (failed,) = (event for event in told if isinstance(event, events.ToolFailed))
    assert (failed.tool, failed.input, failed.content) == ("bash", {"command": "make"}, "no rule")
    assert (failed.failure.kind, failed.at) == ("tool_execution", 5.0)
    (fault,) = (event for event in told if isinstance(event, events.ModelFaulted))
    assert (fault.fault.kind, fault.action) == ("overloaded", "retry")
    replies = [event for event in told if isinstance(event, events.ReplyFinished)]
    assert [(len(reply.calls), reply.text, reply.model) for reply in replies] == [
        (1, "", "m"),
        (0, "I gave up.", "m"),
    ]
    assert replies[0].prompt_tokens == 9
    ended = told[-1]
    assert isinstance(ended, events.RunFinished)
    assert (ended.outcome, ended.answer) == ("answered", "I gave up.")


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"error": "blocked", "output": ""}, events.ToolRefused),
        ({"error": "cancelled", "output": ""}, events.ToolCancelled),
        ({"error": "unknown_tool"}, events.ToolFailed),
        ({"output": "built"}, events.ToolSucceeded),
    ],
)
def test_a_call_ends_as_its_span_does(more: Span, kind: type[events.Event], tmp_path: Path) -> None:
    span = {name: value for name, value in SPANS[1].items() if name != "error"} | more
    path = tmp_path / "trace.jsonl"
    path.write_text(printed(genai)([SPANS[0], span, SPANS[-1]]))
    (ended,) = (event for event in load_transcript(path).events if isinstance(event, events.ToolResult))
    assert type(ended) is kind


def test_a_trace_without_words_still_has_its_calls(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    bare = {"gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "error.type"}
    path.write_text(
        printed(lambda span: {key: value for key, value in genai(span).items() if key in bare})(SPANS)
    )
    told = load_transcript(path).events
    (failed,) = (event for event in told if isinstance(event, events.ToolFailed))
    assert (failed.tool, failed.call_id) == ("bash", "c1")
    assert isinstance(told[-1], events.RunFinished)
    assert told[-1].outcome == "answered"


def test_a_trace_is_followed_while_its_spans_end_and_sub_agents_are_lanes(tmp_path: Path) -> None:
    task = {"id": "c2", "name": "task", "arguments": "{}"}
    inner = [
        {**SPANS[1], "id": "d1", "parent": "d0", "start": 4, "call": {**ASKED, "id": "d"}},
        {"id": "d0", "kind": "AGENT", "start": 4, "end": 6, "said": "look", "parent": "d9"},
        {"id": "d9", "kind": "TOOL", "start": 4, "end": 6, "call": task, "output": "seen"},
    ]
    path = tmp_path / "trace.jsonl"
    watched = Watched(path)
    path.write_text(printed(genai)(SPANS[:1]))
    watched.update(1.0)
    assert [event.task for event in watched.events if isinstance(event, events.RunStarted)] == ["fix it"]
    path.write_text(printed(genai)([SPANS[0], *inner, SPANS[3], SPANS[4]]))
    watched.update(2.0)
    lanes = [event for event in watched.events if isinstance(event, events.LaneEvent)]
    assert {event.lane for event in lanes} == {"c2"}
    assert sum(isinstance(event.event, events.ToolFailed) for event in lanes) == 1
    assert not any(isinstance(event, events.ToolFailed) for event in watched.events)


@pytest.mark.parametrize(
    "odd",
    [
        {"attributes": None},
        {"attributes": {"gen_ai": {"operation": {"name": 7}}}},
        {"attributes": [{"key": 3}, 4, {"key": "a", "value": {"intValue": "9" * 40}}]},
        {"start_time": "yesterday", "parent_id": "b1"},
        {"status": "broken", "events": [{"attributes": 5}, 6]},
        {"context": None, "attributes": {"gen_ai.operation.name": "chat", "gen_ai.output.messages": "[[["}},
    ],
)
def test_odd_spans_are_no_reason_to_fail(odd: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    good = printed(genai)(SPANS)
    first = json.loads(good.splitlines()[0])
    path.write_text(good + json.dumps(first | odd) + "\n")
    assert any(isinstance(event, events.ToolFailed) for event in load_transcript(path).events)


def test_a_tool_that_lost_its_parent_is_of_the_agent_that_worked_then(tmp_path: Path) -> None:
    """As smolagents' issue 1961 shows them: tools in traces of their own."""
    lines = [json.loads(line) for line in printed(openinference)(SPANS).splitlines()]
    for line in lines:
        del line["attributes"]["session.id"]
    lines[1] |= {"parent_id": None, "context": {"trace_id": "another", "span_id": "b2"}}
    path = tmp_path / "trace.jsonl"
    path.write_text(samples.lines(lines))
    (run,) = load_transcripts(path)
    assert [event.tool for event in run.events if isinstance(event, events.ToolFailed)] == ["bash"]


def test_a_result_that_stands_in_the_next_request_alone_is_read_there(tmp_path: Path) -> None:
    """As kagent's issue 2734 shows them: the tool's span has neither arguments nor result."""
    response = {"type": "tool_call_response", "id": "c1", "response": "no rule"}
    lines = [json.loads(line) for line in printed(genai)(SPANS).splitlines()]
    for name in ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"):
        del lines[1]["attributes"][name]
    told = json.loads(lines[3]["attributes"]["gen_ai.input.messages"])
    told.append({"role": "tool", "parts": [response]})
    lines[3]["attributes"]["gen_ai.input.messages"] = json.dumps(told)
    path = tmp_path / "trace.jsonl"
    path.write_text(samples.lines(lines))
    (failed,) = (event for event in load_transcript(path).events if isinstance(event, events.ToolFailed))
    assert (failed.input, failed.content) == ({"command": "make"}, "no rule")


def test_lines_that_are_resources_are_read(tmp_path: Path) -> None:
    """As OpenTelemetry's SDK for Java logs them (issue 6749)."""
    path = tmp_path / "trace.jsonl"
    resource = json.loads(otlp(SPANS))["resourceSpans"][0]
    path.write_text(samples.lines([{"resource": {}, **resource}, {"resource": {}, "scopeSpans": []}]))
    (run,) = load_transcripts(path)
    assert sum(isinstance(event, events.ToolFailed) for event in run.events) == 1


# --- counts by a counter that knows nothing of the reader ----------------------------------------------------


ENDS = (events.ToolResult, events.ToolFailed, events.ModelFaulted)


def worked(seed: int) -> list[Span]:
    """The spans of an agent with faults of its model and failing calls, as they end: the agent's own comes last."""
    chance, spans = Random(seed), list[Span]()
    for at in range(2, 50, 4):
        call = ASKED | {"id": f"c{at}", "name": chance.choice(["bash", "edit", "fetch"])}
        if chance.random() < 0.3:
            spans.append({**SPANS[2], "id": f"f{at}", "start": at, "end": at + 1})
        spans.append({**SPANS[0], "id": f"m{at}", "start": at + 1, "end": at + 2, "asks": [call]})
        failed = {"error": chance.choice(["tool_execution", "Timeout"])} if chance.random() < 0.4 else {}
        ran = {
            "id": f"t{at}",
            "kind": "TOOL",
            "start": at + 2,
            "end": at + 4,
            "call": call,
            "output": "it said",
        }
        spans.append(ran | failed)
    return [*spans, {**SPANS[4], "end": 58}]


def objects(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(one for each in inner for one in objects(each))]


def counted(text: str) -> tuple[int, int, int]:
    """Calls, those that failed, and faults of the model, by the words in each span of a file."""
    documents = [json.loads(text)] if text.startswith("{\n") else [*map(json.loads, text.splitlines())]
    spans = [json.dumps(one) for one in objects(documents) if "attributes" in one and "name" in one]
    tools = [one for one in spans if '"execute_tool' in one]
    models = [one for one in spans if '"chat' in one]
    failed = [sum('"code": 2' in one or '"ERROR"' in one for one in some) for some in (tools, models)]
    return len(tools), failed[0], failed[1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form", FORMS)
def test_calls_failures_and_faults_equal_a_plain_count_of_the_spans(
    form: str, seed: int, tmp_path: Path
) -> None:
    spans = worked(seed)
    text = FORMS[form](spans)
    path = tmp_path / "trace.json"
    path.write_text(text)
    (run,) = load_transcripts(path)
    found = [sum(isinstance(one, kind) for one in run.events) for kind in ENDS]
    assert tuple(found) == counted(text)
    assert found[0] == 12
    assert found[1] == sum("call" in span and "error" in span for span in spans) > 0


@pytest.mark.parametrize("form", ["lines", "openinference", "phoenix"])
def test_spans_in_any_order_and_twice_count_once(form: str, tmp_path: Path) -> None:
    spans = worked(7)
    text = FORMS[form](spans)
    lines = text.splitlines() * 2
    Random(1).shuffle(lines)
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(lines))
    (run,) = load_transcripts(path)
    assert tuple(sum(isinstance(one, kind) for one in run.events) for kind in ENDS) == counted(text)
