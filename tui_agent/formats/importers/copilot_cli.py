"""Copilot CLI sessions: events of one session, a line each.

A command that fails is a success to it; its exit code stands in `shellExecution`. Denied calls have the code `denied`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.openai_messages import judged
from tui_agent.formats.importers.step_reader import Format, StepReader
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Transcript, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    exit_message,
    json_text,
    object_at,
    objects_at,
    plain,
    text_at,
    time_at,
)

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording

_BEHIND = re.compile(r'\n<shellId: [^\n]* exit code \d+>.*|\n\nTool "\S+" \w+\. Additional .*', re.DOTALL)
"""What stands behind a command's output: how it ended, and what hooks say."""


class CopilotCLI(Format):
    """The session, and a lane for each sub-agent."""

    name = "Copilot CLI"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._main = _Conversation(report, self.transcript)
        self._agents: dict[str, _Conversation] = {}

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """The start of a session, as its producer writes it."""
        return any(
            record.get("type") == "session.start" and "copilotVersion" in object_at(record, "data")
            for record in recording.records[:20]
        )

    def take(self, record: Record) -> None:
        """Read one event."""
        agent = text_at(record, "agentId")
        if agent and agent not in self._agents:
            title = f"subagent: {text_at(record, 'data', 'agentDisplayName') or agent}"
            lane = text_at(record, "data", "toolCallId") or agent
            lane_of = Transcript(title=title, lane=lane, subagent=True, operator_present=False)
            self._agents[agent] = _Conversation(self.report, lane_of)
        (self._agents[agent] if agent else self._main).take(record)

    @property
    def lanes(self) -> list[Transcript]:
        return [self.transcript, *(agent.transcript for agent in self._agents.values())]


class _Conversation(StepReader):
    """Events of one agent."""

    def take(self, record: Record) -> None:
        """Read one event."""
        data, at = object_at(record, "data"), time_at(record, "timestamp")
        transcript = self.transcript
        match record.get("type"):
            case "session.start" | "session.resume":
                transcript.id = text_at(data, "sessionId") or transcript.id
                transcript.workspace = text_at(data, "context", "cwd") or transcript.workspace
                transcript.model = text_at(data, "selectedModel") or transcript.model
            case "session.title_changed":
                transcript.title = text_at(data, "title") or transcript.title
            case "system.message":
                transcript.system_prompt = transcript.system_prompt or content_text(data.get("content"))
            case "user.message":
                self.said(content_text(data.get("content")), at)
            case "assistant.message":
                self._reply(data, at)
            case "tool.execution_complete":
                self._ended(data, at)
            case "session.usage_record" | "assistant.usage":
                self._usage(object_at(data, "usage") or data)
            case "abort":
                self.interrupted(at)
            case "session.error":
                self.add(Faulted(classified(text_at(data, "message"), count_at(data, "statusCode")), at))
            case "session.compaction_complete":
                self.compacted(at)
            case kind:
                self.leave_out(kind if isinstance(kind, str) else "event without a type")

    def _reply(self, data: Record, at: float | None) -> None:
        turn = Turn(
            at,
            content_text(data.get("content")),
            text_at(data, "reasoningText"),
            model=text_at(data, "model"),
        )
        self.transcript.model = turn.model or self.transcript.model
        self.add(turn)
        for asked in objects_at(data, "toolRequests"):
            given = plain(object_at(asked, "arguments"))
            name = text_at(asked, "name") or "unnamed"
            self.call(turn, Call(text_at(asked, "toolCallId"), name, json_text(given), given))

    def _usage(self, usage: Record) -> None:
        """It comes before the reply, or after it."""
        if isinstance(turn := self.last, Turn) and turn.prompt_tokens is None:
            turn.prompt_tokens = count_at(usage, "inputTokens")
            turn.completion_tokens = count_at(usage, "outputTokens")

    def _ended(self, data: Record, at: float | None) -> None:
        if (waiting := self.waiting(text_at(data, "toolCallId"))) is not None:
            turn, call = waiting
            self.ended(turn, call, _result(call, data, at))


def _result(call: Call, data: Record, at: float | None) -> Result:
    error = text_at(data, "error", "message")
    if text_at(data, "error", "code") in {"denied", "rejected"}:
        return Result("denied", error, at, error)
    text = _BEHIND.sub("", text_at(data, "result", "content"))
    if data.get("success") is not True:
        return judged(call, error or text, at, error or text)
    code = count_at(data, "shellExecution", "exitCode")
    return judged(call, text, at, exit_message(code, text) if code else None)
