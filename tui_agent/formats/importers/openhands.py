"""OpenHands events (software-agent-sdk): one event a line, or a folder with one JSON file an event.

An observation has failed by `is_error`, by `timeout`, or by an exit code above zero (-1 means that the
command still runs); `AgentErrorEvent` is what never ran. Usage is kept as sums over the conversation:
differences between two sums belong to the reply between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.changes import changed_files
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Remarked, Result, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    json_text,
    number_at,
    object_at,
    objects_at,
    parse_arguments,
    plain,
    says_timed_out,
    text_at,
    time_at,
    value_at,
)

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording

_KINDS = {
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "AgentErrorEvent",
    "SystemPromptEvent",
    "UserRejectObservation",
    "ConversationStateUpdateEvent",
}


class OpenHands(Format):
    """Events of one conversation."""

    name = "OpenHands"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.response = ""
        self.turn: Turn | None = None
        self.sums = _Sums()
        self.pending = _Sums()
        """Usage since the last reply."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Records with one of OpenHands' own `kind`s."""
        return any(text_at(record, "kind") in _KINDS for record in recording.objects[:200])

    def take(self, record: Record) -> None:
        """Read one event."""
        at = time_at(record, "timestamp")
        match record.get("kind"):
            case "SystemPromptEvent":
                self.transcript.system_prompt = content_text(record.get("system_prompt"))
                self.transcript.tools = tuple(
                    name
                    for tool in objects_at(record, "tools")
                    if (name := text_at(tool, "title") or text_at(tool, "name"))
                )
            case "MessageEvent":
                self._message(record, at)
            case "ActionEvent":
                self._action(record, at)
            case "ObservationEvent":
                self._observed(record, at)
            case "AgentErrorEvent":
                self._answer(record, _agent_error(record, at))
            case "UserRejectObservation":
                reason = text_at(record, "rejection_reason") or "User rejected the action"
                self._answer(record, Result("denied", f"Action rejected: {reason}", at, reason))
            case "PauseEvent" | "InterruptEvent":
                self.interrupted(at, "paused by the operator")
            case "Condensation" | "CondensationSummaryEvent":
                self.compacted(at, "condensed")
            case "ConversationErrorEvent":
                message = text_at(record, "detail") or text_at(record, "code")
                self.add(Faulted(classified(message), at))
            case "ConversationStateUpdateEvent":
                self._state(record)
            case kind:
                self.leave_out(kind if isinstance(kind, str) else "event without a kind")

    def _state(self, record: Record) -> None:
        key = text_at(record, "key")
        value = object_at(record, "value")
        if key == "stats":
            self._usage(value)
        elif key == "full_state":
            self.transcript.workspace = (
                text_at(value, "workspace", "working_dir") or self.transcript.workspace
            )
            self.transcript.id = text_at(value, "id") or self.transcript.id
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

    def _new_turn(self, at: float | None) -> Turn:
        turn = Turn(at, model=self.transcript.model)
        if self.pending.prompt or self.pending.completion:
            turn.prompt_tokens, turn.completion_tokens = self.pending.prompt, self.pending.completion
            turn.cost = self.pending.cost or None
            self.pending = _Sums()
        self.turn = turn
        self.add(turn)
        return turn

    def _message(self, record: Record, at: float | None) -> None:
        text = content_text(value_at(record, "llm_message", "content"))
        if record.get("source") == "agent":
            turn = self._new_turn(at)
            turn.text = text
            turn.reasoning = text_at(record, "llm_message", "reasoning_content")
            self.response = ""
        elif record.get("source") == "user":
            self.said(text, at)
        else:
            self.add(Remarked(text, at))

    def _action(self, record: Record, at: float | None) -> None:
        response = text_at(record, "llm_response_id")
        turn = self.turn
        if turn is None or not response or response != self.response:
            turn = self._new_turn(at)
            turn.text = _without_thoughts(content_text(record.get("thought")))
            turn.reasoning = text_at(record, "reasoning_content")
        self.response = response
        arguments = text_at(record, "tool_call", "arguments")
        given = parse_arguments(arguments) if arguments else plain(object_at(record, "action"))
        name = text_at(record, "tool_name") or text_at(record, "tool_call", "name") or "unnamed"
        key = text_at(record, "tool_call_id") or text_at(record, "id") or f"call-{len(self.calls)}"
        if key in self.calls:
            self.leave_out("second action of one call")
            return
        self.call(turn, Call(key, name, arguments or json_text(given), given))

    def _observed(self, record: Record, at: float | None) -> None:
        observation = object_at(record, "observation")
        owner = self.calls.get(text_at(record, "tool_call_id"))
        call = owner[1] if owner else None
        self._answer(record, _observation(call, observation, at, owner[0].at if owner else None))

    def _answer(self, record: Record, result: Result) -> None:
        key = text_at(record, "tool_call_id")
        if key not in self.calls:
            self._rebuild(record, key, result.at)
        if (waiting := self.waiting(key)) is None:
            return
        turn, call = waiting
        self.ended(turn, call, result)
        if call.name == "finish" and result.status == "ok":
            self.transcript.finished = True
            self.transcript.answer = text_at(call.input, "message") or result.content

    def _rebuild(self, record: Record, key: str, at: float | None) -> None:
        """A call whose action was not recorded, from what its observation says of it."""
        name = text_at(record, "tool_name")
        if not key or not name:
            return
        command = text_at(record, "observation", "command")
        given = {"command": command} if command else {}
        self.call(self._new_turn(at), Call(key, name, json_text(given), given))
        self.response = ""
        self.report.rebuilt += 1


class _Sums:
    """Tokens and USD."""

    def __init__(self) -> None:
        self.prompt = 0
        self.completion = 0
        self.cost = 0.0


def _without_thoughts(text: str) -> str:
    """The text after a `<think>` block, which `reasoning_content` repeats."""
    if text.startswith("<think>"):
        _, closed, rest = text.partition("</think>")
        return rest.strip() if closed else text
    return text.strip()


def _observation(call: Call | None, observation: Record, at: float | None, asked_at: float | None) -> Result:
    text = content_text(observation.get("content") if "content" in observation else observation)
    code = count_at(observation, "exit_code") or count_at(observation, "metadata", "exit_code")
    seconds = max(at - asked_at, 0.0) if at is not None and asked_at is not None else None
    timed_out = observation.get("timeout") is True
    if observation.get("is_error") is True or code or timed_out:
        message = exit_message(code, text) if code else text.strip() or ("timed out" if timed_out else "")
        unknown = timed_out or says_timed_out(message)
        return Result("failed", text, at, message, duration=seconds, unknown_effect=unknown)
    changed = changed_files(call.name, call.input) if call else ()
    return Result("ok", text, at, changed=changed, duration=seconds)


def _agent_error(record: Record, at: float | None) -> Result:
    message = text_at(record, "error")
    head = message[:200].lower()
    kind = FailureKind.TOOL_EXECUTION
    if "not found" in head and "tool" in head:
        kind = FailureKind.UNKNOWN_TOOL
    elif "validating args" in head or "validation error" in head or "json" in head:
        kind = FailureKind.INVALID_TOOL_CALL
    return Result("failed", message, at, message, kind)
