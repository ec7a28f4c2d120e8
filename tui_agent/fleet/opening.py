"""From the command's values to a fleet that can begin."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agents.notices import tell
from tui_agent.cluster import LOCAL, RemoteProcess, connected
from tui_agent.config.settings import Settings, load_settings
from tui_agent.fleet.fleet import Bounds, Fleet
from tui_agent.fleet.hosts import LocalHost, RemoteHost, Start, WorkerProcess
from tui_agent.fleet.kept import FleetRecord, kept_for
from tui_agent.fleet.tasks import BadLine, FleetTask, read_tasks

if TYPE_CHECKING:
    from tui_agent.runtime.operator import Operator


@dataclass(frozen=True)
class FleetArguments:
    """One start of a fleet."""

    tasks: Path
    bounds: Bounds
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Options for every run, by the name of their setting."""
    config: Path | None = None
    workers: int | None = None
    """Processes; None: one a core."""
    out: Path | None = None
    cluster: str = LOCAL


@dataclass(frozen=True)
class OpenFleet:
    """A fleet that can begin, the lines that are no tasks, and the hosts of its workers."""

    fleet: Fleet
    bad: tuple[BadLine, ...]
    start: Start
    settings: Settings

    async def tell(self) -> None:
        """Tell a person who is away that it has ended, if the settings say how."""
        outcomes = Counter(str(run.outcome) for run in self.fleet.runs)
        counts = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
        title = "agent-tui fleet: " + ("halted" if self.fleet.halted else "ended")
        await tell(self.settings, title, f"{self.fleet.halted} {counts}".strip())


@asynccontextmanager
async def open_fleet(
    arguments: FleetArguments, operator_for: Callable[[FleetTask], Operator | None] = lambda _: None
) -> AsyncIterator[OpenFleet]:
    """Read the tasks and what is kept of them. Raises `ConfigError`, `SessionError`, `ClusterError`, `OSError`."""
    config = None if arguments.config is None else str(arguments.config.resolve())
    settings = load_settings(arguments.overrides, config)
    overrides = {"workspace": str(Path.cwd()), **arguments.overrides}
    tasks, bad = await asyncio.to_thread(read_tasks, arguments.tasks, overrides, config)
    kept = FleetRecord(kept_for(arguments.tasks, arguments.out))
    fleet = Fleet(tasks, overrides, config, settings.state_dir, kept, arguments.bounds, operator_for)
    most = arguments.workers or os.cpu_count() or 1

    async def start() -> WorkerProcess | None:
        return await LocalHost.start() if len(fleet.hosts) < most else None

    if arguments.cluster == LOCAL:
        yield OpenFleet(fleet, tuple(bad), start, settings)
        return
    stack = ExitStack()
    try:
        client = await asyncio.to_thread(stack.enter_context, connected(arguments.cluster, most))

        async def start_there() -> WorkerProcess | None:
            taken = {host.name for host in fleet.hosts}
            free = [worker for worker in await asyncio.to_thread(client.nthreads) if worker not in taken]
            return RemoteHost(free[0], partial(RemoteProcess, client)) if free else None

        yield OpenFleet(fleet, tuple(bad), start_there, settings)
    finally:
        await asyncio.to_thread(stack.close)
