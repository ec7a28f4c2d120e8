"""Antigravity's transcripts, as far as is known of them from outside: a step a line.

A reply (`PLANNER_RESPONSE`) holds its calls without ids, and the steps behind it are their results, in their order.
Only a status that names an error is understood as a mark: any other end is not known.
"""

from __future__ import annotations

import re

from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, Result, Turn
from tui_agent.formats.importers.values import content_text, joined, object_at, objects_at, text_at, time_at

_SOURCES = frozenset({"USER_EXPLICIT", "USER_IMPLICIT", "MODEL", "SYSTEM"})
_BESIDE = frozenset({"CHECKPOINT", "EPHEMERAL_MESSAGE", "CONVERSATION_HISTORY", "KNOWLEDGE_ARTIFACTS"})
_ADDED = re.compile(r"<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE)>.*?</\1>|</?USER_REQUEST>", re.DOTALL)


class Antigravity(Format):
    """One conversation."""

    name = "Antigravity"

    @classmethod
    def knows(cls, record: Record) -> bool:
        """A step with its source and its time."""
        return text_at(record, "source") in _SOURCES and "created_at" in record

    def take(self, record: Record) -> None:
        at, kind, source = time_at(record, "created_at"), text_at(record, "type"), text_at(record, "source")
        text = content_text(record.get("content"))
        if kind == "USER_INPUT" or (source == "USER_EXPLICIT" and not kind):
            self.said(_ADDED.sub("", text).strip(), at)
        elif kind == "PLANNER_RESPONSE" or (source == "MODEL" and (not kind or "tool_calls" in record)):
            turn = self.open_turn(at)
            turn.text = joined(turn.text, text)
            turn.reasoning = joined(turn.reasoning, text_at(record, "thinking"))
            for raw in objects_at(record, "tool_calls"):
                key = text_at(raw, "id") or f"call-{len(self.calls)}"
                self.call(turn, key, text_at(raw, "name"), object_at(raw, "args"))
        elif kind in _BESIDE or source == "SYSTEM":
            self.leave_out(kind, "step of the system")
        else:
            self.end(self._waiting(), _result, text, text_at(record, "status"), at)

    def _waiting(self) -> str:
        """The first call of the newest reply that has no result."""
        turn = next((step for step in reversed(self.transcript.steps) if isinstance(step, Turn)), None)
        return next((call.id for call in turn.calls if call.id not in turn.results), "") if turn else ""


def _result(call: Call, text: str, status: str, at: float | None) -> Result:
    if "ERROR" in status.upper():
        return judged(call, text, at, text or "failed")
    if "CANCEL" in status.upper():
        return Result("cancelled", text, at, "interrupted by the operator")
    return Result("unknown", text, at)
