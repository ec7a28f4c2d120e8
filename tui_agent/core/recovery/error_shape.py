"""The shape of an error: what it says once names, quoted text, paths and numbers are taken out.

Two errors of one shape are the same trouble with another file or another column. A signature is stricter: it
leaves out only what changes by itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

from tui_agent.core.recovery.signature import normalise

GAP = "<*>"
"""Stands for everything that was taken out."""

_HEAD, _TAIL = 500, 1_000
"""Characters of a message that are looked at, from its beginning and its end, the places of errors."""

_LONGEST_TRACEBACK = 16_000
"""Characters of a message, from its end, in which frames of a traceback are looked for."""

_LONGEST = 200
"""Characters of a shape; longer ones end in a digest."""

_FRAME = re.compile(r'^ *File "[^"\n]*", line \d.*\n(?:    .*\n)*', re.MULTILINE)
"""A frame of a Python traceback with its source: the place of the error, not the error."""

_QUOTED = re.compile(
    r"""
      (?<=near\ )'.*'(?=\ at\ line\ )
    | `[^`]*[`']
    | (?<!\w)'[^']*'(?!\w)
    | (?<!\w)"[^"]*"(?!\w)
    | [‘“][^’”]*[’”]
    """,
    re.VERBOSE,
)

_PATH = re.compile(r"(?<![\w.~@+:-])[\w.~@+:-]*[/\\][^\s:;,()'\"<>]*")

_NAME = re.compile(
    r"""
      (?<![\w.])(?!(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b)
      (?:
          [A-Za-z]+(?:[\d_]|\.\w)(?:[\w.-]*\w)?  # snake_case, dotted.name, file.py, HAT223
        | [a-z]+[A-Z]\w*                        # camelCase
        | [A-Z][a-z]+[A-Z]\w*                   # PascalCase
        | _\w+
        | (?<=named\ )[\w.-]+
        | (?<=:\ )[\w.-]+(?=:\ )                # what is meant, between two colons: `line 1: foo: not found`
      )
    """,
    re.VERBOSE,
)

_NUMBER = re.compile(r"[-+]?\b\d[\w.,%]*")

_PLACEHOLDER = re.compile(r"<(?:tmp|uuid|address|time|duration|process|port|hex)>")

_GAPS = re.compile(rf"[\[({{]?{re.escape(GAP)}[\])}}]?(?:[\s,;:.=|-]*[\[({{]?{re.escape(GAP)}[\])}}]?)*")


@lru_cache(maxsize=256)
def error_shape(message: str) -> str:
    """`message` with `<*>` for names, quoted text, paths and numbers, at most 200 characters; total, pure.

    Frames of Python tracebacks are left out. Names of exception classes stay: they say what went wrong.
    """
    if 'File "' in message:
        message = _FRAME.sub("", message[-_LONGEST_TRACEBACK:])
    if len(message) > _HEAD + _TAIL:
        message = f"{message[:_HEAD]}\n{message[-_TAIL:]}"
    text = normalise(message)
    for pattern in (_PLACEHOLDER, _QUOTED, _PATH, _NAME, _NUMBER):
        text = pattern.sub(GAP, text)
    text = _GAPS.sub(GAP, text)
    if len(text) <= _LONGEST:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[: _LONGEST - 20]}… #{digest}"
