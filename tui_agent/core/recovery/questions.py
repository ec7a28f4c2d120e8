"""Replies of text alone that put a question: such a reply waits for an answer and gives up nothing."""

from __future__ import annotations

import re

_QUESTION = re.compile(r"[?？؟][\"'”’»)\]*_]*(?=\s|$)|？")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_CHOICE = re.compile(r"[ \t]*(?:[-*+•]|\(?\w[.)])[ \t]")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")


def puts_question(text: str) -> bool:
    """Tell if the last paragraph of a reply holds a question, code left out; choices belong to what stands above."""
    words = _CODE.sub("", _FENCE.sub("", text[-4_000:]))
    for paragraph in reversed([one for one in _PARAGRAPHS.split(words) if one.strip()]):
        if _QUESTION.search(paragraph):
            return True
        if not all(_CHOICE.match(line) for line in paragraph.splitlines() if line.strip()):
            return False
    return False
