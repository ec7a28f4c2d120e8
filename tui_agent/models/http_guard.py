"""Guards against a model's server: it may not lead the conversation and the key elsewhere, nor send without
end.

Stands in the HTTP libraries that the clients go through (httpx, and httpx2 of newer OpenAI clients), and only in the
model host. Bytes are counted as they are after decompression, so that a small answer cannot become gigabytes.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tui_agent.core.names import FaultKind
from tui_agent.models.chat_events import plain_events
from tui_agent.models.fault_words import is_error
from tui_agent.models.http_errors import AnsweredWithError, RefusedAnswerError

LARGEST_REPLY = 64 << 20
"""Bytes: a long reply in pieces of a few characters, each with its frame."""
LONGEST_LINE = 8 << 20
"""Bytes of one event of a stream, or of a reply in one piece; libraries join its parts again and again."""
LARGEST_ERROR = 1 << 16
"""Bytes of an error's body that are read."""
_AT_ONCE = 1 << 18


_LIBRARIES = ("httpx", "httpx2")
_guarded: set[str] = set()


def install() -> None:
    """Guard every request of this process that goes through the libraries that are imported by now."""
    for name in _LIBRARIES:
        library = sys.modules.get(name)
        if library is None or name in _guarded:
            continue
        _guarded.add(name)
        guards = ((library.AsyncClient, "send", _staying), (library.Response, "aiter_bytes", _bounded))
        for owner, method, guard in guards:
            setattr(owner, method, guard(getattr(owner, method)))


def reads_as_sent(client: Any) -> Any:
    """Mark a client whose owner reads streams as servers send them; all others get plain events. Returns it."""
    client.reads_as_sent = True
    return client


def _staying(send: Any) -> Any:
    async def guarded(client: Any, request: Any, **options: Any) -> Any:
        response = await send(client, request, **{**options, "follow_redirects": False})
        if response.has_redirect_location:
            await response.aclose()
            place = response.headers.get("location", "")[:200]
            raise RefusedAnswerError(
                FaultKind.BAD_REQUEST,
                f"the server wants the request sent to {place!r} instead (status {response.status_code})",
                "Nothing was sent there. If you trust that address, give it with --api-base URL.",
            )
        await look_for_error(request, response)
        response.extensions[_PLAIN] = not hasattr(client, "reads_as_sent") and _wants_chat_stream(request)
        return response

    return guarded


_PLAIN = "plain_events"
"""Extension of a response that whoever reads it gets as plain events."""
_STREAMED = re.compile(rb'"stream":\s*true')


def _wants_chat_stream(request: Any) -> bool:
    return (
        request.url.path.endswith("/chat/completions")
        and _STREAMED.search(bytes(request.content)) is not None
    )


async def look_for_error(request: Any, response: Any) -> None:
    """Raise `AnsweredWithError` if the answer to a call of a model is a short object of JSON that is an
    error.
    """
    length = response.headers.get("content-length", "")
    is_json = response.headers.get("content-type", "").startswith("application/json")
    called = request.method == "POST" and request.url.path.endswith(_CALLS)
    if not (
        called and is_json and response.is_success and length.isdecimal() and int(length) <= LARGEST_ERROR
    ):
        return
    body = await response.aread()
    with suppress(ValueError, RecursionError):
        if is_error(json.loads(body)):
            raise AnsweredWithError(response.status_code, response.headers, body)


_CALLS = ("/chat/completions", "/completions", "/responses", "/messages")
"""Paths of the calls of models."""


def _bounded(aiter_bytes: Any) -> Any:
    def guarded(response: Any, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        pieces = bounded(response, chunk_size)
        plain = response.extensions.get(_PLAIN) and response.is_success
        return plain_events(pieces) if plain else pieces

    async def bounded(response: Any, chunk_size: int | None) -> AsyncIterator[bytes]:
        total = line = 0
        async for piece in aiter_bytes(response, chunk_size):
            total += len(piece)
            end = piece.rfind(b"\n")
            line = len(piece) - end - 1 if end >= 0 else line + len(piece)
            if response.status_code >= 400 and total > LARGEST_ERROR:
                # What it says at first is enough to know what is wrong.
                await response.aclose()
                yield piece[: LARGEST_ERROR - total]
                return
            if total > LARGEST_REPLY or line > LONGEST_LINE:
                await response.aclose()
                what = "one piece of the reply" if line > LONGEST_LINE else "the reply"
                most = LONGEST_LINE if line > LONGEST_LINE else LARGEST_REPLY
                raise RefusedAnswerError(
                    FaultKind.BAD_OUTPUT,
                    f"{what} has more than {most >> 20} MB",
                    "Check what answers at that address, or choose another model.",
                )
            for start in range(0, len(piece), _AT_ONCE):
                if start:
                    # A small piece can unpack to millions of lines: whoever watches the call must get its turn.
                    await asyncio.sleep(0)
                yield piece[start : start + _AT_ONCE]

    return guarded
