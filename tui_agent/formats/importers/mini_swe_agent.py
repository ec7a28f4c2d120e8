"""mini-swe-agent trajectories: version 1.1 (`info`, `messages`), and the bare list of messages before it.

Every reply holds one shell command, in a fenced block or as a tool call; its result says `<returncode>N`. What
the harness answers to a reply that breaks the form has no return code, and from version 2 on the rejected reply
itself is not kept: a format error then follows the result of the call before.
"""

from __future__ import annotations

import re

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import rejection_kind
from tui_agent.formats.importers.openai_messages import MessageReader, message_time
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import exit_message, failed, says_timed_out
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, ImportReport, Result, Transcript, Turn
from tui_agent.formats.importers.values import (
    code_at,
    content_text,
    count_at,
    number_at,
    object_at,
    objects_at,
    text_at,
    value_at,
)

_BLOCK = re.compile(r"```(?:mswea_bash_command|bash)[ \t]*\n(.*?)\n```", re.DOTALL)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d{1,10})\s*</returncode>")
_SUBMIT = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
_NOT_EXECUTED = "action was not executed"
"""Of a call that was left out because an earlier one of its reply ended the run."""
_WARNING = re.compile(r"<warning>.*?</warning>\n?", re.DOTALL)
_FRAME = re.compile(r"</?output(?:_head|_tail)?>\n?")
SEVERAL_COMMANDS = "not executed: the harness takes one command a reply"
_FORMAT_ERRORS = ("Please always provide EXACTLY ONE action", "Tool call error:")
"""How the harness's default answers to a rejected reply begin; `interrupt_type` says it from version 2 on."""


class MiniSWEAgent(MessageReader, Format):
    """Messages whose user lines are results if a call waits for one."""

    name = "mini-swe-agent"
    inside = "messages"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report, Transcript(operator_present=False))

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """The format's own name, or messages in which a fenced command is answered by a return code."""
        if text_at(recording.document, "trajectory_format").startswith(cls.name):
            return True
        head = [one for one in cls.records(recording)[:40] if isinstance(one, dict)]
        texts = [(one.get("role"), content_text(one.get("content"))) for one in head]
        return any(role == "assistant" and _BLOCK.search(text) for role, text in texts) and any(
            role == "user" and _RETURN_CODE.match(text) for role, text in texts
        )

    def around(self, recording: Recording) -> None:
        """How the run ended, and with which model."""
        info = object_at(recording.document, "info")
        self.about(recording.document, id="instance_id")
        self.about(info, ending="exit_status", answer="submission", workspace="config.environment.cwd")
        self.about(info, model="config.model.model_name")
        self.transcript.finished |= self.transcript.ending.lower() == "submitted"

    def take(self, message: Record) -> None:
        role = message.get("role")
        if role == "user":
            self._user(message)
        elif role == "exit":
            self.transcript.ending = content_text(message.get("content"))
            self.about(message, ending="extra.exit_status", answer="extra.submission")
        elif message.get("object") == "response":
            self._response(message)
        elif message.get("type") == "function_call_output":
            self.result({**message, "tool_call_id": message.get("call_id"), "content": message.get("output")})
        else:
            super().take(message)

    def reply(self, message: Record) -> Turn:
        """An assistant's message: its tool calls, its recorded actions, or its fenced command."""
        turn = super().reply(message)
        cost = number_at(message, "extra", "cost")
        turn.cost = cost if cost is not None and cost > 0 else None
        if not turn.calls:
            self._commands(turn, message)
        return turn

    def _commands(self, turn: Turn, message: Record) -> None:
        commands = [text_at(action, "command") for action in objects_at(message, "extra", "actions")]
        commands = [command for command in commands if command] or _BLOCK.findall(turn.text)
        if len(commands) > 1 and not objects_at(message, "extra", "actions"):
            return  # the harness refuses a reply with several blocks
        turn.text = _BLOCK.sub(lambda block: "" if block[1] in commands else block[0], turn.text).strip()
        self._commands_of(turn, commands)

    def _commands_of(self, turn: Turn, commands: list[str]) -> None:
        for position, command in enumerate(commands):
            self.call(turn, f"step-{len(self.transcript.steps)}-{position}", "bash", {"command": command})

    def _response(self, message: Record) -> None:
        """A reply in the form of OpenAI's Responses."""
        text, calls = [], []
        for item in objects_at(message, "output"):
            if item.get("type") == "message":
                text.append(content_text(item.get("content")))
            elif item.get("type") == "function_call":
                function = {"name": text_at(item, "name"), "arguments": text_at(item, "arguments")}
                calls.append({"id": text_at(item, "call_id"), "function": function})
        usage = object_at(message, "usage")
        tokens = {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")}
        self.reply({**message, "content": "\n\n".join(text), "tool_calls": calls, "usage": tokens})

    def _user(self, message: Record) -> None:
        text = content_text(message.get("content"))
        at = message_time(message)
        last = self.last if isinstance(self.last, Turn) else None
        waiting = [call for call in last.calls if call.id not in last.results] if last else []
        interrupt = text_at(message, "extra", "interrupt_type")
        if interrupt == "UserInterruption":
            self.interrupted(at)
            self.said(text, at)
        elif interrupt == "FormatError" or text.startswith(_FORMAT_ERRORS):
            self._rejected(last, message)
        elif last and waiting:
            self.end(waiting[0].id, self.judge, text, message)
            self._submitted(waiting[0], text)
        elif last and not last.calls:
            self._rejected(last, message)
        else:
            self.said(text, at)

    def _rejected(self, last: Turn | None, message: Record) -> None:
        """The harness did not take the last reply, or one that it did not keep; no result is touched."""
        if last is None or last.results or last.rejected:
            last = Turn(message_time(message), content_text(value_at(message, "extra", "model_response")))
            self.add(last)
        refusal = content_text(message.get("content")) or "The reply held no single command."
        last.calls.clear()
        commands = _BLOCK.findall(last.text)
        if len(commands) > 1:
            # The harness takes one command a reply; to an engine that takes several they are no error of form.
            self._commands_of(last, commands)
            for call in last.calls:
                last.results[call.id] = Result("cancelled", refusal, message_time(message), SEVERAL_COMMANDS)
            return
        last.rejected = refusal
        several = (count_at(message, "extra", "n_actions") or 0) > 1
        last.rejected_as = FailureKind.INVALID_TOOL_CALL if several else rejection_kind(last.rejected)

    def _submitted(self, call: Call, text: str) -> None:
        command = text_at(call.input, "command")
        if any(mark in command for mark in _SUBMIT) and not _RETURN_CODE.match(text):
            self.transcript.finished = True
            self.transcript.answer = text

    def judge(self, call: Call, content: str, record: Record) -> Result:
        """By the return code, which the frame around the output or the record tells."""
        at = message_time(record)
        match = _RETURN_CODE.search(content[:2_000])
        code = code_at(record, "extra", "returncode")
        code = int(match[1]) if code is None and match else code
        raised = content_text(value_at(record, "extra", "exception_info"))
        if raised == _NOT_EXECUTED:
            return Result("cancelled", content, at, raised)
        if code == 0:
            return Result("ok", content, at)
        if code is not None:
            output = text_at(record, "extra", "raw_output") or _output(content)
            return failed(content, at, exit_message(code, raised or output))
        if says_timed_out(content) and "<command>" in content[:600]:
            return Result("failed", content, at, content.strip(), unknown_effect=True)
        result = super().judge(call, content, record)
        command = text_at(call.input, "command")
        submits = any(mark in command for mark in _SUBMIT)  # its result is what was submitted
        clear = result.status != "ok" or call.name != "bash" or submits
        return result if clear else Result("unknown", content, at)


def _output(content: str) -> str:
    """A result's output out of its frame; of a long one the head and the tail are kept."""
    text = _RETURN_CODE.sub("", content, count=1)
    return _FRAME.sub("", _WARNING.sub("", text, count=1)).strip()
