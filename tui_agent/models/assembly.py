"""Puts a reply together from its streamed pieces: text, reasoning, and tool calls merged by their index.

The pieces are plain values; no library is needed. Servers differ: some repeat a function's name or the id
in every piece, some send no id, some give every call the index 0, some leave the reasoning in the text.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field

from tui_agent.core.values import ToolCall
from tui_agent.models.tagged_reasoning import TaggedReasoning

LONGEST_REPLY = 16_000_000
"""Characters of text, reasoning and arguments: four times the longest call, a hundred times what models write."""
MOST_CALLS = 2_000


class ReplyTooLongError(ValueError):
    """The server goes on and on; the message says with what."""


@dataclass
class _Slot:
    """A call in the making."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    signature: str = ""


class _GrowingText:
    """Text in pieces; servers may cut between the two halves of a surrogate pair."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """The piece as it can be shown: without a first half at its end, which waits for the second."""
        piece = self._half + piece
        self._half = piece[-1] if piece and "\ud800" <= piece[-1] <= "\udbff" else ""
        whole = _whole_characters(piece[: len(piece) - len(self._half)])
        if whole:
            self._pieces.append(whole)
        return whole

    def __str__(self) -> str:
        return "".join(self._pieces)


def _whole_characters(text: str) -> str:
    """Surrogate pairs joined, lone halves replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class ReplyAssembler:
    """Collects the pieces of one reply."""

    def __init__(self) -> None:
        self._text = _GrowingText()
        self._reasoning = _GrowingText()
        self._tagged = TaggedReasoning()
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._size = 0

    @property
    def text(self) -> str:
        """All text so far."""
        return str(self._text) + (self._tagged.held if self._tagged.stage == "opening" else "")

    @property
    def reasoning(self) -> str:
        """All reasoning so far."""
        return str(self._reasoning) + (self._tagged.held if self._tagged.stage == "reasoning" else "")

    @property
    def empty(self) -> bool:
        """Nothing has come that a person or a tool could use."""
        return not self._slots and not self.text.strip() and not self.reasoning.strip()

    def add(self, text: str = "", reasoning: str = "") -> tuple[str, str]:
        """A piece of text or reasoning; returns both as they can be shown. Raises `ReplyTooLongError`."""
        self._grow(len(text) + len(reasoning))
        text, tagged = self._tagged.split(text)
        return self._text.add(text), self._reasoning.add(reasoning + tagged)

    def add_call(
        self,
        index: int | None,
        call_id: str | None,
        name: str | None,
        arguments: str | None,
        signature: str = "",
    ) -> None:
        """A piece of a call; `signature` is what its provider signed it with. Raises `ReplyTooLongError`."""
        self._grow(len(arguments or ""))
        key = 0 if index is None else index
        slot = self._by_index.get(key)
        if slot is None or (call_id and slot.id and call_id != slot.id and name and _is_complete(slot)):
            slot = _Slot()
            if len(self._slots) >= MOST_CALLS:
                raise ReplyTooLongError(f"the reply has more than {MOST_CALLS:,} tool calls")
            self._by_index[key] = slot
            self._slots.append(slot)
        slot.id = slot.id or call_id or ""
        slot.name = slot.name or name or ""
        slot.signature = slot.signature or signature
        if arguments:
            slot.arguments.append(arguments)

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > LONGEST_REPLY:
            raise ReplyTooLongError(f"the reply has more than {LONGEST_REPLY:,} characters")

    def calls(self, *, cut: bool) -> tuple[ToolCall, ...]:
        """The calls, each with an id; one that the server sent without a name has none.

        `cut`: the reply ended at its length limit, so the last call may be half of one. Half arguments are
        kept as they are (they fail as invalid, and the model learns why); a call cut before its arguments
        began is left out, for no arguments at all would look like a complete call.
        """
        return tuple(
            ToolCall(
                id=slot.id or f"call_{uuid.uuid4().hex[:12]}",
                name=slot.name,
                arguments=_whole_characters("".join(slot.arguments)) or "{}",
            )
            for slot in self._used(cut=cut)
        )

    def signatures(self, *, cut: bool) -> tuple[str, ...]:
        """The signatures of these calls, in their order; empty where a call has none."""
        return tuple(slot.signature for slot in self._used(cut=cut))

    def _used(self, *, cut: bool) -> list[_Slot]:
        slots = [slot for slot in self._slots if slot.name or slot.id or slot.arguments]
        if cut and slots and not slots[-1].arguments:
            slots.pop()
        return slots


def _is_complete(slot: _Slot) -> bool:
    try:
        json.loads("".join(slot.arguments) or "{}")
    except ValueError:
        return False
    return True
