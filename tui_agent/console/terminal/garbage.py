"""Collecting garbage without delaying the echo of a key.

To look through the oldest objects takes tens of milliseconds: that waits until nobody has typed for a moment.
"""

from __future__ import annotations

import gc
from asyncio import TimerHandle
from typing import TYPE_CHECKING

from tui_agent.console.terminal.timers import once

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

QUIET = 0.3
"""Seconds without a key."""

DUE = gc.get_threshold()[2]
"""After so many collections among younger objects the oldest are looked through too."""

OVERDUE = 10 * DUE
"""After so many they are while somebody types."""


def begin() -> None:
    """Collect again after a start without it, but not in what the start made: hardly any of that goes."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


class PatientCollection:
    """Lets the oldest objects wait while keys come. `owner` keeps the time."""

    def __init__(self, owner: MessagePump) -> None:
        self._owner = owner
        self._quiet: TimerHandle | None = None

    def key_came(self) -> None:
        """Wait from now on."""
        if self._quiet is not None:
            self._quiet.cancel()
        self._wait_for(OVERDUE)
        self._quiet = once(self._owner, QUIET, self._catch_up)

    def _catch_up(self) -> None:
        self._wait_for(DUE)
        if gc.isenabled() and gc.get_count()[2] > DUE:
            gc.collect()

    def _wait_for(self, collections: int) -> None:
        gc.set_threshold(*gc.get_threshold()[:2], collections)
