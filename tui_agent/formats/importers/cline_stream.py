"""What `cline --json` prints: events of the agent's loop, with each call and its end. The task is not among them."""

from __future__ import annotations

import re
from dataclasses import replace

from tui_agent.formats.importers.block_results import result_of_block
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, Faulted, Remarked, Result, Turn
from tui_agent.formats.importers.values import content_text, number_at, object_at, text_at, time_at

_KINDS = frozenset(
    {
        *("iteration_start", "iteration_end", "content_start", "content_update", "content_end"),
        *("usage", "notice", "error", "done"),
    }
)
_OF_CALLS = re.compile(r"\d+ tool call\(s\) failed")
"""An error that says once more which calls of a reply have failed."""


class ClineStream(Format):
    """One conversation, and a lane for each agent that it started."""

    name = "Cline stream"

    @classmethod
    def knows(cls, record: Record) -> bool:
        """An event of the loop, or of its hooks."""
        return object_at(record, "event").get("type") in _KINDS or "hookEventName" in record

    def take(self, record: Record) -> None:
        event = object_at(record, "event")
        match record.get("type"):
            case "agent_event":
                agent = text_at(event, "agentId") if event.get("parentAgentId") else ""
                reader = self.agent(agent, f"subagent: {agent}") if agent else self
                reader._event(event, time_at(record, "ts"))
            case "hook_event" | "run_result":
                if not record.get("parentAgentId"):
                    self.about(record, id="taskId", model="model.id")
                self.leave_out(record.get("type"))
            case kind:
                self.not_known(kind, record)

    def _event(self, event: Record, at: float | None) -> None:
        match event.get("type"):
            case "iteration_start":
                self.begins = True
            case "content_start" | "content_end" if event.get("contentType") == "tool":
                self._call(event, at)
            case "content_start" | "content_end":
                self._text(self.open_turn(at), event)
            case "usage":
                turn = self.open_turn(at)
                used(turn, event, "inputTokens", "outputTokens")
                turn.cost = number_at(event, "cost") or None
            case "notice" if "compaction" in text_at(event, "reason"):
                self.compacted(at)
            case "notice":
                self.add(Remarked(text_at(event, "message"), at, "warning"))
            case "error":
                self._broke(text_at(event, "error", "message") or content_text(event.get("error")), at)
            case "done":
                self._done(text_at(event, "reason"), at)
            case "content_update" | "iteration_end":
                self.leave_out(event.get("type"))
            case kind:
                self.not_known(kind, event)

    def _text(self, turn: Turn, event: Record) -> None:
        """Pieces come with all that came before them, and the whole at the end."""
        if event.get("contentType") == "reasoning":
            turn.reasoning = text_at(event, "reasoning") or turn.reasoning
        else:
            turn.text = text_at(event, "accumulated") or text_at(event, "text") or turn.text

    def _call(self, event: Record, at: float | None) -> None:
        key = text_at(event, "toolCallId")
        if key not in self.calls:
            self.call(self.open_turn(at), key, text_at(event, "toolName"), event.get("input"))
        if event.get("type") == "content_end":
            self.end(key, _result, event, at)

    def _broke(self, words: str, at: float | None) -> None:
        if _OF_CALLS.match(words):
            self.leave_out("calls that failed, said once more")
        else:
            self.add(Faulted(classified(words), at))

    def _done(self, reason: str, at: float | None) -> None:
        if reason == "aborted":
            self.interrupted(at)
        elif reason != "completed":
            self.transcript.ending = reason.replace("_", " ")


def _result(call: Call, event: Record, at: float | None) -> Result:
    error, output = text_at(event, "error"), event.get("output")
    told = {"content": error or output, "is_error": bool(error)}
    seconds = (number_at(event, "durationMs") or 0.0) / 1_000
    return replace(result_of_block(call, told, at), duration=seconds)
