"""Puts a reply together from its streamed pieces: text, reasoning, and tool calls (`call_pieces`).

The pieces are plain values; no library is needed. Servers differ: some leave the reasoning in the text.
"""

from __future__ import annotations

from collections.abc import Collection

from tui_agent.models.call_pieces import CallPieces, TooManyCallsError, whole_characters
from tui_agent.models.tagged_reasoning import TaggedReasoning

LONGEST_REPLY = 16_000_000
"""Characters of text, reasoning and arguments: four times the longest call, a hundred times what models write."""


class ReplyTooLongError(ValueError):
    """The server goes on and on; the message says with what."""


class _GrowingText:
    """Text in pieces; servers may cut between the two halves of a surrogate pair."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """The piece as it can be shown: without a first half at its end, which waits for the second."""
        piece = self._half + piece
        self._half = piece[-1] if piece and "\ud800" <= piece[-1] <= "\udbff" else ""
        whole = whole_characters(piece[: len(piece) - len(self._half)])
        if whole:
            self._pieces.append(whole)
        return whole

    def __str__(self) -> str:
        return "".join(self._pieces)


class ReplyAssembler:
    """Collects the pieces of one reply."""

    def __init__(self, tools: Collection[str] = ()) -> None:
        self._text = _GrowingText()
        self._reasoning = _GrowingText()
        self._tagged = TaggedReasoning()
        self.calls = CallPieces(tools)
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
        return not self.calls and not self.text.strip() and not self.reasoning.strip()

    def add(self, text: str = "", reasoning: str = "") -> tuple[str, str]:
        """A piece of text or reasoning; returns both as they can be shown. Raises `ReplyTooLongError`."""
        self._grow(len(text) + len(reasoning))
        text, tagged = self._tagged.split(text)
        return self._text.add(text), self._reasoning.add(reasoning + tagged)

    def add_call(
        self, index: int | None, call_id: str, name: str, arguments: str, signature: str = ""
    ) -> None:
        """A piece of a call (`CallPieces.add`). Raises `ReplyTooLongError`."""
        self._grow(len(arguments))
        try:
            self.calls.add(index, call_id, name, arguments, signature)
        except TooManyCallsError as error:
            raise ReplyTooLongError(str(error)) from error

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > LONGEST_REPLY:
            raise ReplyTooLongError(f"the reply has more than {LONGEST_REPLY:,} characters")
