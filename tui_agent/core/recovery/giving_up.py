"""Replies of text alone that say that the task was not done: with nobody there they end nothing before another way was
tried.
"""

from __future__ import annotations

import re

_TAIL = 1_500
"""Characters of a reply that are looked at, from its end: what it comes to stands there."""
_GIVES_UP = re.compile(
    r"\bI(?:'m| am| was| have been|'ve been)? (?:(?:still|also|therefore) )?"
    r"(?:could(?: not|n't)|can(?:not|'t| not)|unable to|not able to|failed to|give up|(?:have|need) to stop)\b"
    r"|\b(?:could|can) ?not be (?:done|completed|finished|solved|found|resolved)\b"
    r"|\b(?:stands?|is|are) in the way\b|\bwithout success\b",
    re.IGNORECASE,
)
_SPEAKS_TO_SOMEBODY = re.compile(r"\b(?:you|your|yours|please|thank|sorry)\b", re.IGNORECASE)


def gives_up(text: str) -> bool:
    """Tell if the end of a reply says that it could not be done, to nobody in particular: what is said to a customer
    is an answer.
    """
    said = text[-_TAIL:].replace("\u2019", "'")
    return _GIVES_UP.search(said) is not None and _SPEAKS_TO_SOMEBODY.search(said) is None
