"""One clock for all drawing: however many events come in, the screen is drawn at most so often.

Events ask for a drawing; the first asks for a timer, the rest find it running. Nothing polls while nothing
happens, except the slow tick that moves elapsed times while a run goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.widget import Widget

INTERVAL = 1 / 25
"""Shortest time in seconds between two drawings."""

LONGEST = 1 / 5
"""And the longest, on a machine that is slow or busy."""

SHARE = 3
"""A drawing that takes a time is followed by this many times as much for keys and for the rest."""

ECHO = 0.06
"""Seconds after a key in which its echo goes before everything else."""

PATIENCE = 0.25
"""Seconds that a drawing waits for somebody who types, at the longest."""

TICK = 0.5
"""Seconds between two ticks of the elapsed time."""


class Redraw:
    """Coalesces requests to draw. `draw` is called in the context of `owner`."""

    def __init__(self, owner: Widget, draw: Callable[[], None]) -> None:
        self._owner = owner
        self._draw = draw
        self._drawn_at = 0.0
        self._held_until = 0.0
        self._interval = INTERVAL
        self._timer: Timer | None = None
        self._tick: Timer | None = None

    def request(self) -> None:
        """Draw soon: at once when the last drawing is long enough ago."""
        if self._timer is not None or not self._owner.is_attached:
            return
        delay = max(0.0, self._drawn_at + self._interval - monotonic())
        self._timer = self._owner.set_timer(delay or 0.001, self._fire)

    def hold(self) -> None:
        """A key was typed: its echo is painted first."""
        self._held_until = monotonic() + ECHO

    def tick(self, running: bool) -> None:
        """Keep elapsed times moving while `running`."""
        if self._tick is None:
            if not running:
                return
            self._tick = self._owner.set_interval(TICK, self.request, pause=True)
        if running:
            self._tick.resume()
        else:
            self._tick.pause()

    def _fire(self) -> None:
        self._timer = None
        began = monotonic()
        wait = min(self._held_until, self._drawn_at + PATIENCE) - began
        if wait > 0:
            self._timer = self._owner.set_timer(wait, self._fire)
            return
        self._drawn_at = began
        self._draw()
        self._owner.call_after_refresh(self._painted, began)

    def _painted(self, began: float) -> None:
        cost = monotonic() - began
        self._interval = min(LONGEST, max(INTERVAL, (1 + SHARE) * cost))
