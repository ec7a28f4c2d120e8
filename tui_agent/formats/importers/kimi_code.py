"""Kimi Code's sessions: `wire.jsonl`, what happened in the loop of an agent and what went into its context.

Texts, calls and results come one by one as loop events, and once more as copies of whole messages, which are passed
over. The agents that the main one started have files of their own beside its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.kimi_results import result_of_output
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Said, Turn
from tui_agent.formats.importers.values import (
    content_text,
    number_at,
    object_at,
    text_at,
    time_at,
)

WIRE = "wire.jsonl"
MAIN = "main"
_CONTEXT = "context."


class KimiCode(Format):
    """The main agent, and a lane for each that it started."""

    name = "Kimi Code"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._agent = MAIN
        self._steps: dict[str, Turn] = {}
        """Replies by the uuids of their steps."""

    @classmethod
    def knows(cls, record: Record) -> bool:
        """What goes into an agent's context."""
        return text_at(record, "type").startswith(_CONTEXT) or (
            record.get("type") == "metadata" and "protocol_version" in record and "created_at" in record
        )

    @classmethod
    def beside(cls, path: Path) -> Iterable[Path]:
        if path.name != WIRE or path.parent.name != MAIN:
            return ()
        return sorted(untrusted_files.found(path.parent.parent, f"agent-*/{WIRE}"))

    def read_beside(self, path: Path, records: Sequence[Any], lines: Sequence[int]) -> None:
        """Read records of an agent that the main one started. Older versions do not name it in them."""
        self._agent = path.parent.name
        self.read(records, lines)
        self._agent = MAIN

    def around(self, recording: Recording) -> None:
        """The folder of the session is named by its id: no record holds it."""
        folder = recording.path.parent.parent
        if folder.name == "agents":
            self.transcript.id = folder.parent.name

    def take(self, record: Record) -> None:
        agent = text_at(record, "agentId") or self._agent
        (self if agent == MAIN else self.agent(agent, f"subagent: {agent}"))._read(record)

    def _read(self, record: Record) -> None:
        at = time_at(record, "time")
        match record.get("type"):
            case "context.append_message":
                self._message(object_at(record, "message"), at)
            case "context.append_loop_event":
                self._event(object_at(record, "event"), at)
            case "context.apply_compaction":
                self.compacted(at)
            case "context.undo":
                self._undo(int(number_at(record, "count") or 1))
            case "turn.cancel":
                self.interrupted(at)
            case "turn.ended" if text_at(record, "reason") in {"failed", "error"}:
                words = text_at(record, "error", "message") or content_text(record.get("error"))
                self.add(Faulted(classified(words), at))
            case "profile.bind" | "config.update":
                self.about(record, system_prompt="systemPrompt", model="modelAlias")
            case "agent.message.appended":
                self.leave_out("copy of a message")
            case kind if text_at(record, "type").startswith(_CONTEXT):
                self.not_known(kind, record)
            case kind:
                self.leave_out(kind, "record without a type")

    def _message(self, message: Record, at: float | None) -> None:
        origin = text_at(message, "origin", "kind") or text_at(message, "origin") or "user"
        if message.get("role") == "user" and origin == "user":
            self.said(content_text(message.get("content")), at)
        elif message.get("role") == "tool":
            told = {"output": message.get("content"), "isError": message.get("isError")}
            self.end(text_at(message, "toolCallId"), _result, told, at)
        else:
            self.leave_out("text added by Kimi Code")

    def _event(self, event: Record, at: float | None) -> None:
        match event.get("type"):
            case "step.begin":
                self._steps[text_at(event, "uuid")] = self.turn(at, model=self.transcript.model)
            case "content.part":
                part = object_at(event, "part")
                self._turn(event, at).say(text_at(part, "text"), text_at(part, "think"))
            case "tool.call":
                turn = self._turn(event, at)
                self.call(turn, text_at(event, "toolCallId"), text_at(event, "name"), event.get("args"))
            case "tool.result":
                self.end(text_at(event, "toolCallId"), _result, object_at(event, "result"), at)
            case "step.end":
                turn = self._steps.get(text_at(event, "uuid")) or self.open_turn(at)
                used(turn, object_at(event, "usage"), "inputOther", "output")
                self.touch(turn)
            case kind:
                self.not_known(kind, event)

    def _turn(self, event: Record, at: float | None) -> Turn:
        turn = self._steps.get(text_at(event, "stepUuid"))
        if turn is None:
            return self.open_turn(at)
        self.touch(turn)
        return turn

    def _undo(self, count: int) -> None:
        """The operator took back so many messages, and what followed them."""
        said = [place for place, step in enumerate(self.transcript.steps) if isinstance(step, Said)]
        self.forget(said[-count] if 0 < count <= len(said) else 0)


def _result(call: Call, told: Record, at: float | None) -> Result:
    """How a call has ended; the mark of a failure is left out if it is false."""
    seconds = (number_at(told, "durationMs") or 0.0) / 1_000
    result = result_of_output(call, content_text(told.get("output")), failed=told.get("isError") is True)
    return replace(result, at=at, duration=seconds)
