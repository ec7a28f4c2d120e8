"""Hosts of workers: processes of this machine, or of a cluster. A host takes messages and gives messages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from tui_agent import processes
from tui_agent.cluster import Heard, RemoteProcess
from tui_agent.fleet import wire

WORKER = "tui_agent.fleet.worker"
_TAIL = 2_000
"""Characters of what a worker printed last, for the message about its end."""


class WorkerProcess(Protocol):
    """A worker process, wherever it runs."""

    name: str
    shares_disk: bool
    """Its sessions are written in the folder that the fleet reads."""
    printed: str
    """The end of its printed output."""

    def send(self, message: wire.ToWorker) -> None:
        """Queue a message; one to a worker that has ended is dropped."""

    def messages(self) -> AsyncIterator[wire.FromWorker]:
        """Its messages, until it has ended."""

    async def end(self) -> None:
        """Have it leave its sessions, and wait until it is gone."""


Start = Callable[[], Awaitable["WorkerProcess | None"]]
"""A new host; None: there is no place for another one now."""


class LocalHost:
    """A worker process of this machine."""

    shares_disk = True

    def __init__(self, child: processes.Child) -> None:
        self._child = child
        self.name = f"process {child.process.pid}"
        self.pid = child.process.pid
        self.printed = ""
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(cls, module: str = WORKER, *arguments: str) -> LocalHost:
        """Start a worker, or another module that speaks as one. Raises `OSError`."""
        return cls(await processes.start([sys.executable, "-m", module, *arguments], limit=wire.LINE_LIMIT))

    def send(self, message: wire.ToWorker) -> None:
        """See `Host.send`."""
        stdin = self._child.process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(message.line())

    async def messages(self) -> AsyncIterator[wire.FromWorker]:
        """See `Host.messages`."""
        stdout = self._child.process.stdout
        while stdout is not None:
            try:
                line = await stdout.readline()
                if not line.endswith(b"\n"):
                    break
                message = wire.from_worker(line)
            except ValueError:  # also of a line without an end
                break  # no worker of ours says that
            yield message
        await self._child.end()
        await self._listening

    async def _listen(self) -> None:
        while self._child.process.stderr is not None and (
            piece := await self._child.process.stderr.read(65_536)
        ):
            self.printed = (self.printed + piece.decode("utf-8", "replace"))[-_TAIL:]

    async def end(self) -> None:
        """See `Host.end`."""
        self.send(wire.Leave())
        if self._child.process.stdin is not None:
            self._child.process.stdin.close()  # a watcher goes by that
        with suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await self._child.process.wait()
        await self._child.end()
        await asyncio.gather(self._listening, return_exceptions=True)


class RemoteHost:
    """A worker process beside a worker of a cluster."""

    shares_disk = False
    printed = ""

    def __init__(self, worker: str, begin: Callable[[str, str, Heard], RemoteProcess]) -> None:
        """`begin` starts a module on a worker (`RemoteProcess` of the cluster's client)."""
        loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[list[bytes] | None] = asyncio.Queue()

        def heard(lines: list[bytes] | None) -> None:
            loop.call_soon_threadsafe(self._lines.put_nowait, lines)

        self.name = worker
        self._process = begin(worker, WORKER, heard)

    def send(self, message: wire.ToWorker) -> None:
        """See `Host.send`."""
        self._process.send(message.line())

    async def messages(self) -> AsyncIterator[wire.FromWorker]:
        """See `Host.messages`."""
        while (lines := await self._lines.get()) is not None:
            for line in lines:
                try:
                    message = wire.from_worker(line)
                except ValueError:
                    continue
                yield message
        await asyncio.to_thread(self._process.close)

    async def end(self) -> None:
        """See `Host.end`."""
        self.send(wire.Leave())
        await asyncio.to_thread(self._process.close)
