"""Signatures: the identity of calls and of failures.

Keys identify calls (tool and input), signatures identify failures (kind, tool, message without its volatile
parts). Only text goes in and text comes out; what is counted by them is the detectors' business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tui_agent.core.events import Failure

KeyForm = Literal["canonical", "as_sent"]

_LONGEST = 1_000
"""Characters of a signature that are kept as they are; longer ones end in a digest."""

_LONGEST_NAME = 80

_LONGEST_NORMALISED = 16_000
"""Characters of a text that are normalised: its beginning and its end, the places of errors."""

_PROSE = frozenset({"thought", "thoughts", "explanation", "reasoning", "rationale", "justification"})
"""Fields in which a model talks about its call."""

_AMBIGUOUS_PROSE = frozenset({"description", "reason"})
"""Prose beside a field that acts (`command`), content elsewhere (an issue's description)."""

_ACTING = frozenset({"command", "cmd", "code", "script", "path", "file_path", "pattern", "query", "url"})

_encode_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_encode_as_sent = json.JSONEncoder(separators=(",", ":"), default=str).encode


def call_key(tool: str, arguments: Mapping[str, Any], form: KeyForm = "canonical") -> str:
    """The identity of a call: the tool's name and a digest, so that a key gives away nothing of the arguments.

    canonical: key order and prose that does not change the meaning make no difference. as_sent: another order of
    fields is another call (Gigi).
    """
    if form == "as_sent":
        return _key(tool, _encode_as_sent(dict(arguments)))
    return _key(tool, _encode_sorted(_meaning(arguments)))


def raw_call_key(tool: str, arguments: str) -> str:
    """The identity of a call whose arguments are no JSON object."""
    return _key(tool, arguments)


def _key(tool: str, text: str) -> str:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
    return f"{tool[:_LONGEST_NAME]} {digest}"


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

# One sub per kind of volatile text, each behind a test that costs next to nothing: most texts hold none of them, and
# a search that begins with a character set is many times faster than one alternation over all.

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")

_TMP = re.compile(
    r"""
    /(?:
        (?:private/)?var/folders/[^/\s]+/[^/\s]+/T(?:/[\w.+@-]+)?
      | (?:(?:private|var)/)?tmp/(?:
            pytest-of-[\w.-]+/pytest-\d+
          | [\w.+@-]+(?=/) | tmp[\w.-]* | [\w.+@-]*\d[\w.+@-]*
        )
    )
    """,
    re.VERBOSE,
)
_TMP_OF_WINDOWS = re.compile(r"[A-Za-z]:\\Users\\[^\\\s]+\\AppData\\Local\\Temp\\[\w.+@-]+")

_NUMBER = re.compile(
    rf"""
    [0-9](?<![\w.:][0-9])
    (?:
        (?P<time>
            \d{{3}}-\d{{2}}-\d{{2}}
            (?:[T\ _]\d{{2}}:?\d{{2}}(?::?\d{{2}}(?:[.,]\d+)?)?)?(?:Z\b|\ ?[+-]\d{{2}}:?\d{{2}}\b)?
          | \d?:\d{{2}}:\d{{2}}(?:[.,]\d+)?(?:\ ?[AP]M\b)?
          | \d?/{_MONTH}/\d{{4}}:\d{{2}}:\d{{2}}:\d{{2}}(?:\ [+-]\d{{4}})?
          | \d?\ {_MONTH}(?:\ \d{{4}})?\ \d{{2}}:\d{{2}}:\d{{2}}
          | (?<=1)[4-9]\d{{8}}(?:\.\d+|(?:\d{{3}}){{1,3}})?(?![\w.]\d|\w)
        )
      | (?P<duration>
            (?:\d*h\ ?)?(?:\d*m\ ?)?(?:(?<=[hm\ ])\d)?\d*(?:\.\d+)?(?:ns|us|µs|ms|s)\b
          | \d*(?:\.\d+)?\ (?:ns|us|µs|ms|s|secs?|seconds?|milliseconds?|mins?|minutes?|hours?)\b
        )
    )
    """,
    re.VERBOSE,
)

_DATED = re.compile(
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:{_MONTH} {{1,2}}\d{{1,2}}(?: \d{{4}})? )?<time>"
    r"(?: (?:UTC|GMT|CES?T|[ECMP][SD]T))?(?: (?:19|20)\d\d\b)?"
)

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+\b")

_PROCESS = re.compile(
    r"""
    [pPtT=\[](?:
        (?<!\w.)(?:(?<=[pP])(?i:p?id|rocess)|(?<=[tT])(?i:id))(?i:\ id)?[\ =:\#(\[]{1,2}\d+
      | (?<=[tT])(?<!\w.)(?i:hread-\d+\b)
      | (?<==)=\d+==
      | (?<=\w\[)\d{2,}\](?=:)
    )
    """,
    re.VERBOSE,
)

_PORT = re.compile(
    r":(?:3[3-9]|[45]\d|6[0-5])\d{3}\b"
    r"(?:(?<=localhost.{6})|(?<=\.\d.{6})|(?<=\.\d\d.{6})|(?<=\.\d\d\d.{6})|(?<=\].{6}))"
)
"""Ports that the system assigns, behind a local name or a numeric address."""

_HEX = re.compile(r"[0-9a-f]{7,128}|[0-9A-F]{16,128}")

_DIGIT = re.compile("[0-9]")

_QUOTED_COMMAND = re.compile(r"^\S{0,200}sh: (?:-c: |eval: )?line [0-9]+: `.*'$", re.MULTILINE)
"""The line of the command itself, which a shell puts behind a syntax error: it is another one with every command."""


def _number(match: re.Match[str]) -> str:
    return f"<{match.lastgroup}>"


def _hex(match: re.Match[str]) -> str:
    """Only whole words that mix digits and letters: a number is not hex, and neither is "defaced"."""
    word, text = match.group(), match.string
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    if _is_word(before) or _is_word(after) or word.isdigit() or word.isalpha():
        return word
    return "<hex>"


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=256)
def normalise(text: str) -> str:
    """`text` without the command that a shell quotes behind a syntax error, and with placeholders for
    times, durations, addresses, temporary paths, process ids, uuids and hex.

    Counts stay ("5 failed" is not "4 failed"). Runs of white space become one space.
    """
    if len(text) > _LONGEST_NORMALISED:
        half = _LONGEST_NORMALISED // 2
        text = f"{text[:half]} … {text[-half:]}"
    if ": `" in text:
        text = _QUOTED_COMMAND.sub("", text)
    text = " ".join(text.split())
    if "tmp/" in text or "/var/folders/" in text:
        text = _TMP.sub("<tmp>", text)
    if "\\Temp\\" in text:
        text = _TMP_OF_WINDOWS.sub("<tmp>", text)
    if _DIGIT.search(text) is None:
        return text
    if text.count("-") >= 4:
        text = _UUID.sub("<uuid>", text)
    if "0x" in text or "0X" in text:
        text = _ADDRESS.sub("<address>", text)
    text = _NUMBER.sub(_number, text)
    if "<time>" in text:
        text = _DATED.sub("<time>", text)
    lower = text.lower()
    if "id" in lower or "proc" in lower or "thread-" in lower or "==" in text or "]:" in text:
        text = _PROCESS.sub("<process>", text)
    if ":" in text:
        text = _PORT.sub("<port>", text)
    return _HEX.sub(_hex, text)


def failure_signature(failure: Failure) -> str:
    """Kind, tool and normalised message: equal for failures that are the same but for volatile text."""
    return _bounded(f"{failure.kind.value}|{failure.tool}|{normalise(failure.message)}")


def exact_signature(note: str) -> str:
    """The whole note as it stands (Forge compares notes, volatile parts included)."""
    return _bounded(note)


def same_text(one: str, other: str) -> bool:
    """True if two outcomes say the same once their volatile parts are left out."""
    if one == other:
        return True
    longest = max(len(one), len(other))
    if abs(len(one) - len(other)) > 64 + longest // 50:
        return False
    return normalise(one) == normalise(other)
