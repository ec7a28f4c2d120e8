"""Timers that fire once, and always.

One of Textual (`set_timer`) is dropped without a word if the process stood still for the length of its delay
just as it began: it skips overdue times, and there is none after them. On a busy machine a screen that waits
for it would never be drawn again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.message_pump import MessagePump


def once(owner: MessagePump, delay: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `callback` in the context of `owner` after `delay` seconds, unless it is cancelled or `owner` is gone."""
    return asyncio.get_running_loop().call_later(delay, owner.call_next, callback)


LATE = 0.05
"""Seconds behind its time at which a timer tells that the process stood still."""

MOST_WAITS = 4
"""The number of times that `Quiet` waits again if every one of its timers is late."""


class Quiet:
    """Calls back after a time in which nothing was typed: whoever sees a key cancels it.

    A timer that comes late is no proof. The process stood still, and what was typed meanwhile is handled after the
    timer. So it waits once more.
    """

    def __init__(self, owner: MessagePump, delay: float, callback: Callable[[], object]) -> None:
        """`delay` in seconds; the rest as in `once`."""
        self._owner, self._delay, self._callback = owner, delay, callback
        self._left = MOST_WAITS
        self._wait()

    def cancel(self) -> None:
        """Something was typed."""
        self._timer.cancel()

    def _wait(self) -> None:
        self._left -= 1
        self._timer = asyncio.get_running_loop().call_later(self._delay, self._over)

    def _over(self) -> None:
        late = asyncio.get_running_loop().time() - self._timer.when() > LATE
        if late and self._left:
            self._wait()
        else:
            self._owner.call_next(self._callback)
