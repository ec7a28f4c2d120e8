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
from tui_agent.formats.importers.claude_tree import Tree, is_message
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.step_reader import Format, StepReader
from tui_agent.formats.importers.transcript import (
    Call,
    Faulted,
    ImportReport,
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
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tui_agent.formats.importers.reading import Record, Recording

_DENIALS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
)
_ABANDONED = "message of an abandoned branch"
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


class ClaudeCode(Format):
    """The main line of the tree, and a lane for each sub-agent, whose records may be in a file of its own."""

    name = "Claude Code"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._main = _Conversation(report, self.transcript)
        self._tree = Tree()
        self._agents: dict[str, _Conversation] = {}
        """By their ids, or the uuids of their first records."""
        self._agent_of: dict[str, str] = {}
        """By the uuids of their records."""
        self._started: dict[str, str] = {}
        """Calls that started sub-agents, by an id or a prompt."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Records that carry a `type`, a `sessionId` and a message of Anthropic's form beside `parentUuid`."""
        return any("parentUuid" in record and is_message(record) for record in recording.records[:2_000])

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        return recording.records

    @classmethod
    def beside(cls, path: Path) -> Iterable[Path]:
        return sorted(path.with_suffix("").glob("subagents/**/*.jsonl"))

    def take(self, record: Record) -> None:
        """Read one line."""
        if is_message(record) or _kind(record) in {"system api_error", "system compact_boundary"}:
            self._message(record)
        elif title := _title_of(record):
            self.transcript.title = title
        else:
            self._tree.link(record)
            if agent := text_at(record, "data", "agentId"):
                self._started[agent] = text_at(record, "parentToolUseID")
            self.leave_out(_kind(record))

    def _message(self, record: Record) -> None:
        if record.get("isSidechain") is True:
            self._of_agent(record).take(record)
        elif self._tree.add(record):
            self._main.take(record)
        else:
            self._begin_again()

    def _begin_again(self) -> None:
        """The operator went back in the conversation: what came after that is left out."""
        line = self._tree.main_line()
        left = len(self._tree.messages) - len(line) - self.report.skipped[_ABANDONED]
        self.report.skip(_ABANDONED, left)
        self.report.understood -= left
        self.forget(0)
        self._main = _Conversation(ImportReport("", ""), self.transcript)
        for record in line:
            self._main.take(record)
        self._main.report = self.report

    def _of_agent(self, record: Record) -> _Conversation:
        uuid, parent = text_at(record, "uuid"), text_at(record, "parentUuid")
        root = text_at(record, "agentId") or self._agent_of.get(parent, "")
        if not root:
            begins = record.get("type") == "user" and not _results(record)
            root = uuid if begins or not self._agents else next(reversed(self._agents))
        self._agent_of[uuid] = root
        if root not in self._agents:
            prompt = content_text(value_at(record, "message", "content"))
            transcript = Transcript(title=f"subagent: {prompt.strip()[:60]}", subagent=True, lane=root)
            transcript.operator_present = False
            self._agents[root] = _Conversation(self.report, transcript)
            self._started.setdefault(root, prompt)
        return self._agents[root]

    @property
    def lanes(self) -> list[Transcript]:
        agents = [agent.transcript for agent in self._agents.values()]
        alone = not self._tree.messages
        for agent in agents[:1]:
            agent.subagent = not alone
        if agents and alone:
            return agents
        for agent in agents:
            known = self._started.get(agent.lane, "")
            agent.lane = self._main.prompts.get(known) or (known if known in self._main.calls else agent.lane)
        return [self.transcript, *agents]

    def around(self, recording: Recording) -> None:
        """What is to be said of the sub-agents."""
        runs = len(self._agents)
        if runs and not self._tree.messages:
            self.report.remarks = ["The file is a subagent's run."]
        elif runs:
            count = counted(len(self._agent_of), "message")
            self.report.remarks = [f"Subagents kept apart: {counted(runs, 'run')} with {count}."]


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


def _results(record: Record) -> list[Record]:
    blocks = objects_at(record, "message", "content")
    return [block for block in blocks if block.get("type") == "tool_result"]


# --- records into steps -----------------------------------------------------


class _Conversation(StepReader):
    """Puts records of one conversation together, in file order."""

    def __init__(self, report: ImportReport, transcript: Transcript) -> None:
        super().__init__(report, transcript)
        self.turns: dict[str, Turn] = {}
        """Replies by message id: their records may be parted by results of parallel calls."""
        self.prompts: dict[str, str] = {}
        """Calls that start sub-agents, by the prompts that they give them."""

    def take(self, record: Record) -> None:
        """Read one message."""
        transcript = self.transcript
        transcript.id = transcript.id or text_at(record, "sessionId")
        transcript.workspace = transcript.workspace or text_at(record, "cwd")
        if record.get("type") == "system":
            self._system(record)
        elif record.get("isApiErrorMessage") is True:
            self.add(Faulted(classified(content_text(value_at(record, "message", "content"))), _at(record)))
        elif record.get("type") == "assistant":
            self._reply(record)
        else:
            self._user(record)

    def _unused(self, kind: str) -> None:
        self.report.understood -= 1
        self.report.skip(kind)

    def leave_out(self, kind: str) -> None:
        """A part of a record, which is counted as a whole."""
        self.report.skip(kind)

    def _system(self, record: Record) -> None:
        if record.get("subtype") == "compact_boundary":
            before = count_at(record, "compactMetadata", "preTokens")
            self.compacted(_at(record), size=f" ({before:,} tokens before)" if before else "")
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
        if turn is not self.last:
            self.touch(turn)

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
                    if prompt := text_at(call.input, "prompt"):
                        self.prompts[prompt] = call.id
            case other:
                self.report.skip(f"assistant block {other if isinstance(other, str) else '?'}")

    def _user(self, record: Record) -> None:
        if results := _results(record):
            for block in results:
                self._result(record, block)
            return
        text = content_text(value_at(record, "message", "content"))
        if record.get("isCompactSummary") is True:
            self._unused("user compact summary")
        elif text.startswith(_INTERRUPT):
            self.interrupted(_at(record))
        elif text.startswith(_UNSHOWN):
            self._unused("user output of a local command")
        elif record.get("isMeta") is True:
            self._expansion(text)
        elif text.strip():
            self.said(text, _at(record))
        else:
            self._unused("user message without text")

    def _expansion(self, text: str) -> None:
        """A command's expansion follows the operator's message: it is part of the task."""
        last = self.last
        if isinstance(last, Said) and text.strip():
            self.forget(len(self.transcript.steps) - 1)
            self.said(f"{last.text}\n\n{text}", last.at)
        else:
            self._unused("user text added by Claude Code")

    def _result(self, record: Record, block: Record) -> None:
        if (waiting := self.waiting(text_at(block, "tool_use_id"))) is not None:
            turn, call = waiting
            self.ended(turn, call, _result(call, block, record, turn.at))


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
