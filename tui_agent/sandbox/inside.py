"""One command in the sandbox: started there, looked at while it runs, and what it planted for later taken back."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tui_agent.processes import uncancelled
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.sandbox.watch import Watch

_GLANCE = 0.05
"""Seconds between two looks while a command runs."""
_THOROUGH = 40
"""After so many looks one goes through all folders;"""
_SHARE = 50
"""after more, so that it takes a fiftieth of the time at most."""
_PERSISTS = 2
"""So often taken back from one command, it is ended."""


_RESTS: set[asyncio.Task[None]] = set()


class Inside:
    """`async with Inside(sandbox) as inside`: while one command runs. `ended` tells that it was ended for writing the
    same again and again.
    """

    def __init__(self, sandbox: Sandbox, *, git_settings: bool = True, reports: bool = True) -> None:
        """`git_settings`: whether mounts protect the settings of repositories from it. `reports`: whether what is taken
        back is reported at once; else whoever asks about it does that, unless the command is broken off.
        """
        self.taken: list[TakenBack] = []
        self.ended = False
        self._sandbox = sandbox
        self._git_settings = git_settings
        self._reports = reports
        self._protected: tuple[Path, ...] = ()
        self._token: frozenset[Path] = frozenset()
        self._looking: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        watch = self._sandbox.watch
        if watch is not None:
            beginning = asyncio.ensure_future(asyncio.to_thread(watch.begin, self._mounted))
            try:
                self._token, taken = await asyncio.shield(beginning)
            except asyncio.CancelledError:
                beginning.add_done_callback(lambda done: watch.end(done.result()[0]))
                raise
            self._sandbox.report(taken)
        return self

    def _mounted(self) -> tuple[Path, ...]:
        self._protected = self._sandbox.protected(git_settings=self._git_settings)
        return self._protected if self._sandbox.mounts else ()

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` inside."""
        return self._sandbox.wrap(argv, self._protected)

    def look_after(self, end: Callable[[], None]) -> None:
        """Look at what it does from now on; `end` ends it."""
        if self._sandbox.watch is not None:
            self._looking = asyncio.get_running_loop().create_task(self._look(end), name="sandbox-look")

    async def _look(self, end: Callable[[], None]) -> None:
        watch = self._sandbox.watch
        times: Counter[str] = Counter()
        looks, due = 0, _THOROUGH
        while watch is not None and not self._over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_GLANCE):
                    await self._over.wait()
            looks += 1
            thorough = looks >= due
            if not thorough and not watch.unsettled():
                continue
            began = time.monotonic()
            taken = await asyncio.to_thread(watch.settle, everywhere=thorough, live=True)
            if thorough:
                due = looks + max(_THOROUGH, int((time.monotonic() - began) * _SHARE / _GLANCE))
            self._note(taken)
            times.update(one.path for one in taken)
            if not self.ended and any(count >= _PERSISTS for count in times.values()):
                self.ended = True
                end()

    def _note(self, taken: list[TakenBack]) -> None:
        self.taken += taken
        if self._reports:
            self._sandbox.report(taken)

    async def __aexit__(self, kind: object, *_: object) -> None:
        watch = self._sandbox.watch
        if watch is None:
            return
        if self._looking is not None:
            self._over.set()
            await uncancelled(asyncio.wait([self._looking]))
        self._note(await uncancelled(asyncio.to_thread(watch.end, self._token)))
        if kind is not None and not self._reports:
            self._sandbox.report(self.taken)
        if watch.owed:
            rest = asyncio.get_running_loop().create_task(self._rest(watch), name="sandbox-look")
            _RESTS.add(rest)
            rest.add_done_callback(_RESTS.discard)

    async def _rest(self, watch: Watch) -> None:
        """Look at the other folders of a large workspace, without anybody waiting for it."""
        self._sandbox.report(await asyncio.to_thread(watch.settle))


def in_words(taken: Sequence[TakenBack], *, advises: bool = True) -> str:
    """Words for the model and the operator about files that were taken back from a command; "" if none were.
    `advises`: add the way to write such a file.
    """
    if not taken:
        return ""
    said = list(dict.fromkeys(map(str, taken)))
    more = f", and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    text = f"The sandbox undid what a command wrote: {'; '.join(said[:_SHOWN])}{more}."
    if advises and any(one.kept and not one.path.startswith(".git/") for one in taken):
        text += " If the task needs such a file, write it with write_file, for which the operator is asked."
    return text


_SHOWN = 8
