"""The loop: one iteration after another until the run has an outcome.

An iteration is build messages → call the model → execute its tools → judge → next. `Agent._iterate` is that
diagram. Everything it decides by is in the state, everything it does becomes events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tui_agent import events as e
from tui_agent.agent.calling import ModelCaller
from tui_agent.agent.ending import Ending, RunEnded
from tui_agent.agent.escalation import settle
from tui_agent.agent.execution import Executor
from tui_agent.agent.keeper import KeepsNothing, WorkspaceKeeper
from tui_agent.agent.operator import Operator
from tui_agent.agent.recorder import Recorder, RecordingFailed
from tui_agent.recovery import note, partial_answer
from tui_agent.state import RunState

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Interruption:
    """Why the work under way is cut short; `ending` is None when the run only pauses."""

    ending: Ending | None


class Agent:
    """Runs tasks against a recorder, a model, tools and an operator. One run at a time."""

    def __init__(
        self,
        recorder: Recorder,
        caller: ModelCaller,
        executor: Executor,
        operator: Operator,
        keeper: WorkspaceKeeper | None = None,
    ) -> None:
        self._recorder = recorder
        self._caller = caller
        self._executor = executor
        self._operator = operator
        self._keeper = keeper or KeepsNothing()
        self._work: asyncio.Task[Any] | None = None
        self._interruption: _Interruption | None = None
        self._cost_unknown_told = False

    @property
    def _state(self) -> RunState:
        return self._recorder.state

    async def run(self, start: e.RunStarted) -> e.RunFinished:
        """From an operator's message to an outcome. Never raises but when it is cancelled from outside itself."""
        self._interruption = None
        self._recorder.record(start)
        return await self.resume()

    async def resume(self) -> e.RunFinished:
        """Go on with the run that the state holds, from its next iteration."""
        ending: Ending | None = None
        while ending is None:
            try:
                ending = await self._attend(self._iterate())
            except RunEnded as ended:
                self._close_iteration()
                self._record_verdict()
                ending = ended.ending
            except RecordingFailed as failed:
                ending = Ending(e.Outcome.ERROR, str(failed))
            except asyncio.CancelledError:
                if self._interruption is None:
                    self._finish(Ending(e.Outcome.INTERRUPTED, "The run was cancelled."))
                    raise
                ending = self._interruption.ending
                self._interruption = None
                self._close_questions()
                self._close_iteration(cancelled=True)
            except Exception as bug:
                logger.exception("the run broke")
                ending = Ending(e.Outcome.ERROR, f"Internal error: {type(bug).__name__}: {bug}")
        finished = self._finish(ending)
        await self._keeper.settle()
        return finished

    def interrupt(self) -> None:
        """Cut short the model call, tool or question that is under way; the run pauses and can go on."""
        self._recorder.record(e.ModeChanged(mode=e.Mode.PAUSED))
        self._cut(_Interruption(None))

    def stop(self, reason: str) -> None:
        """End the run now, as interrupted."""
        self._cut(_Interruption(Ending(e.Outcome.INTERRUPTED, reason)))

    async def _iterate(self) -> Ending | None:
        """One iteration. The ending, or None when there is a next one."""
        used_up = self._limit_reached()
        if used_up is not None:
            return used_up
        await self._gate()
        self._deliver_queue()
        self._recorder.record(e.IterationStarted(iteration=self._state.run.iteration + 1))
        reply = await self._caller.call()
        ending: Ending | None = None
        if reply is not None and reply.calls:
            ending = await self._executor.run(reply.calls)
        elif reply is not None:
            ending = self._take_text(reply)
        self._close_iteration()
        return ending or await self._judge()

    def _limit_reached(self) -> Ending | None:
        run, cost = self._state.run, self._state.metrics.usage.cost
        if run.max_cost is not None and cost is None and not self._cost_unknown_told:
            self._cost_unknown_told = True
            text = f"The cost of {run.model} is unknown, so the limit of {run.max_cost} USD cannot be kept."
            self._recorder.record(e.Notice(severity="warning", text=text))
        if run.iteration >= run.max_iterations:
            reason = f"All {run.max_iterations} iterations are used up without an answer."
            return Ending(e.Outcome.PARTIAL, reason, detector="max_iterations")
        if run.max_cost is not None and cost is not None and cost >= run.max_cost:
            reason = f"The run cost {cost:.4f} USD; its limit is {run.max_cost:.4f} USD."
            return Ending(e.Outcome.PARTIAL, reason, detector="max_cost")
        return None

    async def _gate(self) -> None:
        pending = self._state.note
        reply = await self._operator.gate(self._caller.outline())
        if reply.note != pending and self._state.note == pending:
            self._recorder.record(e.NotePrepared(text=reply.note, edited=True))

    def _deliver_queue(self) -> None:
        for message in self._state.queue:
            self._recorder.record(e.OperatorSpoke(text=message.text, queued=message.id))

    def _take_text(self, reply: e.ReplyFinished) -> Ending | None:
        """A text-only reply is the answer, or a failure of the kind `no_tool_call`, as the policy has it."""
        if self._state.recovery.takes_text_as_answer():
            return Ending(e.Outcome.ANSWERED, answer=reply.text)
        failure = e.Failure(
            kind=e.FailureKind.NO_TOOL_CALL,
            message="The reply has no tool call.",
            iteration=self._state.run.iteration,
        )
        self._recorder.record(e.ReplyRejected(failure=failure))
        return None

    async def _judge(self) -> Ending | None:
        """Record the detectors' verdicts and the note; act on the strongest."""
        verdict = self._record_verdict()
        match verdict.level:
            case e.Level.STOP:
                return Ending(e.Outcome.STOPPED, verdict.reason, detector=verdict.detector)
            case e.Level.DEGRADE:
                return Ending(e.Outcome.PARTIAL, verdict.reason, detector=verdict.detector)
            case e.Level.ESCALATE:
                self._prepare_note()
                return await settle(self._recorder, self._operator, verdict)
            case _:
                self._prepare_note()
                return None

    def _record_verdict(self) -> e.VerdictRecord:
        recovery = self._state.recovery
        verdict = recovery.strongest()
        self._recorder.record(
            e.VerdictReached(
                iteration=self._state.run.iteration,
                level=verdict.level,
                detector=verdict.detector,
                reason=verdict.reason,
                verdicts=recovery.verdicts(),
            )
        )
        return verdict

    def _prepare_note(self) -> None:
        text = note.compose(self._state.recovery, hook_context=self._state.hook_context)
        if text != self._state.note:
            self._recorder.record(e.NotePrepared(text=text))

    def _close_questions(self) -> None:
        """A question that was cut short has no answer; the run goes on without the call it was about."""
        asked = self._state.escalation
        if asked is not None:
            self._recorder.record(
                e.EscalationAnswered(
                    id=asked.id,
                    choice="skip",
                    text="interrupted",
                    tool=asked.tool,
                    input=asked.input,
                    by="policy",
                )
            )

    def _close_iteration(self, *, cancelled: bool = False) -> None:
        """Every call has a result and the iteration is closed, also when it was cut short."""
        self._executor.cancel_open()
        if self._state.iteration_open:
            self._recorder.record(
                e.IterationFinished(iteration=self._state.run.iteration, cancelled=cancelled)
            )
            self._keeper.after_iteration()
        self._recorder.sync_soon()

    def _finish(self, ending: Ending) -> e.RunFinished:
        self._close_iteration(cancelled=True)
        answer = ending.answer
        if answer is None:
            state = self._state
            answer = partial_answer.compose(
                ending.reason, state.recovery, state.run.iteration, state.history.last_text(state.run.number)
            )
        finished = self._recorder.record(
            e.RunFinished(
                outcome=ending.outcome, reason=ending.reason, answer=answer, detector=ending.detector
            )
        )
        self._recorder.sync_soon()
        return finished

    async def _attend(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        self._work = task
        try:
            if self._interruption is not None:
                task.cancel()
            return await task
        finally:
            self._work = None

    def _cut(self, interruption: _Interruption) -> None:
        self._interruption = interruption
        if self._work is not None:
            self._work.cancel()
