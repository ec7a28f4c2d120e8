"""ATIF trajectories (Harbor's RFC 0001, versions 1.0 to 1.8): one document, a step each for what was said and done.

The format has no mark of failure; converters put one into `extra`, of the result or of its step. If there is
none, a text that names a failure is one, and any other result is not known. A result may stand in a step of
its own, which names the call in `extra`.
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import ValidationError

from tui_agent.core.events import FailureKind, Fault, Outcome
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import exit_message, exited, failed, failure_in, judged
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import (
    Call,
    Ending,
    Faulted,
    ImportReport,
    Refusal,
    Remarked,
    Result,
    Status,
    Transcript,
)
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

VERSION = "ATIF-v1.8"
OURS = "agent_tui"
"""The version that we write, and the field of `extra` that holds what the format has no place for."""
_FAILED = ("is_error", "tool_result_is_error", "isError", "failed")
_WORKED = ("success", "ok", "succeeded")
_CODES = ("exit_code", "exec_exit_code", "exitCode", "returncode", "return_code")
_LOST = -1
"""No program ends so: whoever ran it lost sight of it, mostly for the time that it took."""
_CALLS = ("tool_call_id", "source_call_id", "call_id")
"""Fields of `extra`: marks of a failure and of a success, exit codes, the call that a result is of."""


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
        ours = object_at(step, "extra", OURS)
        if step.get("is_copied_context") is True:
            self.report.skip("copied context")
        elif "fault" in ours:
            self.add(Faulted(_fault(ours["fault"], text), at, number_at(ours, "delay") or 0.0))
        elif "outcome" in ours:
            self.add(_ending(ours, text, at))
        elif self._is_result(step):
            self._results(step, at)
        elif source == "user":
            self.said(text, at)
        elif source == "agent":
            self._reply(step, text, at)
        elif source == "system" and not self.transcript.steps:
            self.transcript.system_prompt = joined(self.transcript.system_prompt, text)
        elif source == "system":
            self.add(Remarked(text, at))
            self._results(step, at)
        elif objects_at(step, "observation", "results"):
            self._results(step, at)
        else:
            self.report.lose(f"step of {source}" if isinstance(source, str) else "step without a source")

    def _reply(self, step: Record, text: str, at: float | None) -> None:
        reasoning = content_text(step.get("reasoning_content"))
        turn = self.turn(at, text, reasoning, text_at(step, "model_name"))
        used(turn, object_at(step, "metrics"))
        ours = object_at(step, "extra", OURS)
        turn.finish_reason, turn.rejected = text_at(ours, "finish_reason"), text_at(ours, "rejected")
        turn.answer = text_at(ours, "answer")
        turn.rejected_as = _kind(ours, turn.rejected_as)
        cost = number_at(step, "metrics", "cost_usd")
        turn.cost = cost if cost is not None and cost >= 0 else None
        for raw in objects_at(step, "tool_calls"):
            key = text_at(raw, "tool_call_id") or f"call-{len(self.calls)}"
            given = text_at(raw, "extra", OURS, "arguments") or object_at(raw, "arguments")
            self.call(turn, key, text_at(raw, "function_name"), given)
        self._results(step, at)

    def _is_result(self, step: Record) -> bool:
        """True if a step is there for results alone."""
        if objects_at(step, "tool_calls"):
            return False
        listed = objects_at(step, "observation", "results")
        if _named(step) in self.calls:
            return bool(listed) or not self.ended(_named(step))
        return (
            any(_named(raw) in self.calls for raw in listed) and not content_text(step.get("message")).strip()
        )

    def ended(self, key: str) -> bool:
        """True if the call has its result."""
        turn, call = self.calls[key]
        return call.id in turn.results

    def _results(self, step: Record, at: float | None) -> None:
        around = object_at(step, "extra")
        listed = objects_at(step, "observation", "results")
        if not listed and _named(step) in self.calls:
            listed = [{"content": step.get("message")}]
        for raw in listed:
            waiting = [call.id for turn, call in self.calls.values() if call.id not in turn.results]
            only = waiting[0] if len(waiting) == 1 else ""
            marks = {**around, **object_at(raw, "extra")} if len(listed) == 1 else object_at(raw, "extra")
            marks |= {key: raw[key] for key in (*_FAILED, *_CODES) if key in raw}
            self.end(
                _named(raw) or (_named(step) if len(listed) == 1 else "") or only, _result, raw, marks, at
            )

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


def _named(record: Record) -> str:
    """The call that a result, or a step of its own, says that it is of."""
    places = ((), ("extra",))
    found = (text_at(record, *place, key) for place in places for key in _CALLS)
    return next(filter(None, found), "")


def _result(call: Call, raw: Record, marks: Record, at: float | None) -> Result:
    text = content_text(raw.get("content"))
    if ours := object_at(marks, OURS):
        return _as_it_was(text, ours)
    code = next((code for key in _CODES if (code := code_at(marks, key)) is not None), None)
    flags = [marks[key] for key in _FAILED if isinstance(marks.get(key), bool)]
    flags += [not marks[key] for key in _WORKED if isinstance(marks.get(key), bool)]
    if error := content_text(marks.get("error")) if isinstance(marks.get("error"), str | dict) else "":
        return judged(call, text or error, at, error if not code else exit_message(code, text or error))
    if flags and not code:
        return judged(call, text, at, text if any(flags) else None)
    if code == _LOST:
        return failed(text, at, exit_message(code, text), unknown=True)
    if code is not None:
        return exited(call, text, at, code)
    message = failure_in(text)
    return Result("unknown", text, at) if message is None else judged(call, text, at, message)


def _as_it_was(text: str, ours: Record) -> Result:
    """A result that we wrote."""
    said, status = text_at(ours, "message"), text_at(ours, "status")
    refusal = text_at(ours, "refusal")
    return Result(
        next((known for known in get_args(Status) if known == status), "unknown"),
        text,
        time_at(ours, "at"),
        said,
        _kind(ours, FailureKind.TOOL_EXECUTION),
        changed=tuple(name for name in list_at(ours, "changed") if isinstance(name, str)),
        diff=text_at(ours, "diff"),
        duration=number_at(ours, "duration"),
        unknown_effect=ours.get("unknown_effect") is True,
        refusal=next((known for known in get_args(Refusal) if known == refusal), "denied"),
    )


def _kind(ours: Record, otherwise: FailureKind) -> FailureKind:
    return next((kind for kind in FailureKind if kind.value == ours.get("kind")), otherwise)


def _ending(ours: Record, text: str, at: float | None) -> Ending:
    """The end of a run that we wrote; one that was changed since is an interruption."""
    said = text_at(ours, "outcome")
    outcome = Outcome(said) if said in {*Outcome} else Outcome.INTERRUPTED
    answer, detector, rule = (text_at(ours, name) for name in ("answer", "detector", "rule"))
    return Ending(text, at, outcome, answer, detector, rule)


def _fault(given: Any, text: str) -> Fault:
    """A model's fault that we wrote; if it was changed since, by its words."""
    try:
        return Fault.model_validate(given)
    except ValidationError:
        return classified(text)
