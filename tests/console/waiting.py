"""What a test of the console waits for, with a limit that only a console that hangs reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.pilot import Pilot

LIMIT = 120.0
"""Seconds."""

LONGEST_NAP = 0.05
"""Seconds between two looks: one may draw the whole screen, and what is waited for is often another process."""


async def until(
    pilot: Pilot[Any], holds: Callable[[], object], remarks: Callable[[], object] = lambda: ""
) -> None:
    """Let the console go on until something holds."""
    deadline = time.monotonic() + LIMIT
    nap = 0.005
    while True:
        await pilot.pause()
        if pilot.app._exception is not None:
            raise pilot.app._exception
        if holds():
            return
        assert time.monotonic() < deadline, f"it never came to that:\n{picture(pilot.app)}\n{remarks()}"
        await asyncio.sleep(nap)
        nap = min(2 * nap, LONGEST_NAP)


async def wear(app: App[Any], pilot: Pilot[Any], theme: str) -> None:
    """Change the theme, and wait until all wears it."""
    app.theme = theme
    await until(pilot, lambda: not any(worker.group == "theme" for worker in app.workers))


def picture(app: App[Any]) -> str:
    """The text of the whole screen, a line a row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def goes_to(app: Any) -> list[Any]:
    """Record where the console goes on instead of opening a tab there: its arguments, once it goes."""
    went: list[Any] = []
    app.open_tab = lambda arguments, **_: went.append(arguments)
    return went
