"""The calls that wait for a server, whose time stands still while the operator answers what it asks meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types

from tui_agent.tools.mcp.status import Elicitation, ElicitationReply


class OpenCalls:
    """Each call may be silent for `limit` seconds."""

    def __init__(self, server: str, limit: float) -> None:
        self._server = server
        self._limit = limit
        self._timers: set[asyncio.Timeout] = set()
        self._question: asyncio.Future[ElicitationReply] | None = None
        """The question that the operator is being asked for the server."""

    @asynccontextmanager
    async def one_more(self) -> AsyncIterator[asyncio.Timeout]:
        """A call is made inside. Raises `TimeoutError` after too long a silence."""
        timer = asyncio.timeout(None if self._question is not None else self._limit)
        self._timers.add(timer)
        try:
            async with timer:
                yield timer
        finally:
            self._timers.discard(timer)
            if not self._timers and self._question is not None:
                # The call for which the server asked is over, even if the server does not notice.
                self._question.cancel()

    def alive(self, timer: asyncio.Timeout) -> None:
        """A sign of life: the silence begins anew."""
        if self._question is None and not timer.expired():
            timer.reschedule(asyncio.get_running_loop().time() + self._limit)

    async def asked(
        self, params: Any, ask: Callable[[Elicitation], Awaitable[ElicitationReply]] | None
    ) -> types.ElicitResult:
        """The operator's answer to a question of the server, in the SDK's words."""
        # Who asks without being called, or again before the answer, gets none: cards are the operator's time.
        if ask is None or not self._timers or self._question is not None:
            return types.ElicitResult(action="cancel")
        url = str(getattr(params, "url", "") or "")
        schema = dict(getattr(params, "requested_schema", None) or {})
        self._question = asked = asyncio.ensure_future(
            ask(Elicitation(self._server, str(params.message), schema, url))
        )
        for timer in self._timers:
            timer.reschedule(None)
        try:
            reply = await asyncio.shield(asked)
        except asyncio.CancelledError:
            if not asked.cancelled():
                # The server took its question back, or the connection ended.
                asked.cancel()
                raise
            reply = ElicitationReply("cancel")
        finally:
            self._question = None
            for timer in self._timers:
                self.alive(timer)
        content = dict(reply.content or {}) if reply.action == "accept" and not url else None
        return types.ElicitResult.model_validate({"action": reply.action, "content": content})
