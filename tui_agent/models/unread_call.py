"""Errors by which a server says that it could not read the call that its own model wrote.

That is no fault of the request and none of the server's health: the model has to write the call otherwise. The forms:
Groq (400, `tool_use_failed` with `failed_generation`), Cerebras (400), Ollama, llama.cpp, LM Studio and vLLM (500).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_UNREAD = re.compile(
    r"\btool_use_failed\b|failed to call a function|tool call validation failed|failed to generate tool_?calls"
    r"|(?:error|fail\w*|unable|could not|cannot)(?: \w+){0,2} pars\w+(?: the| a)? (?:tool|function)[ _]?calls?"
    r"|failed to parse input at pos|malformed_function_call"
    r"|model (?:generated|produced) (?:an )?invalid (?:tool|function)"
    r"|invalid (?:tool|function) call (?:generated|produced|arguments from)",
    re.IGNORECASE,
)
_GENERATION = re.compile(
    r"""['"]failed_generation['"]\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""", re.DOTALL
)
_RAW = re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL)
_LONGEST = 1_000_000
"""Characters of a text that are looked at; a longer one holds a whole file in its call."""


def unread_call(errors: Iterable[BaseException]) -> str | None:
    """Find what the model wrote ("": not told); None if the errors speak of something else."""
    chain = list(errors)
    bodies = [getattr(each, "body", None) for each in chain]
    said = [text[:_LONGEST] for body in bodies for text in _messages(body)]
    said += [str(each)[:_LONGEST] for each in chain]
    found = [each for body in bodies for each in _generations(body)]
    if not found and not any(_UNREAD.search(text) for text in said):
        return None
    found += [each for text in said for each in _told(text)]
    return next((each for each in found if each.strip()), "")


def _messages(body: object) -> Iterator[str]:
    """Yield the words and the code of an error's body, those of one within another included."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, Mapping):
        yield from (value for key in ("message", "code", "detail") if isinstance(value := body.get(key), str))
        yield from _messages(body.get("error"))


def _generations(body: object) -> Iterator[str]:
    """Yield `failed_generation` in the body of an error, also of one within another."""
    if not isinstance(body, Mapping):
        return
    told: Any = body.get("failed_generation")
    if isinstance(told, str):
        yield told
    yield from _generations(body.get("error"))


def _told(text: str) -> Iterator[str]:
    """Yield the same from the words of an error: as JSON, as Python shows a dictionary, or as Ollama quotes it."""
    quoted = _GENERATION.search(text)
    if quoted is not None:
        try:
            yield json.loads(quoted[1], strict=False) if quoted[1][0] == '"' else ast.literal_eval(quoted[1])
        except (ValueError, SyntaxError):
            yield ""
    raw = _RAW.search(text)
    if raw is not None:
        yield raw[1]
