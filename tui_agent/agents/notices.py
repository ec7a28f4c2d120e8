"""Words for a person who is away: questions, limits and ends go to a webhook, an ntfy topic or a command of their own.

Nothing is sent unless a person has configured it. Secrets are masked, and a text is short. What cannot be sent is tried
again until it can, in its order; the run waits for none of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tui_agent.agents.leash import leashed
from tui_agent.agents.waiting import Clock
from tui_agent.config.sections import NoticeSettings
from tui_agent.store.redaction import Redactor
from tui_agent.terminal_text import one_line

_TEXT, _TITLE = 1_000, 100
"""Characters."""
_SECONDS = 10.0
"""Longest time of one try."""
PATIENCE, HASTE = 10.0, 0.5
"""Seconds at the end for what was not sent yet; of a run that a person or its limit ended."""
_FIRST, _LAST = 5.0, 300.0
"""Seconds before another try, doubled from the first to the last."""
_MOST = 200
"""Notices that wait; beyond them the oldest is dropped."""


@dataclass(frozen=True)
class Notice:
    """What a person is told."""

    title: str
    text: str


class Notices:
    """Sends notices in their order. `say` tells a person at the terminal what could not be sent."""

    def __init__(
        self, settings: NoticeSettings, clock: Clock, say: Callable[[str], None], redactor: Redactor
    ) -> None:
        self._ways = tuple(_ways(settings))
        self._clock = clock
        self._say = say
        self._redactor = redactor
        self._waiting: dict[int, list[Notice]] = {way: [] for way in range(len(self._ways))}
        self._sending: dict[int, asyncio.Task[None]] = {}

    def put(self, title: str, text: str) -> None:
        """Send a notice when it can be sent."""
        mask = self._redactor.text
        notice = Notice(one_line(mask(title), _TITLE), one_line(mask(text), _TEXT))
        for way, waiting in self._waiting.items():
            waiting.append(notice)
            del waiting[:-_MOST]
            if way not in self._sending or self._sending[way].done():
                self._sending[way] = asyncio.create_task(self._send(way))

    async def close(self, seconds: float = PATIENCE) -> None:
        """Try for a little longer, and say what was never sent."""
        if self._sending:
            await asyncio.wait(self._sending.values(), timeout=seconds)
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        for notice in {each: None for waiting in self._waiting.values() for each in waiting}:
            self._say(f"not sent: {notice.title}: {notice.text}")

    async def _send(self, way: int) -> None:
        waiting, delay = self._waiting[way], _FIRST
        while waiting:
            try:
                await self._ways[way](waiting[0])
            except (OSError, ValueError, TimeoutError):
                await self._clock.sleep(delay)
                delay = min(2 * delay, _LAST)
            else:
                waiting.pop(0)
                delay = _FIRST


def _ways(settings: NoticeSettings) -> Iterator[Callable[[Notice], Awaitable[None]]]:
    if settings.webhook:
        yield partial(_posted, settings.webhook, _for_webhook)
    if settings.ntfy:
        server, _, topic = settings.ntfy.rstrip("/").rpartition("/")
        yield partial(_posted, f"{server}/", partial(_for_ntfy, topic))
    if settings.command:
        yield partial(_by_command, settings.command)


def _for_webhook(notice: Notice) -> dict[str, str]:
    return {"title": notice.title, "text": notice.text}


def _for_ntfy(topic: str, notice: Notice) -> dict[str, str]:
    return {"topic": topic, "title": notice.title, "message": notice.text}


async def _posted(address: str, form: Callable[[Notice], dict[str, str]], notice: Notice) -> None:
    """Post by a thread that holds up no end: whoever gives up waiting leaves it behind."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def post() -> None:
        said = ""
        try:
            _post(address, form(notice))
        except (OSError, ValueError) as error:
            said = str(error) or type(error).__name__
        with suppress(RuntimeError):  # the loop is closed, or nobody waits any more
            loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(said))

    threading.Thread(target=post, daemon=True).start()
    if said := await done:
        raise OSError(said)


def _post(address: str, body: dict[str, str]) -> None:
    """Post JSON. Raises `OSError` if it did not arrive. Blocking."""
    headers = {"Content-Type": "application/json", "User-Agent": "agent-tui"}
    request = urllib.request.Request("http://localhost/", json.dumps(body).encode(), headers)
    request.full_url = address
    with urllib.request.build_opener(_NoRedirects).open(request, timeout=_SECONDS):
        pass


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server does not choose another one for a person's words."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


async def _by_command(command: tuple[str, ...], notice: Notice) -> None:
    """Run a command with the notice in its variables. Raises `OSError` if it fails."""
    told = {"AGENT_TUI_TITLE": notice.title, "AGENT_TUI_TEXT": notice.text}
    async with (
        asyncio.timeout(_SECONDS),
        leashed(command, cwd=Path.home(), env={**os.environ, **told}) as running,
    ):
        await running.child.output(limit=0)
        if running.code:
            raise OSError(f"exit code {running.code}")
