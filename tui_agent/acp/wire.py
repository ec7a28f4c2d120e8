"""Messages of the Agent Client Protocol over a pair of streams: JSON-RPC 2.0, an object a line.

What a peer sends is not trusted: rubbish is answered and left out, and none of it ends the connection. What a message
means is not decided here.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import stat
import sys
import threading
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from tui_agent.terminal_text import one_line

Message = dict[str, Any]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
AUTH_REQUIRED, NOT_FOUND = -32000, -32002

LONGEST = 64_000_000
"""Bytes of a message that comes in."""
MOST_UNREAD = 64_000_000
"""Bytes that may wait for a peer to read them; then it counts as gone."""
MOST_OPEN = 1_000
"""Requests of the peer that may be open at once."""
MOST_REFUSALS = 20
"""Lines in a row that are answered although they are no message."""
PATIENCE = 10.0
"""Seconds that requests which are open have when their peer has left."""
_CHUNK = 65_536
_DECORATION = re.compile(rb"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-9;?]*[ -/]*[@-~]|[@-Z\\^_])")
"""Sequences that are for a terminal."""


class Rejected(NamedTuple):
    """A line that is no message: the id of the request that it may be, a code of JSON-RPC, and a sentence."""

    request: int | str | None
    code: int
    said: str


class Wire:
    """The SDK's `Transport` over two streams. `answers`: the peer is told if a line of its is no message."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = True
    ) -> None:
        self._reader, self._writer = reader, writer
        self._answers = answers
        self._buffer = bytearray()
        self._searched = 0
        self._skips = self._ended = False
        self._refusals = 0
        self._answered = asyncio.Event()
        self.open: dict[int | str, Message] = {}
        """Requests of the peer that were not answered yet, by their ids."""
        self.fault = ""
        """Why the peer counts as gone although its stream is open."""

    # --- what comes -----------------------------------------------------------------------------------------

    async def receive(self) -> Message | None:
        """The next message; None at the end of the stream."""
        while (line := await self._line()) is not None:
            message = self._message(line)
            if message is not None:
                self._refusals = 0
                return message
        return None

    async def _line(self) -> bytes | None:
        while True:
            at = self._buffer.find(b"\n", self._searched)
            if at >= 0:
                line, skipped = bytes(self._buffer[:at]), self._skips
                del self._buffer[: at + 1]
                self._searched, self._skips = 0, False
                if not skipped:
                    return line
                self._refuse(None, INVALID_REQUEST, f"The message was longer than {LONGEST:,} bytes.")
                continue
            if self._ended:
                rest, self._buffer = bytes(self._buffer), bytearray()
                return rest or None
            self._searched = len(self._buffer)
            if self._searched > LONGEST:
                self._skips, self._searched = True, 0
                self._buffer.clear()
            await self._read()

    async def _read(self) -> None:
        try:
            chunk = await self._reader.read(_CHUNK)
        except (OSError, ValueError):
            chunk = b""
        if self._skips and b"\n" not in chunk:
            self._ended = not chunk
            return
        self._buffer += chunk
        self._ended = not chunk

    def _message(self, line: bytes) -> Message | None:
        """The message in a line; None if it holds none, which the peer is told."""
        found = message_in(line)
        if isinstance(found, dict) and "method" in found and "id" in found:
            found = self._request(found)
        if isinstance(found, Rejected):
            self._refuse(*found)
            return None
        return found

    def _request(self, found: Message) -> Message | Rejected:
        if found["id"] in self.open:
            return Rejected(found["id"], INVALID_REQUEST, "A request with this id is still open.")
        if len(self.open) >= MOST_OPEN:
            said = f"{MOST_OPEN:,} requests are open; wait for the answers."
            return Rejected(found["id"], INVALID_REQUEST, said)
        self.open[found["id"]] = found
        return found

    def _refuse(self, request: int | str | None, code: int, said: str) -> None:
        self._refusals += 1
        if self._answers and self._refusals <= MOST_REFUSALS:
            self.post({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": said}})

    # --- what goes ------------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Write a message, and wait until the peer's stream takes more.

        Raises `ConnectionError` for a request to a peer that is gone; an answer to it is dropped.
        """
        asks = "method" in message
        if not asks:
            self.open.pop(message["id"], None)
            self._answered.set()
        if self._writer.is_closing() and asks:
            raise ConnectionError(self.fault or "the peer is gone")
        self.post(message)
        with nullcontext() if asks else suppress(ConnectionError):
            await self._writer.drain()

    def post(self, message: Message) -> None:
        """Write a message behind those before it, without waiting. Nothing is raised if the peer is gone."""
        if self._writer.is_closing():
            return
        self._writer.write(encoded(message))
        if self._writer.transport.get_write_buffer_size() > MOST_UNREAD:
            self.fault = f"the peer has left more than {MOST_UNREAD:,} bytes unread"
            self._writer.transport.abort()
            self.end()

    async def settled(self, besides: str = "") -> None:
        """Wait until every request of the peer is answered, `besides` those of one method; not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while any(request["method"] != besides for request in self.open.values()):
                    self._answered.clear()
                    await self._answered.wait()

    def end(self) -> None:
        """Take nothing more from the peer, whatever it still sends."""
        self._reader.set_exception(ConnectionAbortedError("the end"))

    async def close(self) -> None:
        """Write what is left, and close."""
        if not self._writer.is_closing():
            self._writer.close()


def message_in(line: bytes) -> Message | Rejected | None:
    """The message in a line, in a form that cannot upset whoever takes it; None for an empty line."""
    if b"\x1b" in line:  # which no JSON holds: a title of a window, a colour before the message
        line = _DECORATION.sub(b"", line)
    if not line.strip():
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Rejected(None, PARSE_ERROR, f"This line is no JSON: {one_line(str(error), 200)}.")
    if not isinstance(found, dict):
        return Rejected(None, INVALID_REQUEST, "A message is one JSON object; there are no batches.")
    known = isinstance(found.get("id"), int | str) and not isinstance(found.get("id"), bool)
    if "method" in found:
        if isinstance(found["method"], str) and (known or "id" not in found):
            return found
        said = "method must be a text, and id a number or a text."
        return Rejected(found["id"] if known else None, INVALID_REQUEST, said)
    if not known or not ("result" in found or "error" in found):
        return Rejected(None, INVALID_REQUEST, "This is neither a request nor an answer.")
    fault = found.get("error")
    if fault is not None and not isinstance(fault, dict):
        found["error"] = {"code": INTERNAL_ERROR, "message": one_line(str(fault), 400)}
    return found


def encoded(message: Message) -> bytes:
    """A message as its line. What JSON has no form for becomes text, or null."""
    try:
        text = json.dumps(message, separators=(",", ":"), allow_nan=False, default=str)
    except ValueError:  # a number that is none
        plain = json.loads(json.dumps(message, default=str), parse_constant=lambda _: None)
        text = json.dumps(plain, separators=(",", ":"))
    return text.encode() + b"\n"


# --- the streams of this process -----------------------------------------------------------------------------


async def own_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The streams of the client that started this process, which has them to itself.

    From now on what anything else prints goes to standard error, and standard input is empty.
    """
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(_readable(incoming), "rb", 0)
    )
    writing = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: writing, os.fdopen(_writable(outgoing), "wb", 0))
    return reader, asyncio.StreamWriter(transport, writing, None, loop)


def _readable(descriptor: int) -> int:
    """A descriptor that an event loop can wait for: a file is copied into a pipe."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    there, here = os.pipe()
    _copy(descriptor, here)
    return there


def _writable(descriptor: int) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    there, here = os.pipe()
    _copy(there, descriptor)
    return here


def _copy(source: int, target: int) -> None:
    def work() -> None:
        with os.fdopen(source, "rb", 0) as taken, os.fdopen(target, "wb", 0) as given:
            shutil.copyfileobj(taken, given)

    threading.Thread(target=work, name="acp-file").start()
