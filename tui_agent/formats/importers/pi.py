"""Sessions of pi, and of agents that are made of it (OpenClaw, oh-my-pi): a line each, a tree by `parentId`.

The same messages come from `pi --mode json`. Each result says whether it failed (`isError`); the operator goes back by
a record behind an earlier one. A session that was forked begins with a copy of the one before.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import exit_message, judged
from tui_agent.formats.importers.step_reader import Branching, used
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result
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
)

_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "developer"})
_BESIDE = frozenset(
    {
        *("thinking_level_change", "model_change", "label", "custom", "custom_message", "title_change"),
        *(
            "message_start",
            "message_update",
            "turn_start",
            "turn_end",
            "agent_start",
            "agent_end",
            "session_init",
        ),
        *(
            "tool_execution_start",
            "tool_execution_update",
            "tool_execution_end",
            "mode_change",
            "queue_update",
        ),
    }
)
"""Records beside the messages: settings, and in a stream what comes whole with its end."""
_EXITED = re.compile(r"\n?\n?Command exited with code (\d{1,9})\s*\Z")
_ABORTED = re.compile(r"(?:\A|\n)Command aborted\s*\Z|\AOperation aborted\b")


class Pi(Branching):
    """One conversation."""

    name = "pi"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._forked: tuple[str, float] | None = None
        """The session that this one was forked from, and when."""

    @classmethod
    def knows(cls, record: Record) -> bool:
        """A message in an entry, or at its end in a stream."""
        message = object_at(record, "message")
        return text_at(record, "type") in {"message", "message_end"} and message.get("role") in _ROLES

    def take(self, record: Record) -> None:
        at, parent = time_at(record, "timestamp"), record.get("parentId")
        if isinstance(parent, str) or (parent is None and "parentId" in record):
            self.follow(parent or "")
        match record.get("type"):
            case "session":
                self._head(record, at)
            case "message" | "message_end":
                self._message(object_at(record, "message"), at)
            case "compaction":
                before = count_at(record, "tokensBefore")
                self.compacted(at, size=f" ({before:,} tokens before)" if before else "")
            case "session_info" | "title":
                self.about(record, title="name" if "name" in record else "title")
            case "branch_summary":
                self.leave_out("summary of an abandoned branch")
            case str(kind) if kind in _BESIDE:
                self.leave_out(kind)
            case kind:
                self.not_known(kind, record)
        if key := text_at(record, "id"):
            self.stand(key)

    def _head(self, record: Record, at: float | None) -> None:
        self.about(record, id="id", workspace="cwd", title="title")
        if (parent := text_at(record, "parentSession")) and at is not None:
            self._forked = PurePath(parent).stem.rpartition("_")[2], at

    def _message(self, message: Record, written: float | None) -> None:
        at = time_at(message, "timestamp") or written
        match message.get("role"):
            case "user":
                self.said(content_text(message.get("content")), at)
            case "assistant":
                self._reply(message, at)
            case "toolResult":
                self.end(text_at(message, "toolCallId"), _result, message, at)
            case "bashExecution":
                self.leave_out("command of the operator")
            case "custom" | "developer" | "branchSummary" | "compactionSummary":
                self.leave_out("text added by the agent")
            case role:
                self.not_known(role, message)

    def _reply(self, message: Record, at: float | None) -> None:
        if error := text_at(message, "errorMessage"):
            if message.get("stopReason") == "aborted":
                self.interrupted(at)
            else:
                self.add(Faulted(classified(error), at))
        if not list_at(message, "content"):
            return
        turn = self.turn(at, model=text_at(message, "model"))
        used(turn, object_at(message, "usage"), "input", "output")
        cost = number_at(message, "usage", "cost", "total")
        turn.cost = cost if cost is not None and cost > 0 else None
        for block in objects_at(message, "content"):
            turn.text = joined(turn.text, text_at(block, "text"))
            turn.reasoning = joined(turn.reasoning, text_at(block, "thinking"))
            if block.get("type") == "toolCall":
                key = text_at(block, "id") or f"call-{len(self.calls)}"
                self.call(turn, key, text_at(block, "name"), object_at(block, "arguments"))
                if self._forked and at is not None and at < self._forked[1]:
                    self.transcript.copied[key] = self._forked[0]


def _result(call: Call, message: Record, at: float | None) -> Result:
    text = content_text(message.get("content"))
    if message.get("isError") is False:
        return judged(call, text, at, None)
    if message.get("isError") is not True:
        return Result("unknown", text, at)
    if _ABORTED.search(text):
        return Result("cancelled", text, at, "interrupted by the operator")
    if code := _EXITED.search(text):
        return judged(call, text, at, exit_message(int(code[1]), text[: code.start()]))
    return judged(call, text, at, text or "failed")
