"""Waits that outlive the machine's sleep, and a clock that is put on or back: the time is looked at often."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from datetime import time as time_of_day

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
        clock = time.strptime(text, "%H:%M")
        today = datetime.fromtimestamp(now).astimezone().date()
        at = datetime.combine(today, time_of_day(clock.tm_hour, clock.tm_min))
        if at.timestamp() <= now:
            at += timedelta(days=1)
    if at.timestamp() <= now:
        raise ValueError("it has passed")
    return at.timestamp()
