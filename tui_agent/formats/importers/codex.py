"""Codex CLI rollouts: `{timestamp, type, payload}` a line, in the items of OpenAI's Responses.

Texts are there twice, as items and as events: items are taken, events only where the items lack them. No result has
a flag of failure: the rules below read Codex's own framing of outputs (codex-rs, `core/src/tools/mod.rs`: an exit code
in JSON metadata or in a header line), never the output itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.changes import changed_files
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Said, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    joined,
    json_text,
    number_at,
    object_at,
    parse_arguments,
    plain,
    text_at,
    time_at,
    value_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.formats.importers.reading import Record, Recording

_ADDED = "text added by Codex"
_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CALLS = {"function_call", "local_shell_call", "custom_tool_call", "web_search_call", "tool_search_call"}
_OUTPUTS = {
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "tool_search_output",
}
_ITEMS = _CALLS | _OUTPUTS | {"message", "reasoning"}
_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<skill",
    "<collaboration_mode>",
    "<model_switch>",
    "# AGENTS.md instructions",
)


def _entry(record: Record) -> tuple[str, Record, float | None]:
    """Kind, payload and time of a line: `item` for messages, calls and their outputs."""
    at = time_at(record, "timestamp")
    kind = text_at(record, "type")
    payload = record.get("payload")
    if isinstance(payload, dict):
        return ("item" if kind == "response_item" else kind or "line without a type"), payload, at
    if kind in _ITEMS:
        return "item", record, at
    if "instructions" in record and "id" in record:
        return "session_meta", record, at
    return kind or text_at(record, "record_type") or "line without a type", {}, at


class Codex(Format):
    """Items of one rollout. A reply ends where an output, a user's message or a token count follows.

    A text stands there as an item and as an event, in either order: it is taken once. Items of the user that no event
    confirms, where others are confirmed, were put in by Codex.
    """

    name = "Codex CLI"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.turn: Turn | None = None
        self.closed = True
        self.typed: Counter[str] = Counter()
        """Messages of the user that events told, and no item yet."""
        self.waiting_texts: Counter[str] = Counter()
        """Messages of the user that items told, and no event yet."""
        self.confirmed = False
        """There are events with messages of the user."""
        self.answered: Counter[str] = Counter()
        """Answers that events told, and no item yet."""
        self.items = False
        """There are items with answers."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Envelopes with a payload, or the bare items of the first versions behind a head with `instructions`."""
        head = recording.records[:50]
        if any(text_at(one, "type") in _ENVELOPES and isinstance(one.get("payload"), dict) for one in head):
            return True
        bare = sum(1 for one in head if text_at(one, "type") in _ITEMS and "sessionId" not in one)
        return bool(bare) and (
            "instructions" in head[0] or any(one.get("record_type") == "state" for one in head)
        )

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        return recording.records

    def take(self, record: Record) -> None:
        """Read one line."""
        kind, payload, at = _entry(record)
        match kind:
            case "session_meta":
                self._meta(payload)
            case "turn_context":
                self.transcript.model = text_at(payload, "model") or self.transcript.model
                self.transcript.workspace = self.transcript.workspace or text_at(payload, "cwd")
            case "compacted":
                self.compacted(at)
            case "item":
                self._item(payload, at)
            case "event_msg":
                self._event(payload, at)
            case _:
                self.leave_out(kind)

    def _meta(self, payload: Record) -> None:
        transcript = self.transcript
        transcript.id = transcript.id or text_at(payload, "id")
        transcript.workspace = text_at(payload, "cwd") or transcript.workspace
        prompt = text_at(payload, "instructions") or text_at(payload, "base_instructions", "text")
        transcript.system_prompt = transcript.system_prompt or prompt

    def _open(self, at: float | None) -> Turn:
        if self.closed or self.turn is None:
            self.turn = Turn(at, model=self.transcript.model)
            self.add(self.turn)
            self.closed = False
        return self.turn

    # --- items --------------------------------------------------------------------------------------------

    def _item(self, item: Record, at: float | None) -> None:
        kind = text_at(item, "type")
        if kind == "message":
            self._message(item, at)
        elif kind == "reasoning":
            parts = [content_text(item.get("summary")), content_text(item.get("content"))]
            if any(parts):
                turn = self._open(at)
                turn.reasoning = "\n\n".join(part for part in (turn.reasoning, *parts) if part)
        elif kind in _CALLS:
            self._call(kind, item, at)
        elif kind in _OUTPUTS:
            self._output(item, at)
        else:
            self.leave_out(f"response_item {kind or 'without a type'}")

    def _message(self, item: Record, at: float | None) -> None:
        text = content_text(item.get("content"))
        match item.get("role"):
            case "assistant":
                self.items = True
                if self.answered[text]:
                    self.answered[text] -= 1
                    self.closed = False
                else:
                    turn = self._open(at)
                    turn.text = joined(turn.text, text)
            case "user":
                self._user_item(text, at)
            case _:
                self.leave_out(f"message of role {text_at(item, 'role') or '?'}")

    def _said(self, text: str, at: float | None) -> None:
        self.closed = True
        self.said(text, at)

    def _user_item(self, text: str, at: float | None) -> None:
        key = text.strip()
        if self.typed[key]:
            self.typed[key] -= 1
            return
        self.waiting_texts[key] += 1
        if self.confirmed or text.lstrip().startswith(_INJECTED):
            self.leave_out(_ADDED)
        else:
            self._said(text, at)

    def _user_event(self, text: str, at: float | None) -> None:
        key = text.strip()
        known = bool(self.waiting_texts[key])
        if not self.confirmed:
            self.confirmed = True
            self._drop_unconfirmed(key)
            known = known and not text.lstrip().startswith(_INJECTED)
        elif known:
            self.report.skip(_ADDED, -1)
            self.report.understood += 1
            self._said(text, at)
        if known:
            self.waiting_texts[key] -= 1
        else:
            self.typed[key] += 1
            self._said(text, at)

    def _drop_unconfirmed(self, key: str) -> None:
        """What items alone told before the first event were no messages of the user."""
        steps = self.transcript.steps
        kept = [step for step in steps if not isinstance(step, Said) or step.text.strip() == key]
        for _ in range(len(steps) - len(kept)):
            self.leave_out(_ADDED)
        self.forget(0)
        steps.extend(kept)

    def _call(self, kind: str, item: Record, at: float | None) -> None:
        turn = self._open(at)
        key = text_at(item, "call_id") or text_at(item, "id") or f"call-{len(self.calls)}"
        self.call(turn, _as_call(kind, item, key))
        if kind == "web_search_call":
            self.closed = True  # it ran on the provider's side: what follows reads its result
            failed = text_at(item, "status") == "failed"
            result = Result("failed" if failed else "ok", "", at, "the search failed" if failed else "")
            self.ended(turn, self.calls[key][1], result)

    def _output(self, item: Record, at: float | None) -> None:
        self.closed = True
        if (waiting := self.waiting(text_at(item, "call_id"))) is not None:
            turn, call = waiting
            self.ended(turn, call, _result(call, item.get("output", item.get("tools")), at))

    # --- events -------------------------------------------------------------------------------------------

    def _event(self, payload: Record, at: float | None) -> None:
        match payload.get("type"):
            case "token_count":
                self._usage(payload)
            case "item_completed":
                self._completed(object_at(payload, "item"), at)
            case "user_message":
                self._user_event(text_at(payload, "message"), at)
            case "agent_message":
                self._agent_event(text_at(payload, "message"), at)
            case "agent_reasoning" | "agent_reasoning_raw_content":
                pass  # the same text stands in an item
            case "turn_aborted" | "error" | "stream_error" as kind:
                self.closed = True
                self._broke(kind, text_at(payload, "message"), at)
            case other:
                self.leave_out(f"event_msg {other if isinstance(other, str) else 'without a type'}")

    def _completed(self, item: Record, at: float | None) -> None:
        """What newer versions say of texts; of commands it repeats what their outputs say."""
        match item.get("type"):
            case "UserMessage":
                self._user_event(content_text(item.get("content")), at)
            case "AgentMessage":
                self._agent_event(content_text(item.get("content")), at)
            case other:
                self.leave_out(f"event_msg item_completed {other if isinstance(other, str) else ''}".rstrip())

    def _agent_event(self, text: str, at: float | None) -> None:
        if not self.items:
            self._open(at).text = text
            self.answered[text] += 1
            self.closed = True

    def _broke(self, kind: str, message: str, at: float | None) -> None:
        if kind == "turn_aborted":
            self.interrupted(at)
        else:
            self.add(Faulted(classified(message), at))

    def _usage(self, payload: Record) -> None:
        """One count a model call; the first lines of a rollout have none."""
        usage = object_at(payload, "info", "last_token_usage")
        if not usage or self.turn is None:
            return
        self.turn.prompt_tokens = count_at(usage, "input_tokens")
        self.turn.completion_tokens = count_at(usage, "output_tokens")
        self.closed = True


def _as_call(kind: str, item: Record, key: str) -> Call:
    match kind:
        case "function_call":
            arguments = text_at(item, "arguments")
            return Call(key, text_at(item, "name") or "unnamed", arguments, parse_arguments(arguments))
        case "custom_tool_call":
            raw = text_at(item, "input")
            return Call(key, text_at(item, "name") or "unnamed", json_text({"input": raw}), {"input": raw})
        case "local_shell_call":
            action = plain(object_at(item, "action"))
            return Call(key, "local_shell", json_text(action), action)
        case _:
            action = plain(object_at(item, "action") or object_at(item, "arguments"))
            return Call(key, kind.removesuffix("_call"), json_text(action), action)


_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)\s*$", re.MULTILINE)
_HEADER = re.compile(r"^Output:\s*$", re.MULTILINE)
_WALL = re.compile(r"^Wall time: ([\d.]+) seconds", re.MULTILINE)
_INVALID = ("failed to parse function arguments", "invalid arguments", "missing field")
_UNKNOWN = ("unsupported call:", "unsupported custom tool call:", "unknown tool")
_DENIED = (
    "exec command rejected by user",
    "rejected by user",
    "patch rejected by user",
    "user cancelled mcp tool call",
    "command blocked by pretooluse hook",
)
_ABORTED = ("aborted by user", "aborted", "command interrupted")
_FAILED = (
    "apply_patch verification failed",
    "execution error:",
    "failed in sandbox",
    "sandbox error",
    "exec_command failed",
    "write_stdin failed",
    "tool call error:",
    "failed to ",
    "collab spawn failed",
)


def _result(call: Call, output: Any, at: float | None) -> Result:
    success = value_at(output, "success")
    if isinstance(output, dict) and "content" in output:
        output = output["content"]
    return result_of_output(call, content_text(output), at, failed=success is False)


def result_of_output(
    call: Call, text: str, at: float | None = None, *, code: int | None = None, failed: bool = False
) -> Result:
    """How a call has ended, by its output. `code`: its exit code where it is known from elsewhere; `failed`: Codex
    marks it so.
    """
    text, said, seconds = _framed(text)
    code = said if code is None else code
    lowered = text[:400].lower().strip()
    if lowered.startswith(_DENIED):
        return Result("denied", text, at, text.strip()[:500])
    if lowered.startswith(_ABORTED):
        return Result("cancelled", text, at, "interrupted by the operator")
    if code == 0 or (
        code is None and not failed and not lowered.startswith((*_INVALID, *_UNKNOWN, *_FAILED))
    ):
        return Result("ok", text, at, changed=changed_files(call.name, call.input), duration=seconds)
    kind = FailureKind.TOOL_EXECUTION
    if call.input is None or lowered.startswith(_INVALID):
        kind = FailureKind.INVALID_TOOL_CALL
    elif lowered.startswith(_UNKNOWN):
        kind = FailureKind.UNKNOWN_TOOL
    message = text.strip() if code is None else exit_message(code, text)
    timed_out = code == 124 or "command timed out after" in lowered
    return Result("failed", text, at, message, kind, duration=seconds, unknown_effect=timed_out)


def _framed(text: str) -> tuple[str, int | None, float | None]:
    """The output itself, its exit code and its seconds, out of either of Codex's two frames."""
    if text.startswith("{"):
        try:
            frame = json.loads(text)
        except (ValueError, RecursionError):
            frame = None
        metadata = object_at(frame, "metadata")
        code = number_at(metadata, "exit_code")
        if code is not None:
            seconds = number_at(metadata, "duration_seconds")
            return (
                content_text(value_at(frame, "output")),
                int(code),
                seconds if seconds and seconds > 0 else None,
            )
    mark = _HEADER.search(text, 0, 2_000)
    if mark is None:
        head = text[:200]
        match = _EXIT.match(head)
        return text, int(match[1][:10]) if match else None, None
    head = text[: mark.start()]
    match, wall = _EXIT.search(head), _WALL.search(head)
    body = text[mark.end() :].removeprefix("\n")
    if match is None:
        return (body, None, None) if wall else (text, None, None)
    try:
        seconds = float(wall[1]) if wall else None
    except ValueError:
        seconds = None
    return body, int(match[1][:10]), seconds
