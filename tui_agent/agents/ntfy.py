"""ntfy's protocol, as far as notices and answers need it: publishing as JSON, and a topic's stream of messages."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from tui_agent.agents.waiting import Clock

_SECONDS = 10.0
"""Longest time of one try."""
_SILENCE = 120.0
"""The same, for a stream: a server says every 45 seconds that it is there."""
_FIRST, _LAST = 1.0, 60.0
"""Seconds before a stream is opened again, doubled from the first to the last."""
_LONGEST = 1 << 16
"""Bytes of a line."""
_ANSWER = 2_000
"""Characters of an answer."""


def published(
    topic: str, title: str, text: str, replies: str, answers: Sequence[tuple[str, str]], link: str = ""
) -> dict[str, Any]:
    """A message in the form in which it is published. `answers`: label and body of the buttons, posted to `replies`;
    `link` is opened by a click on it.
    """
    buttons = [
        {"action": "http", "label": label, "url": replies, "method": "POST", "body": body, "clear": True}
        for label, body in answers
    ]
    more = {"actions": buttons, "click": link}
    return {
        "topic": topic,
        "title": title,
        "message": text,
        **{name: value for name, value in more.items() if value},
    }


def post(address: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
    """Post JSON. Raises `OSError` if it did not arrive. Blocking."""
    given = {"Content-Type": "application/json", **(headers or {})}
    with _opened(address, json.dumps(body).encode(), _SECONDS, given):
        pass


def access() -> dict[str, str]:
    """The header that opens a protected topic, by the variable that ntfy's own program reads; nothing without it."""
    token = os.environ.get("NTFY_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


async def answered(replies: str, code: str, clock: Clock) -> str:
    """The words behind the code of a question, once the topic has them; a connection that is lost is opened again."""
    since, delay = "all", _FIRST
    while True:
        try:
            async for message in _messages(f"{replies}/json?since={quote(since)}"):
                since, delay = str(message.get("id") or since), _FIRST
                given, _, words = str(message.get("message") or "").strip().partition(" ")
                if hmac.compare_digest(given.encode(), code.encode()):
                    return words.strip()[:_ANSWER]
        except (OSError, ValueError):
            delay = min(2 * delay, _LAST)
        await clock.sleep(delay)


async def _messages(address: str) -> AsyncIterator[dict[str, Any]]:
    """What is published to a topic. Raises `OSError` if its server cannot be reached."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | Exception]()
    left = threading.Event()

    def passed_on(line: bytes | Exception) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        try:
            with _opened(address, None, _SILENCE, access()) as stream:
                while not left.is_set() and (line := stream.readline(_LONGEST)):
                    passed_on(line)
            passed_on(EOFError())
        except (OSError, ValueError) as error:
            passed_on(error)

    threading.Thread(target=read, daemon=True).start()
    try:
        while not isinstance(line := await lines.get(), Exception):
            with suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict) and message.get("event") == "message":
                    yield message
        if not isinstance(line, EOFError):
            raise line
    finally:
        left.set()


async def in_a_thread(do: Callable[[], None]) -> None:
    """Do what blocks in a thread that holds up no end: whoever gives up waiting leaves it behind. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def run() -> None:
        said = ""
        try:
            do()
        except (OSError, ValueError) as error:
            said = str(error) or type(error).__name__
        with suppress(RuntimeError):  # the loop is closed, or nobody waits any more
            loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(said))

    threading.Thread(target=run, daemon=True).start()
    if said := await done:
        raise OSError(said)


def _opened(address: str, body: bytes | None, seconds: float, headers: Mapping[str, str]) -> Any:
    request = urllib.request.Request("http://localhost/", body, {"User-Agent": "agent-tui", **headers})
    request.full_url = address
    return urllib.request.build_opener(_NoRedirects).open(request, timeout=seconds)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server does not choose another one for a person's words."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None
