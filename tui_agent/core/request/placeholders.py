"""Words in brackets that stand for an empty text, as this program and others write them. Pure.

Models repeat what their history shows, and some servers put such words in the place of an empty reply.
"""

from __future__ import annotations

import re

UNDERSTOOD = "(continues)"
"""A turn of the assistant for a server that wants one, if there was none."""
CALLS = "(calls)"
"""The text of a message that has calls and no text, for servers that take no empty one."""
NOT_RECORDED = "(not recorded)"
"""Reasoning of a reply that had none, for servers that want some."""

_LONGEST = 60
_NOTHING = re.compile(
    r"[(\[<{]\s*(?:"
    r"(?:empty|no|blank|missing)[ _-](?:content|response|reply|message|text|output|answer)"
    r"(?: (?:provided|available|received|generated|returned))?"
    r"|empty|blank|no (?:visible|textual) (?:content|output|response))\s*\.?\s*[)\]>}]\.?",
    re.IGNORECASE,
)


def is_placeholder(text: str) -> bool:
    """Tell if a text is nothing but such words."""
    text = text.strip()
    if len(text) > _LONGEST:
        return False
    return text in {UNDERSTOOD, CALLS, NOT_RECORDED} or _NOTHING.fullmatch(text) is not None
