"""Tests of the console go on as soon as the screen has settled, and do no work twice.

Textual's own pilot sleeps at least 20 ms, twice for every key, asks whether the process used the processor meanwhile,
and has every widget of the screen answer a message. Here a screen has settled when the event loop has nothing to run,
neither a thread nor a timer is about to add something, and no frame is due; frames follow each other at once. A frame
that no terminal would get is not drawn (a test that looks at the screen draws all of it), and a style sheet is parsed
once in each theme for all consoles of a process.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from textual._compositor import Compositor, visible_screen_stack
from textual.css.stylesheet import Stylesheet
from textual.notifications import Notification
from textual.pilot import Pilot

from tests.console.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from textual.css.model import RuleSet
    from textual.screen import Screen

FRAME = 0.004
"""Seconds between two frames."""

SOON = 0.03
"""Seconds; a timer that is due within them may belong to what was just done."""

TIMERS = 3
"""How many such timers are waited for: some repeat themselves for as long as the program runs."""

THREADS = 300
"""Looks, a millisecond apart, at threads that are not done: then they are waited for no more. Some are held back by the
test itself, or follow a file to its end.
"""

WORK = 0.2
"""Seconds of the processor, which a busy machine does not shorten, after which what is still at work is left at it."""

REMARK = 3_600.0
"""Seconds that a remark stays: on a busy machine the few that it has are over before a test looks."""

FRAMES = 20
"""How many frames may follow each other: some programs go on for ever."""


class CountedThreads(ThreadPoolExecutor):
    """Threads that know which calls they have not finished, but for those that were waited for in vain."""

    def __init__(self) -> None:
        super().__init__(max_workers=8)
        self.unfinished: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        self.unfinished.add(future)
        future.add_done_callback(self.unfinished.discard)
        return future


async def settled(threads: CountedThreads) -> bool:
    """Return when nothing more happens by itself; False if it goes on and on."""
    loop: Any = asyncio.get_running_loop()
    end = time.thread_time() + WORK
    timers, looks = TIMERS, THREADS
    while time.thread_time() < end:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        if threads.unfinished:
            looks -= 1
            if looks:
                await asyncio.sleep(0.001)
            else:
                threads.unfinished.clear()
            continue
        now = loop.time()
        due = min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=now + 1.0)
        if due > now + SOON or not timers:
            return True
        timers -= 1
        await asyncio.sleep(due - now)
    return False


def frame_is_due(screen: Screen[Any]) -> bool:
    """More than paint follows from the next frame: sizes, and what waits for them."""
    return bool(
        screen._layout_required or screen._scroll_required or screen._repaint_required or screen._callbacks
    )


RENDER_UPDATE = Compositor.render_update
PARSE_RULES = Stylesheet._parse_rules
PARSED: dict[tuple[Any, ...], list[RuleSet]] = {}
"""By the variables of a theme and what `Stylesheet._parse_rules` is given: the rules."""
FROZEN: list[Any] = [None, None]
"""The variables of the sheet that was parsed last, and the same as a key."""


def render_what_is_asked_for(
    compositor: Compositor, full: bool = False, screen_stack: Any = None, simplify: bool = False
) -> Any:
    """In place of `Compositor.render_update`: a part of the screen that changed goes nowhere without a terminal."""
    if full:
        return RENDER_UPDATE(compositor, full, screen_stack, simplify)
    visible_screen_stack.set(screen_stack or [])
    compositor._dirty_regions.clear()
    return None


def parse_rules_once(sheet: Stylesheet, *source: Any, **more: Any) -> list[RuleSet]:
    """In place of `Stylesheet._parse_rules`, whose sheet forgets at each change of the theme what it has parsed."""
    if FROZEN[0] is not sheet._variables:  # all sources of a sheet follow each other
        FROZEN[:] = sheet._variables, frozenset(sheet._variables.items())
    key = (FROZEN[1], *source, *more.values())
    if key not in PARSED:
        PARSED[key] = PARSE_RULES(sheet, *source, **more)
    return PARSED[key]


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Terminal]]:
    """Start the program in a terminal; environment variables by name. It is ended with the test."""
    assert request.node.get_closest_marker("process"), "a test that starts the program has the mark `process`"
    started: list[Terminal] = []

    def make(*arguments: str, size: tuple[int, int] = (100, 30), **env: str) -> Terminal:
        folders = {
            "AGENT_TUI_STATE_DIR": str(tmp_path / "state"),
            "AGENT_TUI_CAPTIONS": "false",
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        }
        console = Terminal(list(arguments), {**folders, **env}, size)
        started.append(console)
        return console

    yield make
    for console in started:
        console.close()


@pytest_asyncio.fixture(autouse=True)
async def no_fixed_waits(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    threads = CountedThreads()
    asyncio.get_running_loop().set_default_executor(threads)

    async def wait_for_idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
        await settled(threads)

    async def rest(pilot: Pilot[Any]) -> bool:
        """In place of `Pilot._wait_for_screen`: once all has settled each widget has done its work."""
        for _ in range(FRAMES):
            rests = await settled(threads)
            if not pilot.app.screen_stack:
                return False
            screen = pilot.app.screen
            due = frame_is_due(screen)
            screen._on_timer_update()
            if not (rests and due):
                break
        return True

    async def pause(pilot: Pilot[Any]) -> None:
        """In place of `Pilot.pause`, without its time: a test waits for what it wants to see."""
        await rest(pilot)

    monkeypatch.setattr(Pilot, "pause", pause)
    monkeypatch.setattr(Pilot, "_wait_for_screen", rest)
    monkeypatch.setattr("textual.app.wait_for_idle", wait_for_idle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", wait_for_idle)
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", FRAME)
    monkeypatch.setattr(Notification, "time_left", property(lambda _: REMARK))
    monkeypatch.setattr(Compositor, "render_update", render_what_is_asked_for)
    monkeypatch.setattr(Stylesheet, "_parse_rules", parse_rules_once)
    yield
