"""ATIF trajectories (Harbor's RFC 0001, versions 1.0 to 1.8): one document, a step each for what was said and done.

The format has no mark of failure; converters put one into `extra`. Where there is none, the result's text is judged.
"""

from __future__ import annotations

from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import exited, failure_in, judged
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, ImportReport, Remarked, Result, Transcript
from tui_agent.formats.importers.values import (
    code_at,
    content_text,
    joined,
    list_at,
    number_at,
    object_at,
    objects_at,
    text_at,
    time_at,
)

_FAILED = ("is_error", "tool_result_is_error")


class ATIF(Format):
    """Steps of one agent; those of its sub-agents are trajectories of their own."""

    name = "ATIF"
    inside = "steps"
    in_parts = True

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report, Transcript(operator_present=False))

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Its version, or an agent with steps."""
        document = object_at(recording.document)
        version = text_at(document, "schema_version").startswith("ATIF")
        return version or (
            "agent" in document and any("step_id" in step for step in objects_at(document, "steps")[:5])
        )

    def take(self, step: Record) -> None:
        text, at, source = content_text(step.get("message")), time_at(step, "timestamp"), step.get("source")
        if step.get("is_copied_context") is True:
            self.report.skip("copied context")
        elif source == "user":
            self.said(text, at)
        elif source == "agent":
            self._reply(step, text, at)
        elif source == "system" and not self.transcript.steps:
            self.transcript.system_prompt = joined(self.transcript.system_prompt, text)
        elif source == "system":
            self.add(Remarked(text, at))
            self._results(step, at)
        else:
            self.report.skip(f"step of {source}" if isinstance(source, str) else "step without a source")

    def _reply(self, step: Record, text: str, at: float | None) -> None:
        reasoning = content_text(step.get("reasoning_content"))
        turn = self.turn(at, text, reasoning, text_at(step, "model_name"))
        used(turn, object_at(step, "metrics"))
        cost = number_at(step, "metrics", "cost_usd")
        turn.cost = cost if cost is not None and cost >= 0 else None
        for raw in objects_at(step, "tool_calls"):
            key = text_at(raw, "tool_call_id") or f"call-{len(self.calls)}"
            self.call(turn, key, text_at(raw, "function_name"), object_at(raw, "arguments"))
        self._results(step, at)

    def _results(self, step: Record, at: float | None) -> None:
        for raw in objects_at(step, "observation", "results"):
            waiting = [call.id for turn, call in self.calls.values() if call.id not in turn.results]
            only = waiting[0] if len(waiting) == 1 else ""
            self.end(text_at(raw, "source_call_id") or only, _result, raw, at)

    def around(self, recording: Recording) -> None:
        """The agent, its grade, and the trajectories of its sub-agents."""
        document = object_at(recording.document)
        self.about(document, id="session_id", model="agent.model_name")
        self.transcript.reward = grade_in(document, "extra")
        for number, inner in enumerate(objects_at(document, "subagent_trajectories")):
            key = text_at(inner, "trajectory_id") or str(number)
            agent = self.agent(key, f"subagent: {text_at(inner, 'agent', 'name') or key}")
            agent.forget(0)
            agent.calls.clear()
            agent.read(list_at(inner, "steps"))


def _result(call: Call, raw: Record, at: float | None) -> Result:
    text, extra = content_text(raw.get("content")), object_at(raw, "extra")
    code = code_at(extra, "exit_code")
    marks = [extra[key] for key in _FAILED if isinstance(extra.get(key), bool)]
    if marks and not code:
        return judged(call, text, at, text if any(marks) else None)
    return exited(call, text, at, code) if code is not None else judged(call, text, at, failure_in(text))
