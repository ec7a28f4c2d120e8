"""Requests to another agent and its own requests, over one wire.

Answers find the request that waits for them; the rest goes to a handler in the order in which it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tui_agent.acp.wire import METHOD_NOT_FOUND, Message, Wire
from tui_agent.terminal_text import one_line

Handler = Callable[[str, dict[str, Any], "int | str | None"], Awaitable[None]]
"""Takes a method, its parameters, and the id under which an answer is awaited; None: none is."""


class AgentError(Exception):
    """A request was answered with an error, with a code of JSON-RPC."""

    def __init__(self, said: str, code: int = 0, data: object = None) -> None:
        super().__init__(said)
        self.code = code
        self.data = data


class AgentGoneError(Exception):
    """The agent's stream has ended, or it does not read any more."""


class Connection:
    """One agent. `handler` may wait: nothing more is read of the agent meanwhile."""

    def __init__(self, wire: Wire, handler: Handler) -> None:
        self._wire = wire
        self._handler = handler
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._reading = asyncio.get_running_loop().create_task(self._read(), name="acp-agent")

    @property
    def open(self) -> bool:
        """The agent is still there."""
        return not self._reading.done()

    async def request(self, method: str, params: dict[str, Any], seconds: float | None = None) -> Any:
        """The result of a request. `seconds`: it is given up after as many.

        Raises `AgentError`, `AgentGoneError`, `TimeoutError`.
        """
        if not self.open:
            raise AgentGoneError
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(seconds):
                await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                return await answer
        finally:
            self._waiting.pop(number, None)

    async def _send(self, message: Message) -> None:
        try:
            await self._wire.send(message)
        except ConnectionError as error:
            raise AgentGoneError(self._wire.fault) from error

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self._wire.post({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, request: int | str, result: object) -> None:
        """Answer a request of the agent's; nothing if it was answered."""
        if self._wire.open.pop(request, None) is not None:
            self._wire.post({"jsonrpc": "2.0", "id": request, "result": result})

    def refuse(self, request: int | str, method: str) -> None:
        """Say that this client has no such method."""
        if self._wire.open.pop(request, None) is not None:
            error = {"code": METHOD_NOT_FOUND, "message": f"This client has no {one_line(method, 100)}."}
            self._wire.post({"jsonrpc": "2.0", "id": request, "error": error})

    async def close(self) -> None:
        """End the reading, and whatever waits."""
        self._wire.end()
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        await self._wire.close()

    async def _read(self) -> None:
        try:
            while (message := await self._wire.receive()) is not None:
                await self._take(message)
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(AgentGoneError(self._wire.fault))

    async def _take(self, message: Message) -> None:
        if "method" in message:
            params = message.get("params")
            given = params if isinstance(params, dict) else {}
            await self._handler(message["method"], given, message.get("id"))
            return
        number = message["id"]
        answer = self._waiting.pop(number, None) if isinstance(number, int) else None
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error is None:
            answer.set_result(message.get("result"))
        else:
            answer.set_exception(_error(error))


_LONGEST = 2_000


def _error(error: dict[str, Any]) -> AgentError:
    """The error in words: many agents keep the cause under `data`."""
    code, data = error.get("code"), error.get("data")
    said = str(error.get("message") or "the agent gave no reason")
    inner = (
        data.get("message") or data.get("details") or data.get("error") if isinstance(data, dict) else data
    )
    if isinstance(inner, str) and inner and inner not in said:
        said = f"{said}: {inner}"
    return AgentError(said[:_LONGEST], code if isinstance(code, int) else 0, data)
