"""Claude Code sessions: one record a line, a tree by `parentUuid`, one reply of the model split over several lines.

What the operator left by going back is counted and left out; subagents (`isSidechain`) are kept apart, and what their
files repeat of the conversation counts once. A failure is what Claude Code marks as one: `is_error` on a result,
`<tool_use_error>` around what never ran; fixed sentences mark the operator's refusals and calls that were dropped
beside a failed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.block_results import result_of_block
from tui_agent.formats.importers.claude_tree import Tree, is_message
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import changed_files, exit_message, says_timed_out
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Said, Transcript, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    joined,
    list_at,
    number_at,
    object_at,
    objects_at,
    text_at,
    time_at,
    value_at,
)
from tui_agent.quantities import counted

_DENIALS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
)
_ABANDONED = "message of an abandoned branch"
_COPY = "copy of a message"
SUB_AGENTS = "subagents"
"""The folder of their files, in the folder that is named as the session."""
_COPIES = re.compile(r"agent-a(?:compact|side_question|prompt_suggestion|session_memory)-")
"""Files of helpers that begin with a copy of the whole conversation."""
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
_SAID_ELSEWHERE = frozenset(
    {
        *("progress", "attachment", "queue-operation", "system", "summary", "last-prompt", "result"),
        *("file-history-snapshot", "content-replacement", "custom-title", "ai-title", "tag"),
    }
)
"""Records that say of a session what its messages do not need."""
_STATUS = {
    "rate_limit": 429,
    "overloaded": 529,
    "authentication_failed": 401,
    "billing_error": 402,
    "invalid_request": 400,
    "model_not_found": 404,
    "server_error": 500,
}
"""By the word with which a record names a failed call of the model."""
_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
_EXIT_CODE = re.compile(r"^(?:Error: )?Exit code (\d+)")


class ClaudeCode(Format):
    """The main line of the tree, and a lane for each sub-agent, whose records may be in a file of its own."""

    name = "Claude Code"
    in_parts = True

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._tree = Tree()
        self._turns: dict[str, Turn] = {}
        """Replies by message id: their records may be parted by results of parallel calls."""
        self._prompts: dict[str, str] = {}
        """Calls that start sub-agents, by the prompts that they give them."""
        self._seen = {""}
        """Records of this sub-agent."""
        self._agent_of: dict[str, str] = {}
        """By the uuids of their records."""
        self._started: dict[str, str] = {}
        """Calls that started sub-agents, by an id or a prompt."""

    @classmethod
    def knows(cls, record: Record) -> bool:
        """Records that carry a `type`, a `sessionId` and a message of Anthropic's form beside `parentUuid`."""
        return "parentUuid" in record and is_message(record)

    @classmethod
    def beside(cls, path: Path) -> Iterable[Path]:
        found = untrusted_files.found(path.with_suffix(""), f"{SUB_AGENTS}/**/*.jsonl")
        return sorted(one for one in found if not _COPIES.match(one.name))

    def take(self, record: Record) -> None:
        if is_message(record) or _kind(record) in {"system api_error", "system compact_boundary"}:
            self._message(record)
        elif text_at(record, "attachment", "type") == "queued_command":
            self._queued(record)
        elif title := text_at(record, _TITLES.get(text_at(record, "type"), "")):
            self.transcript.title = title
        else:
            self._tree.link(record)
            if agent := text_at(record, "data", "agentId"):
                self._started[agent] = text_at(record, "parentToolUseID")
            known = text_at(record, "type") in _SAID_ELSEWHERE
            self.leave_out(_kind(record)) if known else self.not_known(_kind(record), record)

    def _message(self, record: Record) -> None:
        if record.get("isSidechain") is True:
            self._of_agent(record)._read_of_agent(record, self)
            return
        match self._tree.add(record):
            case True:
                self._read(record)
            case False:
                self._begin_again()
            case None:
                self.leave_out(_COPY if record not in self._tree.messages[-1:] else _ABANDONED)

    def _queued(self, record: Record) -> None:
        """Words that the operator typed while a call ran, and that the model read with its result."""
        prompt = content_text(value_at(record, "attachment", "prompt"))
        told = isinstance(self.last, Said) and self.last.text.strip() == prompt.strip()
        if prompt.strip() and not told and text_at(record, "attachment", "commandMode") in {"", "prompt"}:
            self._message({**record, "type": "user", "message": {"role": "user", "content": prompt}})
        else:
            self._tree.link(record)
            self.leave_out(_kind(record))

    def _read_of_agent(self, record: Record, main: ClaudeCode) -> None:
        """A record of this sub-agent, but for what the conversation of `main` has already."""
        uuid, results = text_at(record, "uuid"), _results(record)
        reply, key = record.get("type") == "assistant", text_at(record, "message", "id")
        others = [one for one in (main, *main.agents.values()) if one is not self]
        ended = bool(results) and not any(text_at(block, "tool_use_id") in self.calls for block in results)
        known = (
            any(text_at(block, "tool_use_id") in one.calls for one in others for block in results)
            if ended
            else any(key in one._turns for one in others)
            if reply and key and key not in self._turns
            else uuid in self._seen
        )
        if known:
            main.leave_out(_COPY)
        else:
            self._seen.add(uuid)
            self._read(record)

    def _begin_again(self) -> None:
        """The operator went back in the conversation: what came after that is left out."""
        line = self._tree.main_line()
        left = len(self._tree.messages) - len(line) - self.report.skipped[_ABANDONED]
        self.report.skip(_ABANDONED, left)
        self.report.understood -= left
        self.forget(0)
        for known in (self.calls, self._turns, self._prompts):
            known.clear()
        report, self.report = self.report, ImportReport("", "")  # they were counted
        for record in line:
            self._read(record)
        self.report = report

    def _of_agent(self, record: Record) -> ClaudeCode:
        uuid, parent = text_at(record, "uuid"), text_at(record, "parentUuid")
        root = text_at(record, "agentId") or self._agent_of.get(parent, "")
        if not root:
            begins = record.get("type") == "user" and not _results(record)
            root = uuid if begins or not self.agents else next(reversed(self.agents))
        self._agent_of[uuid] = root
        prompt = content_text(value_at(record, "message", "content"))
        if root not in self.agents:
            self._started.setdefault(root, prompt)
        return self.agent(root, f"subagent: {prompt.strip()[:60]}")

    @property
    def lanes(self) -> list[Transcript]:
        agents = [agent.transcript for agent in self.agents.values()]
        alone = not self._tree.messages
        for agent in agents[:1]:
            agent.subagent = not alone
        if agents and alone:
            return agents
        for agent in agents:
            known = self._started.get(agent.lane, "")
            agent.lane = self._prompts.get(known) or (known if known in self.calls else agent.lane)
        return [self.transcript, *agents]

    def around(self, recording: Recording) -> None:
        """Remarks about the sub-agents."""
        runs = len(self.agents)
        if runs and not self._tree.messages:
            self.report.remarks = ["The file is a subagent's run."]
        elif runs:
            count = counted(len(self._agent_of), "message")
            self.report.remarks = [f"Subagents kept apart: {counted(runs, 'run')} with {count}."]

    # --- records of one conversation, in file order -------------------------------------------------------

    def _read(self, record: Record) -> None:
        transcript = self.transcript
        transcript.id = transcript.id or text_at(record, "sessionId")
        transcript.workspace = transcript.workspace or text_at(record, "cwd")
        if record.get("type") == "system":
            self._system(record)
        elif record.get("isApiErrorMessage") is True:
            self._faulted(record)
        elif record.get("type") == "assistant":
            self._reply(record)
        else:
            self._user(record)

    def _faulted(self, record: Record) -> None:
        """A failed call of the model, in the words that the operator read."""
        at, status = _at(record), count_at(record, "apiErrorStatus") or _STATUS.get(text_at(record, "error"))
        said = None if at is None else datetime.fromtimestamp(at).astimezone()
        words = content_text(value_at(record, "message", "content")) or text_at(record, "error")
        self.add(Faulted(classified(words, status, now=said), at))

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
        if key not in self._turns:
            self._turns[key] = self.turn(_at(record), model=text_at(message, "model"))
        turn = self._turns[key]
        turn.text = joined(turn.text, text_at(message, "content"))
        origin = text_at(record, "forkedFrom", "sessionId")
        for block in objects_at(message, "content"):
            self._block(turn, block, _at(record))
            if origin and (call := text_at(block, "id")):
                self.transcript.copied[call] = origin
        turn.finish_reason = text_at(message, "stop_reason") or turn.finish_reason
        _take_usage(turn, record)
        if turn is not self.last:
            self.touch(turn)

    def _block(self, turn: Turn, block: Record, at: float | None) -> None:
        match block.get("type"):
            case "text":
                turn.text = joined(turn.text, text_at(block, "text"))
            case "thinking":
                turn.reasoning = joined(turn.reasoning, text_at(block, "thinking"))
            case "redacted_thinking":
                turn.reasoning = joined(turn.reasoning, "[redacted]")
            case "tool_use" | "server_tool_use":
                key, given = text_at(block, "id"), block.get("input")
                if not key or key not in self.calls:
                    self.call(turn, key, text_at(block, "name"), given)
                    if prompt := text_at(given, "prompt"):
                        self._prompts[prompt] = key
            case str(kind) if kind.endswith("_tool_result"):  # of a call that the server ran
                self.end(text_at(block, "tool_use_id"), result_of_block, block, at)
            case other:
                self.report.skip(f"assistant block {other if isinstance(other, str) else '?'}")

    def _user(self, record: Record) -> None:
        if results := _results(record):
            for block in results:
                self.end(text_at(block, "tool_use_id"), self._result, record, block)
            return
        text = content_text(value_at(record, "message", "content"))
        if record.get("isCompactSummary") is True:
            self.leave_out("user compact summary")
        elif text.startswith(_INTERRUPT):
            self.interrupted(_at(record))
        elif text.startswith(_UNSHOWN):
            self.leave_out("user output of a local command")
        elif record.get("isMeta") is True:
            self._expansion(text)
        elif text.strip():
            self.said(text, _at(record))
        else:
            self.leave_out("user message without text")

    def _expansion(self, text: str) -> None:
        """A command's expansion follows the operator's message: it is part of the task."""
        last = self.last
        if isinstance(last, Said) and text.strip():
            self.forget(len(self.transcript.steps) - 1)
            self.said(f"{last.text}\n\n{text}", last.at)
        else:
            self.leave_out("user text added by Claude Code")

    def _result(self, call: Call, record: Record, block: Record) -> Result:
        text, at, beside = content_text(block.get("content")), _at(record), record.get("toolUseResult")
        failed = block.get("is_error") is True
        if failed and beside == _REJECTED:
            return Result("denied", text, at, _denial_reason(text))
        result = result_of_text(call, text, failed=failed)
        if result.status == "ok":
            seconds = _duration(beside, self.calls[call.id][0].at, at)
            result = replace(result, diff=_diff(beside), duration=seconds)
        return replace(result, at=at)


def _kind(record: Record) -> str:
    kind = text_at(record, "type") or "record without a type"
    subtype = text_at(record, "subtype")
    return f"{kind} {subtype}" if subtype else kind


def _results(record: Record) -> list[Record]:
    blocks = objects_at(record, "message", "content")
    return [block for block in blocks if block.get("type") == "tool_result"]


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
    """True if the text alone says that a call did not do its work."""
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
