"""Cursor's transcripts (`agent-transcripts`): roles with blocks of Anthropic's form, without times.

They hold what was called and no results: how a call ended is not known once something follows it.
"""

from __future__ import annotations

import re

from tui_agent.formats.importers.block_results import result_of_block
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Faulted, Result, Turn
from tui_agent.formats.importers.values import content_text, joined, list_at, objects_at, text_at, value_at

_ASKED = re.compile(r"<user_query>\s*(.*)\s*</user_query>", re.DOTALL)
_ABORTED = re.compile(r"\babort", re.IGNORECASE)
_ROLES = frozenset({"user", "assistant"})


class Cursor(Format):
    """One conversation."""

    name = "Cursor"

    @classmethod
    def knows(cls, record: Record) -> bool:
        """A role beside a message that has none of its own."""
        message = record.get("message")
        return text_at(record, "role") in _ROLES and isinstance(message, dict) and "role" not in message

    def take(self, record: Record) -> None:
        if record.get("type") == "turn_ended":
            self._leave_open_calls()
            self._ended(record)
        elif record.get("role") == "user":
            self._user(record)
        elif record.get("role") == "assistant":
            self._leave_open_calls()
            self._reply(record)
        else:
            self.not_known(record.get("type"), record)

    def _ended(self, record: Record) -> None:
        error = content_text(record.get("error"))
        if record.get("status") != "error":
            self.leave_out("turn_ended")
        elif _ABORTED.search(error):
            self.interrupted(None)
        else:
            self.add(Faulted(classified(error)))

    def _user(self, record: Record) -> None:
        results = [
            one for one in objects_at(record, "message", "content") if one.get("type") == "tool_result"
        ]
        for block in results:
            self.end(text_at(block, "tool_use_id"), result_of_block, block, None)
        if results:
            return
        self._leave_open_calls()
        text = content_text(value_at(record, "message", "content"))
        asked = _ASKED.search(text)
        self.said(asked[1].strip() if asked else text, None)

    def _reply(self, record: Record) -> None:
        content = list_at(record, "message", "content") or [
            content_text(value_at(record, "message", "content"))
        ]
        turn = self.turn(None)
        for block in content:
            kind = text_at(block, "type")
            if kind == "tool_use":
                key = text_at(block, "id") or f"call-{len(self.calls)}"
                self.call(turn, key, text_at(block, "name"), value_at(block, "input"))
            elif kind in {"text", ""}:
                turn.text = joined(turn.text, content_text(block))
            elif kind == "thinking":
                turn.reasoning = joined(turn.reasoning, text_at(block, "thinking"))
            elif kind in {"image", "redacted", "redacted_thinking"}:
                self.report.skip(f"block {kind}")
            else:
                self.report.lose(f"block {kind}")

    def _leave_open_calls(self) -> None:
        turn = next((step for step in reversed(self.transcript.steps) if isinstance(step, Turn)), None)
        for call in turn.calls if turn is not None else ():
            if turn is not None and call.id not in turn.results:
                self.ended_as(turn, call, Result("unknown", ""))
