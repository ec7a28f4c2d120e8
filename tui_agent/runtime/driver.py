"""The driver: asks `decide` what comes next, carries it out, and records what happened.

Nothing is decided here. Stop and interruption are events like any other; recording one cancels the work under way, and
the next `decide` says what follows from it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from tui_agent.core import events
from tui_agent.core.decision import steps
from tui_agent.core.decision.answers import escalation_answered
from tui_agent.core.decision.decide import decide
from tui_agent.core.decision.endings import warning_before
from tui_agent.core.names import Phase
from tui_agent.core.recovery.engine import RecoveryState
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.request import compaction
from tui_agent.core.state import RunState
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.executor import Group
from tui_agent.runtime.operator import Operator, RequestOutline
from tui_agent.runtime.recorder import Recorder, RecordingFailed
from tui_agent.tools.registry import ParsedCall

T = TypeVar("T")
E = TypeVar("E", bound=events.Event)

logger = logging.getLogger(__name__)


class Steps(Protocol):
    """Whoever takes the steps: a model, or another agent."""

    def outline(self) -> RequestOutline:
        """The next request as it would go out now."""

    async def learn_window(self, model: str) -> None:
        """Record how long a prompt may be."""

    async def summarise(self, step: steps.Summarise) -> None:
        """Record a summary, or why there is none."""

    async def advise(self, step: steps.Advise) -> None:
        """Record another approach, or why there is none."""

    async def call(self, step: steps.CallModel) -> Mapping[str, ParsedCall]:
        """Record the next reply, or a fault; its calls by their ids, as they are to be run."""

    def skip_wait(self) -> None:
        """Make the next try of the call that waits now."""


class Calls(Protocol):
    """Whoever runs the calls of a reply."""

    exact: Mapping[str, ParsedCall]

    async def run(self, groups: Sequence[Group], *, approved: bool = False) -> None:
        """Record what became of each; `approved`: the operator wrote them."""

    async def report_failure(self, failed: events.ToolFailed) -> None:
        """A call has failed."""


class Driver:
    """Runs tasks against a recorder, a model, tools and an operator. One run at a time."""

    def __init__(
        self,
        recorder: Recorder,
        caller: Steps,
        executor: Calls,
        operator: Operator,
        checkpointer: Checkpointer,
    ) -> None:
        self._recorder = recorder
        self._caller = caller
        self._executor = executor
        self._operator = operator
        self._checkpointer = checkpointer
        self._task: asyncio.Task[Any] | None = None
        """Carries out a step that can be cut short now; None between such steps."""
        self._cut = False
        """`interrupt` or `stop` cancelled that step; the state says what follows."""

    @property
    def _state(self) -> RunState:
        return self._recorder.state

    @property
    def _recovery(self) -> RecoveryState:
        return self._recorder.state.recovery

    async def run(self, start: events.RunStarted, stopped: str = "") -> events.RunFinished:
        """From an operator's message to an outcome, which is on the disk then. `stopped`: why it ends before anything
        is done. Raises only when it is cancelled from outside itself.
        """
        self._recorder.record(start)
        if stopped:
            self._record(events.StopRequested(reason=stopped, rule=Rule.RUN_INTERRUPTED))
        return await self.resume()

    async def resume(self) -> events.RunFinished:
        """Go on with the run that the state holds."""
        while True:
            try:
                finished = await self._carry_out(decide(self._state))
            except asyncio.CancelledError:
                if not self._was_cut():
                    self._record(
                        events.StopRequested(reason="The run was cancelled.", rule=Rule.RUN_INTERRUPTED)
                    )
                    self._close()
                    raise
            except RecordingFailed as failed:
                self._fail(str(failed))
            except Exception as bug:
                logger.exception("the run broke")
                self._fail(f"Internal error: {type(bug).__name__}: {bug}")
            else:
                if finished is not None:
                    await self._checkpointer.settle()
                    with suppress(RecordingFailed):  # which the journal says by itself
                        await self._recorder.barrier()
                    return finished

    async def summarise(self) -> None:
        """Between runs: carry out the summary that the operator asked for, if one was."""
        while self._state.compaction_asked is not None or self._state.compacting is not None:
            try:
                await self._carry_out(decide(self._state))
            except asyncio.CancelledError:
                cut = self._was_cut()
                self._record(compaction.failed(self._state, compaction.CUT_SHORT))
                if not cut:
                    raise
            except Exception as bug:
                logger.exception("the summary broke")
                reason = f"Internal error: {type(bug).__name__}: {bug}"
                self._record(compaction.failed(self._state, reason))

    async def _carry_out(self, step: steps.Step) -> events.RunFinished | None:
        match step:
            case steps.Record():
                for event in step.events:
                    await self._record_step(event)
            case steps.StartIteration():
                await self._interruptible(self._gate(step.number))
            case steps.LearnWindow():
                await self._interruptible(self._caller.learn_window(step.model))
            case steps.Summarise():
                await self._interruptible(self._caller.summarise(step))
            case steps.Advise():
                await self._interruptible(self._caller.advise(step))
            case steps.CallModel():
                self._executor.exact = await self._interruptible(self._caller.call(step))
                await self._look_before_refusing()
            case steps.RunCalls():
                await self._interruptible(self._executor.run(step.groups, approved=step.approved))
                await self._look_before_refusing()
            case steps.Ask():
                await self._interruptible(self._ask(step.question))
            case steps.BringBack():
                await self._interruptible(self._bring_back(step))
            case steps.Finish():
                return self._finish(step.finished)
        return None

    def _finish(self, finished: events.RunFinished) -> events.RunFinished:
        warning = warning_before(self._state, finished)
        if warning is not None:
            self._record(warning)
        return self._record(finished)

    async def _bring_back(self, step: steps.BringBack) -> None:
        files = await self._checkpointer.bring_back(step.ref)
        self._record(step.instead if files is None else step.started.with_values({"files": files}))

    async def _record_step(self, event: events.Event) -> None:
        ends = type(event) is events.IterationFinished
        if ends and self._recovery.depends_on_order():
            await self._interruptible(self._checkpointer.look())
        recorded = self._record(event)
        if isinstance(recorded, events.ToolFailed):
            await self._interruptible(self._executor.report_failure(recorded))
        elif ends and self._recovery.has_just_blocked():
            await self._interruptible(self._checkpointer.look())

    async def _look_before_refusing(self) -> None:
        # A call is refused because nothing has changed: whether that is so is seen now, by whoever it was changed.
        if self._recovery.refuses_a_call():
            await self._interruptible(self._checkpointer.look())

    async def _gate(self, number: int) -> None:
        # However fast model and tools are, everybody else gets a turn in each iteration.
        await asyncio.sleep(0)
        pending = self._state.note
        reply = await self._operator.gate(self._caller.outline())
        if reply.note != pending and self._state.note == pending:
            self._record(events.NotePrepared(text=reply.note, edited=True))
        self._record(events.IterationStarted(iteration=number))

    async def _ask(self, question: events.EscalationRaised) -> None:
        reply = await self._operator.answer(question)
        self._record(escalation_answered(question, reply.choice, reply.text, reply.input, reply.by))

    def interrupt(self) -> None:
        """Cut short the model call, tool, question or summary that is under way; a run pauses and can go on."""
        if self._state.running:
            self._record(events.ModeChanged(mode=events.Mode.PAUSED))
        self._record(events.Interrupted())
        self._cancel_work()

    def skip_wait(self) -> None:
        """Try the model call that waits now, if one waits."""
        if self._state.phase is Phase.BACKOFF:
            self._record(events.WaitSkipped())
            self._caller.skip_wait()

    def stop(self, reason: str) -> None:
        """End the run now, as interrupted; between runs, start no queued one."""
        self._record(events.StopRequested(reason=reason, rule=Rule.RUN_INTERRUPTED))
        self._cancel_work()

    def _record(self, event: E) -> E:
        recorded = self._recorder.record(event)
        if type(event) is events.IterationFinished:
            self._checkpointer.after_iteration()
            self._recorder.sync_soon()
        return recorded

    def _fail(self, reason: str) -> None:
        """The run ends as an error; a second fault on the way there ends it at once."""
        if self._state.stop is not None and self._state.stop.rule == Rule.RUN_ERROR:
            raise RuntimeError(reason)
        self._record(events.StopRequested(reason=reason, outcome=events.Outcome.ERROR, rule=Rule.RUN_ERROR))

    def _close(self) -> None:
        """Record what the state alone demands, up to the end of the run."""
        while isinstance(step := decide(self._state), steps.Record):
            for event in step.events:
                self._record(event)
        if isinstance(step, steps.Finish):
            self._record(step.finished)

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        self._task, self._cut = asyncio.current_task(), False
        try:
            return await work
        finally:
            self._task = None

    def _cancel_work(self) -> None:
        if self._task is not None and not self._cut:
            self._cut = True
            self._task.cancel()

    def _was_cut(self) -> bool:
        """True if the cancellation was `interrupt`'s or `stop`'s and nobody else's, which takes it back."""
        task = asyncio.current_task()
        cut, self._cut = self._cut, False
        return cut and task is not None and task.uncancel() == 0
