"""Messages that wait for their turn. Before the session is open they wait here, with the commands that were asked for
among them, in their order; from then on they wait in the session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.host import Waiting

if TYPE_CHECKING:
    from tui_agent.console.tabs.live_session import LiveSession


@dataclass(frozen=True, eq=False)
class Order:
    """A command or a message that was given before the session was open."""

    act: Callable[[], Awaitable[None] | None]
    text: str | None = None
    """That of a message."""

    @property
    def id(self) -> str:
        """Its own, whatever goes before it."""
        return f"unsent-{id(self)}"


class MessageQueue:
    """`changed` is called when another message waits, or one no more; `say` tells the operator something."""

    def __init__(self, live: LiveSession, changed: Callable[[], None], say: Callable[[str], None]) -> None:
        self._live = live
        self._changed = changed
        self._say = say
        self._pending: list[Order] = []

    @property
    def waiting(self) -> list[Waiting]:
        """Messages that were not delivered yet, the oldest first."""
        if self._live.session is None:
            return [Waiting(order.id, order.text) for order in self._pending if order.text is not None]
        return [Waiting(message.id, message.text) for message in self._live.session.state.queue]

    async def send(self, text: str, deliver: Callable[[], Awaitable[None]]) -> None:
        """Deliver a message now, or in its order as soon as the session is open."""
        if self._live.session is None:
            self._pending.append(Order(deliver, text))
        else:
            await deliver()
        self._changed()

    def when_open(self, act: Callable[[], object]) -> None:
        """Do it now, or in its order as soon as the session is open."""

        def do() -> None:
            act()

        if self._live.session is None:
            self._pending.append(Order(do))
        else:
            do()

    async def opened(self) -> None:
        """Do what was asked for before the session was open."""
        pending, self._pending = self._pending, []
        for order in pending:
            under_way = order.act()
            if under_way is not None:
                await under_way
        self._changed()

    def drop(self, message_id: str) -> bool:
        """Drop a message; False, and a word about it, if it does not wait any more."""
        waits = any(message.id == message_id for message in self.waiting)
        if not waits:
            self._say("That message has gone out already.")
        self._pending = [order for order in self._pending if order.id != message_id]
        if self._live.session is not None:
            self._live.session.runs.drop(message_id)
        self._changed()
        return waits
