"""Puts a reply together from its streamed pieces: text, reasoning, and tool calls merged by their index.

Takes the pieces as plain values and knows no library. Servers differ: some repeat a function's name or the id
in every piece, some send no id, some give every call the index 0.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field

from tui_agent.events import ToolCall


@dataclass
class _Slot:
    """A call in the making."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ReplyAssembler:
    """Collects one reply. Not a state machine of the session: it lives for one call only."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """All reasoning so far."""
        return "".join(self._reasoning)

    @property
    def empty(self) -> bool:
        """Nothing has come that a reader or a tool could use."""
        return not self._slots and not self.text.strip() and not self.reasoning.strip()

    def add(self, text: str = "", reasoning: str = "") -> None:
        """A piece of text or reasoning."""
        if text:
            self._text.append(text)
        if reasoning:
            self._reasoning.append(reasoning)

    def add_call(
        self, index: int | None, call_id: str | None, name: str | None, arguments: str | None
    ) -> None:
        """A piece of a call."""
        key = 0 if index is None else index
        slot = self._by_index.get(key)
        if slot is None or (call_id and slot.id and call_id != slot.id and name and _whole(slot)):
            slot = _Slot()
            self._by_index[key] = slot
            self._slots.append(slot)
        slot.id = slot.id or call_id or ""
        slot.name = slot.name or name or ""
        if arguments:
            slot.arguments.append(arguments)

    def calls(self, *, cut: bool) -> tuple[ToolCall, ...]:
        """The calls, each with an id and a name.

        `cut`: the reply ended at its length limit, so the last call may be half of one. Half arguments are
        kept as they are (they fail as invalid, and the model learns why); a call cut before its arguments
        began is left out, for no arguments at all would look like a complete call.
        """
        slots = [slot for slot in self._slots if slot.name]
        if cut and slots and not slots[-1].arguments:
            slots.pop()
        return tuple(
            ToolCall(
                id=slot.id or f"call_{uuid.uuid4().hex[:12]}",
                name=slot.name,
                arguments="".join(slot.arguments) or "{}",
            )
            for slot in slots
        )


def _whole(slot: _Slot) -> bool:
    try:
        json.loads("".join(slot.arguments) or "{}")
    except ValueError:
        return False
    return True
