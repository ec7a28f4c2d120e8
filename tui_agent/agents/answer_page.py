"""The page behind a question's link, and its small server: `agent-tui serve --answers`.

Opening a link only shows the question, since previews and scanners open links too: an answer is a POST, and the first
one is the last. Whoever has a link can answer that question, and reach nothing else. A connection has one request,
little time and little room; one that is slow makes place for the next.
"""

from __future__ import annotations

import asyncio
import html
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import h11

from tui_agent.agents.questions import LONGEST_ANSWER, Question, Standing, answer, standing
from tui_agent.terminal_text import clipped, sanitize

_SECONDS = 10.0
"""Longest time of a connection."""
_MOST = 64
"""Connections at one time; another one ends the oldest."""
_HEAD, _BODY = 16_384, 32_768
"""Bytes of a request."""

_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    # With `no-referrer` a browser would hide the origin of our own form.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "no-store",
    "Connection": "close",
}
_STYLE = (
    "body{font:17px/1.5 system-ui;max-width:38em;margin:2em auto;padding:0 1em;color-scheme:light dark}"
    "h1{font-size:1.2em}p{overflow-wrap:anywhere}"
    "button,input{font:inherit;padding:.5em 1em;margin:.2em .4em .2em 0}input{width:100%;box-sizing:border-box}"
)
_STATUS = {Standing.OPEN: 200, Standing.UNKNOWN: 404}
"""410 for the others: there was a question."""


@dataclass(frozen=True)
class Asked:
    """A request, read whole."""

    method: str
    path: str
    headers: Mapping[str, tuple[str, ...]]
    body: bytes = b""

    def all(self, name: str) -> tuple[str, ...]:
        return self.headers.get(name, ())


@dataclass(frozen=True)
class Answered:
    """A reply."""

    status: int
    page: str


class RefusedError(Exception):
    """The request is answered by a refusal, without looking at any question."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def answered(asked: Asked, base: str, folder: Path, now: float) -> Answered:
    """Answer a request. `base`: how links begin; `folder` has the questions."""
    try:
        said = _said(asked, base)
    except RefusedError as refused:
        return Answered(refused.status, _page(str(refused)))
    name = asked.path.partition("?")[0].removeprefix("/")
    if said is None:
        stands, question = standing(folder, name, now)
        shown = "" if question is None else _form(question)
        return Answered(_STATUS.get(stands, 410), _page("" if shown else stands.value, shown))
    try:
        stands = answer(folder, name, said, now)
    except OSError as error:
        return Answered(503, _page(f"Your answer could not be kept: {error.strerror or error}. Try again."))
    if stands is not Standing.OPEN:
        return Answered(_STATUS.get(stands, 410), _page(stands.value))
    return Answered(200, _page(f"Your answer is taken: {clipped(said, LONGEST_ANSWER)}"))


def _said(asked: Asked, base: str) -> str | None:
    """The answer that a request brings; None if it only looks. Raises `RefusedError`."""
    address = urlsplit(base)
    if asked.all("host") != (address.netloc,):
        raise RefusedError(403, f"Links are answered as {address.netloc}, and under no other name.")
    if asked.method in {"GET", "HEAD"}:
        return None
    if asked.method != "POST":
        raise RefusedError(405, "A link is opened, or its form is sent.")
    origin = f"{address.scheme}://{address.netloc}"
    if asked.all("origin") not in {(), (origin,)} or asked.all("sec-fetch-site") not in {
        (),
        ("same-origin",),
    }:
        raise RefusedError(403, "A page of another origin sent this answer. Open the link, and answer there.")
    said = ""
    with suppress(ValueError):  # too many fields
        form = parse_qs(asked.body.decode("utf-8", "replace"), max_num_fields=10)
        said = next(iter(form.get("answer", [])), "").strip()
    if not said:
        raise RefusedError(400, "There is no answer in this. Go back, and choose or write one.")
    return said


def _form(question: Question) -> str:
    buttons = "".join(
        f'<button name="answer" value="{_shown(each)}">{_shown(each)}</button>' for each in question.choices
    )
    words = f'<input name="answer" maxlength="{LONGEST_ANSWER}" autocomplete="off" aria-label="an answer in words" '
    return (
        f"<h1>{_shown(question.title)}</h1><p>{_shown(question.text)}</p>"
        f'<form method="post"><p>{buttons}</p></form>'
        f'<form method="post">{words}placeholder="or an answer in words"><button>Send</button></form>'
    )


def _shown(text: str) -> str:
    """Words of others as text of a page."""
    return html.escape(sanitize(text))


def _page(said: str, form: str = "") -> str:
    shown = f"<p>{_shown(said)}</p>" if said else ""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>agent-tui</title>'
        '<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">'
        f"<style>{_STYLE}</style>{shown}{form}"
    )


# --- the server -------------------------------------------------------------------------------------------------------


@dataclass
class AnswerServer:
    """Answers the links that begin with `base`."""

    base: str
    folder: Path
    now: Callable[[], float]
    seconds: float = _SECONDS
    _open: dict[asyncio.StreamWriter, None] = field(default_factory=dict)
    """Connections, the oldest first."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection (a callback of `asyncio.start_server`)."""
        if len(self._open) >= _MOST:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(self.seconds):
                    await self._exchange(reader, writer)
        finally:
            self._open.pop(writer, None)
            writer.close()

    def end(self) -> None:
        """End every connection."""
        for writer in self._open:
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        method = ""
        try:
            asked = await _request(connection, reader)
            method = asked.method
            given = await asyncio.to_thread(answered, asked, self.base, self.folder, self.now())
        except RefusedError as refused:
            given = Answered(refused.status, _page(str(refused)))
        except h11.RemoteProtocolError as error:
            given = Answered(error.error_status_hint, _page("This is no request that is understood."))
        writer.write(_written(connection, given, method))
        await writer.drain()


async def _request(connection: h11.Connection, reader: asyncio.StreamReader) -> Asked:
    """Read a request. Raises `RefusedError`, `h11.RemoteProtocolError`; `OSError` if it ends before its end."""
    asked, body = None, b""
    while True:
        match connection.next_event():
            case h11.Request() as request:
                headers: dict[str, tuple[str, ...]] = {}
                for name, value in request.headers:
                    key = name.decode("ascii")
                    headers[key] = (*headers.get(key, ()), value.decode("latin-1"))
                asked = Asked(
                    request.method.decode("ascii"), request.target.decode("ascii", "replace"), headers
                )
            case h11.Data() as piece:
                body += piece.data
                if len(body) > _BODY:
                    raise RefusedError(413, "An answer is shorter than that.")
            case h11.EndOfMessage() if asked is not None:
                return Asked(asked.method, asked.path, asked.headers, body)
            case h11.ConnectionClosed():
                raise ConnectionResetError
            case _:
                connection.receive_data(await reader.read(8_192))


def _written(connection: h11.Connection, given: Answered, method: str) -> bytes:
    page = given.page.encode()
    headers = [*_HEADERS.items(), ("Content-Length", str(len(page)))]
    events: list[h11.Event] = [h11.Response(status_code=given.status, headers=headers)]
    if method != "HEAD":
        events.append(h11.Data(data=page))
    return b"".join(connection.send(event) or b"" for event in (*events, h11.EndOfMessage()))


async def serve_answers(server: AnswerServer, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until a signal ends it."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with await asyncio.start_server(server.serve, sock=listening):
        ready()
        await ended.wait()
        server.end()
