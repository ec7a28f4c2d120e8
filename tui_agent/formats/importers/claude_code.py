"""Claude Code sessions: one record a line, a tree by `parentUuid`, one reply of the model split over several lines.

The main line is followed from the newest message back; subagents (`isSidechain`) are kept apart, abandoned branches
are counted. A failure is what Claude Code marks as one: `is_error` on a result, `<tool_use_error>` around what never
ran; fixed sentences mark the operator's refusals and calls that were dropped beside a failed one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.changes import changed_files
from tui_agent.formats.importers.claude_tree import MESSAGES, by_root, is_message, main_line
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.step_reader import StepReader
from tui_agent.formats.importers.transcript import (
    Call,
    Faulted,
    ImportReport,
    Interrupted,
    Remarked,
    Result,
    Said,
    Transcript,
    Turn,
)
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
    says_timed_out,
    text_at,
    time_at,
    value_at,
)
from tui_agent.quantities import counted

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording

NAME = "Claude Code"

_DENIALS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
)
_INTERRUPT = "[Request interrupted by user"
_REJECTED = "User rejected tool use"
_DROPPED = re.compile(
    r"^(?:<tool_use_error>)?(?:Error: )?(?:Sibling tool call errored|Cancelled: parallel tool call |Streaming fallback)"
)
"""Of a call that was not run, or was cut short, because another call of the same reply failed."""
_UNSHOWN = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "Caveat: The messages below",
)
_EXIT_CODE = re.compile(r"^(?:Error: )?Exit code (\d+)")


def matches(recording: Recording) -> bool:
    """Records that carry a `type`, a `sessionId` and a message of Anthropic's form beside `parentUuid`."""
    return any(
        text_at(record, "type") in MESSAGES
        and "parentUuid" in record
        and isinstance(record.get("message"), dict)
        for record in recording.records[:2_000]
    )


def read(recording: Recording, report: ImportReport) -> list[Transcript]:
    """The main conversation first, then one transcript for each subagent."""
    report.records += len(recording.records)
    messages: list[Record] = []
    sidechains: list[Record] = []
    for record in recording.records:
        if is_message(record):
            (sidechains if record.get("isSidechain") is True else messages).append(record)
        elif record.get("type") == "system" and text_at(record, "subtype") in {
            "api_error",
            "compact_boundary",
        }:
            messages.append(record)
        elif text_at(record, "type") in {"summary", "custom-title", "ai-title"} and _title_of(record):
            report.understood += 1
        else:
            report.skip(_kind(record))
    agents = by_root(sidechains)
    if not messages and agents:
        _, messages = agents.pop(0)
        report.remarks.append("The file is a subagent's run.")
    line = main_line(recording.records, messages)
    abandoned = sum(1 for record in messages if id(record) not in line)
    if abandoned:
        report.skip("message of an abandoned branch", abandoned)
    main = _SessionReader(report).read(record for record in messages if id(record) in line)
    main.title = next((title for record in reversed(recording.records) if (title := _title_of(record))), "")
    subagents = []
    for prompt, records in agents:
        agent = _SessionReader(report).read(records)
        agent.subagent = True
        agent.operator_present = False
        agent.title = f"subagent: {prompt.strip()[:60]}"
        subagents.append(agent)
    if subagents:
        count = sum(len(records) for _, records in agents)
        report.remarks.append(
            f"Subagents kept apart: {counted(len(subagents), 'run')} with {counted(count, 'message')}."
        )
    return [main, *subagents]


def _kind(record: Record) -> str:
    kind = text_at(record, "type") or "record without a type"
    subtype = text_at(record, "subtype")
    return f"{kind} {subtype}" if subtype else kind


def _title_of(record: Record) -> str:
    match record.get("type"):
        case "summary":
            return text_at(record, "summary")
        case "custom-title":
            return text_at(record, "customTitle")
        case "ai-title":
            return text_at(record, "aiTitle")
    return ""


# --- records into steps -----------------------------------------------------


class _SessionReader(StepReader):
    """Puts records of one conversation together, in file order."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.turns: dict[str, Turn] = {}
        """Replies by message id: their records may be parted by results of parallel calls."""

    def take(self, record: Record) -> None:
        transcript = self.transcript
        transcript.id = transcript.id or text_at(record, "sessionId")
        transcript.workspace = transcript.workspace or text_at(record, "cwd")
        if record.get("type") == "system":
            self._system(record)
        elif record.get("isApiErrorMessage") is True:
            self._understood(True)
            self.add(Faulted(classified(content_text(value_at(record, "message", "content"))), _at(record)))
        elif record.get("type") == "assistant":
            self._reply(record)
        else:
            self._user(record)

    def _understood(self, understood: bool, kind: str = "") -> None:
        if understood:
            self.report.understood += 1
        else:
            self.report.skip(kind)

    def _system(self, record: Record) -> None:
        self._understood(True)
        if record.get("subtype") == "compact_boundary":
            before = count_at(record, "compactMetadata", "preTokens")
            size = f" ({before:,} tokens before)" if before else ""
            self.add(Remarked(f"The conversation was compacted here{size}.", _at(record)))
            return
        message = text_at(record, "error", "message") or content_text(record.get("error")) or "API error"
        fault = classified(message, count_at(record, "error", "status"))
        delay = number_at(record, "retryInMs") or 0.0
        self.add(Faulted(fault, _at(record), max(delay, 0.0) / 1_000))

    def _reply(self, record: Record) -> None:
        message = object_at(record, "message")
        key = text_at(message, "id") or text_at(record, "uuid")
        turn = self.turns.get(key)
        if turn is None:
            turn = self.turns[key] = Turn(_at(record), model=text_at(message, "model"))
            self.add(turn)
            self.transcript.model = turn.model or self.transcript.model
        content = message.get("content")
        if isinstance(content, str):
            turn.text = joined(turn.text, content_text(content))
        for block in objects_at(message, "content"):
            self._block(turn, block)
        turn.finish_reason = text_at(message, "stop_reason") or turn.finish_reason
        _take_usage(turn, record)
        self._understood(True)

    def _block(self, turn: Turn, block: Record) -> None:
        match block.get("type"):
            case "text":
                turn.text = joined(turn.text, text_at(block, "text"))
            case "thinking":
                turn.reasoning = joined(turn.reasoning, text_at(block, "thinking"))
            case "redacted_thinking":
                turn.reasoning = joined(turn.reasoning, "[redacted]")
            case "tool_use" | "server_tool_use":
                given = block.get("input")
                values = plain(given) if isinstance(given, dict) else None
                arguments = json_text(given) if given is not None else ""
                call = Call(text_at(block, "id"), text_at(block, "name") or "unnamed", arguments, values)
                if not call.id or call.id not in self.calls:
                    self.call(turn, call)
            case other:
                self.report.skip(f"assistant block {other if isinstance(other, str) else '?'}")

    def _user(self, record: Record) -> None:
        content = value_at(record, "message", "content")
        results = [
            block for block in objects_at(record, "message", "content") if block.get("type") == "tool_result"
        ]
        for block in results:
            self._result(record, block)
        if results:
            self._understood(True)
            return
        text = content_text(content)
        if record.get("isCompactSummary") is True:
            self._understood(False, "user compact summary")
        elif text.startswith(_INTERRUPT):
            self._understood(True)
            self.add(Interrupted("interrupted by the operator", _at(record)))
        elif text.startswith(_UNSHOWN):
            self._understood(False, "user output of a local command")
        elif record.get("isMeta") is True and not self._extends(text):
            self._understood(False, "user text added by Claude Code")
        elif record.get("isMeta") is not True and text.strip():
            self.add(Said(text, _at(record)))
            self._understood(True)
        elif record.get("isMeta") is not True:
            self._understood(False, "user message without text")

    def _extends(self, text: str) -> bool:
        """A command's expansion follows the operator's message: it is part of the task."""
        steps = self.transcript.steps
        if not steps or not isinstance(steps[-1], Said) or not text.strip():
            return False
        steps[-1] = Said(f"{steps[-1].text}\n\n{text}", steps[-1].at)
        self._understood(True)
        return True

    def _result(self, record: Record, block: Record) -> None:
        if (waiting := self.waiting(text_at(block, "tool_use_id"))) is not None:
            turn, call = waiting
            turn.results[call.id] = _result(call, block, record, turn.at)

    def leave_out(self, kind: str) -> None:
        """A part of a record, which is counted as a whole."""
        self.report.skip(kind)


def _result(call: Call, block: Record, record: Record, asked_at: float | None) -> Result:
    text = content_text(block.get("content"))
    at = _at(record)
    beside = record.get("toolUseResult")
    if block.get("is_error") is True and beside == _REJECTED:
        return Result("denied", text, at, _denial_reason(text))
    result = result_of_text(call, text, failed=block.get("is_error") is True)
    if result.status == "ok":
        result = replace(result, diff=_diff(beside), duration=_duration(beside, asked_at, at))
    return replace(result, at=at)


def result_of_text(call: Call, text: str, *, failed: bool) -> Result:
    """How a call has ended, by the text that the model reads of it. `failed`: Claude Code marks it as a failure."""
    if text.startswith(_INTERRUPT):
        return Result("cancelled", text, message="interrupted by the operator")
    if not failed:
        return Result("ok", text, changed=changed_files(call.name, call.input))
    if _DROPPED.match(text):
        return Result("cancelled", text, message="cancelled because another call of the same reply failed")
    if text.startswith(_DENIALS):
        return Result("denied", text, message=_denial_reason(text))
    kind, message = _failure(text)
    timed_out = call.name == "Bash" and says_timed_out(message)
    return Result("failed", text, message=message, kind=kind, unknown_effect=timed_out)


def marked_as_failure(text: str) -> bool:
    """Whether the text alone says that a call did not do its work."""
    return text.startswith(("<tool_use_error>", *_DENIALS)) or bool(
        _EXIT_CODE.match(text) or _DROPPED.match(text)
    )


def _denial_reason(text: str) -> str:
    _, said, reason = text.partition("the user said:")
    return reason.strip() if said else "denied by the operator"


def _failure(text: str) -> tuple[FailureKind, str]:
    message = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>").strip()
    if message.startswith("InputValidationError"):
        return FailureKind.INVALID_TOOL_CALL, message
    if "No such tool available" in message[:60]:
        return FailureKind.UNKNOWN_TOOL, message
    if match := _EXIT_CODE.match(message):
        rest = message[match.end() :].lstrip("\n")
        return FailureKind.TOOL_EXECUTION, exit_message(int(match[1][:10]), rest)
    return FailureKind.TOOL_EXECUTION, message


def _duration(beside: Any, asked_at: float | None, at: float | None) -> float | None:
    for key in ("durationMs", "totalDurationMs"):
        milliseconds = number_at(beside, key)
        if milliseconds is not None and milliseconds >= 0:
            return milliseconds / 1_000
    return max(at - asked_at, 0.0) if at is not None and asked_at is not None else None


def _diff(beside: Any) -> str:
    """Claude Code's `structuredPatch` as a unified diff without file names."""
    lines: list[str] = []
    for hunk in objects_at(beside, "structuredPatch"):
        spans = [count_at(hunk, key) or 0 for key in ("oldStart", "oldLines", "newStart", "newLines")]
        lines.append("@@ -{},{} +{},{} @@".format(*spans))
        lines.extend(content_text(line) for line in list_at(hunk, "lines") if isinstance(line, str))
    return "\n".join(lines)


def _take_usage(turn: Turn, record: Record) -> None:
    """Usage once a message id: every record of it repeats the numbers, the last one has them whole."""
    usage = object_at(record, "message", "usage")
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [count for part in parts if (count := count_at(usage, part)) is not None]
    if counts:
        turn.prompt_tokens = max(sum(counts), turn.prompt_tokens or 0)
    completion = count_at(usage, "output_tokens")
    if completion is not None:
        turn.completion_tokens = max(completion, turn.completion_tokens or 0)
    cost = number_at(record, "costUSD")
    if cost is not None and cost >= 0:
        turn.cost = cost


def _at(record: Record) -> float | None:
    return time_at(record, "timestamp")
