"""Exceptions' texts made readable: without the names that libraries put before them, without web pages.

Only words; which kind of fault they belong to is decided in `faults`.
"""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress

NO_PROVIDER = re.compile(r"LLM Provider NOT provided|Unmapped LLM provider", re.IGNORECASE)

_PREFIX = re.compile(r"^(litellm\.)?\w*(Error|Exception|Timeout)( Error)?\s*(:|-)\s*")
_ORIGINAL = re.compile(r"\s*(Original exception: .*|Received Model Group=.*)$", re.DOTALL)
_OF_THE_SOCKET = re.compile(r" ssl:(?:<[^>]*>|\w+)| ?\[Connect call failed \([^)]*\)\]")
"""What aiohttp says of a socket that nobody asked for."""
_IN_LINE = re.compile(r"Got unexpected response from \w+: \{['\"]error['\"]: (['\"])(.+?)\1\}", re.DOTALL)
"""An error that Ollama sends as a line of its stream."""
_ERROR_CODE = re.compile(r"^Error code: (\d{3}) - ")
_IN_BODY = re.compile(r"""['"]message['"]: (['"])(.+?)\1(?:, ['"]|\})""", re.DOTALL)
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)


def readable(message: str) -> str:
    """An exception's text without the names that libraries put before it, and without a web page's tags."""
    words = _ORIGINAL.sub("", message.strip())
    if "<html" in words.lower() or "<!doctype" in words.lower():
        title = _TITLE.search(words)
        return "the server answered with a web page" + (f" ({title[1].strip()})" if title else "")
    in_line = _IN_LINE.search(words)
    if in_line is not None:
        words = in_line[2]
    previous = ""
    while previous != words:
        previous, words = words, _PREFIX.sub("", words, count=1).strip()
    words = _OF_THE_SOCKET.sub("", _ERROR_CODE.sub("", words))
    if NO_PROVIDER.search(words):
        return "no provider is known by this model's name"
    if words.startswith(("{", "b'{", 'b"{')):
        words = _in_body(words) or words
    return words.splitlines()[0].strip() if words else ""


def _in_body(words: str) -> str:
    """The message in an error's body, which comes as JSON, as Python's bytes or as Python's dictionary."""
    if words[:2] in {"b'", 'b"'}:
        with suppress(ValueError, SyntaxError):
            words = ast.literal_eval(words).decode("utf-8", "replace")
    with suppress(ValueError):
        body = json.loads(words)
        inner = body.get("error", body)
        if not isinstance(inner, dict):
            return str(inner)
        return str(inner.get("message") or inner.get("detail") or "")
    found = _IN_BODY.search(words)
    return found[2] if found else ""
