"""The one line of a failure that says what is wrong: a traceback's last error, not its banner."""

from __future__ import annotations

import re

from tui_agent.terminal_text import one_line

_LOOKED_AT = 6_000
"""Characters from either end of a message that are looked at."""

_NAMED = re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit)\b(?::|$)")
_SAID = re.compile(
    r"\b(?:error|fatal|failed|failure|denied|not found|no such|cannot|unknown|timed out|panic)\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"^(?:\w+: )?(?:The command failed with )?exit code -?\d+[.:]?\s*", re.IGNORECASE)
"""How a tool begins, in a note behind its name: it says that something failed, and not why."""
_NOTHING = "(no output)"
_WORD = re.compile(r"[^\W_]{2}")
_DECORATION = re.compile(r"^(?:E\s{2,}|[>*•-]\s+|[-=_*#~ ]{3,})|[-=_*#~ ]{3,}$")


def headline(message: str, limit: int = 400) -> str:
    """The line of `message` that says what is wrong, safe and at most `limit` characters long."""
    if "\n" not in message:
        return one_line(message, limit)
    if len(message) > 2 * _LOOKED_AT:
        message = f"{message[:_LOOKED_AT]}\n{message[-_LOOKED_AT:]}"
    lines = [line for line in (raw.strip() for raw in message.split("\n")) if _WORD.search(line)]
    if not lines:
        return one_line(message, limit)
    named = [line for line in lines if _NAMED.search(line[:400])]
    if named:
        return one_line(_DECORATION.sub("", named[-1]), limit)
    why = [line for line in (_SUMMARY.sub("", line) for line in lines) if line and line != _NOTHING] or lines
    # What ends in a colon announces, and output that names no error tells most at its end.
    of_command = _SUMMARY.match(lines[0]) is not None
    said = next(
        (line for line in why if _SAID.search(line[:400]) and not line.endswith(":")),
        why[-1 if of_command else 0],
    )
    return one_line(_DECORATION.sub("", said), limit)


def telling_line(output: str, limit: int = 120) -> str:
    """The line of a successful command's output that tells most: an error or a place that it names, else its last."""
    lines = [line for raw in output[-_LOOKED_AT:].split("\n") if (line := raw.strip()) and line != _NOTHING]
    if not lines:
        return ""
    told = (line for line in reversed(lines) if any(mark.search(line[:400]) for mark in _TELLING))
    return one_line(next(told, lines[-1]), limit)


_TELLING = (
    _NAMED,
    _SAID,
    re.compile(r"^[\w./@+-]{1,200}:\d+(?::\d+)?:\s"),
    re.compile(r"\b[A-Z]{1,3}\d{3,5}\b"),
)
"""An error's name or word, a place in a file, a checker's code."""
