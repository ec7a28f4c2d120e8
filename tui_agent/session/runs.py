"""The runs of a session, one after another, and the messages that wait for theirs."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from tui_agent.core import events
from tui_agent.runtime.driver import Driver
from tui_agent.runtime.recorder import RecordingFailed
from tui_agent.session.counters import Counters
from tui_agent.session.goal import GoalKeeper
from tui_agent.store.errors import SessionError
from tui_agent.store.recorder import SessionRecorder
from tui_agent.tools.errors import in_words

logger = logging.getLogger(__name__)

Run = Coroutine[Any, Any, events.RunFinished | None]
"""A run, or the summary that was asked for between runs."""


class Runs:
    """One goes on at a time. `started` makes what begins a run: of its task, its images, and a model of its own."""

    def __init__(
        self,
        recorder: SessionRecorder,
        driver: Driver,
        counters: Counters,
        started: Callable[[str, tuple[events.Image, ...], str], Awaitable[events.RunStarted]],
        name: str,
        keeper: GoalKeeper,
    ) -> None:
        self._recorder = recorder
        self._driver = driver
        self._counters = counters
        self._started = started
        self._name = name
        self._keeper = keeper
        self._task: asyncio.Task[events.RunFinished | None] | None = None
        self.unprepared = ""
        """Why the newest run could not be prepared: its message waits. Empty if it could."""

    @property
    def running(self) -> bool:
        """A run goes on in this process."""
        return self._task is not None and not self._task.done()

    async def wait(self) -> events.RunFinished | None:
        """Wait until the run under way (and those that queued messages start) has ended; None if none ran."""
        return None if self._task is None else await asyncio.shield(self._task)

    def begin(self, task: str, images: tuple[events.Image, ...] = (), model: str = "") -> None:
        """Start a run of its own; stopped before it begins, it ends at once. `model`: for this run alone."""
        self.follow(self._new_run(task, self._recorder.state.seq, images, model))

    def follow(self, work: Run) -> None:
        """Do this, and then what the messages that wait ask for."""
        self._task = asyncio.get_running_loop().create_task(self._all(work), name=f"run-{self._name}")
        self._task.add_done_callback(self._ended)

    def put(self, text: str, images: tuple[events.Image, ...] = ()) -> None:
        """Let a message wait for its run, or for the next step of the one under way."""
        self._recorder.record(events.MessageQueued(id=secrets.token_hex(4), text=text, images=images))

    def drop(self, message_id: str) -> None:
        """Take back a message that waits."""
        if any(message.id == message_id for message in self._recorder.state.queue):
            self._recorder.record(events.MessageUnqueued(id=message_id))

    def send_waiting(self) -> bool:
        """Start the run that could not be prepared, with the message that waits; False if none does."""
        if self.running or not (self.unprepared and self._recorder.state.queue):
            return False
        self.follow(self._next_queued())
        return True

    def _ended(self, run: asyncio.Task[events.RunFinished | None]) -> None:
        """Say what broke: who waits for the run gets it, but nobody has to."""
        bug = None if run.cancelled() else run.exception()
        if bug is not None:
            logger.error("the run broke", exc_info=bug)
            with suppress(RecordingFailed):  # which the journal says by itself
                text = f"Internal error: {type(bug).__name__}: {bug}"
                self._recorder.record(events.Notice(severity="error", text=text))

    async def _all(self, work: Run) -> events.RunFinished | None:
        """Do one run, then one for each message that waits and for each answer whose check fails, then the summary
        that was asked for too late for them.
        """
        self.unprepared = ""
        self._keeper.begin()
        finished = await self._with_counters(work)
        ended = {events.Outcome.INTERRUPTED, events.Outcome.ERROR}
        while (
            not self.unprepared
            and self._recorder.state.stop is None
            and (finished is None or finished.outcome not in ended)
        ):
            if self._recorder.state.queue:
                self._keeper.begin()
                finished = await self._with_counters(self._next_queued())
            elif told := await self._keeper.judged(finished):
                asked_at = self._recorder.state.seq
                finished = await self._with_counters(self._new_run(told, asked_at, (), ""))
            elif not self._recorder.state.queue:
                break
        if self._keeper.unmet is not None:
            self._recorder.record(events.Notice(severity="warning", text=self._keeper.unmet.why))
        if self._recorder.state.stop is None and not self.unprepared:
            await self._driver.summarise()
        return finished

    async def _with_counters(self, work: Run) -> events.RunFinished | None:
        """Bring the run to its end, and keep what it hands on."""
        finished = await work
        if finished is not None and self._recorder.state.recovery.policy.persist:
            await self._counters.keep(self._recorder.state)
        return finished

    async def _new_run(
        self, task: str, asked_at: int, images: tuple[events.Image, ...], model: str
    ) -> events.RunFinished | None:
        """Run a task; None if it could not be prepared. `asked_at`: the last event before."""
        start = await self._prepared(task, images, model)
        if start is None:
            self.put(task, images)
            return None
        stop = self._recorder.state.stop
        stopped = stop.reason if stop is not None and stop.seq > asked_at else ""
        return await self._driver.run(start, stopped)

    async def _next_queued(self) -> events.RunFinished | None:
        """Run the oldest message that waits, which goes on waiting if the run does not begin."""
        state = self._recorder.state
        message, asked_at = state.queue[0], state.seq
        start = await self._prepared(message.text, message.images)
        stop = self._recorder.state.stop
        if start is None or (stop is not None and stop.seq > asked_at):
            return None
        self._recorder.record(events.MessageUnqueued(id=message.id))
        return await self._driver.run(start)

    async def _prepared(
        self, task: str, images: tuple[events.Image, ...], model: str = ""
    ) -> events.RunStarted | None:
        """Make what begins a run; None, with the cause said, if that cannot be made."""
        try:
            return await self._started(task, images, model)
        except Exception as error:
            logger.debug("a run could not be prepared", exc_info=True)
            cause = str(error) if isinstance(error, SessionError) else in_words(error)
            self.unprepared = f"The run was not started: {cause}"
            text = (
                f"{self.unprepared}\nThe message waits, and goes out with /auto or before the next message."
            )
            self._recorder.record(events.Notice(severity="error", text=text))
            return None
