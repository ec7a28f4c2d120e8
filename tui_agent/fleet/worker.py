"""A worker of a fleet (`python -m tui_agent.fleet.worker`): many sessions side by side in one process.

Messages come in on stdin and go out on what was stdout, as `wire` says. The worker ends with whoever started it; its
sessions' journals outlive it in any case.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tui_agent.agents import worktrees
from tui_agent.config.errors import ConfigError
from tui_agent.config.settings import load_settings
from tui_agent.core.names import unanswered
from tui_agent.fleet import wire
from tui_agent.fleet.row import row_of
from tui_agent.headless import SERVERS_PATIENCE, HeadlessOperator, outcome_of
from tui_agent.models.choose import ModelByName
from tui_agent.models.hosted import KeptHost
from tui_agent.models.scenario_checks import ScenarioError
from tui_agent.processes import lower_priority, own_pipes
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, GateReply, RequestOutline, ServerReply
from tui_agent.session.goal import Goal
from tui_agent.session.opening import open_session
from tui_agent.store.errors import SessionError
from tui_agent.store.journal import JOURNAL_NAME, sessions_folder
from tui_agent.store.lines import encode
from tui_agent.store.private import make_private

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.config.settings import Settings
    from tui_agent.core import events
    from tui_agent.core.state import RunState
    from tui_agent.runtime.operator import Operator
    from tui_agent.session.session import Session

LOOK = 0.25
"""Seconds between two rows of a run at least."""
GATHERED = 0.05
"""Seconds for which lines of a journal are gathered that go to another disk."""
NICE = 10
"""Workers, and what they run, leave the processor to who looks at them."""
LAST_FILES = 10.0
"""Seconds in which a folder that is written to is removed."""
LAST_WRITES = 0.1
"""Seconds in which journals write what they have gathered, before the process ends."""

Reply = TypeVar("Reply", ApprovalReply, EscalationReply, ServerReply)


class AskingOperator:
    """An operator who sits elsewhere: questions go out as messages, replies come in."""

    present = True

    def __init__(self, run: str, send: Callable[[wire.Message], None]) -> None:
        self._run = run
        self._send = send
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[dict[str, Any]]] = {}

    def take(self, answer: wire.Answer) -> None:
        """The reply to a question; one that is not open any more is dropped."""
        future = self._open.get(answer.ask)
        if future is not None and not future.done():
            future.set_result(answer.reply)

    async def approve(self, asked: events.ApprovalAsked) -> ApprovalReply:
        return await self._ask(asked, ApprovalReply)

    async def answer(self, raised: events.EscalationRaised) -> EscalationReply:
        return await self._ask(raised, EscalationReply)

    async def consult(self, asked: events.ServerAsked) -> ServerReply:
        return await self._ask(asked, ServerReply)

    async def gate(self, outline: RequestOutline) -> GateReply:
        return GateReply(outline.note)

    async def _ask(self, event: events.Event, kind: type[Reply]) -> Reply:
        number = next(self._numbers)
        self._open[number] = asyncio.get_running_loop().create_future()
        self._send(wire.Asks(run=self._run, ask=number, event=encode(event).decode()))
        try:
            reply = await self._open[number]
        finally:
            del self._open[number]
            self._send(wire.Withdrawn(run=self._run, ask=number))
        if kind is ApprovalReply:
            reply["rules"] = tuple(reply["rules"])
        return kind(**reply)


class Run:
    """One session, from its task to its result."""

    def __init__(self, begin: wire.Begin, send: Callable[[wire.Message], None], hosted: KeptHost) -> None:
        self.begin = begin
        self._send = send
        self._hosted = hosted
        self.operator: Operator = AskingOperator(begin.run, send) if begin.present else HeadlessOperator()
        self.session: Session | None = None
        self._state: RunState | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._lines: list[bytes] = []

    async def carry_out(self, scratch: Path) -> None:
        """To the end. What goes wrong is sent."""
        try:
            await self._carry_out(scratch)
        except (ConfigError, ScenarioError, worktrees.WorktreeError) as error:
            self._send(wire.Failed(run=self.begin.run, why=str(error)))
        except SessionError as error:
            self._send(wire.Failed(run=self.begin.run, why=f"{error.what}: {error.why}"))
        except Exception as bug:
            self._send(wire.Failed(run=self.begin.run, why=f"{type(bug).__name__}: {bug}"))
            raise

    async def _carry_out(self, scratch: Path) -> None:
        begin = self.begin
        options = begin.options
        if begin.worktree:
            repository, place = load_settings(options, begin.config).workspace, Path(begin.worktree)
            await asyncio.to_thread(worktrees.made, repository, place, begin.branch)
            options = {**options, "workspace": begin.worktree}
        settings = load_settings(options, begin.config).replaced(step=False)
        if begin.journal is not None:
            settings = settings.replaced(state_dir=scratch)
        session = await self._opened(settings)
        try:
            policy = session.state.session.policy or settings.policy
            if isinstance(self.operator, HeadlessOperator):
                self.operator.approve_mode = settings.approve
                self.operator.on_escalation = unanswered(policy, settings.on_escalation)
            session.mcp.connect(SERVERS_PATIENCE)
            if begin.check:
                session.set_goal(Goal(begin.check, begin.goal))
            if session.state.running:
                session.go_on()
            elif session.state.run.outcome is None:
                await session.submit(begin.task)
            await session.wait()
        finally:
            await session.close()
        result = outcome_of(session)
        if session.runs.unprepared:
            result = result.failed(session.runs.unprepared)
        self._look()
        self._flush()
        self._send(wire.Ended(run=begin.run, result=result.to_json()))

    async def _opened(self, settings: Settings) -> Session:
        begin = self.begin
        folder = sessions_folder(settings.state_dir) / begin.session if begin.session else None
        if folder is not None and begin.journal is not None:
            make_private(folder)
            (folder / JOURNAL_NAME).write_text(begin.journal, encoding="utf-8")
        model = ModelByName(settings, self._hosted)
        self.session = session = await open_session(
            settings, self.operator, model, folder, listener=self._heard
        )
        self._send(wire.Opened(run=begin.run, session=session.id))
        self._state = session.state
        self._flush()
        return session

    async def stop(self, reason: str) -> None:
        """End the run as interrupted."""
        if self.session is not None:
            await self.session.stop(reason)

    # --- what is sent of it -------------------------------------------------------------------------------------

    def _heard(self, event: events.Event, state: RunState) -> None:
        self._state = state
        if self.begin.journal is not None:
            self._lines.append(encode(event))
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK, self._look)
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(GATHERED, self._flush)

    def _look(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if self._state is not None:
            self._send(wire.Stands(run=self.begin.run, row=row_of(self._state)))

    def _flush(self) -> None:
        if self._lines and self.session is not None:
            lines, self._lines = b"".join(self._lines).decode(), []
            self._send(wire.Wrote(run=self.begin.run, lines=lines))


class Worker:
    """Serves messages until stdin ends."""

    def __init__(self, send: Callable[[wire.Message], None], scratch: Path) -> None:
        self._send = send
        self._scratch = scratch
        self._hosted = KeptHost()
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, messages: asyncio.StreamReader) -> None:
        """Take messages, one a line, until there are no more."""
        while line := await messages.readline():
            match wire.for_worker(line):
                case wire.Begin() as begin:
                    self._runs[begin.run] = run = Run(begin, self._send, self._hosted)
                    self._keep(run.carry_out(self._scratch))
                case wire.Answer(run=name) as answer:
                    run_asked = self._runs.get(name)
                    if run_asked is not None and isinstance(run_asked.operator, AskingOperator):
                        run_asked.operator.take(answer)
                case wire.Stop(run=name, reason=reason):
                    if name in self._runs:
                        self._keep(self._runs[name].stop(reason))
                case wire.StillThere():
                    pass
                case wire.Leave():
                    break
        await asyncio.sleep(LAST_WRITES)

    def _keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _serve(out: int) -> None:
    reader, transport = await own_pipes(out, wire.LINE_LIMIT)
    # Made by the first session whose journal goes elsewhere.
    scratch = Path(tempfile.gettempdir()) / f"agent-tui-fleet-{secrets.token_hex(8)}"
    try:
        await Worker(lambda message: transport.write(message.line()), scratch).serve(reader)
    finally:
        fault = sys.exc_info()[1]
        if fault is not None:
            traceback.print_exception(fault)
        # At once, and nothing is closed or cancelled: a session that is left is gone on with.
        _remove(scratch)
        os._exit(0 if fault is None else 1)


def _remove(folder: Path) -> None:
    """Threads and git may still write what they have begun."""
    end = time.monotonic() + LAST_FILES
    while folder.exists() and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.02)


def main() -> None:
    """Be the worker of whoever has the other ends of our pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no message
    lower_priority(NICE)
    asyncio.run(_serve(out))


if __name__ == "__main__":
    main()
