"""The way back from the browser: to a port of this machine, or by hand where the browser runs on another machine."""

from __future__ import annotations

import asyncio
import secrets
import socket
from contextlib import suppress
from urllib.parse import parse_qsl, urlsplit

from tui_agent.tools.mcp.status import LoginError

_PATH = "/callback"
_LARGEST_REQUEST = 16_384
_PATIENCE = 10.0
"""Seconds for a browser to send its request."""
_DONE = "You can close this page and go back to agent-tui."
_OTHER = "This is not the answer that agent-tui waits for."


class Redirect:
    """Waits for the one answer that has the state of this login; all others are turned away."""

    def __init__(self) -> None:
        self.state = secrets.token_urlsafe(32)
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._servers: list[asyncio.Server] = []
        self.port = 0

    @property
    def address(self) -> str:
        """The `redirect_uri`."""
        return f"http://localhost:{self.port}{_PATH}"

    async def listen(self, port: int, liked: int = 0) -> None:
        """At this port; if it is 0 at the one that is liked, or any other. Raises `LoginError`."""
        for wanted in dict.fromkeys((port,) if port else (liked, 0)):
            try:
                first = await self._serve("127.0.0.1", wanted)
            except OSError:
                continue
            self.port = first
            with suppress(OSError):  # a browser may take `localhost` for either address
                await self._serve("::1", first)
            return
        raise LoginError(
            f"the port {port}, which its entry names as callbackPort, is in use by another program: end that one, "
            "or wait for its login"
        )

    async def _serve(self, host: str, port: int) -> int:
        server = await asyncio.start_server(self._visit, host, port, limit=_LARGEST_REQUEST)
        self._servers.append(server)
        made: socket.socket = server.sockets[0]
        return int(made.getsockname()[1])

    def take(self, text: str) -> bool:
        """An address that the browser was sent to; False if it is not of this login, or was there before."""
        parts = urlsplit(text.strip())
        pairs = parse_qsl(parts.query or parts.path.removeprefix("?"))
        given = dict(pairs)
        known = len(given) == len(pairs) and secrets.compare_digest(
            given.get("state", "").encode(), self.state.encode()
        )
        if not known or self._answer.done() or not given.keys() & {"code", "error"}:
            return False
        self._answer.set_result(given)
        return True

    async def answer(self) -> dict[str, str]:
        """The parameters that came back."""
        return await self._answer

    def close(self) -> None:
        """Listen no longer."""
        for server in self._servers:
            server.close()
        self._answer.cancel()

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broken = (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
        try:
            with suppress(*broken):
                async with asyncio.timeout(_PATIENCE):
                    await self._reply(await reader.readuntil(b"\r\n\r\n"), writer)
        finally:
            writer.close()

    async def _reply(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        method, target, *_ = head.decode("latin-1").split(" ", 2)
        taken = method == "GET" and urlsplit(target).path == _PATH and self.take(target)
        status, words = ("200 OK", _DONE) if taken else ("400 Bad Request", _OTHER)
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(words) + 1}\r\n"
            f"Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{words}\n".encode()
        )
        await writer.drain()
