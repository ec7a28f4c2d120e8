"""Waits that outlive the machine's sleep, and a clock that is put on or back: the time is looked at often."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta

_LOOK = 5.0
"""Seconds between two looks at the clock."""


class Clock:
    """The time on the wall, in seconds since 1970, and the seconds since some moment, which nobody puts on or back."""

    def now(self) -> float:
        return time.time()

    def ticks(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait_until(self, at: float) -> None:
        """Wait for a moment. A clock that is put back makes it no longer than it was."""
        longest, begun = at - self.now(), self.ticks()
        while (left := min(at - self.now(), longest - (self.ticks() - begun))) > 0:
            await self.sleep(min(left, _LOOK))


def moment(text: str, now: float) -> float:
    """The next time that a clock shows this (`07:00`), or the moment itself (`2026-11-28 07:00`): seconds since 1970.

    Raises `ValueError` for anything else, and for a moment that has passed.
    """
    if len(text) > 5:
        at = datetime.fromisoformat(text)
    else:
        time_of_day = datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 - of this machine's zone
        today = datetime.fromtimestamp(now)  # noqa: DTZ006 - of this machine's zone
        at = datetime.combine(today.date(), time_of_day)
        if at.timestamp() <= now:
            at += timedelta(days=1)
    if at.timestamp() <= now:
        raise ValueError("it has passed")
    return at.timestamp()
