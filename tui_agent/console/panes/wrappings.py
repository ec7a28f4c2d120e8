"""Wrappings of other agents around a result, for their models' eyes: an operator wants to read the text
inside.
"""

from __future__ import annotations

import re

_WHOLE = ("<tool_use_error>", "</tool_use_error>")
"""Claude Code, around what a tool refused."""

_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d{1,10})\s*</returncode>\s*<output>\n?")
"""mini-swe-agent, before what a command printed."""


def unwrapped(text: str) -> str:
    """The text without such a wrapping; an exit code that is not 0 stays, in words. Other texts stay as they are."""
    begins, ends = _WHOLE
    if text.startswith(begins) and text.rstrip().endswith(ends):
        return text.removeprefix(begins).rstrip().removesuffix(ends)
    head = _RETURN_CODE.match(text, 0, 200) if text.startswith("<returncode>") else None
    if head is None or not text.rstrip().endswith("</output>"):
        return text
    code = "" if int(head[1]) == 0 else f"exit code {head[1]}\n"
    return f"{code}{text[head.end() :].rstrip().removesuffix('</output>')}"
