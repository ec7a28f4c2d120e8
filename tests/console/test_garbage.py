"""The oldest objects are looked through for garbage when nobody types."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.console.live_harness import live
from tui_agent.console.terminal import garbage


class Handle:
    """A timer that a test fires."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.fire: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.fire = None


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Handle]]:
    made: list[Handle] = []
    thresholds = gc.get_threshold()
    enabled = gc.isenabled()
    gc.enable()

    def once(owner: Any, delay: float, callback: Callable[[], None]) -> Handle:
        assert delay == garbage.QUIET
        made.append(Handle(callback))
        return made[-1]

    monkeypatch.setattr(garbage, "once", once)
    yield made
    gc.set_threshold(*thresholds)
    if not enabled:
        gc.disable()


async def test_they_wait_while_keys_come_and_are_looked_through_after_the_last(timers: list[Handle]) -> None:
    async with live() as console:
        await console.type("ab")
        assert gc.get_threshold()[2] == garbage.OVERDUE
        assert [timer.fire is None for timer in timers] == [True, False]
        for _ in range(garbage.DUE + 1):
            gc.collect(1)
        assert gc.get_count()[2] > garbage.DUE
        after = timers[-1].fire
        assert after is not None
        after()
        assert gc.get_threshold()[2] == garbage.DUE
        assert gc.get_count()[2] == 0


async def test_they_are_left_alone_where_little_was_made(timers: list[Handle]) -> None:
    async with live() as console:
        gc.collect()
        await console.type("a")
        gc.collect(1)
        count = gc.get_count()[2]
        assert 0 < count <= garbage.DUE
        after = timers[-1].fire
        assert after is not None
        after()
        assert gc.get_count()[2] == count
