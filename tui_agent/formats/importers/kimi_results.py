"""How a call of Kimi Code ended, by what its model reads of it."""

from __future__ import annotations

import re

from tui_agent.formats.importers.results import exited, judged
from tui_agent.formats.importers.transcript import Call, Result

EXITED = re.compile(r"\n?Command failed with exit code: (\d{1,9})\.\s*\Z")
_DENIED = re.compile(
    r"\A(?:The user (?:rejected|denied)|Tool call (?:rejected|denied)|Rejected by the user)", re.IGNORECASE
)
_REMINDER = re.compile(r"\s*<system-reminder>.*</system-reminder>\s*\Z", re.DOTALL)
"""Kimi Code's own words behind the output of a call that is repeated."""
_INTERRUPTED = "Tool execution was interrupted"


def result_of_output(call: Call, text: str, *, failed: bool) -> Result:
    """How a call has ended, by what the model reads of it. `failed`: Kimi Code marks it as a failure."""
    text = _REMINDER.sub("", text)
    if not failed:
        return judged(call, text, None, None)
    if text.startswith(_INTERRUPTED):
        return Result("cancelled", text, message="interrupted by the operator")
    if _DENIED.match(text):
        return Result("denied", text, message=text)
    if code := EXITED.search(text):
        return exited(call, text[: code.start()], None, int(code[1]))
    return judged(call, text, None, text or "failed")
