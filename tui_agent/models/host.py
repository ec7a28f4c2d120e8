"""The model host: a child process that holds litellm and makes the calls (`python -m tui_agent.models.host`).

Commands come in on stdin and reports go out on what was stdout, as `wire` says; what a library prints goes to
stderr, which the parent reads. The host ends with its parent. What a fault means is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

from pydantic import BaseModel, ValidationError

from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault
from tui_agent.models import litellm_setup, wire
from tui_agent.models.fault_advice import CallFacts
from tui_agent.models.faults import fault_from
from tui_agent.models.host_start import LINE_LIMIT
from tui_agent.models.litellm_client import LitellmClient
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply

FLUSH_INTERVAL = 0.015
"""Seconds for which pieces are collected: faster than a screen, and a burst costs the reader little."""
_FLUSH_SIZE = 16_384
_PR_SET_PDEATHSIG = 1


class Host:
    """Serves commands until stdin ends. `load` gives litellm and may take seconds, in a thread."""

    def __init__(
        self, send: Callable[[BaseModel], None], load: Callable[[], Any] = litellm_setup.load
    ) -> None:
        self._send = send
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._client = asyncio.ensure_future(_client(load))

    async def serve(self, commands: asyncio.StreamReader) -> None:
        """Take commands, one a line, until there are no more."""
        heartbeat = asyncio.ensure_future(self._beat())
        try:
            while line := await commands.readline():
                self._take(line)
        finally:
            for task in (heartbeat, self._client, *self._calls.values()):
                task.cancel()

    def _take(self, line: bytes) -> None:
        try:
            command = wire.commands.validate_json(line)
        except ValidationError as error:
            sys.stderr.write(f"not a command: {error}\n")
            return
        match command:
            case wire.Cancel():
                task = self._calls.get(command.id)
                if task is not None:
                    task.cancel()
            case wire.Call():
                self._begin(command.id, self._call(command.id, command.request))
            case wire.AskBudget():
                self._begin(command.id, self._budget(command))
            case wire.AskName():
                self._begin(command.id, self._name(command))
            case wire.UseKey():
                os.environ.pop(command.variable, None)
                if command.key:
                    os.environ[command.variable] = command.key

    def _begin(self, call_id: int, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._calls[call_id] = task
        task.add_done_callback(lambda _: self._calls.pop(call_id, None))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(wire.HEARTBEAT)
            if self._calls:
                self._send(wire.Alive())

    async def _call(self, call_id: int, request: ModelRequest) -> None:
        pieces = _Pieces(call_id, self._send)
        try:
            client = await asyncio.shield(self._client)
            await client.find_key(request.model, request.api_base, request.api_key_variable)
            async with aclosing(client.stream(request)) as stream:
                async for piece in stream:
                    if isinstance(piece, Reply):
                        pieces.flush()
                        self._send(wire.Done(id=call_id, reply=piece))
                    else:
                        pieces.add(piece)
        except ModelFault as raised:
            pieces.flush()
            self._send(wire.Failed(id=call_id, fault=raised.fault))
        except Exception as error:
            pieces.flush()
            fault = fault_from(error, CallFacts(request.model, api_base=request.api_base))
            self._send(wire.Failed(id=call_id, fault=fault))
            raise
        finally:
            pieces.close()

    async def _budget(self, asked: wire.AskBudget) -> None:
        tokens: int | None = None
        with suppress(ModelFault):
            client = await asyncio.shield(self._client)
            await client.find_key(asked.model, asked.api_base, asked.api_key_variable)
            tokens = await client.context_tokens(asked.model, asked.api_base, asked.api_key_variable)
        self._send(wire.Budget(id=asked.id, tokens=tokens))

    async def _name(self, asked: wire.AskName) -> None:
        try:
            client = await asyncio.shield(self._client)
        except ModelFault as unusable:
            self._send(wire.Failed(id=asked.id, fault=unusable.fault))
        else:
            provider, listed, nearest = await asyncio.to_thread(client.look_up, asked.model)
            sees = await asyncio.to_thread(client.sees, asked.model, asked.api_base)
            self._send(wire.Named(id=asked.id, provider=provider, listed=listed, nearest=nearest, sees=sees))


async def _client(load: Callable[[], Any]) -> LitellmClient:
    """The client, once litellm is there. In a thread, so that commands and heartbeats go on meanwhile."""
    try:
        return LitellmClient(await asyncio.to_thread(load))
    except Exception as error:
        raise ModelFault(
            Fault(
                kind=FaultKind.BAD_REQUEST,
                message=f"litellm cannot be loaded: {type(error).__name__}: {error}",
                advice="Install agent-tui again, with its dependencies, into a fresh environment.",
            )
        ) from error


class _Pieces:
    """Collects the pieces of one call for a moment; the first goes out at once."""

    def __init__(self, call_id: int, send: Callable[[BaseModel], None]) -> None:
        self._id = call_id
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._waiting: list[str] = []
        self._size = 0
        self._reasoning = False
        self._sent_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def add(self, delta: Delta) -> None:
        for words, is_reasoning in ((delta.reasoning, True), (delta.text, False)):
            if not words:
                continue
            if is_reasoning != self._reasoning:
                self.flush()
                self._reasoning = is_reasoning
            self._waiting.append(words)
            self._size += len(words)
        left = self._sent_at + FLUSH_INTERVAL - self._loop.time()
        if left <= 0 or self._size >= _FLUSH_SIZE:
            self.flush()
        elif self._timer is None and self._waiting:
            self._timer = self._loop.call_later(left, self.flush)

    def flush(self) -> None:
        self.close()
        if self._waiting:
            words = "".join(self._waiting)
            self._waiting.clear()
            self._size = 0
            self._sent_at = self._loop.time()
            piece = (
                wire.Piece(id=self._id, reasoning=words)
                if self._reasoning
                else wire.Piece(id=self._id, text=words)
            )
            self._send(piece)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


# --- the process --------------------------------------------------------------------------------------------


def end_with(parent: int) -> None:
    """Have the kernel end this process with its parent (Linux); elsewhere the end of stdin does it."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


async def _main(reports: int, load: Callable[[], Any], at_end: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader(limit=LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin.buffer)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(reports, "wb", buffering=0))
    await Host(lambda message: transport.write(wire.line(message)), load).serve(commands)
    at_end()
    # At once: neither an import that goes on nor a library's thread may keep the host when its work is over.
    os._exit(0)


def serve(
    parent: int,
    load: Callable[[], Any] = litellm_setup.load,
    at_end: Callable[[], None] = lambda: None,
) -> None:
    """Be the host of whoever has the other ends of our three pipes; ends with the process `parent`."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever a library prints must not get between the reports, nor onto the screen.
    reports = os.dup(1)
    os.dup2(2, 1)
    asyncio.run(_main(reports, load, at_end))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
