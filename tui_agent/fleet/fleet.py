"""Many runs at once: the state of each, the cost of all, and a new start for those whose worker was lost.

Each run is an ordinary session. A run whose worker ends goes on in another one from its journal; at most the step that
was open is lost. Nothing here draws.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.core import events
from tui_agent.fleet import wire
from tui_agent.fleet.kept import FleetRecord, TaskRecord
from tui_agent.fleet.row import RunRow
from tui_agent.store.journal import JOURNAL_NAME, sessions_folder
from tui_agent.store.lines import decode
from tui_agent.store.lock import SessionLock
from tui_agent.store.private import make_private, private
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.fleet.hosts import Start, WorkerProcess
    from tui_agent.fleet.tasks import FleetTask
    from tui_agent.runtime.operator import Operator

MOST_TRIES = 5
"""Workers that a run may lose in one step before it is given up: it may be what ends them."""
BREATH = 20
"""Messages that are taken in a row before keys are answered."""
BEAT = 5.0
"""Seconds between two signs of life to each worker."""
PLACES_LOOK = 2.0
"""Seconds after which it is looked whether there is room for another worker."""


class Place(StrEnum):
    """The stages in a run's life."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    """It could not be begun, or took too many workers with it."""


@dataclass
class FleetRun:
    """One task and what becomes of it."""

    task: FleetTask
    operator: Operator | None = None
    """Who answers its questions; None: nobody."""
    place: Place = Place.WAITING
    row: RunRow = field(default_factory=RunRow)
    session: str = ""
    folder: Path | None = None
    """Its session, once there is one."""
    result: dict[str, Any] | None = None
    """The object of `run --output json`, once it has ended."""
    why: str = ""
    """Why it failed."""
    lost: int = 0
    """Workers that ended under it."""
    lost_here: int = 0
    """Of these, in the step that it is in."""
    lost_at: int = 0
    """The step in which the last of them ended."""
    host: WorkerProcess | None = None
    asked: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    journal: _Copy | None = None

    @property
    def name(self) -> str:
        """Its name on the board."""
        return self.task.id

    @property
    def over(self) -> bool:
        """Nothing more comes of it."""
        return self.place in {Place.ENDED, Place.FAILED}

    @property
    def outcome(self) -> str:
        """Its end in one word, or its stage if it has not ended."""
        return str(self.result["outcome"]) if self.result is not None else str(self.place)


@dataclass(frozen=True)
class Bounds:
    """Bounds of all runs together; None: no bound. `at_once` counts runs."""

    at_once: int
    max_cost: float | None = None
    """USD."""
    max_seconds: float | None = None


class _Copy:
    """The journal of a session that is written on another disk, as it comes."""

    def __init__(self, folder: Path) -> None:
        """Raises `SessionError` if somebody else has the session open."""
        make_private(folder)
        self._lock = SessionLock.acquire(folder)
        self._file = private(folder / JOURNAL_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, lines: str) -> None:
        os.write(self._file, lines.encode())

    def close(self) -> None:
        os.close(self._file)
        self._lock.release()


def _own(task: FleetTask) -> str:
    """A name for what is this very task's own: a folder, a branch."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", task.id).strip("-")[:40]
    return f"{plain or 'task'}-{task.digest}"


class Fleet:
    """All runs. `changed` is called for a run that stands otherwise than before; None: the fleet itself does."""

    def __init__(
        self,
        tasks: Sequence[FleetTask],
        overrides: Mapping[str, object],
        config: str | None,
        state_dir: Path,
        kept: FleetRecord,
        bounds: Bounds,
        operator_for: Callable[[FleetTask], Operator | None] = lambda _: None,
    ) -> None:
        """`overrides`: options for every task. Runs that `kept` knows as ended stay so; open ones go on."""
        self.runs = [FleetRun(task, operator_for(task)) for task in tasks]
        self.halted = ""
        """Why the fleet ends before all of its runs; those that are open can be gone on with."""
        self.hosts: list[WorkerProcess] = []
        self.changed: Callable[[FleetRun | None], None] = lambda _: None
        self._overrides, self._config = overrides, config
        self._state_dir = state_dir
        self._kept = kept
        self._bounds = bounds
        self._by_id = {run.task.id: run for run in self.runs}
        self._queue = deque(run for run in self.runs if not self._recall(run))
        self._serving: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._unheard = 0
        """Workers in a row that ended before they said anything."""

    def _recall(self, run: FleetRun) -> bool:
        """Take up what is known of a task; whether it has ended."""
        known = self._kept.of(run.task)
        if known.session:
            self._has_session(run, known.session)
        if known.result is not None:
            run.result, run.place = known.result, Place.ENDED
            usage = known.result["usage"]
            run.row = RunRow(
                badge=known.result["outcome"].upper(),
                task=one_line(run.task.task),
                step=known.result["iterations"],
                cost=usage["cost_usd"],
                tokens=usage["prompt_tokens"] + usage["completion_tokens"],
                ended=0.0,
            )
        else:
            run.row = RunRow(task=one_line(run.task.task))
        return run.over

    def _has_session(self, run: FleetRun, session: str) -> None:
        run.session, run.folder = session, sessions_folder(self._state_dir) / session

    @property
    def cost(self) -> float:
        """The known cost of all runs so far, in USD."""
        return sum(run.row.cost or 0.0 for run in self.runs)

    @property
    def finished(self) -> bool:
        """Every run has ended."""
        return all(run.over for run in self.runs)

    # --- from the first to the last ---------------------------------------------------------------------------

    async def run(self, start: Start) -> None:
        """Carry all runs out. `start` gives hosts, until it has no more. Raises `OSError` if none can be
        started.
        """
        loop = asyncio.get_running_loop()
        timer = None
        if self._bounds.max_seconds is not None:
            timer = loop.call_later(
                self._bounds.max_seconds,
                self.halt,
                f"The runs took longer than {self._bounds.max_seconds:g} s in all.",
            )
        beating = loop.create_task(self._beat(), name="fleet-beat")
        try:
            while not (self.finished or self.halted):
                self._settled.clear()
                await self._man(start)
                self._place()
                with suppress(TimeoutError):
                    async with asyncio.timeout(PLACES_LOOK):
                        await self._settled.wait()
        finally:
            beating.cancel()
            if timer is not None:
                timer.cancel()
            await asyncio.gather(*(host.end() for host in self.hosts), return_exceptions=True)
            await asyncio.gather(*self._serving, return_exceptions=True)
            for run in self.runs:
                self._leave_host(run)
            self._kept.close()

    def halt(self, why: str) -> None:
        """End all workers; open runs stay as they are."""
        self.halted = self.halted or why
        self._settled.set()
        self.changed(None)

    def stop(self, run: FleetRun, reason: str = "The operator stopped the run.") -> None:
        """End one run as interrupted; one that waits is not begun any more."""
        if run.host is not None:
            run.host.send(wire.Stop(run=run.task.id, reason=reason))
        elif run in self._queue:
            self._queue.remove(run)
            self._failed(run, reason)

    def stop_all(self) -> None:
        """End every run as interrupted."""
        for run in self.runs:
            if not run.over:
                self.stop(run, "The operator stopped all runs.")

    # --- hosts ------------------------------------------------------------------------------------------------

    async def _man(self, start: Start) -> None:
        """Have as many hosts as there are places for them, and no more than runs that need one."""
        open_runs = sum(not run.over for run in self.runs)
        while len(self.hosts) < min(open_runs, self._bounds.at_once):
            if self._unheard >= MOST_TRIES:
                raise OSError(f"workers end before they say anything: {self._last_words}")
            host = await start()
            if host is None:
                return
            self.hosts.append(host)
            task = asyncio.get_running_loop().create_task(self._serve(host), name=host.name)
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    _last_words = ""

    async def _serve(self, host: WorkerProcess) -> None:
        heard = 0
        async for message in host.messages():
            heard, self._unheard = heard + 1, 0
            self._take(message)
            if heard % BREATH == 0:
                await asyncio.sleep(0)
        self._last_words = host.printed.strip()[-300:]
        self._unheard += not heard
        self._lost(host)

    def _lost(self, host: WorkerProcess) -> None:
        """A host has ended: its runs go on elsewhere."""
        self.hosts.remove(host)
        for run in reversed(self.runs):
            if run.host is not host:
                continue
            self._leave_host(run)
            if self.halted:
                continue
            run.lost += 1
            run.lost_here = 1 + (run.lost_here if run.row.step == run.lost_at else 0)
            run.lost_at = run.row.step
            if run.lost_here >= MOST_TRIES:
                self._failed(run, f"{run.lost_here} workers ended under it: {host.printed.strip()[-200:]}")
            else:
                run.place = Place.WAITING
                self._queue.appendleft(run)
                self.changed(run)
        self._settled.set()

    def _leave_host(self, run: FleetRun) -> None:
        run.host = None
        for asking in run.asked.values():
            asking.cancel()
        run.asked.clear()
        if run.journal is not None:
            run.journal.close()
            run.journal = None

    def _place(self) -> None:
        """Begin runs while there is room, each on the host that has the fewest."""
        running = [run for run in self.runs if run.host is not None]
        load = {id(host): sum(run.host is host for run in running) for host in self.hosts}
        for _ in range(self._bounds.at_once - len(running)):
            if not self._queue or not self.hosts:
                return
            host = min(self.hosts, key=lambda host: load[id(host)])
            load[id(host)] += 1
            run = self._queue.popleft()
            run.host, run.place = host, Place.RUNNING
            host.send(self._begin(run, host))
            self.changed(run)

    def _begin(self, run: FleetRun, host: WorkerProcess) -> wire.Begin:
        # A journal without a whole line is what a worker leaves that was killed as it began.
        written = b"" if run.folder is None else _whole_lines(run.folder / JOURNAL_NAME)
        if run.folder is not None and not written and not SessionLock.held(run.folder):
            shutil.rmtree(run.folder, ignore_errors=True)
        return wire.Begin(
            run=run.task.id,
            task=run.task.task,
            options={**self._overrides, "state_dir": str(self._state_dir), **run.task.options},
            config=self._config,
            present=run.operator is not None and run.operator.present,
            session=run.session if written else "",
            check=run.task.check,
            goal=run.task.goal,
            worktree=str(self._kept.path.parent / "worktrees" / _own(run.task)) if run.task.worktree else "",
            branch=f"agent-tui/fleet/{_own(run.task)}",
            journal=None if host.shares_disk else written.decode(),
        )

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            for host in self.hosts:
                host.send(wire.StillThere())

    # --- what workers say -------------------------------------------------------------------------------------

    def _take(self, message: wire.FromWorker) -> None:
        run = self._by_id[message.run]
        match message:
            case wire.Stands(row=row):
                run.row = row
                if self._bounds.max_cost is not None and self.cost >= self._bounds.max_cost:
                    self.halt(f"The runs have cost {self.cost:.2f} USD in all.")
            case wire.Opened(session=session):
                self._has_session(run, session)
                self._kept.put(run.task, TaskRecord(session))
                if run.host is not None and not run.host.shares_disk and run.folder is not None:
                    run.journal = _Copy(run.folder)
            case wire.Wrote(lines=lines):
                if run.journal is not None:
                    run.journal.write(lines)
                return
            case wire.Asks(ask=ask, event=line):
                asking = self._ask(run, ask, decode(line.encode()))
                run.asked[ask] = asyncio.get_running_loop().create_task(asking)
            case wire.Withdrawn(ask=ask):
                if (open_question := run.asked.pop(ask, None)) is not None:
                    open_question.cancel()
            case wire.Ended(result=result):
                run.result, run.place = result, Place.ENDED
                self._leave_host(run)
                self._kept.put(run.task, TaskRecord(run.session, result))
                self._settled.set()
            case wire.Failed(why=why):
                self._failed(run, why)
        self.changed(run)

    def _failed(self, run: FleetRun, why: str) -> None:
        self._leave_host(run)
        run.place, run.why = Place.FAILED, why
        self._settled.set()
        self.changed(run)

    async def _ask(self, run: FleetRun, ask: int, event: events.Event) -> None:
        operator, host = run.operator, run.host
        if operator is None or host is None:
            return
        match event:
            case events.ApprovalAsked():
                reply: Any = await operator.approve(event)
            case events.EscalationRaised():
                reply = await operator.answer(event)
            case events.ServerAsked():
                reply = await operator.consult(event)
            case _:
                return
        run.asked.pop(ask, None)
        host.send(wire.Answer(run=run.task.id, ask=ask, reply=asdict(reply)))


def _whole_lines(path: Path) -> bytes:
    text = path.read_bytes() if path.is_file() else b""
    return text[: text.rfind(b"\n") + 1]
