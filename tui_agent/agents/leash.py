"""A command that ends when we do: it runs below a supervisor, on a leash that closes with us, however we end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

from tui_agent import processes

GRACE = 1.0
"""Seconds for a command to end by itself: with what follows, all is over within two."""


class Leashed:
    """A command under way."""

    def __init__(self, child: processes.Child, status: int, leash: int) -> None:
        self.child = child
        self._status = status
        self._leash = leash
        self._lines: list[str] = []

    @property
    def leader(self) -> int:
        """The process of the command itself; 0 before it has started."""
        return self._said("pid ", 0) or 0

    @property
    def code(self) -> int | None:
        """The exit code (128 + N for a signal); None while it runs, or if nobody knows it."""
        return self._said("exit ", None)

    def let_go(self) -> None:
        """End it, with all that it started."""
        if self._leash >= 0:
            os.close(self._leash)
            self._leash = -1

    def _said(self, what: str, otherwise: int | None) -> int | None:
        with suppress(BlockingIOError):
            self._lines += os.read(self._status, 4_096).decode("ascii", "replace").splitlines()
        return next((int(line.split()[1]) for line in self._lines if line.startswith(what)), otherwise)


@asynccontextmanager
async def leashed(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: int | IO[bytes] = processes.DEVNULL
) -> AsyncIterator[Leashed]:
    """Run a command within the block. Raises `OSError` if it cannot be started."""
    (leash_end, leash), (status, status_end) = os.pipe(), os.pipe()
    os.set_blocking(status, False)
    try:
        child = await processes.start(
            [*processes.supervised(GRACE, status_end, leash=leash_end), *command],
            cwd=cwd,
            env=env,
            stdin=stdin,
            pass_fds=(leash_end, status_end),
        )
    except BaseException:
        os.close(leash)
        os.close(status)
        raise
    finally:
        os.close(leash_end)
        os.close(status_end)
    running = Leashed(child, status, leash)
    try:
        yield running
    finally:
        running.let_go()
        await child.end()
        os.close(status)
