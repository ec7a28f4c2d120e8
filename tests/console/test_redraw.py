"""One clock for all drawing: requests are joined, a typed key goes first, and a drawing that raises is not the last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App

from tests.console.waiting import until
from tui_agent.console.terminal import redraw


class Owner:
    """A widget whose timers are fired by the test."""

    is_attached = True

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def once(self, delay: float, callback: Callable[[], None]) -> object:
        self.timers.append((delay, callback))
        return object()

    def call_after_refresh(self, callback: Callable[..., None], *arguments: Any) -> None:
        """The painting itself takes no time here."""


class Desk:
    """A redraw with a clock that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.drawn = 0
        self.faults: list[Exception] = []
        self.reported: list[Exception] = []
        self.owner: Any = Owner()
        monkeypatch.setattr(redraw, "monotonic", lambda: self.now)
        monkeypatch.setattr(redraw, "once", Owner.once)
        self.redraw = redraw.Redraw(self.owner, self.draw, self.reported.append)

    def draw(self) -> None:
        if self.faults:
            raise self.faults.pop()
        self.drawn += 1

    def fire(self) -> None:
        _, callback = self.owner.timers.pop(0)
        callback()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


def test_many_requests_are_one_drawing(desk: Desk) -> None:
    for _ in range(10):
        desk.redraw.request()
    desk.fire()
    assert (desk.drawn, desk.owner.timers) == (1, [])


def test_a_drawing_waits_for_the_echo_of_a_key(desk: Desk) -> None:
    desk.redraw.request()
    desk.fire()
    desk.redraw.request()
    desk.redraw.hold()
    desk.fire()
    assert desk.drawn == 1
    desk.now += redraw.ECHO
    desk.fire()
    assert desk.drawn == 2


def test_somebody_who_types_all_the_time_does_not_stop_the_drawing(desk: Desk) -> None:
    desk.redraw.request()
    desk.fire()
    desk.redraw.request()
    for _ in range(20):
        desk.redraw.hold()
        desk.now += 0.02
        if desk.owner.timers:
            desk.fire()
    assert desk.drawn >= 2


def test_a_drawing_that_raises_is_reported_and_made_again(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.faults = [ValueError("no such row")]
    desk.redraw.request()
    desk.fire()
    assert [str(error) for error in desk.reported] == ["no such row"]
    assert "no such row" in caplog.text
    desk.fire()
    assert desk.drawn == 1


def test_a_drawing_that_keeps_raising_is_reported_once_and_does_not_go_round_by_itself(desk: Desk) -> None:
    desk.faults = [ValueError("no such row") for _ in range(4)]
    for _ in range(3):
        desk.redraw.request()
        while desk.owner.timers:
            desk.fire()
    assert (len(desk.reported), desk.drawn) == (1, 0)
    desk.redraw.request()
    desk.fire()
    assert desk.drawn == 1


async def test_a_process_that_stands_still_as_a_timer_begins_draws_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jumps = 0

    def late() -> float:
        nonlocal jumps
        jumps += 1
        return time.monotonic() + 10.0 * min(jumps, 100)

    app: App[None] = App()
    drawn: list[bool] = []
    async with app.run_test() as pilot:
        redrawing = redraw.Redraw(app.screen, lambda: drawn.append(True))
        monkeypatch.setattr("textual.timer._time.get_time", late)
        redrawing.request()
        await until(pilot, lambda: drawn)


def test_a_tick_moves_what_it_is_told_and_rests_when_nothing_moves(desk: Desk) -> None:
    moved: list[str] = []
    timers: list[Callable[[], None]] = []

    class Timer:
        running = False

        def pause(self) -> None:
            self.running = False

        def resume(self) -> None:
            self.running = True

    timer = Timer()

    def set_interval(seconds: float, callback: Callable[[], None], *, pause: bool) -> Timer:
        timers.append(callback)
        return timer

    desk.owner.set_interval = set_interval
    desk.redraw.tick(None)
    assert timers == []
    desk.redraw.tick(lambda: moved.append("all"))
    desk.redraw.tick(lambda: moved.append("the clock"))
    assert (len(timers), timer.running) == (1, True)
    timers[0]()
    desk.redraw.tick(None)
    assert (moved, timer.running) == (["the clock"], False)
    desk.redraw.tick(lambda: moved.append("seconds"), 2)
    for _ in range(4):
        timers[0]()
    assert moved == ["the clock", "seconds", "seconds"]
