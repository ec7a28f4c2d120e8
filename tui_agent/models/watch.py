"""The time that a call may take: until its first content, between two pieces, after its end, and as a whole."""

from __future__ import annotations

import asyncio

GRACE = 2.0
"""Seconds for what may follow a reply that is over: its usage, and the end of the stream."""
LONG_GRACE = 10.0
"""The same when the end came together with content: some servers send an end with every piece."""


WHOLE = 5
"""How many times as long as the first piece of a stream a whole reply may take."""


class Watch:
    """The longest silence before and between content, and the longest call. Seconds."""

    def __init__(self, silence: float, total: float, first: float) -> None:
        """`first`: the longest silence before any content."""
        self._silence = silence
        self._allowed = first
        self._whole = WHOLE * first
        self._total = total
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + total
        self._last = self._clock()
        self._limit: asyncio.Timeout | None = None

    def until_content(self, grace: float | None = None) -> asyncio.Timeout:
        """Raises `TimeoutError` inside when the time is over. `grace`: that after the reply's end, once it has one."""
        self._limit = asyncio.timeout_at(min(self._last + (grace or self._allowed), self._end))
        return self._limit

    def for_whole(self) -> None:
        """Allow more time for content: a reply that does not stream is silent to its end."""
        self._allowed = self._whole
        if self._limit is not None:
            self._limit.reschedule(min(self._last + self._allowed, self._end))

    def end(self) -> None:
        """The reply's end came: the time of grace begins."""
        self._last = self._clock()

    def content(self) -> None:
        """Something came."""
        self._last = self._clock()
        self._allowed = self._silence

    @property
    def expired(self) -> bool:
        """The time is over (and a `TimeoutError` is therefore the watch's own)."""
        return self._clock() >= min(self._last + self._allowed, self._end)

    @property
    def words(self) -> str:
        """The end of a watched call, when it is over."""
        if self._clock() >= self._end:
            return f"the reply was not complete after {self._total:g} s"
        if self._allowed != self._silence:
            return f"no word of a reply came within {self._allowed:g} s"
        return f"the model was silent for {self._silence:g} s"
