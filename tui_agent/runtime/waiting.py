"""A wait that can be skipped: for a while, or until a moment of the wall clock that outlives the process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

LOOK = 20.0
"""Seconds between two looks at the wall clock: it jumps, and a machine that sleeps stops every other clock."""


async def _either(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class Wait:
    """One wait at a time. `wall` gives seconds since 1970, `passed` seconds that never go back; `pause` waits for the
    event, at the longest for some seconds.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        passed: Callable[[], float] = time.monotonic,
        pause: Callable[[asyncio.Event, float], Awaitable[None]] = _either,
    ) -> None:
        self.wall = wall
        self._passed = passed
        self._pause = pause
        self._wake = asyncio.Event()

    def skip(self) -> None:
        """End the wait that is under way or begins now."""
        self._wake.set()

    def over(self) -> None:
        """The awaited call begins: the next wait is another one."""
        self._wake.clear()

    async def wait(self, seconds: float, until: float | None = None) -> None:
        """For `seconds`, or until the wall clock shows `until`, whichever comes first."""
        begun = self._passed()
        while not self._wake.is_set():
            left = seconds - (self._passed() - begun)
            if until is not None:
                left = min(left, until - self.wall(), LOOK)
            if left <= 0:
                return
            await self._pause(self._wake, left)
