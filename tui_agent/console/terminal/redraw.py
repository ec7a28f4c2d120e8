"""One clock for all drawing: however many events come in, the screen is drawn at most so often.

The first request starts a timer, later ones find it running. Nothing polls while nothing happens, except the slow
tick that moves elapsed times while a run goes on. A drawing that raises is reported and the next one is made.
"""

from __future__ import annotations

import logging
from asyncio import Event, TimerHandle, wait_for
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from tui_agent.console.terminal.timers import once

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.widget import Widget

INTERVAL = 1 / 25
"""Shortest time between two drawings, in seconds."""

LONGEST = 1 / 5
"""Longest time between two drawings on a slow or busy machine, in seconds."""

SHARE = 3
"""After a drawing, this many times its duration is left for keys and other work."""

ECHO = 0.06
"""Seconds after a key during which its echo goes before everything else."""

PATIENCE = 0.25
"""Longest time in seconds that a drawing waits for typing."""

TICK = 0.5
"""Seconds between two ticks of what moves by itself."""

CLOCK = 2
"""Ticks from one move to the next of what shows whole seconds alone."""


_logger = logging.getLogger(__name__)


class Redraw:
    """Joins requests to draw. `draw` is called in the context of `owner`; `failed` gets what it raises."""

    def __init__(
        self,
        owner: Widget,
        draw: Callable[[], None],
        failed: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._owner = owner
        self._draw = draw
        self._failed = failed
        self._fault = ""
        self._drawn_at = 0.0
        self._held_until = 0.0
        self._interval = INTERVAL
        self._timer: TimerHandle | None = None
        self._tick: Timer | None = None
        self._ticking: Callable[[], None] = self.request
        self._ticks, self._every = 0, 1
        self._on_screen = Event()

    def request(self) -> None:
        """Draw soon: at once when the last drawing is long enough ago."""
        self._on_screen.clear()
        if self._timer is not None or not self._owner.is_attached:
            return
        delay = max(0.0, self._drawn_at + self._interval - monotonic())
        self._timer = once(self._owner, delay, self._fire)

    async def on_screen(self, patience: float) -> None:
        """Wait until what was requested last is painted, or for so many seconds."""
        with suppress(TimeoutError):
            await wait_for(self._on_screen.wait(), patience)

    def hold(self) -> None:
        """Paint the echo of a typed key first."""
        self._held_until = monotonic() + ECHO

    def tick(self, moves: Callable[[], None] | None, every: int = 1) -> None:
        """From now on call `moves` once in `every` ticks: `request`, or what draws less; None: nothing moves."""
        if moves is None:
            if self._tick is not None:
                self._tick.pause()
            return
        self._ticking, self._every = moves, every
        if self._tick is None:
            self._tick = self._owner.set_interval(TICK, self._on_tick, pause=True)
        self._tick.resume()

    def _on_tick(self) -> None:
        self._ticks += 1
        if self._ticks % self._every == 0:
            self._ticking()

    def _fire(self) -> None:
        self._timer = None
        if not self._owner.is_attached:
            return
        began = monotonic()
        wait = min(self._held_until, self._drawn_at + PATIENCE) - began
        if wait > 0:
            self._timer = once(self._owner, wait, self._fire)
            return
        self._drawn_at = began
        try:
            self._draw()
        except Exception as error:
            if repr(error) != self._fault:
                _logger.exception("The screen could not be drawn")
                self._report(error)
        else:
            self._fault = ""
        self._owner.call_after_refresh(self._painted, began)

    def _report(self, error: Exception) -> None:
        """Show a new fault once and draw again; after the same fault the next request draws."""
        self._fault = repr(error)
        self._failed(error)
        self.request()

    def _painted(self, began: float) -> None:
        self._on_screen.set()
        cost = monotonic() - began
        self._interval = min(LONGEST, max(INTERVAL, (1 + SHARE) * cost))
