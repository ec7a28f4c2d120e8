"""What `claude -p --output-format stream-json` prints, and Qwen Code's output of the same form.

The records are those of Claude Code's sessions under other names: `session_id`, and `parent_tool_use_id` on what a
sub-agent said. They stand in one line, and the task is not among them. Qwen Code before 0.24 marks a command that
failed as no error, and leaves out most exit codes: how such a command ended is not known.
"""

from __future__ import annotations

import re

from tui_agent.formats.importers.claude_code import ClaudeCode
from tui_agent.formats.importers.claude_tree import is_message
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.gemini_cli import result_of_output
from tui_agent.formats.importers.qwen_code import result_of_error
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import judged
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result
from tui_agent.formats.importers.values import content_text, count_at, number_at, text_at, time_at

_BESIDE = frozenset(
    {
        *("system", "result", "stream_event", "tool_progress", "tool_use_summary", "rate_limit_event"),
        *("auth_status", "prompt_suggestion", "control_request", "control_response", "keep_alive"),
    }
)
"""Records beside the messages: pieces of what comes whole, and the state of the program."""


class ClaudeStream(ClaudeCode):
    """The conversation, and a lane for each sub-agent."""

    name = "Claude Code stream"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._before: str | None = None
        """The uuid of the newest message."""
        self._paid = 0.0

    @classmethod
    def knows(cls, record: Record) -> bool:
        """The head of a stream, or a message that names its session and whose sub-agent it is of."""
        begins = record.get("type") == "system" and record.get("subtype") == "init"
        return "session_id" in record and (begins or ("parent_tool_use_id" in record and is_message(record)))

    def take(self, record: Record) -> None:
        if is_message(record):
            self.transcript.ending = ""
            super().take(self._as_of_a_session(record))
        elif record.get("subtype") == "init":
            self.about(record, id="session_id", workspace="cwd", model="model")
        elif record.get("subtype") == "api_retry":
            words = content_text(record.get("error")) or "API error"
            delay = number_at(record, "retry_delay_ms") or 0.0
            fault = classified(words, count_at(record, "error_status"))
            self.add(Faulted(fault, time_at(record, "timestamp"), max(delay, 0.0) / 1_000))
        elif record.get("subtype") == "compact_boundary":
            self.compacted(time_at(record, "timestamp"))
        elif text_at(record, "type") in _BESIDE:
            self._ended(record)
            self.leave_out(record.get("type"))
        else:
            self.not_known(record.get("type"), record)

    def _as_of_a_session(self, record: Record) -> Record:
        agent, session = text_at(record, "parent_tool_use_id"), text_at(record, "session_id")
        made = {**record, "sessionId": session, "toolUseResult": record.get("tool_use_result")}
        made["uuid"] = text_at(record, "uuid") or f"record {self.report.records}"
        if agent:
            return {**made, "isSidechain": True, "agentId": agent, "parentUuid": None}
        made["parentUuid"], self._before = self._before, made["uuid"]
        return {**made, "isApiErrorMessage": bool(text_at(record, "error"))}

    def _ended(self, record: Record) -> None:
        """What a run has cost so far stands in its last record, and how it ended if it did not end well."""
        if record.get("is_error") is True and record.get("subtype") != "success":
            self.transcript.ending = text_at(record, "subtype").replace("_", " ")
        paid = number_at(record, "total_cost_usd")
        if paid is not None and paid > self._paid and self._turns:
            turn = next(reversed(self._turns.values()))
            turn.cost, self._paid = paid - self._paid, paid
            self.touch(turn)


class QwenStream(ClaudeStream):
    """Qwen Code's conversation."""

    name = "Qwen Code stream"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._marks_commands = False
        """Commands that failed are marked as errors."""

    @classmethod
    def knows(cls, record: Record) -> bool:
        """The head of a stream that names Qwen Code."""
        return "qwen_code_version" in record and super().knows(record)

    def take(self, record: Record) -> None:
        version = [int(part) for part in re.findall(r"\d+", text_at(record, "qwen_code_version")[:40])]
        self._marks_commands |= version >= [0, 24]
        super().take(record)

    def _result(self, call: Call, record: Record, block: Record) -> Result:
        text = content_text(block.get("content"))
        failed = block.get("is_error")
        if failed is True:
            return result_of_error(call, text)
        if failed is not False:
            return Result("unknown", text)
        return judged(call, text, None, None) if self._marks_commands else result_of_output(call, text)
