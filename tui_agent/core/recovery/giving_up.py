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


def gives_up(text: str) -> bool:
    """Tell if the end of a reply says that it could not be done."""
    return _GIVES_UP.search(text[-_TAIL:].replace("\u2019", "'")) is not None
