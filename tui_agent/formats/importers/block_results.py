"""How calls have ended that stand as blocks or as tags in messages: by their marks, else by the sentences with which
Cline, Roo, Kilo and goose begin the text of a failure.
"""

from __future__ import annotations

import re

from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import exit_message, failure_in, judged
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import (
    content_text,
    joined,
    object_at,
    objects_at,
    parsed,
    text_at,
    value_at,
)

_LONGEST_OBJECT = 100_000
_DENIED = ("The user denied this operation", "The user declined", "User has rejected", "The user rejected")
_FAILED = (
    *("The tool execution failed", "The tool execution encountered", "Command execution was not successful"),
    *("Error executing", "Tool call failed", "Shell command failed", "Missing value for required parameter"),
)
_EXIT = re.compile(
    r"^\W*(?:the )?(?:command \w+ with )?(?:exit|return) ?(?:code|status)\W{1,3}(-?\d{1,6})\b"
    r"|^\W*(?:the )?command exited with (?:code )?(-?\d{1,6})\b",
    re.IGNORECASE | re.MULTILINE,
)


def result_of_block(call: Call, block: Record, at: float | None) -> Result:
    """How a call has ended, by its block."""
    told = block.get("toolResult")
    if told is None:
        content, queries = block.get("content"), objects_at(block, "content")
        failed = block.get("is_error") is True or text_at(content, "type").endswith("_error")
        if any("success" in one for one in queries):
            return _result_of_queries(call, queries, at, failed=failed)
        return result_of_text(call, content_text(content), at, failed=failed)
    if error := text_at(told, "error"):
        return result_of_text(call, error, at, failed=True)
    value = value_at(told, "value")
    text = content_text(value_at(value, "content") if isinstance(value, dict) else value)
    if text_at(told, "status") not in {"success", "error"}:
        return Result("unknown", text, at)
    return result_of_text(call, text, at, failed=value_at(value, "isError") is True)


def _result_of_queries(call: Call, queries: list[Record], at: float | None, *, failed: bool) -> Result:
    """A call of Cline's, which may ask several things; each says how it ended."""
    told = []
    for one in queries:
        result, error = content_text(one.get("result")), content_text(one.get("error"))
        told.append(result if error in result else joined(error, result))
    text = "\n\n".join(filter(None, told))
    if failed or any(one.get("success") is False for one in queries):
        return result_of_text(call, text, at, failed=True)
    return judged(call, text, at, None)


def result_of_text(call: Call, text: str, at: float | None, *, failed: bool = False) -> Result:
    """How a call has ended, by what the model read of it. `failed`: it is marked so."""
    if text.lstrip().startswith(_DENIED) or text_at(_as_object(text), "status") == "denied":
        return Result("denied", text, at, text.strip()[:500])
    found = _EXIT.search(text[:400])
    code = int(found[1] or found[2]) if found else 0
    message = exit_message(code, text) if code else failure_in(text)
    if message is None and (failed or text.lstrip().startswith(_FAILED)):
        message = text.strip() or "failed"
    return judged(call, text, at, message)


def _as_object(text: str) -> Record:
    """Roo tells some ends as an object."""
    return object_at(parsed(text)) if text.lstrip()[:1] == "{" and len(text) < _LONGEST_OBJECT else {}
