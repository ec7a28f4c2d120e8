"""What a saved session lacks when its process died in the middle of a run, as events that make it whole.

The same events that the loop would have recorded had it been interrupted at that point: every call has a
result, every question an answer, a finished iteration its verdict and note. Counters, queue and mode are left
as they were, and the run can go on. Nothing here writes; the caller records what it is given, in order.
"""

from __future__ import annotations

from tui_agent import events as e
from tui_agent.agent.execution import NOT_STARTED, UNKNOWN_EFFECT
from tui_agent.recovery import note, partial_answer
from tui_agent.state import RunState, apply

INTERRUPTED = "interrupted"


def repair_events(state: RunState) -> list[e.Event]:
    """The events to record before a session whose journal folds to `state` goes on; none where it is whole."""
    return _Repair(state).events if state.running else []


class _Repair:
    """Events in order, each made from the state after those before it."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.events: list[e.Event] = []
        if state.escalation is not None:
            self._answer(state.escalation)
        reply = state.history.reply if state.iteration_open else None
        lost = self._close_calls(reply) if reply is not None else 0
        if state.iteration_open:
            self._close_iteration(reply, lost)
        if self.state.running:
            self._judge()
        if self.state.iteration_open or state.iteration_open or state.escalation is not None:
            self._tell(lost)

    def _record(self, event: e.Event) -> None:
        self.events.append(event)
        self.state = apply(self.state, event.stamped(self.state.seq + 1, self.state.at))

    def _answer(self, asked: e.EscalationRaised) -> None:
        """Nobody answered; the call that it was about stays withheld, and is asked about when it comes again."""
        self._record(
            e.EscalationAnswered(
                id=asked.id, choice="skip", text=INTERRUPTED, tool=asked.tool, input=asked.input, by="policy"
            )
        )

    def _close_calls(self, reply: e.ReplyFinished) -> int:
        """Cancel every call that has no result; how many there were."""
        answered = {result.call_id for result in self.state.history.results}
        lost = 0
        for index, call in enumerate(reply.calls):
            if call.id in answered:
                continue
            lost += 1
            shown = self.state.conversation.call(call.id)
            started = shown is not None and shown.started is not None
            self._record(
                e.ToolCancelled(
                    call_id=call.id,
                    tool=call.name,
                    input=shown.input if shown else {},
                    index=index,
                    content=UNKNOWN_EFFECT if started else NOT_STARTED,
                    reason="interrupted, result unknown" if started else INTERRUPTED,
                )
            )
        return lost

    def _close_iteration(self, reply: e.ReplyFinished | None, lost: int) -> None:
        """End the open iteration: as a whole one where only its end was missing, else as cut short."""
        number = self.state.run.iteration
        is_answer = False
        if reply is not None and not reply.calls and self.state.recovery.rejected is None:
            is_answer = self.state.recovery.takes_text_as_answer()
            if not is_answer:
                failure = e.Failure(
                    kind=e.FailureKind.NO_TOOL_CALL, message="The reply has no tool call.", iteration=number
                )
                self._record(e.ReplyRejected(failure=failure))
        self._record(e.IterationFinished(iteration=number, cancelled=reply is None or lost > 0))
        if is_answer and reply is not None:
            self._record(e.RunFinished(outcome=e.Outcome.ANSWERED, answer=reply.text))
        elif reply is None and self.state.run.attempt and self.state.note is None and self.state.sent_note:
            # The call that carried the note never came back, so the model has not been told.
            self._record(e.NotePrepared(text=self.state.sent_note))

    def _judge(self) -> None:
        """The verdict and the note that the finished iteration had no time for, and what the verdict demands."""
        state = self.state
        last = state.recovery.last
        if last is None or last.number != state.run.iteration or last.cancelled:
            return
        verdict = state.verdict
        if verdict is None or verdict.iteration != state.run.iteration:
            strongest = state.recovery.strongest()
            verdict = e.VerdictReached(
                iteration=state.run.iteration,
                level=strongest.level,
                detector=strongest.detector,
                reason=strongest.reason,
                verdicts=state.recovery.verdicts(),
            )
            self._record(verdict)
        if verdict.level in {e.Level.STOP, e.Level.DEGRADE}:
            self._finish(verdict)
        elif self.state.note is None and not self.state.note_edited:
            text = note.compose(self.state.recovery, hook_context=self.state.hook_context)
            if text is not None:
                self._record(e.NotePrepared(text=text))

    def _finish(self, verdict: e.VerdictReached) -> None:
        state = self.state
        stopped = verdict.level is e.Level.STOP
        answer = partial_answer.compose(
            verdict.reason, state.recovery, state.run.iteration, state.history.last_text(state.run.number)
        )
        self._record(
            e.RunFinished(
                outcome=e.Outcome.STOPPED if stopped else e.Outcome.PARTIAL,
                reason=verdict.reason,
                answer=answer,
                detector=verdict.detector,
            )
        )

    def _tell(self, lost: int) -> None:
        calls = {0: "", 1: " One call was running or waiting: its result is unknown."}.get(
            lost, f" {lost} calls were running or waiting: their results are unknown."
        )
        text = (
            f"The process of this session ended in the middle of iteration {self.state.run.iteration}.{calls}"
        )
        self._record(e.Notice(severity="warning", text=text))
