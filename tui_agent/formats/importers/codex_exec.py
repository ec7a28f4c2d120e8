"""What `codex exec --json` prints: items that are started and completed, without times and without the task.

Calls that Codex refused before they ran (of a tool that it does not have) are in no item.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import exited, judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Remarked, Result, Turn
from tui_agent.formats.importers.values import code_at, content_text, count_at, object_at, objects_at, text_at

_MOMENTS = frozenset({"item.started", "item.updated", "item.completed"})
_GIVEN = ("changes", "query", "prompt")
_DROPPED = re.compile(r"\bdropped (\d{1,6}) events\b")
_CALLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})


class CodexExec(Format):
    """One conversation."""

    name = "Codex CLI stream"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._spent = [0, 0]

    @classmethod
    def knows(cls, record: Record) -> bool:
        """The start of a thread, or an item."""
        return (record.get("type") == "thread.started" and "thread_id" in record) or (
            text_at(record, "type") in _MOMENTS and "type" in _item(record)
        )

    def take(self, record: Record) -> None:
        match record.get("type"):
            case "thread.started":
                self.about(record, id="thread_id")
                self.calls.clear()  # a thread that is resumed counts its items anew
            case "turn.started":
                self.begins = True
            case "turn.completed":
                self._used(object_at(record, "usage"))
            case "turn.failed" | "error":
                words = text_at(record, "error", "message") or text_at(record, "message")
                self.add(Faulted(classified(words)))
            case str(kind) if kind in _MOMENTS:
                self._item(_item(record), over=kind == "item.completed")
            case kind:
                self.not_known(kind, record)

    def _used(self, usage: Record) -> None:
        """The tokens of a turn: what is said is the sum of the whole thread."""
        sums = [count_at(usage, name) or 0 for name in ("input_tokens", "output_tokens")]
        if isinstance(turn := self.last, Turn):
            spent = [max(now - before, 0) for now, before in zip(sums, self._spent, strict=True)]
            turn.prompt_tokens, turn.completion_tokens = spent
            self.touch(turn)
        self._spent = sums

    def _item(self, item: Record, *, over: bool) -> None:
        match item.get("type"):
            case str(kind) if kind in _CALLS:
                self._call(item, over=over)
            case "agent_message" | "assistant_message" if over:
                self.open_turn(None).say(text_at(item, "text"))
            case "reasoning" if over:
                self.open_turn(None).say(reasoning=text_at(item, "text"))
            case "error":
                self._warned(text_at(item, "message"))
            case "todo_list" | "agent_message" | "assistant_message" | "reasoning":
                self.leave_out(item.get("type"))
            case kind:
                self.not_known(kind, item)

    def _warned(self, message: str) -> None:
        if dropped := _DROPPED.search(message):
            self.report.dropped += int(dropped[1])
        self.add(Remarked(message, None, "warning"))

    def _call(self, item: Record, *, over: bool) -> None:
        key = text_at(item, "id")
        if key not in self.calls:
            self.call(self.open_turn(None), key, _name(item), _given(item))
        if over:
            self.end(key, _result, item)


def _item(record: Record) -> Record:
    """The item of a record, whose kind stood under another name at first (0.40)."""
    item = object_at(record, "item")
    return {"type": item["item_type"], **item} if "item_type" in item else item


def _name(item: Record) -> str:
    match item.get("type"):
        case "command_execution":
            return "exec_command"
        case "file_change":
            return "apply_patch"
        case "mcp_tool_call":
            return f"{text_at(item, 'server')}__{text_at(item, 'tool')}"
    return text_at(item, "tool") or "web_search"


def _given(item: Record) -> Any:
    if "command" in item:
        return {"cmd": _script(text_at(item, "command"))}
    return item.get("arguments") or {name: item[name] for name in _GIVEN if name in item}


def _script(command: str) -> str:
    """What the model wrote, of a command that its shell was given."""
    with suppress(ValueError):
        match shlex.split(command):
            case [_, "-c" | "-lc", script]:
                return script
    return command


def _result(call: Call, item: Record) -> Result:
    error, status = content_text(item.get("error")), item.get("status")
    text = (
        text_at(item, "aggregated_output") or content_text(object_at(item, "result").get("content")) or error
    )
    code = code_at(item, "exit_code")
    if status == "declined":
        return Result("denied", text, None, text or "denied by the operator")
    if code is not None:
        return exited(call, text, None, code)
    if error or status == "failed":
        return judged(call, text, None, text or "failed")
    left_behind = item.get("type") == "command_execution"  # when the turn ended
    if left_behind or (status != "completed" and item.get("type") != "web_search"):
        return Result("unknown", text)
    paths = tuple(text_at(change, "path") for change in objects_at(item, "changes"))
    result = judged(call, text, None, None)
    return replace(result, changed=paths) if paths else result
