"""Our detectors over a run that happened elsewhere: what a policy would have said, asked and stopped.

Facts stay as recorded; verdicts and notes are made anew by the chosen policy, exactly where the loop makes
them. Nobody was asked and nothing was stopped, so no escalation and no outcome is invented: what would have
happened is in the verdict, a notice marks it, and the detectors go on with what the recording says came
next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent import events as e
from tui_agent.recovery import note
from tui_agent.recovery.engine import RecoveryState
from tui_agent.recovery.policy import RecoveryPolicy, preset
from tui_agent.recovery.signature import call_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NO_CALL = "The reply has no tool call."
"""The loop's own words for a reply that the policy does not take."""

_WOULD: dict[e.Level, str] = {
    e.Level.ESCALATE: "would have asked the operator here",
    e.Level.DEGRADE: "would have ended the run here with a partial answer",
    e.Level.STOP: "would have stopped the run here",
}


_WITHHELD: dict[str, str] = {
    "blocked": "would have blocked this call of {}: it waits for the operator's answer",
    "withheld": "would have withheld this call of {}: its outcome was the same each time",
    "breaker": "would have left {} out of the tools here: it failed too often",
}


def judged(
    facts: Iterable[e.Event],
    policy: str | RecoveryPolicy = "combined",
    *,
    operator_present: bool | None = None,
) -> list[e.Event]:
    """The events with the verdicts, notes and marks of `policy`, numbered anew.

    Verdicts, notes and marks that `facts` hold already are dropped, so that a session can be judged again by
    another policy. `operator_present` overrides what the recording says (an operator present is asked, where
    otherwise the run would end). Raises `ValueError` for an unknown policy.
    """
    judge = _Judge(preset(policy) if isinstance(policy, str) else policy, operator_present)
    listed = [event for event in facts if not _judgement(event)]
    for event, following in zip(listed, [*listed[1:], None], strict=True):
        judge.take(event, following)
    return judge.events


def _judgement(event: e.Event) -> bool:
    """Made by a policy, not by the run: left out before judging again."""
    match event:
        case e.VerdictReached() | e.NotePrepared():
            return True
        case e.Notice(origin="judgement"):
            return True
        case e.ReplyRejected(failure=failure):
            return failure.message == NO_CALL
    return False


class _Judge:
    """The recovery state beside the events, as the loop has it."""

    def __init__(self, policy: RecoveryPolicy, operator_present: bool | None) -> None:
        self.policy = policy
        self.operator_present = operator_present
        self.settings = policy.model_dump(mode="json")
        self.state = RecoveryState()
        self.events: list[e.Event] = []
        self.at = 0.0
        self.note: str | None = None
        self.reply: e.ReplyFinished | None = None
        self.rejected = False
        self.mark: tuple[e.Level, str] = (e.Level.CONTINUE, "")
        self.withheld: set[str] = set()
        self.iteration = 0

    def put(self, event: e.Event) -> None:
        """Number the event, keep it and fold it."""
        seq = len(self.events) + 1
        event = event if event.seq == seq else event.stamped(seq, event.at)
        self.at = event.at
        self.events.append(event)
        self.state = self.state.apply(event)

    def make(self, kind: Callable[..., e.Event], **fields: Any) -> None:
        """A new event at this moment."""
        self.put(kind(at=self.at, **fields))

    def tell(self, text: str, severity: str = "warning") -> None:
        """A mark that the policy would have acted otherwise than the run."""
        self.make(e.Notice, severity=severity, text=f"{self.policy.name} {text}", origin="judgement")

    def take(self, event: e.Event, following: e.Event | None) -> None:
        """One fact, with what the policy adds before and after it."""
        match event:
            case e.RunStarted():
                self._run(event)
            case e.ModelCallStarted():
                self.note = None
                self.iteration = event.iteration
                self.put(event)
            case e.ReplyFinished():
                self.reply, self.rejected = event, False
                self.put(event)
            case e.ReplyRejected():
                self.rejected = True
                self.put(event)
            case e.ToolStarted():
                self._permit(event)
                self.put(event)
            case e.ToolSucceeded() if self._tells_error(event):
                self.put(_as_failed(event, self.iteration))
            case e.IterationFinished():
                self._iteration(event, following)
            case _:
                self.put(event)

    def _run(self, event: e.RunStarted) -> None:
        present = event.operator_present if self.operator_present is None else self.operator_present
        changes = {"policy": self.policy.name, "policy_settings": self.settings, "operator_present": present}
        self.note, self.reply, self.mark = None, None, (e.Level.CONTINUE, "")
        self.withheld = set()
        self.put(event.model_copy(update=changes))

    def _tells_error(self, event: e.ToolSucceeded) -> bool:
        return self.policy.error_prefix == "every_tool" and event.content.startswith("Error:")

    def _permit(self, event: e.ToolStarted) -> None:
        """Would the call have run? The recording says that it did; the first time this is marked."""
        permit = self.state.permit(event.tool, event.input)
        if permit.allowed:
            return
        text = _WITHHELD.get(permit.refusal, "would not have run this call of {}").format(event.tool)
        key = f"{permit.refusal} {call_key(event.tool, event.input)}"
        if key not in self.withheld:
            self.withheld.add(key)
            self.tell(text)

    def _iteration(self, event: e.IterationFinished, following: e.Event | None) -> None:
        reply = self.reply
        self.reply = None
        answer = reply is not None and not reply.calls and not self.rejected
        goes_on = not isinstance(following, e.RunFinished | None)
        if answer and not self.state.takes_text_as_answer():
            failure = e.Failure(kind=e.FailureKind.NO_TOOL_CALL, message=NO_CALL, iteration=event.iteration)
            self.make(e.ReplyRejected, failure=failure)
            answer = False
        self.put(event)
        if answer:
            if goes_on:
                self.tell("would have taken this reply as the run's answer", "info")
            return
        if not event.cancelled:
            self._verdict(event.iteration, following)

    def _verdict(self, iteration: int, following: e.Event | None) -> None:
        verdict = self.state.strongest()
        self.make(
            e.VerdictReached,
            iteration=iteration,
            level=verdict.level,
            detector=verdict.detector,
            reason=verdict.reason,
            verdicts=self.state.verdicts(),
        )
        text = note.compose(self.state)
        if text != self.note:
            self.note = text
            self.make(e.NotePrepared, text=text)
        mark = (verdict.level, verdict.detector)
        happened = isinstance(following, e.EscalationRaised) or (
            isinstance(following, e.RunFinished) and following.detector == verdict.detector != ""
        )
        if verdict.level in _WOULD and mark != self.mark and not happened:
            self.tell(f"{_WOULD[verdict.level]} ({verdict.detector}): {verdict.reason}")
        self.mark = mark


def _as_failed(event: e.ToolSucceeded, iteration: int) -> e.ToolFailed:
    """The same result, failed: for a policy to which text that begins with `Error:` is a failure."""
    failure = e.Failure(
        kind=e.FailureKind.TOOL_EXECUTION,
        message=event.content,
        tool=event.tool,
        input=event.input,
        iteration=iteration,
    )
    return e.ToolFailed(
        seq=event.seq,
        at=event.at,
        call_id=event.call_id,
        tool=event.tool,
        input=event.input,
        index=event.index,
        content=event.content,
        duration=event.duration,
        failure=failure,
        output_file=event.output_file,
    )
