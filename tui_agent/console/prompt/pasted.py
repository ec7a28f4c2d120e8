"""Marks in a field that stand for text which it does not show as it is: long pastes, and words in which something is
invisible. What is sent has the text itself.
"""

from __future__ import annotations

import re

from tui_agent.quantities import compact, counted
from tui_agent.terminal_text import as_pasted, invisible, one_line

PASTED = (12, 2_000)
"""Lines and characters of a paste beyond which it stands as one mark."""

EDITED = (400, 20_000)
"""The same for a text that is edited: a text area lays out every line of what it holds."""

PREVIEW = 40
"""Characters of a text that its mark shows, if something in it is invisible."""

MOST_WORDS = 5
"""Words with a mark each; with more of them the text stands as one mark."""

_SPACE = re.compile(r"([ \t\n]+)")


class Pasted:
    """The marks of one field, and what they stand for."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._long = 0

    def shown(self, text: str, limits: tuple[int, int]) -> str:
        """The text as it may stand in a field: nothing in it is invisible, and it is no longer than `limits`."""
        text = as_pasted(text)
        lines = text.count("\n") + (not text.endswith("\n"))
        unseen = invisible(text)
        if lines > limits[0] or len(text) > limits[1]:
            size = counted(lines, "line") if lines > 1 else f"{compact(len(text))} characters"
            self._long += 1
            said = f"pasted text {self._long}: {size}"
            return self._mark(f"{said}, {_of(unseen)}" if unseen else said, text)
        if not unseen:
            return text
        words = _SPACE.split(text)
        hiding = sum(1 for word in words if invisible(word))
        return "".join(map(self._word, words)) if hiding <= MOST_WORDS else self._word(text)

    def whole(self, shown: str) -> str:
        """What stands in the field, with the text of each mark."""
        if not self._texts:
            return shown
        marks = "|".join(re.escape(mark) for mark in self._texts)
        return re.sub(marks, lambda mark: self._texts[mark.group()], shown)

    def mark_at_end(self, shown: str) -> str:
        """The mark with which a text ends; "": none."""
        return next((mark for mark in self._texts if shown.endswith(mark)), "")

    def forget(self) -> None:
        """Begin anew, in an empty field."""
        self._texts.clear()

    def _word(self, word: str) -> str:
        unseen = invisible(word)
        if not unseen:
            return word
        said = one_line(word, PREVIEW) or f"U+{ord(word[0]):04X}"
        return self._mark(f"{said}: {_of(unseen)}", word)

    def _mark(self, said: str, text: str) -> str:
        mark, number = f"[{said}]", 1
        while self._texts.setdefault(mark, text) != text:
            number += 1
            mark = f"[{number} · {said}]"
        return mark


def _of(unseen: int) -> str:
    return counted(unseen, "invisible character")
