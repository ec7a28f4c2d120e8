"""The model host: a child process that holds the clients and makes the calls (`python -m tui_agent.models.host`).

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

from tui_agent.config.profiles import Client
from tui_agent.models import routes, wire
from tui_agent.models.clients import Clients
from tui_agent.models.fault_advice import CallFacts
from tui_agent.models.faults import fault_from
from tui_agent.models.host_start import LINE_LIMIT
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.processes import own_pipes

FLUSH_INTERVAL = 0.015
"""Seconds for which pieces are collected: faster than a screen, and a burst costs the reader little."""
_FLUSH_SIZE = 16_384
_PR_SET_PDEATHSIG = 1


class Host:
    """Serves commands until stdin ends. `first`: the client that is most likely needed, which loads at once."""

    def __init__(self, send: Callable[[BaseModel], None], first: Client | None = None) -> None:
        self._send = send
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._clients = Clients()
        if first is not None:
            self._clients.begin(first)

    async def serve(self, commands: asyncio.StreamReader) -> None:
        """Take commands, one a line, until there are no more."""
        heartbeat = asyncio.ensure_future(self._beat())
        try:
            while line := await commands.readline():
                self._take(line)
        finally:
            self._clients.close()
            for task in (heartbeat, *self._calls.values()):
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
            async with aclosing(self._clients.stream(request)) as stream:
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
        with suppress(ModelFault):  # the call itself will say what is wrong
            tokens = await self._clients.context_tokens(asked.model, asked.api_base, asked.api_key_variable)
        self._send(wire.Budget(id=asked.id, tokens=tokens))

    async def _name(self, asked: wire.AskName) -> None:
        provider, listed, nearest = await asyncio.to_thread(routes.look_up, asked.model)
        sees = self._clients.sees(asked.model, asked.api_base)
        self._send(wire.Named(id=asked.id, provider=provider, listed=listed, nearest=nearest, sees=sees))


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


async def _main(reports: int, first: Client) -> None:
    commands, transport = await own_pipes(reports, LINE_LIMIT)
    await Host(lambda message: transport.write(wire.line(message)), first).serve(commands)
    # At once: neither an import that goes on nor a library's thread may keep the host when its work is over.
    os._exit(0)


def serve(parent: int, first: Client) -> None:
    """Be the host of whoever has the other ends of our three pipes; ends with the process `parent`."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever a library prints must not get between the reports, nor onto the screen.
    reports = os.dup(1)
    os.dup2(2, 1)
    asyncio.run(_main(reports, first))


if __name__ == "__main__":
    serve(int(sys.argv[1]), "litellm" if sys.argv[2:] == ["litellm"] else "openai")
