"""How long things with a server may take, and when it is given up for a while."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tui_agent.tools.mcp.status import ServerStatus


@dataclass(frozen=True)
class Patience:
    """How long things may take, and when a server is given up for a while. Seconds, unless said otherwise."""

    connect: float = 60.0
    """A program that is fetched before its first start takes long."""
    reconnect: float = 15.0
    """How long a call waits for a connection that is being made again."""
    stable: float = 30.0
    """A connection that lasted so long is no sign of a broken server when it ends."""
    backoff: float = 0.5
    backoff_cap: float = 30.0
    failures: int = 5
    """Failed or short connections in a row that open the breaker."""
    open_for: float = 60.0
    """How long the breaker stays open the first time; doubled when the next try fails."""
    open_cap: float = 900.0
    relist: float = 1.0
    """Least time between two looks at a list that the server says has changed, in seconds."""
    relist_often: float = 30.0
    """The same once it has said so ten times."""


class Breaker:
    """Counts connections that failed or were short; after some in a row it opens, each time for longer."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._failures = 0
        self._opened = 0

    def ended(self, lasted: float | None) -> None:
        """A connection ended after so many seconds; None: it was never there."""
        stable = lasted is not None and lasted >= self._patience.stable
        self._failures = 1 if stable else self._failures + 1

    def next_try(self) -> tuple[ServerStatus, float]:
        """How the server stands until the next try, and the seconds until then."""
        patience = self._patience
        if self._failures >= patience.failures:
            delay = min(patience.open_cap, patience.open_for * 2**self._opened)
            self._opened += 1
            return ServerStatus.OPEN, delay
        longest = min(patience.backoff_cap, patience.backoff * 2 ** (self._failures - 1))
        return ServerStatus.RETRYING, longest * random.SystemRandom().uniform(0.5, 1.0)

    def connected(self) -> None:
        """A try after it was open succeeded."""
        if self._opened:
            self.forget()

    def forget(self) -> None:
        """Begin anew, whatever went wrong before."""
        self._failures = self._opened = 0
