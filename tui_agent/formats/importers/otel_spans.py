"""Traces of agents: spans by OpenTelemetry's GenAI conventions or by OpenInference.

A span is written when it ends, so a call comes before its run: the steps are made anew of all spans, in the order of
their beginnings. A conversation is a run of the file, and a sub-agent (an agent within a tool's call) a lane of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from tui_agent.core.events import FailureKind, Fault, FaultKind
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import exit_message, judged
from tui_agent.formats.importers.spans import Span, spans_in
from tui_agent.formats.importers.step_reader import Format, StepReader, used
from tui_agent.formats.importers.transcript import (
    Call,
    Faulted,
    ImportReport,
    Refusal,
    Result,
    Transcript,
    Turn,
)
from tui_agent.formats.importers.values import code_at, text_at

NO_WORDS = "(The spans hold no words.)"


class _Conversation(StepReader):
    """The steps of one agent."""

    def take(self, record: Record) -> None:
        """Spans are read all at once, by `tell`."""

    def tell(self, spans: list[Span]) -> None:
        """Make the steps of all spans."""
        self.forget(0)
        self.calls.clear()
        self.heard: set[str] = set()
        self.read_back = dict(result for span in spans if span.kind == "model" for result in span.results())
        for span in spans:
            match span.kind:
                case "agent" if span is spans[0] or span.name.startswith("invoke_"):
                    words = [text for role, text, _ in span.messages("input") if role == "user"]
                    self._hear((words or [span.text("input.value") or NO_WORDS])[-1:], span, anew=True)
                case "model":
                    self._hear([text for role, text, _ in span.messages("input") if role == "user"], span)
                    self._reply(span)
                case "tool":
                    self._tool(span)
        last = max(spans, key=lambda span: span.end)
        self.transcript.finished = last.kind == "agent" and not last.error
        self.transcript.ending = last.error if last.kind == "agent" else ""

    def _hear(self, words: list[str], span: Span, *, anew: bool = False) -> None:
        for text in words:
            if text and (anew or text not in self.heard):
                self.heard.add(text)
                self.said(text, span.start)

    def _reply(self, span: Span) -> None:
        if span.error:
            kinds = [kind for kind in FaultKind if kind.value == span.error]
            words = span.why or span.error
            fault = Fault(kind=kinds[0], message=words) if kinds else classified(f"{span.error}: {words}")
            self.add(Faulted(fault, span.end))
            return
        told = span.messages("output")
        text = "\n".join(words for _, words, _ in told if words) or span.text("output.value") * (not told)
        model = span.text("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
        turn = self.turn(span.end, text, model=model)
        counts = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
        if counts[0] not in span.attributes:
            counts = ("llm.token_count.prompt", "llm.token_count.completion")
        used(turn, span.attributes, *counts)
        for raw in (call for _, _, calls in told for call in calls):
            key = text_at(raw, "id") or f"call-{len(self.calls)}"
            self.call(turn, key, text_at(raw, "name"), raw.get("arguments"))

    def _tool(self, span: Span) -> None:
        """A call that no reply of the trace holds is one of the newest reply."""
        name = span.text("gen_ai.tool.name", "tool.name") or span.name.removeprefix("execute_tool ")
        key = span.text("gen_ai.tool.call.id", "tool_call.id")
        open_ones = [one for one, (turn, call) in self.calls.items() if call.id not in turn.results]
        if key not in open_ones:
            named = [] if key else [one for one in open_ones if self.calls[one][1].name == name]
            key = named[0] if named else key or span.id
        if key not in open_ones:
            turn = self.last if isinstance(self.last, Turn) else self.turn(span.start)
            given = span.attributes.get("gen_ai.tool.call.arguments") or span.attributes.get("input.value")
            self.call(turn, key, name, {} if given is None else given)
        self.end(key, _result, span, self.read_back.get(key, ""))


def _result(call: Call, span: Span, read_back: str) -> Result:
    """`read_back`: the result as the model was sent it, for a span that keeps none."""
    content = span.text("gen_ai.tool.call.result", "output.value") or read_back
    took = max(span.end - span.start, 0.0)
    words = span.why or content or span.error
    if not span.error:
        return judged(call, content, span.end, None, took)
    if span.error == "cancelled":
        return Result("cancelled", content, span.end, words)
    for refusal in get_args(Refusal):
        if span.error == refusal:
            return Result("denied", content, span.end, words, refusal=refusal)
    code = code_at(span.attributes, "process.exit.code")
    result = judged(call, content or words, span.end, exit_message(code, words) if code else words, took)
    kinds = [kind for kind in FailureKind if kind.value == span.error]
    return replace(result, kind=kinds[0]) if kinds else result


class OTelSpans(Format):
    """A file of spans."""

    name = "OpenTelemetry"
    in_parts = True

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._spans: dict[str, Span] = {}
        self._told: dict[tuple[str, str], _Conversation] = {}

    @classmethod
    def knows(cls, record: Record) -> bool:
        """True for spans of an agent."""
        return any(span.kind for span in spans_in(record))

    def take(self, record: Record) -> None:
        found = list(spans_in(record))
        self._spans |= {span.id: span for span in found if span.kind}
        others = sum(not span.kind for span in found)
        self.report.skip("span of something else", others)

    def around(self, recording: Recording) -> None:
        """Make the steps of all spans that are there."""
        self.report.results = self.report.lost_results = self.report.unclear = 0
        parts: dict[tuple[str, str], list[Span]] = {}
        for span in sorted(self._spans.values(), key=lambda span: (span.start, -span.end)):
            parts.setdefault((self._conversation(span), self._sub_agent(span)), []).append(span)
        for (conversation, lane), spans in parts.items():
            title = f"subagent: {spans[0].name}" if lane else ""
            made = Transcript(id=conversation, title=title, lane=lane, subagent=bool(lane))
            made.operator_present = False
            self._told.setdefault((conversation, lane), _Conversation(self.report, made)).tell(spans)

    def _up(self, span: Span) -> Iterator[Span]:
        seen = {span.id}
        while (above := self._spans.get(span.parent)) is not None and above.id not in seen:
            yield (span := above)
            seen.add(span.id)

    def _conversation(self, span: Span) -> str:
        """A tool's span that lost its parent is of the agent that worked at that time."""
        named = (one.text("gen_ai.conversation.id", "session.id") for one in (span, *self._up(span)))
        if found := next(filter(None, named), ""):
            return found
        if span.kind == "tool" and span.parent not in self._spans:
            around = (one for one in self._spans.values() if one.kind == "agent" and one.encloses(span))
            if agent := next(around, None):
                return self._conversation(agent)
        return span.trace

    def _sub_agent(self, span: Span) -> str:
        """The call within which an agent of its own made the span; empty: the main agent did."""
        agent = span.kind == "agent"
        for above in self._up(span):
            if above.kind == "tool" and agent:
                return above.text("gen_ai.tool.call.id", "tool_call.id") or above.id
            agent = agent or above.kind == "agent"
        return ""

    @property
    def lanes(self) -> list[Transcript]:
        return [one.transcript for one in self._told.values()] or [self.transcript]
