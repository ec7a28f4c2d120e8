"""The two ways to a server: a child process with JSON lines over its pipes, and streamable HTTP.

Both give the SDK a pair of streams. A server cannot flood the program through them: messages are bounded in size and
paced, so that one that never stops writing is held back by its own pipe.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import shutil
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import httpx2
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from tui_agent import processes
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.disk import user_path
from tui_agent.sandbox.inside import Inside
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.terminal_text import one_line

LARGEST_MESSAGE = 8_000_000
"""Bytes of one message."""
_MESSAGES, _BYTES, _BURST = 300, 20_000_000, 1.0
"""Messages and bytes a second that are taken from one server, and the seconds of them that may come at once."""
_LEAVING = 1.0
"""Seconds for a server to leave by itself once its input is closed."""
_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL."""
_SWEEPING = 6.0
_SAFE = frozenset({
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "NO_PROXY", "no_proxy",
    "SYSTEMROOT", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE",
})  # fmt: skip
"""Variables that every server gets; all others only by its entry."""
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})

Streams = tuple[Any, Any]

logging.getLogger("mcp").addHandler(logging.NullHandler())
logging.getLogger("mcp").propagate = False
logging.getLogger("client").propagate = False


def server_environment(environ: Mapping[str, str], configured: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server: variables that are known to be harmless, and those of its entry."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in _SAFE or name.startswith("LC_") or (name in _PROXIES and "@" not in value)
    }
    return {**kept, **configured}


class Pace:
    """Holds a reader back once more has come than a well-behaved server sends."""

    def __init__(self) -> None:
        self._paid_until = 0.0

    async def wait(self, size: int) -> None:
        now = asyncio.get_running_loop().time()
        self._paid_until = max(self._paid_until, now - _BURST) + 1 / _MESSAGES + size / _BYTES
        if self._paid_until > now:
            await asyncio.sleep(self._paid_until - now)


class Line:
    """A connection as seen from outside: whether it has ended, and what the server said beside the protocol."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.why = ""
        self.exit_code: int | None = None
        """How the server's process ended, once it is known."""
        self.http_status: int | None = None
        """Of the newest response."""
        self.login = ""
        """Why the server needs a login; empty: it needs none."""
        self.wanted_scopes = ""
        """Scopes that the login does not have, and a request needed."""
        self._said: deque[str] = deque(maxlen=8)

    def end(self, why: str) -> None:
        """The connection is over; the first reason counts."""
        if not self.ended.is_set():
            self.why = why
            self.ended.set()

    def needs_login(self, why: str) -> None:
        """The server takes nothing from us before somebody has logged in."""
        self.login = why
        self.end(why)

    def said(self, text: str) -> None:
        """A line that the server wrote beside the protocol."""
        if text.strip():
            self._said.append(one_line(text, 300))

    @property
    def last_words(self) -> str:
        """The end of what it wrote beside the protocol."""
        return " | ".join(list(self._said)[-3:])


@asynccontextmanager
async def stdio(entry: ServerEntry, line: Line, sandbox: Sandbox) -> AsyncIterator[Streams]:
    """Start the server and talk over its pipes. When this is left, or we die, nothing of the server runs on, and what
    it wrote in the sandbox for programs outside to run later is taken back, as while it runs.

    The SDK's own transport cannot be bounded from outside: it keeps a line of any length, hands no leash to the
    process, and tells neither the exit code nor what came beside the protocol.

    Raises `OSError` if it cannot be started.
    """
    inside = Inside(sandbox)
    async with inside, _talking(entry, line, sandbox, inside) as streams:
        inside.look_after(lambda: line.end("it wrote again what the sandbox had undone"))
        yield streams


@asynccontextmanager
async def _talking(
    entry: ServerEntry, line: Line, sandbox: Sandbox, inside: Inside
) -> AsyncIterator[Streams]:
    child, leash, status = await _start(entry, sandbox, inside)
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read_messages(child, to_session, line)),
        asyncio.create_task(_write_messages(child, from_session, line)),
        asyncio.create_task(_read_words(child.process.stderr, line)),
    ]
    try:
        yield from_server, to_server
    finally:
        await processes.uncancelled(_end(child, leash, status, tasks, line))
        for stream in (to_session, from_server, to_server, from_session):
            stream.close()


async def _start(entry: ServerEntry, sandbox: Sandbox, inside: Inside) -> tuple[processes.Child, int, int]:
    """The server under a supervisor that ends it, and all it started, when our end of the leash closes."""
    environment = server_environment(os.environ, entry.env)
    _find(entry, environment)
    argv = [entry.command, *entry.args]
    if sandbox.mechanism is not None:
        # The sandbox begins in the workspace.
        argv = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', os.fspath(entry.cwd or Path.cwd()), *argv]
        argv = await asyncio.to_thread(inside.wrap, argv)
        environment |= sandbox.environment()
    leash_end, leash = os.pipe()
    status, status_end = os.pipe()
    try:
        child = await processes.start(
            [*processes.supervised(_GRACE, status_end, sandbox.gate, leash_end), *argv],
            cwd=entry.cwd,
            env=environment,
            pass_fds=(leash_end, status_end),
            limit=LARGEST_MESSAGE,
        )
    except BaseException:
        os.close(leash)
        os.close(status)
        raise
    finally:
        os.close(leash_end)
        os.close(status_end)
    return child, leash, status


def _find(entry: ServerEntry, environment: Mapping[str, str]) -> None:
    """Raises `FileNotFoundError` unless the command can be found: the supervisor would only say that it ended."""
    folder = entry.cwd or Path.cwd()
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
    command = str(folder / user_path(entry.command)) if os.sep in entry.command else entry.command
    if shutil.which(command, path=environment.get("PATH", os.defpath)) is None:
        raise FileNotFoundError(errno.ENOENT, "there is no such program", entry.command)


async def _end(
    child: processes.Child, leash: int, status: int, tasks: list[asyncio.Task[None]], line: Line
) -> None:
    """Close its input, give it a moment to leave, let the leash go, and learn how it ended."""
    try:
        if child.process.stdin is not None:
            child.process.stdin.close()
        await _gone(child, _LEAVING)
        os.close(leash)
        await _gone(child, _GRACE + _SWEEPING)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        await child.end()
        line.exit_code = _exit_code(status)
        os.close(status)


async def _gone(child: processes.Child, seconds: float) -> None:
    """Wait until the supervisor has left, for so long at most."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    # Not `process.wait()`, which also waits for pipes that nobody reads any more.
    while child.code is None and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _exit_code(status: int) -> int | None:
    os.set_blocking(status, False)
    try:
        reported = dict(text.split() for text in os.read(status, 4096).decode().splitlines())
    except BlockingIOError:
        return None
    return int(reported["exit"]) if "exit" in reported else None


async def _read_messages(child: processes.Child, to_session: Any, line: Line) -> None:
    pace = Pace()
    stdout = child.process.stdout
    if stdout is None:
        return
    why = "the server closed the connection"
    try:
        async with to_session:
            while text := await stdout.readline():
                await pace.wait(len(text))
                try:
                    message = types.jsonrpc_message_adapter.validate_json(_whole(text), by_name=False)
                except ValueError:
                    line.said(text[:1000].decode("utf-8", "replace"))
                    continue
                await to_session.send(SessionMessage(message))
    except ValueError:
        why = f"the server sent a message of more than {LARGEST_MESSAGE:,} bytes"
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        why = "the connection was closed"
    finally:
        line.end(why)


_SURROGATE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _whole(text: bytes) -> bytes:
    """A message with replacement characters for halves of surrogate pairs, for which it would be dropped."""
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    return _SURROGATE.sub(lambda found: b"\\ufffd" if found[1] else found[0], text)


async def _write_messages(child: processes.Child, from_session: Any, line: Line) -> None:
    stdin = child.process.stdin
    if stdin is None:
        return
    try:
        async with from_session:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode() + b"\n")
                await stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        line.end("the server does not read what it is sent")


async def _read_words(stderr: asyncio.StreamReader | None, line: Line) -> None:
    """Keep the end of what the server writes to its standard error; the rest is read and dropped."""
    if stderr is None:
        return
    pace = Pace()
    while piece := await stderr.read(1 << 16):
        for text in piece.decode("utf-8", "replace").splitlines()[-8:]:
            line.said(text)
        await pace.wait(len(piece))


class _Bounded(httpx2.AsyncByteStream):
    """A response's body, paced; one that is no stream of events is bounded as a whole."""

    def __init__(self, inner: Any, limit: int | None) -> None:
        self._inner = inner
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pace, total = Pace(), 0
        async for piece in self._inner:
            total += len(piece)
            if self._limit is not None and total > self._limit:
                raise httpx2.ReadError(f"the server sent a message of more than {self._limit:,} bytes")
            await pace.wait(len(piece))
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _bound(response: httpx2.Response, line: Line) -> None:
    """Before the body is read. Events are bounded one by one, by the SDK."""
    line.http_status = response.status_code
    events = response.headers.get("content-type", "").startswith("text/event-stream")
    response.stream = _Bounded(response.stream, None if events else LARGEST_MESSAGE)


class _Watched:
    """The SDK's reading end, with an eye on its end; also paces what comes."""

    def __init__(self, inner: Any, line: Line) -> None:
        self._inner = inner
        self._line = line
        self._pace = Pace()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self) -> Any:
        try:
            item = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._line.end("the server closed the connection")
            raise
        await self._pace.wait(0)
        return item

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> bool | None:
        left: bool | None = await self._inner.__aexit__(*exc)
        return left

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def http(entry: ServerEntry, line: Line, auth: httpx2.Auth | None) -> AsyncIterator[Streams]:
    """Talk to a server at an address. Redirects are followed within its own origin only, by the SDK."""
    async with (
        httpx2.AsyncClient(
            headers=dict(entry.headers),
            auth=auth,
            timeout=httpx2.Timeout(30.0, read=max(300.0, entry.call_limit + 10)),
            event_hooks={"response": [partial(_bound, line=line)]},
        ) as client,
        streamable_http_client(entry.url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as (
            reading,
            writing,
        ),
    ):
        yield _Watched(reading, line), writing
