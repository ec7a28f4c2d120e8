"""ATIF trajectories (Harbor's RFC 0001, versions 1.0 to 1.8): one document, a step each for what was said and done.

The format has no mark of failure; converters put one into `extra`. Where there is none, the result's text is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.openai_messages import failure_in, judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, ImportReport, Remarked, Result, Transcript, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    joined,
    json_text,
    list_at,
    number_at,
    object_at,
    objects_at,
    plain,
    text_at,
    time_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.formats.importers.reading import Record, Recording

_FAILED = ("is_error", "tool_result_is_error")


class ATIF(Format):
    """Steps of one agent; those of its sub-agents are trajectories of their own."""

    name = "ATIF"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report, Transcript(operator_present=False))
        self._agents: dict[str, ATIF] = {}

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Its version, or an agent with steps."""
        document = object_at(recording.document)
        version = text_at(document, "schema_version").startswith("ATIF")
        return version or (
            "agent" in document and any("step_id" in step for step in objects_at(document, "steps")[:5])
        )

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        return list_at(recording.document, "steps")

    def take(self, step: Record) -> None:
        """Read one step."""
        text, at = content_text(step.get("message")), time_at(step, "timestamp")
        if step.get("is_copied_context") is True:
            self.leave_out("copied context")
            return
        match step.get("source"):
            case "user":
                self.said(text, at)
            case "agent":
                self._reply(step, text, at)
            case "system" if not self.transcript.steps:
                self.transcript.system_prompt = joined(self.transcript.system_prompt, text)
            case "system":
                self.add(Remarked(text, at))
                self._results(step, at)
            case source:
                self.leave_out(f"step of {source}" if isinstance(source, str) else "step without a source")

    def _reply(self, step: Record, text: str, at: float | None) -> None:
        turn = Turn(at, text, content_text(step.get("reasoning_content")), model=text_at(step, "model_name"))
        turn.prompt_tokens = count_at(step, "metrics", "prompt_tokens")
        turn.completion_tokens = count_at(step, "metrics", "completion_tokens")
        cost = number_at(step, "metrics", "cost_usd")
        turn.cost = cost if cost is not None and cost >= 0 else None
        self.add(turn)
        for raw in objects_at(step, "tool_calls"):
            given = plain(object_at(raw, "arguments"))
            key = text_at(raw, "tool_call_id") or f"call-{len(self.calls)}"
            self.call(turn, Call(key, text_at(raw, "function_name") or "unnamed", json_text(given), given))
        self._results(step, at)

    def _results(self, step: Record, at: float | None) -> None:
        for raw in objects_at(step, "observation", "results"):
            key = text_at(raw, "source_call_id") or self._only_open()
            if (waiting := self.waiting(key)) is not None:
                turn, call = waiting
                self.ended(turn, call, _result(call, raw, at))

    def _only_open(self) -> str:
        open_ones = [call.id for turn, call in self.calls.values() if call.id not in turn.results]
        return open_ones[0] if len(open_ones) == 1 else ""

    def leave_out(self, kind: str) -> None:
        """A part of a step, which is counted as a whole."""
        self.report.skip(kind)

    def around(self, recording: Recording) -> None:
        """The agent, its grade, and the trajectories of its sub-agents."""
        document, transcript = object_at(recording.document), self.transcript
        transcript.id = text_at(document, "session_id")
        transcript.model = text_at(document, "agent", "model_name") or transcript.model
        transcript.reward = grade_in(document, "extra")
        for number, inner in enumerate(objects_at(document, "subagent_trajectories")):
            key = text_at(inner, "trajectory_id") or str(number)
            agent = ATIF(self.report)
            if key in self._agents:
                agent.transcript = self._agents[key].transcript
            self._agents[key] = agent
            agent.transcript.subagent, agent.transcript.lane = True, key
            agent.forget(0)
            agent.transcript.title = f"subagent: {text_at(inner, 'agent', 'name') or key}"
            agent.read(list_at(inner, "steps"))

    @property
    def lanes(self) -> list[Transcript]:
        return [self.transcript, *(agent.transcript for agent in self._agents.values())]


def _result(call: Call, raw: Record, at: float | None) -> Result:
    text, extra = content_text(raw.get("content")), object_at(raw, "extra")
    code = count_at(extra, "exit_code")
    if code:
        return judged(call, text, at, exit_message(code, text))
    marks = [extra[key] for key in _FAILED if isinstance(extra.get(key), bool)]
    if marks:
        return judged(call, text, at, text if any(marks) else None)
    return judged(call, text, at, None if code == 0 else failure_in(text))
