"""Recorded sentences about failed model calls and rejected replies, as typed faults and kinds of failure.

A recording keeps the provider's or the harness's words and at best a status; live faults are classified in
`models`, with more to go by.
"""

from __future__ import annotations

import re

from tui_agent.core.events import FailureKind, Fault, FaultKind

_WORDS: tuple[tuple[str, FaultKind], ...] = (
    (r"\b529\b|overloaded", FaultKind.OVERLOADED),
    (r"insufficient_quota|credit balance|billing|\b402\b", FaultKind.QUOTA),
    (r"\b429\b|rate.?limit|usage limit", FaultKind.RATE_LIMIT),
    (r"prompt is too long|context (?:window|length)|maximum context", FaultKind.CONTEXT_OVERFLOW),
    (r"\b401\b|api key|/login|authentication", FaultKind.AUTH),
    (r"\b403\b|permission", FaultKind.PERMISSION),
    (r"\b404\b|model not found", FaultKind.NOT_FOUND),
    (r"content policy|content_filter|safety", FaultKind.CONTENT_POLICY),
    (r"\b400\b|\b413\b|\b422\b|invalid_request", FaultKind.BAD_REQUEST),
    (r"stream (?:disconnected|closed|error|ended)", FaultKind.STREAM_CUT),
    (r"timed? ?out|\b408\b|\b504\b", FaultKind.TIMEOUT),
    (r"connection|network|fetch failed|econn|dns", FaultKind.CONNECTION),
)
_PATTERNS = tuple((re.compile(words), kind) for words, kind in _WORDS)
_LIMIT = 2_000


def classified(message: str, status: int | None = None) -> Fault:
    """A recorded sentence as a fault: by its status where one is known, else by its words; `server`
    otherwise.
    """
    message = message.strip() or "the model call failed"
    status = status if status is not None and 100 <= status < 1_000 else None
    text = f"{status or ''} {message[:_LIMIT].lower()}"
    kind = next((kind for pattern, kind in _PATTERNS if pattern.search(text)), FaultKind.SERVER)
    return Fault(kind=kind, message=message[:_LIMIT], status=status)


_UNKNOWN_TOOL = re.compile(
    r"\b(?:unknown|no such|invalid) (?:tool|function)\b|\bno tool named\b", re.IGNORECASE
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
    """Why a harness did not take a reply, by its words: a call of an unknown tool, a malformed call, or no call
    (also where the words say nothing).
    """
    head = message[:_LIMIT]
    if _UNKNOWN_TOOL.search(head):
        return FailureKind.UNKNOWN_TOOL
    if _MALFORMED.search(head) and not _NO_CALL.search(head):
        return FailureKind.INVALID_TOOL_CALL
    return FailureKind.NO_TOOL_CALL


_REFUSED = re.compile(r"(?:[^\n]{1,80}: )?This call of \S+ was not executed")


def refused_by_hooks(message: str) -> bool:
    """Whether a failure is a refusal of ours, given through the agent's hooks."""
    return bool(_REFUSED.match(message))
