"""The shared builder: a neutral transcript becomes the events that our own loop would have made of the same run.

Only facts are made here: messages, calls, results, faults, outcomes. The verdicts of a policy are added by `judgement`,
so that one import serves all policies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_agent.core import events
from tui_agent.core.request.coherence import NO_RESULT
from tui_agent.core.tool_facts import OWN, ToolFacts
from tui_agent.formats.importers.faults import refused_by_hooks
from tui_agent.formats.importers.results import changed_files
from tui_agent.formats.importers.tools_of_others import by_other_agents
from tui_agent.formats.importers.transcript import (
    Call,
    Ending,
    Faulted,
    Remarked,
    Result,
    Said,
    Step,
    Transcript,
    Turn,
)
from tui_agent.formats.importers.values import clean, equal_ones

if TYPE_CHECKING:
    from tui_agent.core.state import RunState

NO_TASK = "(The recording begins without the operator's message.)"
RECORDING_ENDS = "The recording ends here."
NO_MESSAGE = "failed without a message"
NO_TIMES = "The recording keeps no times; its steps are set one second apart."
_NEVER_RAN = {events.FailureKind.INVALID_TOOL_CALL, events.FailureKind.UNKNOWN_TOOL}
_STEP_SECONDS = 1.0
"""Between two steps of a recording that keeps no times."""


MORE = Remarked("")
"""The step's consequences are not known yet."""
_FAR = 50
"""Steps among which the next one that says something is looked for."""
_FINAL = frozenset({"end_turn", "stop", "stop_sequence", "completed"})
"""Reasons of a reply's end that leave nothing to come."""


def facts(
    transcript: Transcript, *, session_id: str, source: str, summary: str, base_at: float, loud: bool = False
) -> list[events.Event]:
    """The events of a whole transcript. `base_at` dates a recording without times (seconds since the epoch); `loud`:
    the summary says that much of it is lost.
    """
    growing = GrowingFacts(transcript, session_id=session_id, source=source, base_at=base_at, summary=summary)
    growing.loud = loud
    growing.update(settled=True)
    return growing.events


class _Place(NamedTuple):
    """A point at which the making of events can begin again: before a step."""

    step: int
    events: int
    builder: Builder


class GrowingFacts:
    """The events of a transcript that grows: those of its newest steps are made anew with each update."""

    def __init__(
        self,
        transcript: Transcript,
        *,
        session_id: str,
        source: str,
        base_at: float,
        summary: str | None = None,
    ) -> None:
        """`summary`: what is said at the head of a transcript that is whole; None while it is being written."""
        self.transcript = transcript
        self.session_id = session_id
        self.source = source
        self.base_at = base_at
        self.summary = summary
        self.loud = False
        self.events: list[events.Event] = []
        self._timed = False
        self._workspace = ""
        self._places: list[_Place] = []
        """Before each step that says something."""

    def update(self, *, settled: bool) -> int:
        """Follow the transcript; how many of the events stand as they were.

        `settled`: nothing comes for now, so that a reply without calls is an answer, until something comes after all.
        """
        transcript = self.transcript
        place = self._back_to(transcript.touched)
        transcript.touched = len(transcript.steps)
        before = self.events[place.events :]
        del self.events[place.events :]
        builder = self._begun() if not place.events else copy(place.builder)
        self._go_on(builder, place.step, settled=settled)
        if self.summary is not None or transcript.finished or transcript.ending:
            builder.end()
        return place.events + equal_ones(before, itertools.islice(self.events, place.events, None))

    def _back_to(self, touched: int) -> _Place:
        """The last step before those that changed: what follows it says how it ended."""
        transcript, places = self.transcript, self._places
        timed = self._timed or any(step.at is not None for step in transcript.steps[touched:])
        if (timed, transcript.workspace) != (self._timed, self._workspace):
            self._timed, self._workspace = timed, transcript.workspace
            places.clear()
        while places and places[-1].step >= touched:
            places.pop()
        return places.pop() if places else _Place(0, 0, Builder(transcript, self.events.append, at=0.0))

    def _begun(self) -> Builder:
        transcript, summary = self.transcript, self.summary
        first = next((step.at for step in transcript.steps if step.at is not None), self.base_at)
        builder = Builder(transcript, self.events.append, at=first, timed=self._timed)
        if summary is not None and not self._timed:
            summary = f"{summary} {NO_TIMES}".strip()
        builder.begin(self.session_id, self.source, summary or "", loud=self.loud)
        return builder

    def _go_on(self, builder: Builder, place: int, *, settled: bool) -> None:
        steps = self.transcript.steps
        while place < len(steps):
            step, end = steps[place], place + 1
            if self.summary is None and not isinstance(step, Remarked):  # it may be read on
                self._places.append(_Place(place, len(self.events), copy(builder)))
            while isinstance(step, Said) and end < len(steps) and isinstance(said := steps[end], Said):
                step, end = Said(f"{step.text}\n\n{said.text}", step.at), end + 1
            builder.take(step, self._following(step, end, settled=settled))
            place = end

    def _following(self, step: Step, place: int, *, settled: bool) -> Step | None:
        for later in itertools.islice(self.transcript.steps, place, place + _FAR):
            if not isinstance(later, Remarked):
                return later
        match step:
            case _ if self.summary is not None:
                return None
            case Turn(calls=[]):
                return None if settled or step.finish_reason in _FINAL else MORE
            case Turn():
                return None if all(call.id in step.results for call in step.calls) else MORE
            case Faulted():
                return None if settled and not step.delay else MORE
        return None


class Builder:
    """Makes events of one step after another. `at` never goes back, whatever the recording says."""

    def __init__(
        self,
        transcript: Transcript,
        report: Callable[[events.Event], object],
        *,
        at: float,
        timed: bool = True,
    ) -> None:
        """`transcript` tells of model and tools, and its steps are not looked at; `report` gets each event. `at`:
        seconds since the epoch; `timed`: the steps have times.
        """
        self.transcript = transcript
        self.report = report
        self.timed = timed
        self.at = at
        self.seq = 0
        self.run = 0
        self.iteration = 0
        self.attempt = 0
        self.running = False
        self.open_iteration = False
        self.model = ""
        self.last_text = ""

    def go_on(self, state: RunState) -> None:
        """The next steps follow the events that `state` is made of."""
        self.at, self.seq = max(self.at, state.at), state.seq
        self.run, self.iteration = state.run.number, state.run.iteration
        self.running, self.open_iteration = state.running, state.iteration_open

    def emit(self, kind: Callable[..., events.Event], **fields: Any) -> None:
        self.seq += 1
        self.report(kind(seq=self.seq, at=self.at, **fields))

    def begin(self, session_id: str, source: str, summary: str = "", *, loud: bool = False) -> None:
        """The head of the session. `summary` is said in a notice, `loud` for one that nobody should miss."""
        transcript = self.transcript
        self.emit(
            events.SessionStarted,
            session_id=session_id,
            workspace=transcript.workspace,
            title=transcript.title,
            source=source,
        )
        if summary:
            severity = "warning" if loud else "info"
            self.emit(events.Notice, severity=severity, text=summary, origin="import")

    def move(self, at: float | None) -> None:
        """Time goes on: to `at`, or by a step if the recording keeps no times."""
        if at is not None:
            self.at = max(self.at, at)
        elif not self.timed:
            self.at += _STEP_SECONDS

    def take(self, step: Step, following: Step | None) -> None:
        """The events of a step. `following`: the next one that says something; None: there is none; `MORE`: it is not
        known yet, and calls without a result still run.
        """
        self.model = self.model or self.transcript.model
        match step:
            case Said():
                self._said(step, following)
            case Turn():
                self._turn(step, following)
            case Faulted():
                self._faulted(step, following)
            case Ending():
                self._ending(step)
            case Remarked():
                self.move(step.at)
                self.emit(events.Notice, text=step.text, severity=step.severity, origin="import")

    # --- the operator -------------------------------------------------------------------------------------

    def _said(self, said: Said, following: Step | None) -> None:
        self.move(said.at)
        if isinstance(following, Turn):
            self.model = following.model or self.model
        if self.running:
            self.emit(events.OperatorSpoke, text=said.text)
        else:
            self._start(said.text)

    def _start(self, task: str) -> None:
        self.run += 1
        self.iteration = 0
        self.running = True
        transcript = self.transcript
        self.emit(
            events.RunStarted,
            run=self.run,
            task=task,
            policy="",
            model=self.model,
            system_prompt=transcript.system_prompt if self.run == 1 else "",
            tools=transcript.tools,
            approve=events.Approval.ALL,
            operator_present=transcript.operator_present,
        )

    def _ending(self, step: Ending) -> None:
        self.move(step.at)
        if self.running:
            self.finish(step.outcome, step.reason, step.answer, step.detector, step.rule)
        else:
            self.emit(events.Notice, text=f"The recording says: {step.reason}.", origin="import")

    def finish(
        self, outcome: events.Outcome, reason: str = "", answer: str = "", detector: str = "", rule: str = ""
    ) -> None:
        if self.open_iteration:
            self._close_iteration(cancelled=True)
        self.emit(
            events.RunFinished, outcome=outcome, reason=reason, answer=answer, detector=detector, rule=rule
        )
        self.running = False

    # --- the model ----------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self.running:
            self._start(NO_TASK)
        if not self.open_iteration:
            self.iteration += 1
            self.attempt = 0
            self.open_iteration = True
            self.emit(events.IterationStarted, iteration=self.iteration)
        self.attempt += 1
        self.emit(
            events.ModelCallStarted,
            iteration=self.iteration,
            attempt=self.attempt,
            model=self.model,
            tools=self.transcript.tools,
        )

    def _close_iteration(self, *, cancelled: bool = False) -> None:
        self.open_iteration = False
        self.emit(events.IterationFinished, iteration=self.iteration, cancelled=cancelled)

    def _faulted(self, step: Faulted, following: Step | None) -> None:
        self._open()
        self.move(step.at)
        went_on = following is MORE or isinstance(following, Turn | Faulted)
        self.emit(
            events.ModelFaulted,
            fault=step.fault,
            iteration=self.iteration,
            attempt=self.attempt,
            model=self.model,
            action="retry" if went_on else "stop",
            delay=step.delay if went_on else 0.0,
        )
        if not went_on:
            self._close_iteration()
        if not went_on and not isinstance(following, Ending):
            self.finish(events.Outcome.MODEL_FAILED, f"{step.fault.kind}: {step.fault.message}")

    def _turn(self, turn: Turn, following: Step | None) -> None:
        self.model = turn.model or self.model
        self.last_text = turn.text if turn.text.strip() else self.last_text
        self._open()
        asked = self.at
        self.move(turn.at)
        calls = _unique(turn.calls)
        self.emit(
            events.ReplyFinished,
            text=turn.text,
            reasoning=turn.reasoning,
            calls=tuple(
                events.ToolCall(id=key, name=call.name, arguments=call.arguments) for key, call in calls
            ),
            finish_reason=turn.finish_reason,
            model=self.model,
            prompt_tokens=turn.prompt_tokens,
            completion_tokens=turn.completion_tokens,
            cost=turn.cost,
            duration=max(self.at - asked, 0.0) if self.timed else 0.0,
        )
        cancelled = self._results(turn, calls, run=following is MORE)
        if following is MORE and not all(call.id in turn.results for call in turn.calls):
            return
        if turn.rejected and not calls:
            failure = events.Failure(kind=turn.rejected_as, message=turn.rejected, iteration=self.iteration)
            self.emit(events.ReplyRejected, failure=failure)
        self._close_iteration(cancelled=cancelled)
        answer = turn.answer or ("" if calls or turn.rejected else turn.text)
        if answer.strip() and (following is None or isinstance(following, Said)):
            self.finish(events.Outcome.ANSWERED, answer=answer)

    # --- tools --------------------------------------------------------------------------------------------

    def _results(self, turn: Turn, calls: list[tuple[str, Call]], *, run: bool) -> bool:
        """All calls start, then their results follow in the order of their times. True: all were cancelled. `run`:
        those without a result do.
        """
        ends: list[tuple[str, Call, int, Result]] = []
        for index, (key, call) in enumerate(calls):
            result = turn.results.get(call.id) or Result("cancelled", "", None, NO_RESULT)
            if result.status in {"failed", "denied"} and refused_by_hooks(result.message):
                result = replace(result, status="denied", refusal="blocked")
            ends.append((key, call, index, result))
            if result.status != "denied" and not (result.status == "failed" and result.kind in _NEVER_RAN):
                self.emit(
                    events.ToolStarted, call_id=key, tool=call.name, input=call.input or {}, index=index
                )
        started = self.at
        ends.sort(key=lambda end: (end[3].at is None, end[3].at or 0.0, end[2]))
        for key, call, index, result in ends:
            if run and call.id not in turn.results:
                continue
            self._result(key, call, index, result, started)
        return bool(ends) and all(result.status == "cancelled" for *_, result in ends)

    def _result(self, key: str, call: Call, index: int, result: Result, started: float) -> None:
        self.move(result.at)
        if result.at is None and not self.timed and result.duration:
            self.at += min(result.duration, 86_400.0)
        duration = result.duration
        if duration is None:
            duration = max(self.at - started, 0.0) if self.timed else 0.0
        common: dict[str, Any] = {
            "call_id": key,
            "tool": call.name,
            "input": call.input or {},
            "index": index,
            "content": result.content,
            "duration": duration,
            "facts": _facts_of(call),
        }
        match result.status:
            case "ok":
                self.emit(events.ToolSucceeded, **common, changed=result.changed, diff=result.diff)
            case "failed":
                failure = events.Failure(
                    kind=result.kind,
                    message=clean(result.message) or result.content or NO_MESSAGE,
                    tool=call.name,
                    input=call.input or {},
                    iteration=self.iteration,
                    unknown_effect=result.unknown_effect,
                    hint=result.hint,
                )
                self.emit(events.ToolFailed, **common, failure=failure)
            case "denied":
                self.emit(events.ToolRefused, **common, refusal=result.refusal, reason=result.message)
            case "cancelled":
                self.emit(events.ToolCancelled, **common, reason=result.message)
            case "unknown":
                self.emit(events.ToolEnded, **common)

    def end(self) -> None:
        """The recording is over: the run ends as the recording says, or as cut off."""
        if not self.running:
            return
        transcript = self.transcript
        if transcript.finished:
            self.finish(events.Outcome.ANSWERED, transcript.ending, transcript.answer or self.last_text)
        elif transcript.ending:
            reason = f"Ended elsewhere: {transcript.ending}."
            self.finish(events.Outcome.PARTIAL, reason, transcript.answer or self.last_text)
        else:
            self.finish(events.Outcome.INTERRUPTED, RECORDING_ENDS, self.last_text)


def _unique(calls: list[Call]) -> list[tuple[str, Call]]:
    """Each call with an id of its own within its reply; foreign recordings repeat ids or leave them out."""
    seen: set[str] = set()
    unique = []
    for position, call in enumerate(calls):
        key = call.id or f"call-{position}"
        while key in seen:
            key = f"{key}+"
        seen.add(key)
        unique.append((key, call))
    return unique


def _facts_of(call: Call) -> ToolFacts | None:
    """Give what is known of another agent's tool by its name; this program's own are known by theirs."""
    known = None if call.name in OWN else by_other_agents(call.name)
    if known is None or not (known.looks or changed_files(call.name, call.input)):
        return None
    return known
