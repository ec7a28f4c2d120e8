"""A loopback web server of which each path answers as a table says, byte for byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

import pytest

from tui_agent.tools import web_process
from tui_agent.tools.web import WebFetch


def page(
    body: bytes | str, kind: str = "text/html; charset=utf-8", status: str = "200 OK", *headers: str
) -> bytes:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close", *headers]
    if kind:
        lines.append(f"Content-Type: {kind}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def moved(location: str) -> bytes:
    """A redirect."""
    return page("", "text/html", "302 Found", f"Location: {location}")


def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read in a thread of this process, which spares the start of one for each."""

    async def answer(_: WebFetch, request: bytes, __: str) -> dict[str, Any]:
        return await asyncio.to_thread(web_process.answer, json.loads(request))

    monkeypatch.setattr(WebFetch, "_answer", answer)


class WebServer:
    """`async with WebServer({"/": page("hello")}) as server`; a path without an answer is never answered."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self.answers = dict(answers)
        self.requests: list[str] = []
        """Request lines and headers as they came."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            answer = self.answers.get(head.split(" ")[1])
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        writer.close()
