"""OpenHands evaluation results (`output.jsonl`): one object a task, whose `history` holds the run's events.

Three dialects of `history`: pairs of action and observation, a flat list of both, and the events of
software-agent-sdk, which `openhands` reads. An observation has failed where it is an `error`, is marked as one, has an
exit code above zero, or begins with `ERROR:`; an error that no action caused is a reply that could not be parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.changes import changed_files
from tui_agent.formats.importers.faults import rejection_kind
from tui_agent.formats.importers.labels import grade, grade_in
from tui_agent.formats.importers.openhands import OpenHands
from tui_agent.formats.importers.step_reader import Runs, StepReader
from tui_agent.formats.importers.transcript import Call, ImportReport, Result, Said, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    json_text,
    list_at,
    number_at,
    object_at,
    objects_at,
    parse_arguments,
    plain,
    program_raised,
    says_timed_out,
    text_at,
    time_at,
    value_at,
)

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording

_SILENT = {"agent_state_changed", "change_agent_state", "null", "recall", "condensation_request", "system"}
"""Events of the harness's own: neither a message nor a call."""
_BESIDE = frozenset(
    {
        "thought", "hidden", "blocking", "keep_prompt", "is_static", "cwd", "confirmation_state",
        "is_confirmed", "security_risk", "impl_source", "kernel_init_code", "include_extra",
    }
)  # fmt: skip
"""Fields of an action that the model did not send."""


class OpenHandsResults(Runs):
    """Tasks with their histories."""

    name = "OpenHands results"

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Objects with a `history` and the names of an evaluation around it."""
        return any(
            isinstance(task.get("history"), list)
            and task.keys() & {"instance_id", "test_result", "instruction"}
            for task in recording.objects[:20]
        )

    def take(self, task: Record) -> None:
        """Read one task."""
        history = [event for item in list_at(task, "history") for event in _flat(item)]
        of_sdk = any("kind" in event for event in history[:20])
        reader = OpenHands(self.report) if of_sdk else _HistoryReader(self.report)
        transcript = reader.transcript
        reader.read(history)
        instance = task.get("instance_id")
        transcript.id = text_at(task, "instance_id") or (str(instance) if isinstance(instance, int) else "")
        transcript.title = transcript.id
        transcript.model = transcript.model or text_at(task, "metadata", "llm_config", "model")
        transcript.ending = text_at(task, "error")
        transcript.reward = _grade(task)
        transcript.operator_present = False
        instruction, steps = text_at(task, "instruction"), transcript.steps
        if instruction and steps and not any(isinstance(step, Said) for step in steps):
            steps.insert(0, Said(instruction))
        self.runs.append(transcript)


def _flat(item: Any) -> list[Record]:
    return [one for one in (item if isinstance(item, list) else [item]) if isinstance(one, dict)]


def _grade(task: Record) -> float | None:
    for path in ((), ("report",), ("test_result",), ("test_result", "report"), ("test_result", "result")):
        found = grade_in(task, *path)
        if found is not None:
            return found
    verdict = value_at(task, "test_result", "result")
    return grade(task.get("test_result") if verdict is None else verdict)


class _HistoryReader(StepReader):
    """Actions and observations of one task. Calls are known by their own id and by their action's."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.newest = ""
        self.response = ""

    def take(self, event: Record) -> None:
        """Read one event."""
        at = time_at(event, "timestamp")
        action, seen = text_at(event, "action"), text_at(event, "observation")
        if action == "system":
            self.transcript.system_prompt = text_at(event, "args", "content")
        elif action == "condensation" or seen == "condense":
            self.compacted(at, "condensed")
        elif action == "pause":
            self.interrupted(at, "paused by the operator")
        elif action == "message" and event.get("source") == "user":
            self.said(text_at(event, "args", "content"), at)
        elif action == "message":
            self._turn(event, at).text = text_at(event, "args", "content")
        elif action and action not in _SILENT:
            self._call(event, action, at)
        elif seen and seen not in _SILENT:
            self._seen(event, seen, at)
        else:
            self.leave_out(action or seen or "event without an action or observation")

    def _turn(self, event: Record, at: float | None) -> Turn:
        response = object_at(event, "tool_call_metadata", "model_response") or object_at(
            event, "llm_metrics", "model_response"
        )
        turn = Turn(at, text_at(event, "args", "thought"), model=text_at(response, "model"))
        turn.prompt_tokens = count_at(response, "usage", "prompt_tokens")
        turn.completion_tokens = count_at(response, "usage", "completion_tokens")
        self.response = text_at(response, "id")
        self.add(turn)
        return turn

    def _call(self, event: Record, action: str, at: float | None) -> None:
        response = object_at(event, "tool_call_metadata", "model_response")
        key = text_at(event, "tool_call_metadata", "tool_call_id") or f"action-{len(self.calls)}"
        last = self.last
        parallel = bool(self.response) and text_at(response, "id") == self.response
        turn = last if isinstance(last, Turn) and last.calls and parallel else self._turn(event, at)
        name = text_at(event, "tool_call_metadata", "function_name") or action
        arguments = _arguments(response, key)
        fields = {field: value for field, value in object_at(event, "args").items() if field not in _BESIDE}
        given = parse_arguments(arguments) if arguments else plain(fields)
        call = Call(key, name, arguments or json_text(given), given)
        self.call(turn, call)
        self.calls[f"event {event.get('id')}"] = (turn, call)
        self.newest = key
        if action == "finish":
            answer = text_at(event, "args", "final_thought") or text_at(event, "args", "outputs", "content")
            self.transcript.finished = True
            self.transcript.answer = answer or text_at(event, "args", "thought")
            turn.results[key] = Result("ok", self.transcript.answer, at)

    def _seen(self, event: Record, seen: str, at: float | None) -> None:
        caused = f"event {event['cause']}" if event.get("cause") is not None else self.newest
        owner = self.calls.get(text_at(event, "tool_call_metadata", "tool_call_id") or caused)
        text = content_text(event.get("content"))
        if owner is not None and owner[1].id not in owner[0].results:
            owner[0].results[owner[1].id] = _result(owner[1], event, seen, text, at)
        elif seen == "error":
            turn = self._turn(event, at)
            turn.rejected = text or "The reply could not be parsed."
            turn.rejected_as = rejection_kind(text)
        else:
            self.leave_out("result without its call")


def _arguments(response: Record, key: str) -> str:
    """The call's arguments as the model sent them."""
    for choice in objects_at(response, "choices"):
        for call in objects_at(choice, "message", "tool_calls"):
            if text_at(call, "id") == key:
                return text_at(call, "function", "arguments")
    return ""


def _result(call: Call, event: Record, seen: str, text: str, at: float | None) -> Result:
    if seen == "user_rejected":
        return Result("denied", text, at, text)
    code = number_at(event, "extras", "exit_code")
    code = number_at(event, "extras", "metadata", "exit_code") if code is None else code
    if code is not None and code > 0:
        message = exit_message(int(code), text)
        return Result("failed", text, at, message, unknown_effect=says_timed_out(message))
    marked = seen == "error" or event.get("success") is False or value_at(event, "extras", "error") is True
    if marked or text.startswith("ERROR:") or (seen == "run_ipython" and program_raised(text)):
        kind = rejection_kind(text) if seen == "error" else FailureKind.TOOL_EXECUTION
        kind = FailureKind.TOOL_EXECUTION if kind is FailureKind.NO_TOOL_CALL else kind
        message = text.strip()
        return Result("failed", text, at, message, kind, unknown_effect=says_timed_out(message))
    return Result("ok", text, at, changed=changed_files(call.name, call.input))
