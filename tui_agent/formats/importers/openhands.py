"""OpenHands: events of its SDK, one a line or in a folder with one JSON file an event, and results of evaluations
(`output.jsonl`): one object a task, whose `history` holds the run's events.

An observation has failed by `is_error`, by `timeout`, or by an exit code above zero (-1 means that the
command still runs); `AgentErrorEvent` stands for a call that never ran. Usage is kept as sums over the
conversation: differences between two sums belong to the reply between them. Older histories are pairs of
action and observation, or a flat list of both: there an observation has failed if it is an `error`, is marked
as one, has an exit code above zero, or begins with `ERROR:`; an error that no action caused is a reply that
could not be parsed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import classified, rejection_kind
from tui_agent.formats.importers.labels import grade, grade_in
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import changed_files, exit_message, failed, program_raised
from tui_agent.formats.importers.step_reader import Format, Runs, StepReader, used
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Remarked, Result, Said, Turn
from tui_agent.formats.importers.values import (
    code_at,
    content_text,
    count_at,
    list_at,
    number_at,
    object_at,
    objects_at,
    text_at,
    time_at,
    value_at,
)

_KINDS = {
    "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "SystemPromptEvent",
    "UserRejectObservation", "ConversationStateUpdateEvent",
}  # fmt: skip

_BESIDE_EVENTS = {
    "TokenEvent", "LLMCompletionLogEvent", "CondensationRequest", "StreamingDeltaEvent", "HookExecutionEvent",
}  # fmt: skip
"""Events beside the conversation."""


class OpenHands(Format):
    """Events of one conversation."""

    name = "OpenHands"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.response = ""
        self.newest: Turn | None = None
        self.sums = _Sums()
        self.pending = _Sums()
        """Usage since the last reply."""

    @classmethod
    def knows(cls, record: Record) -> bool:
        """Records with one of OpenHands' own `kind`s."""
        return text_at(record, "kind") in _KINDS

    def take(self, record: Record) -> None:
        at = time_at(record, "timestamp")
        match record.get("kind"):
            case "SystemPromptEvent":
                self.transcript.system_prompt = content_text(record.get("system_prompt"))
                names = (
                    text_at(tool, "title") or text_at(tool, "name") for tool in objects_at(record, "tools")
                )
                self.transcript.tools = tuple(filter(None, names))
            case "MessageEvent":
                self._message(record, at)
            case "ActionEvent":
                self._action(record, at)
            case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
                self._ends(record, at)
            case "PauseEvent" | "InterruptEvent":
                self.interrupted(at, "paused by the operator")
            case "Condensation" | "CondensationSummaryEvent":
                self.compacted(at, "condensed")
            case "ConversationErrorEvent":
                message = text_at(record, "detail") or text_at(record, "code")
                self.add(Faulted(classified(message), at))
            case "ConversationStateUpdateEvent":
                self._state(record)
            case str(kind) if kind in _BESIDE_EVENTS:
                self.leave_out(kind)
            case kind:
                self.not_known(kind, record)

    def _state(self, record: Record) -> None:
        key = text_at(record, "key")
        value = object_at(record, "value")
        if key == "stats":
            self._usage(value)
        elif key == "full_state":
            self.about(value, workspace="workspace.working_dir", id="id")
            self._usage(object_at(value, "stats"))
        else:
            self.leave_out(f"ConversationStateUpdateEvent {key}".rstrip())

    def _usage(self, stats: Record) -> None:
        sums = _Sums()
        for metrics in object_at(stats, "usage_to_metrics").values():
            usage = object_at(metrics, "accumulated_token_usage")
            sums.prompt += count_at(usage, "prompt_tokens") or 0
            sums.completion += count_at(usage, "completion_tokens") or 0
            sums.cost += max(number_at(metrics, "accumulated_cost") or 0.0, 0.0)
            self.transcript.model = self.transcript.model or text_at(metrics, "model_name")
        self.pending.prompt += max(sums.prompt - self.sums.prompt, 0)
        self.pending.completion += max(sums.completion - self.sums.completion, 0)
        self.pending.cost += max(sums.cost - self.sums.cost, 0.0)
        self.sums = sums

    def _reply(self, at: float | None, text: str = "", reasoning: str = "") -> Turn:
        turn = self.newest = self.turn(at, text, reasoning, self.transcript.model)
        if self.pending.prompt or self.pending.completion:
            turn.prompt_tokens, turn.completion_tokens = self.pending.prompt, self.pending.completion
            turn.cost = self.pending.cost or None
            self.pending = _Sums()
        self.response = ""
        return turn

    def _message(self, record: Record, at: float | None) -> None:
        text = content_text(value_at(record, "llm_message", "content"))
        if record.get("source") == "agent":
            self._reply(at, text, text_at(record, "llm_message", "reasoning_content"))
        elif record.get("source") == "user":
            self.said(text, at)
        else:
            self.add(Remarked(text, at))

    def _action(self, record: Record, at: float | None) -> None:
        response, turn = text_at(record, "llm_response_id"), self.newest
        if turn is None or not response or response != self.response:
            thought = _without_thoughts(content_text(record.get("thought")))
            turn = self._reply(at, thought, text_at(record, "reasoning_content"))
        self.response = response
        given = text_at(record, "tool_call", "arguments") or object_at(record, "action")
        name = text_at(record, "tool_name") or text_at(record, "tool_call", "name")
        key = text_at(record, "tool_call_id") or text_at(record, "id") or f"call-{len(self.calls)}"
        if key in self.calls:
            self.leave_out("second action of one call")
        else:
            self.call(turn, key, name, given)

    def _ends(self, record: Record, at: float | None) -> None:
        key, name = text_at(record, "tool_call_id"), text_at(record, "tool_name")
        known = key in self.calls
        if not known and key and name:  # its action was not recorded
            command = text_at(record, "observation", "command")
            self.call(self._reply(at), key, name, {"command": command} if command else {})
            self.report.rebuilt += 1
        self.end(key, self._result, record, at, known=known)

    def _result(self, call: Call, record: Record, at: float | None, *, known: bool) -> Result:
        match record.get("kind"):
            case "AgentErrorEvent":
                return _agent_error(record, at)
            case "UserRejectObservation":
                reason = text_at(record, "rejection_reason") or "User rejected the action"
                return Result("denied", f"Action rejected: {reason}", at, reason)
        result = _observation(call, object_at(record, "observation"), at)
        if call.name == "finish" and result.status == "ok":
            self.transcript.finished = True
            self.transcript.answer = text_at(call.input, "message") or result.content
        if not known:
            return replace(result, changed=())  # its arguments are not known
        asked_at = self.calls[call.id][0].at
        seconds = max(at - asked_at, 0.0) if at is not None and asked_at is not None else None
        return replace(result, duration=seconds)


@dataclass
class _Sums:
    """Tokens and USD."""

    prompt: int = 0
    completion: int = 0
    cost: float = 0.0


def _without_thoughts(text: str) -> str:
    """The text after a `<think>` block, which `reasoning_content` repeats."""
    if text.startswith("<think>"):
        _, closed, rest = text.partition("</think>")
        return rest.strip() if closed else text
    return text.strip()


def _observation(call: Call, observation: Record, at: float | None) -> Result:
    text = content_text(observation.get("content") if "content" in observation else observation)
    code = count_at(observation, "exit_code") or count_at(observation, "metadata", "exit_code")
    timed_out = observation.get("timeout") is True
    goes_on = -1 in (observation.get("exit_code"), value_at(observation, "metadata", "exit_code"))
    if observation.get("is_error") is True or code or timed_out:
        message = exit_message(code, text) if code else text.strip() or ("timed out" if timed_out else "")
        result = failed(text, at, message)
        return replace(result, unknown_effect=timed_out or result.unknown_effect)
    if goes_on:  # the command still runs
        return Result("unknown", text, at)
    return Result("ok", text, at, changed=changed_files(call.name, call.input))


def _agent_error(record: Record, at: float | None) -> Result:
    message = text_at(record, "error")
    head = message[:200].lower()
    kind = FailureKind.TOOL_EXECUTION
    if "not found" in head and "tool" in head:
        kind = FailureKind.UNKNOWN_TOOL
    elif "validating args" in head or "validation error" in head or "json" in head:
        kind = FailureKind.INVALID_TOOL_CALL
    return Result("failed", message, at, message, kind)


# --- results of evaluations ------------------------------------------------------------------------------

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
    def knows(cls, task: Record) -> bool:
        """Objects with a `history` and the names of an evaluation around it."""
        return isinstance(task.get("history"), list) and bool(
            task.keys() & {"instance_id", "test_result", "instruction"}
        )

    def take(self, task: Record) -> None:
        items = (item if isinstance(item, list) else [item] for item in list_at(task, "history"))
        history = [event for item in items for event in item if isinstance(event, dict)]
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


def _grade(task: Record) -> float | None:
    result = value_at(task, "test_result")
    verdict = value_at(result, "result")
    places = (task, task.get("report"), result, value_at(result, "report"), verdict)
    found = next((mark for mark in map(grade_in, places) if mark is not None), None)
    return found if found is not None else grade(result if verdict is None else verdict)


class _HistoryReader(StepReader):
    """Actions and observations of one task. Calls are known by their own id and by their action's."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.newest = ""
        self.response = ""

    def take(self, event: Record) -> None:
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
            self._reply(event, at).text = text_at(event, "args", "content")
        elif action and action not in _SILENT:
            self._call(event, action, at)
        elif seen and seen not in _SILENT:
            self._seen(event, seen, at)
        else:
            self.leave_out(action or seen or "event without an action or observation")

    def _reply(self, event: Record, at: float | None) -> Turn:
        response = object_at(event, "tool_call_metadata", "model_response") or object_at(
            event, "llm_metrics", "model_response"
        )
        turn = Turn(at, text_at(event, "args", "thought"), model=text_at(response, "model"))
        used(turn, object_at(response, "usage"))
        self.response = text_at(response, "id")
        self.add(turn)
        return turn

    def _call(self, event: Record, action: str, at: float | None) -> None:
        response = object_at(event, "tool_call_metadata", "model_response")
        key = text_at(event, "tool_call_metadata", "tool_call_id") or f"action-{len(self.calls)}"
        last = self.last
        parallel = bool(self.response) and text_at(response, "id") == self.response
        turn = last if isinstance(last, Turn) and last.calls and parallel else self._reply(event, at)
        name = text_at(event, "tool_call_metadata", "function_name") or action
        fields = {field: value for field, value in object_at(event, "args").items() if field not in _BESIDE}
        call = self.call(turn, key, name, _arguments(response, key) or fields)
        self.calls[f"event {event.get('id')}"] = (turn, call)
        self.newest = key
        if action == "finish":
            answer = text_at(event, "args", "final_thought") or text_at(event, "args", "outputs", "content")
            self.transcript.finished = True
            self.transcript.answer = answer or text_at(event, "args", "thought")
            turn.results[key] = Result("ok", self.transcript.answer, at)

    def _seen(self, event: Record, seen: str, at: float | None) -> None:
        caused = f"event {event['cause']}" if event.get("cause") is not None else self.newest
        key = text_at(event, "tool_call_metadata", "tool_call_id") or caused
        text = content_text(event.get("content"))
        turn, call = self.calls.get(key, (None, None))
        if seen == "error" and (turn is None or call is None or call.id in turn.results):
            turn = self._reply(event, at)
            turn.rejected = text or "The reply could not be parsed."
            turn.rejected_as = rejection_kind(text)
        else:
            self.end(key, _seen_result, event, seen, text, at)


def _arguments(response: Record, key: str) -> str:
    """The call's arguments as the model sent them."""
    for choice in objects_at(response, "choices"):
        for call in objects_at(choice, "message", "tool_calls"):
            if text_at(call, "id") == key:
                return text_at(call, "function", "arguments")
    return ""


def _seen_result(call: Call, event: Record, seen: str, text: str, at: float | None) -> Result:
    if seen == "user_rejected":
        return Result("denied", text, at, text)
    code = code_at(event, "extras", "exit_code")
    code = code_at(event, "extras", "metadata", "exit_code") if code is None else code
    if code is not None and code > 0:
        return failed(text, at, exit_message(code, text))
    marked = seen == "error" or event.get("success") is False or value_at(event, "extras", "error") is True
    if marked or text.startswith("ERROR:") or (seen == "run_ipython" and program_raised(text)):
        kind = rejection_kind(text) if seen == "error" else FailureKind.TOOL_EXECUTION
        kind = FailureKind.TOOL_EXECUTION if kind is FailureKind.NO_TOOL_CALL else kind
        return failed(text, at, text.strip(), kind)
    if seen == "run" and (code is None or code < 0):
        return Result("unknown", text, at)
    return Result("ok", text, at, changed=changed_files(call.name, call.input))
