"""Words of others within words of ours: tool output, errors, names, what an agent, a hook or a server says.

A model, and a person, must see the end of such words. Whatever stands in them, they end at the mark of
`framed`: they hold no character that is acted on or hidden, no mark by which a message of ours or of another
agent's ends or begins, and no line of theirs begins as one of ours could.
"""

from __future__ import annotations

import re

from tui_agent.terminal_text import sanitize

MARK = "  | "
"""The beginning of each line of a text of several lines."""
_ENDS = r"(?:\s{0,9}/?\s{0,9}>|\s{1,9}[\w:-]{1,40}\s{0,9}=)"
_TAGS = re.compile(
    r"<(?=\s{0,9}/\s{0,9}[A-Za-z_|])"
    r"|<(?=\s{0,9}(?:recovery_note|system[-_]?reminder|system\b))"
    rf"|<(?=\s{{0,9}}[A-Za-z]{{1,40}}[_-][\w.-]{{0,60}}{_ENDS})"
    r"|<(?=\s{0,9}(?:user|assistant|human|tool|function|instructions?|important|context|invoke|parameter|think)"
    rf"{_ENDS})"
    r"|<(?=\|)|\[(?=/?INST\b|/?SYS\b)",
    re.IGNORECASE,
)
"""The beginning of a tag that ends something, or by which a chat's templates and agents mark who speaks."""
_CLOSES = re.compile(r"<(?=\s{0,9}/\s{0,9}[A-Za-z_|]|\|)")
_OPENED = {"<": "‹", "[": "⟦"}


def cleaned(text: str, longest: int | None = None) -> str:
    """Take out what is acted on or hidden, and the marks of frames. Lines stay. A text beyond `longest` characters
    loses its middle.
    """
    safe = _TAGS.sub(lambda found: _OPENED[found[0]], sanitize(text))
    return safe if longest is None else _bounded(safe, longest)


def framed(text: str, longest: int = 1_200) -> str:
    """Put the words at the end of a sentence of ours: behind a blank, or on lines of their own, each with a mark.

    `f"The error was:{framed(error)}"`.
    """
    lines = cleaned(text.strip(), longest).split("\n")
    return f" {lines[0]}" if len(lines) == 1 else "".join(f"\n{MARK}{line}" for line in lines)


def sealed(text: str) -> str:
    """Keep a whole message of ours, with words of others in it, from ending the tags around it."""
    return _CLOSES.sub("‹", sanitize(text))


def named(text: str, longest: int = 200) -> str:
    """Put a name, or a few words, on one line within a sentence of ours."""
    return " ".join(cleaned(text, longest).split())


def _bounded(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half].rstrip()} … {text[-half:].lstrip()}"
