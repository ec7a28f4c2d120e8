"""What makes two calls the same call and two failures the same failure.

Keys identify calls (tool and input), signatures identify failures (kind, tool, message without its volatile
parts). Only text goes in and text comes out; what is counted by them is the detectors' business.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TYPE_CHECKING


if TYPE_CHECKING:
    from tui_agent.events import Failure
    from collections.abc import Mapping

_LONGEST = 1_000
"""Characters of a key or signature that are kept as they are; longer ones end in a digest."""

_LONGEST_NORMALISED = 16_000
"""Characters of a text that are normalised: its beginning and its end, where errors stand."""

_PROSE = frozenset({"thought", "thoughts", "explanation", "reasoning", "rationale", "justification"})
"""Fields in which a model talks about its call."""

_AMBIGUOUS_PROSE = frozenset({"description", "reason"})
"""Prose beside a field that acts (`command`), content elsewhere (an issue's description)."""

_ACTING = frozenset({"command", "cmd", "code", "script", "path", "file_path", "pattern", "query", "url"})

_encode_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_encode_as_sent = json.JSONEncoder(separators=(",", ":"), default=str).encode


def call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    """The canonical key of a call: key order and prose that does not change its meaning make no difference."""
    return _bounded(f"{tool} {_encode_sorted(_meaning(arguments))}")


def sent_key(tool: str, arguments: Mapping[str, Any]) -> str:
    """The key of a call as it was sent: another order of fields is another call (Gigi)."""
    return _bounded(f"{tool} {_encode_as_sent(dict(arguments))}")


def _meaning(fields: Mapping[str, Any]) -> dict[str, Any]:
    names = fields.keys()
    prose = names & _PROSE
    if names & _AMBIGUOUS_PROSE and names & _ACTING:
        prose |= names & _AMBIGUOUS_PROSE
    if not prose or len(prose) == len(names):
        return dict(fields)
    return {name: value for name, value in fields.items() if name not in prose or not isinstance(value, str)}


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"{text[: _LONGEST - 30]}… #{digest}"


# --- signatures ----------------------------------------------------------------------------------------------

_VOLATILE = re.compile(
    r"""
      (?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)
    | (?P<tmp>
          (?:/private)?/var/folders/[^/\s]+/[^/\s]+/T(?:/[\w.+@-]+)?
        | (?:/private|/var)?/tmp/pytest-of-[\w.-]+/pytest-\d+
        | (?:/private|/var)?/tmp/(?:[\w.+@-]+(?=/)|tmp[\w.-]*|[\w.+@-]*\d[\w.+@-]*)
        | [A-Za-z]:\\Users\\[^\\\s]+\\AppData\\Local\\Temp\\[\w.+@-]+
      )
    | (?P<time>
          \b\d{4}-\d{2}-\d{2}(?:[T\ _]\d{2}:?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)?(?:Z\b|\ ?[+-]\d{2}:?\d{2}\b)?
        | \b\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2}(?:\ [+-]\d{4})?
        | \b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\ )?
          (?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\ {1,2}\d{1,2}
            |\d{1,2}\ (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))
          (?:\ \d{4})?\ \d{2}:\d{2}:\d{2}(?:\ (?:UTC|GMT|[A-Z]{3,4}))?(?:\ \d{4})?
        | (?<![\w:.])\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?:\ ?[AP]M\b)?
        | (?<![\w.])1[4-9]\d{8}(?:\.\d+|\d{3})?(?![\w.]\d|\w)
      )
    | (?P<addr>\b0[xX][0-9a-fA-F]+\b)
    | (?P<duration>
          (?<![\w.])(?:\d+h\ ?)?(?:\d+m\ ?)?\d+(?:\.\d+)?(?:ns|us|µs|ms|s)\b
        | (?<![\w.])\d+(?:\.\d+)?\ (?:ns|us|µs|ms|s|secs?|seconds?|milliseconds?|mins?|minutes?|hours?)\b
      )
    | (?P<pid>
          \b(?:pid|PID|Pid|ppid|tid|process|Process)(?:\ id|\ ID)?[\ =:#(\[]{1,2}\d+
        | ==\d+==
        | (?<=\w)\[\d{2,}\](?=:)
        | \bThread-\d+\b
      )
    | (?P<port>(?:(?<=localhost)|(?<=\d\.\d)|(?<=\.\d\d)|(?<=\.\d\d\d)|(?<=\]))
          :(?:3[3-9]|[45]\d|6[0-5])\d{3}\b)
    | (?P<hex>\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,128}\b|\b(?=[A-F]*\d)[0-9A-F]{16,128}\b)
    """,
    re.VERBOSE,
)

_MAYBE_VOLATILE = re.compile(r"\d|tmp|/T/|Temp")


def _placeholder(match: re.Match[str]) -> str:
    return f"<{match.lastgroup}>"


@lru_cache(maxsize=256)
def normalise(text: str) -> str:
    """`text` with its volatile parts as placeholders: times, durations, addresses, temporary paths, pids, uuids, hex.

    Counts stay ("5 failed" is not "4 failed"). Runs of white space become one space.
    """
    if len(text) > _LONGEST_NORMALISED:
        half = _LONGEST_NORMALISED // 2
        text = f"{text[:half]} … {text[-half:]}"
    text = " ".join(text.split())
    if _MAYBE_VOLATILE.search(text) is None:
        return text
    return _VOLATILE.sub(_placeholder, text)


def failure_signature(failure: Failure) -> str:
    """Kind, tool and normalised message: equal for failures that are the same but for volatile text."""
    return _bounded(f"{failure.kind.value}|{failure.tool}|{normalise(failure.message)}")


def exact_signature(note: str) -> str:
    """The whole note as it stands (Forge compares notes, volatile parts included)."""
    return _bounded(note)


def same_text(one: str, other: str) -> bool:
    """Whether two outcomes say the same once their volatile parts are left out."""
    if one == other:
        return True
    longest = max(len(one), len(other))
    if abs(len(one) - len(other)) > 64 + longest // 50:
        return False
    return normalise(one) == normalise(other)
