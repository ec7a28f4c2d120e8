"""Copilot CLI sessions: events of one session, a line each.

A command that fails is a success to it; its exit code stands in `shellExecution`. Denied calls have the code `denied`.
"""

from __future__ import annotations

import re

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import exited, judged
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, Faulted, Result, Turn
from tui_agent.formats.importers.values import (
    code_at,
    content_text,
    count_at,
    object_at,
    objects_at,
    text_at,
    time_at,
)

_BEHIND = re.compile(r'\n<shellId: [^\n]* exit code \d+>.*|\n\nTool "\S+" \w+\. Additional .*', re.DOTALL)
"""The lines behind a command's output: its end, and the words of hooks."""

_BESIDE = re.compile(
    r"(?:assistant\.(?!message$)|session|hook|subagent|permission|user_input|elicitation|external_tool|command|skill"
    r"|exit_plan_mode|mcp|sampling|pending_messages|capabilities|tools|extensions|model|telemetry)[._]"
    r"|(?:system\.notification|tool\.(?:execution_(?:start|progress|partial_result)|user_requested))\Z"
)
"""Events beside the conversation, and pieces of what comes whole."""


class CopilotCLI(Format):
    """The session, and a lane for each sub-agent."""

    name = "Copilot CLI"

    @classmethod
    def knows(cls, record: Record) -> bool:
        """The start of a session, as its producer writes it."""
        return record.get("type") == "session.start" and "copilotVersion" in object_at(record, "data")

    def take(self, record: Record) -> None:
        data = object_at(record, "data")
        if agent := text_at(record, "agentId"):
            title = f"subagent: {text_at(data, 'agentDisplayName') or agent}"
            self.agent(agent, title, text_at(data, "toolCallId"))._event(record, data)
        else:
            self._event(record, data)

    def _event(self, record: Record, data: Record) -> None:
        at = time_at(record, "timestamp")
        match record.get("type"):
            case "session.start" | "session.resume":
                self.about(data, id="sessionId", workspace="context.cwd", model="selectedModel")
            case "session.title_changed":
                self.about(data, title="title")
            case "system.message":
                self.transcript.system_prompt = self.transcript.system_prompt or content_text(
                    data.get("content")
                )
            case "user.message":
                self.said(content_text(data.get("content")), at)
            case "assistant.message":
                self._reply(data, at)
            case "tool.execution_complete":
                self.end(text_at(data, "toolCallId"), _result, data, at)
            case "session.usage_record" | "assistant.usage":  # before the reply, or after it
                if isinstance(turn := self.last, Turn) and turn.prompt_tokens is None:
                    used(turn, object_at(data, "usage") or data, "inputTokens", "outputTokens")
            case "abort":
                self.interrupted(at)
            case "session.error":
                self.add(Faulted(classified(text_at(data, "message"), count_at(data, "statusCode")), at))
            case "session.compaction_complete":
                self.compacted(at)
            case kind:
                known = _BESIDE.match(text_at(record, "type"))
                self.leave_out(kind) if known else self.not_known(kind, record)

    def _reply(self, data: Record, at: float | None) -> None:
        text, reasoning = content_text(data.get("content")), text_at(data, "reasoningText")
        turn = self.turn(at, text, reasoning, text_at(data, "model"))
        for asked in objects_at(data, "toolRequests"):
            given = object_at(asked, "arguments")
            self.call(turn, text_at(asked, "toolCallId"), text_at(asked, "name"), given)


def _result(call: Call, data: Record, at: float | None) -> Result:
    error = text_at(data, "error", "message")
    if text_at(data, "error", "code") in {"denied", "rejected"}:
        return Result("denied", error, at, error)
    text = _BEHIND.sub("", text_at(data, "result", "content"))
    if error or data.get("success") is False:
        return judged(call, error or text, at, error or text)
    if data.get("success") is not True:
        return Result("unknown", text, at)
    return exited(call, text, at, code_at(data, "shellExecution", "exitCode"))
