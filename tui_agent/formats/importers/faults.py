"""Recorded sentences about failed model calls and rejected replies, as typed faults and kinds of failure.

A recording keeps the provider's or the harness's words and at best a status; they are judged by the tables of live
faults (`models.fault_kinds`).
"""

from __future__ import annotations

import re
from datetime import datetime

from tui_agent.core.events import FailureKind, Fault, FaultKind
from tui_agent.models.faults import fault_of_words

_STATUS = re.compile(
    r"^\W*(?:\w+ )?(?:api |http )?(?:error|status|code|http|repeated)?\W*(?:code|status)?\W*([45]\d\d)\b"
    r"|\b(?:status|code|error|http)(?: code)?\W{1,3}([45]\d\d)\b|\b([45]\d\d) (?:\{|overloaded|too many)",
    re.IGNORECASE,
)
"""A status that stands in a sentence."""
_LIMIT = 2_000


def classified(message: str, status: int | None = None, *, now: datetime | None = None) -> Fault:
    """A recorded sentence as a fault, by its status (even if that stands in the words alone) and its words.
    `now` is the time at which it was said, for the times of the day in it.
    """
    message = message.strip()
    if not message:
        return Fault(kind=FaultKind.SERVER, message="the model call failed")
    found = _STATUS.search(message[:_LIMIT]) if status is None else None
    told = status if found is None else int(next(group for group in found.groups() if group))
    told = told if told is not None and 400 <= told < 600 else None
    fault = fault_of_words(message[:_LIMIT], told, now=now)
    known = status if status is not None and 100 <= status < 1_000 else None
    return fault.model_copy(update={"message": message[:_LIMIT], "status": known})


_UNKNOWN_TOOL = re.compile(
    r"\b(?:unknown|no such|invalid) (?:tool|function)\b|\bno tool named\b|\btool \S{1,80} (?:was )?not found\b",
    re.IGNORECASE,
)
_NO_CALL = re.compile(
    r"\bno tool calls?\b|\bdid not (?:use|include) any (?:tool|function) calls?\b|\bfound 0 actions?\b",
    re.IGNORECASE,
)
_MALFORMED = re.compile(
    r"error parsing tool call|\bmissing '\w+' argument|could not be parsed|not formatted correctly"
    r"|multiple tool calls|\bfound \d+ actions\b",
    re.IGNORECASE,
)


def rejection_kind(message: str) -> FailureKind:
    """The reason why a harness did not take a reply, by its words: a call of an unknown tool, a malformed
    call, or no call (also if the words say nothing).
    """
    head = message[:_LIMIT]
    if _UNKNOWN_TOOL.search(head):
        return FailureKind.UNKNOWN_TOOL
    if _MALFORMED.search(head) and not _NO_CALL.search(head):
        return FailureKind.INVALID_TOOL_CALL
    return FailureKind.NO_TOOL_CALL


_REFUSED = re.compile(r"(?:[^\n]{1,80}: )?This call of \S+ was not executed")


def refused_by_hooks(message: str) -> bool:
    """True if a failure is a refusal of ours, given through the agent's hooks."""
    return bool(_REFUSED.match(message))
