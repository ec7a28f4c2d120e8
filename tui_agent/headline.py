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


def last_line(text: str) -> str:
    """The last line of an output that has a letter or a digit, safe, without its decoration; "" if none has."""
    lines = text[-_LOOKED_AT:].split("\n")
    said = next((line.strip() for line in reversed(lines) if any(map(str.isalnum, line))), "")
    return one_line(_DECORATION.sub("", _DECORATION.sub("", said)))


def innermost(error: str) -> list[str]:
    """The lines around the innermost place that an error names: the last source line of a traceback or of a test's
    report, else the last place in a file, else the line that says what is wrong. At most five, without those that
    only decorate or hold a schema.
    """
    lines = [line.rstrip() for line in error[-_LOOKED_AT:].split("\n")]
    lines = [line for line in lines if _WORD.search(line) and not _SCHEMA.match(line)]
    said = headline(error)
    places = [
        place + (_FRAME.match(line) is not None)
        for place, line in enumerate(lines)
        if _FRAME.match(line) or _MARKED.match(line) or _PLACE.match(line)
    ]
    at = places[-1] if places else next((n for n, line in enumerate(lines) if said in line), len(lines) - 1)
    around = lines[max(0, at - 2) : at + 3]
    return [line for line in around if said not in line and line.strip() not in said]


_FRAME = re.compile(r'\s*File "[^"]{1,300}", line \d+')
_MARKED = re.compile(r">\s")
_PLACE = re.compile(r"^[\w./@+-]{1,200}:\d+(?::\d+)?:\s")
"""The lines of a traceback, a test's report or a compiler that name their source."""
_SCHEMA = re.compile(r'\s*(?:\{\s*$|\{.*"(?:type|properties|required)":|"(?:type|properties|required)":)')


def telling_line(output: str) -> str:
    """The line of a successful command's output that tells most: an error or a place that it names, else its last."""
    lines = [line for raw in output[-_LOOKED_AT:].split("\n") if (line := raw.strip()) and line != _NOTHING]
    if not lines:
        return ""
    told = (line for line in reversed(lines) if any(mark.search(line[:400]) for mark in _TELLING))
    return one_line(next(told, lines[-1]), 120)


_TELLING = (
    _NAMED,
    _SAID,
    _PLACE,
    re.compile(r"\b[A-Z]{1,3}\d{3,5}\b"),
)
"""An error's name or word, a place in a file, a checker's code."""
