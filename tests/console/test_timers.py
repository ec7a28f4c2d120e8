"""A time without a key is only believed where the process ran meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

from tui_agent.console.terminal.timers import LATE, MOST_WAITS, Quiet


class Owner:
    """Stands for a widget, whose callbacks are noted."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    def call_next(self, callback: Callable[[], object]) -> None:
        callback()


def quiet(owner: Owner, delay: float = LATE / 2) -> Quiet:
    return Quiet(cast(Any, owner), delay, owner.called.set)


async def process_stands_still() -> None:
    time.sleep(LATE * 2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_a_timer_that_is_late_waits_again_so_that_a_key_can_cancel_it() -> None:
    owner = Owner()
    wait = quiet(owner)
    await process_stands_still()
    assert not owner.called.is_set()
    wait.cancel()
    await asyncio.sleep(0.01)
    assert not owner.called.is_set()


async def test_it_calls_back_in_the_end_however_late_each_timer_is() -> None:
    owner = Owner()
    quiet(owner)
    for _ in range(MOST_WAITS):
        assert not owner.called.is_set()
        await process_stands_still()
    await asyncio.wait_for(owner.called.wait(), 60)


async def test_it_calls_back_after_its_time() -> None:
    owner = Owner()
    quiet(owner, 0.001)
    await asyncio.wait_for(owner.called.wait(), 60)
