"""Takes the thoughts out of a text that begins with them, while it streams.

What ends thoughts that never began is known only when the reply is whole: `core.request.spoken` looks for that.
"""

from __future__ import annotations

from typing import Literal

from tui_agent.core.request.forms import THOUGHTS


class TaggedReasoning:
    """Splits the pieces of one text by the tags that models write around their thoughts."""

    def __init__(self) -> None:
        self.stage: Literal["opening", "reasoning", "gap", "text"] = "opening"
        self.held = ""
        """The end of what came, if it may be a part of a tag."""
        self._closing = ""

    def split(self, piece: str) -> tuple[str, str]:
        """Give the text and the reasoning that the piece adds."""
        piece, self.held = self.held + piece, ""
        reasoning = ""
        if self.stage == "opening":
            piece = self._opened(piece)
        if self.stage == "reasoning":
            reasoning, closed, piece = piece.partition(self._closing)
            if not closed:
                whole = len(reasoning) - _overlap(reasoning, self._closing)
                self.held = reasoning[whole:]
                return "", reasoning[:whole]
            self.stage = "gap"
        if self.stage == "gap":
            piece = piece.lstrip()
            if piece:
                self.stage = "text"
        return piece, reasoning

    def _opened(self, piece: str) -> str:
        """Give the piece behind an opening tag; all of it if there is none, nothing while it may become one."""
        start = piece.lstrip()
        found = next((pair for pair in THOUGHTS if start.startswith(pair[0])), None)
        if found is not None:
            self.stage, self._closing = "reasoning", found[1]
            return start[len(found[0]) :]
        if any(begin.startswith(start) for begin, _ in THOUGHTS):
            self.held = piece
            return ""
        self.stage = "text"
        return piece


def _overlap(text: str, tag: str) -> int:
    """Count the characters at the text's end that may be the beginning of the tag."""
    return next((size for size in range(len(tag) - 1, 0, -1) if text.endswith(tag[:size])), 0)
