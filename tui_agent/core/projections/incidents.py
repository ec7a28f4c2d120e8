"""Incidents: what failed, the course it took, and how it was recovered.

A failure opens an incident or goes on with one: that of its call, of the replies' form, or of the model. A call's
incident is recovered when the same call succeeds later, or when another one makes it good (see `call_subject`); those
of the form and of the model by the next proper reply. An answer alone recovers nothing, but it ends the guesses at a
name after which the run found elsewhere what it looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tui_agent.core import events
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve
from tui_agent.core.names import MODEL_CALL, OF_NO_FAILURE, REPLY_FORM
from tui_agent.core.projections.call_subject import (
    NOTHING,
    Relation,
    Subject,
    clears_nothing,
    ends_guess,
    relation,
    subject_of,
)
from tui_agent.core.recovery.iteration import FORM_ERRORS, Answer, answer_by_code, command_of
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy
from tui_agent.core.recovery.signature import call_key, failure_signature, normalise
from tui_agent.core.recovery.writes import Writes, writes
from tui_agent.core.tool_facts import ToolFacts

COURSE = 12
"""Failures of one incident that are kept, the newest."""

_LONGEST_COMMAND = 2_000
_PREPARED = 5
"""Commands that may have prepared another one: the newest that are kept, and characters of each."""

_COMPARED = 50
"""Open incidents that a success is compared with, the newest."""


@dataclass(frozen=True)
class Attempt:
    """One failure of an incident, and what the engine made of it."""

    seq: int
    at: float
    iteration: int
    message: str
    hint: str = ""
    level: events.Level | None = None
    """The verdict on its iteration."""
    rule: str = ""
    noted: bool = False
    """The model was sent a note about it."""
    answer: str = ""
    """The operator's choice, if the operator was asked about it."""
    known: events.Suggestion | None = None
    """The playbook's words about it."""
    prepared: tuple[str, ...] = ()
    """The newest commands since the failure before that may have changed something, and succeeded."""


@dataclass(frozen=True)
class IncidentRecovery:
    """How an incident ended. `tries` counts the call that succeeded; `tool` and `input` are that call's."""

    seq: int
    at: float
    iteration: int
    how: Literal["same_call", "worked_round"]
    tries: int
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    why: Relation = "same_call"
    prepared: tuple[str, ...] = ()
    """The newest commands since the last failure that may have changed something, and succeeded."""


@dataclass(frozen=True)
class Incident:
    """Failures of one kind from the first on. `same` counts the newest ones that have the same signature."""

    key: str
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    subject: Subject = NOTHING
    found_elsewhere: bool = False
    """It was a guess at a name, and a later call found what there is."""
    times: int = 0
    same: int = 0
    signature: str = ""
    course: tuple[Attempt, ...] = ()
    asked: int = 0
    """How often the operator was asked about it."""
    refused: int = 0
    """Calls of it that were not executed any more."""
    recovery: IncidentRecovery | None = None
    facts: ToolFacts | None = None

    @property
    def newest(self) -> Attempt:
        """The failure that happened last."""
        return self.course[-1]

    @property
    def error(self) -> str:
        """The error of the newest failure, with its hint."""
        newest = self.newest
        return f"{newest.message}\n{newest.hint}" if newest.hint else newest.message

    @property
    def failure(self) -> events.Failure:
        """The newest failure, as the detectors see it."""
        newest = self.newest
        return events.Failure(
            kind=events.FailureKind.TOOL_EXECUTION,
            message=newest.message,
            tool=self.tool,
            input=dict(self.input),
            hint=newest.hint,
            known=newest.known,
        )

    @property
    def helped_by(self) -> Literal["", "answer", "note"]:
        """The help between the last failure and the recovery: the operator's answer, a note, or nothing."""
        return "answer" if self.newest.answer else "note" if self.newest.noted else ""


@dataclass(frozen=True)
class Incidents:
    """All incidents of one run."""

    open: dict[str, Incident] = field(default_factory=dict)
    """By key, the one that failed last at the end."""
    recovered: AppendLog[Incident] = field(default_factory=AppendLog)
    failures: int = 0
    recovered_same_call: int = 0
    recovered_worked_round: int = 0
    policy: RecoveryPolicy = PRESETS["forge"]
    """It says which exit codes are results and no failures."""
    iteration: int = 0
    _reply: Literal["none", "proper", "broken"] = "none"
    """The open iteration's reply; broken: it cannot be executed or taken as an answer."""
    asked_about: tuple[str, ...] = ()
    """Keys that the open question is about; empty if the operator is asked about something else."""
    advised: tuple[str, ...] = ()
    """Keys that the pending note is about."""
    _acted: tuple[tuple[int, str], ...] = ()
    """The newest commands that may have changed something: their events and texts."""

    @property
    def left(self) -> int:
        """Failures that nothing has recovered."""
        return sum(incident.times for incident in self.standing.values())

    @property
    def recoveries(self) -> int:
        """Failures that were recovered, in either way."""
        return self.failures - self.left

    @property
    def standing(self) -> dict[str, Incident]:
        """The open incidents, without those that the reply of the open iteration recovers when it ends."""
        recovering = {REPLY_FORM, MODEL_CALL} if self._reply == "proper" else set()
        return {key: incident for key, incident in self.open.items() if key not in recovering}

    @property
    def current(self) -> Incident | None:
        """The standing incident that failed last, or the one that the operator is asked about."""
        standing = self.standing
        about = [standing[key] for key in self.asked_about if key in standing]
        return about[-1] if about else next(reversed(standing.values()), None)

    def apply(self, event: events.Event) -> Incidents:
        """Fold one event."""
        handler = HANDLERS.get(type(event))
        return self if handler is None else handler(self, event)

    def counts(self, event: events.ToolFailed) -> bool:
        """True if this result is a failure: neither cancelled nor an answer by its exit code."""
        return event.failure.kind is not events.FailureKind.CANCELLED and not self.answer(event)

    def answer(self, event: events.Event) -> Answer:
        """The meaning of the event's exit code if it is no failure: a search without a match, findings of a
        program.
        """
        return answer_by_code(event, self.policy) if type(event) is events.ToolFailed else ""

    def _failed(self, incident: Incident, attempt: Attempt, signature: str, **changes: Any) -> Incidents:
        same = incident.same + 1 if signature == incident.signature else 1
        grown = evolve(
            incident,
            times=incident.times + 1,
            same=same,
            signature=signature,
            found_elsewhere=False,
            course=(*incident.course, attempt)[-COURSE:],
        )
        rest = {key: other for key, other in self.open.items() if key != incident.key}
        return evolve(self, open={**rest, incident.key: grown}, failures=self.failures + 1, **changes)

    def _recovered(self, event: events.Event, found: Mapping[str, Relation], **by: Any) -> Incidents:
        """Close the incidents of `found`, each in its way. `by`: tool and input of the call that succeeded."""
        log, same, round_ = self.recovered, self.recovered_same_call, self.recovered_worked_round
        for key, why in found.items():
            incident = self.open[key]
            how: Literal["same_call", "worked_round"] = "same_call" if why == "same_call" else "worked_round"
            prepared = self._prepared_since(incident.newest.seq)
            recovery = IncidentRecovery(
                event.seq, event.at, self.iteration, how, incident.times + 1, why=why, prepared=prepared, **by
            )
            log = log.append(evolve(incident, recovery=recovery))
            same += incident.times if how == "same_call" else 0
            round_ += incident.times if how == "worked_round" else 0
        return evolve(
            self,
            open={key: incident for key, incident in self.open.items() if key not in found},
            recovered=log,
            recovered_same_call=same,
            recovered_worked_round=round_,
        )

    def _prepared_since(self, seq: int) -> tuple[str, ...]:
        return tuple(command for at, command in self._acted if at > seq)

    def _changed(self, keys: Mapping[str, Incident]) -> Incidents:
        return evolve(self, open={**self.open, **keys}) if keys else self

    def _newest_of(self, iteration: int) -> dict[str, Incident]:
        """Open incidents that failed in this iteration."""
        return {key: found for key, found in self.open.items() if found.newest.iteration == iteration}


def _iteration_started(incidents: Incidents, event: events.IterationStarted) -> Incidents:
    return evolve(incidents, iteration=event.iteration)


def _attempt(incidents: Incidents, event: events.Event, message: str) -> Attempt:
    return Attempt(event.seq, event.at, incidents.iteration, message)


def _reply_failed(incidents: Incidents, event: events.Event, failure: events.Failure) -> Incidents:
    reply = incidents._reply if incidents._reply == "none" else "broken"
    incident = incidents.open.get(REPLY_FORM, Incident(REPLY_FORM, failure.tool, failure.input or {}))
    attempt = _attempt(incidents, event, failure.message)
    return incidents._failed(incident, attempt, failure_signature(failure), _reply=reply)


def _reply_rejected(incidents: Incidents, event: events.ReplyRejected) -> Incidents:
    if event.unverified:
        return incidents
    return _reply_failed(incidents, event, event.failure)


def _model_faulted(incidents: Incidents, event: events.ModelFaulted) -> Incidents:
    incident = incidents.open.get(MODEL_CALL, Incident(MODEL_CALL, target=event.model))
    signature = f"{event.fault.kind}|{normalise(event.fault.message)}"
    attempt = evolve(_attempt(incidents, event, event.fault.message), rule=event.rule)
    reply = incidents._reply if incidents._reply == "none" else "broken"
    return incidents._failed(incident, attempt, signature, _reply=reply)


def _reply_finished(incidents: Incidents, _: events.ReplyFinished) -> Incidents:
    return evolve(incidents, _reply="proper")


def _key(event: events.ToolResult) -> str:
    return event.key or call_key(event.tool, event.input)


def _tool_failed(incidents: Incidents, event: events.ToolFailed) -> Incidents:
    if event.failure.kind is events.FailureKind.CANCELLED:
        return incidents
    if not incidents.counts(event):
        return _tool_succeeded(incidents, event)
    if event.failure.kind in FORM_ERRORS:
        return _reply_failed(incidents, event, event.failure)
    key = _key(event)
    incident = incidents.open.get(key)
    if incident is None:
        subject = subject_of(event.tool, event.input)
        incident = Incident(key, event.tool, event.input, subject.word, subject, facts=event.facts)
    before = incident.newest.seq if incident.course else event.seq
    attempt = evolve(
        _attempt(incidents, event, event.failure.message),
        hint=event.failure.hint,
        known=event.failure.known,
        prepared=incidents._prepared_since(before),
    )
    return incidents._failed(incident, attempt, failure_signature(event.failure))


def _tool_succeeded(incidents: Incidents, event: events.ToolResult) -> Incidents:
    if not incidents.open:
        return incidents
    recovered = _with_recovered(incidents, event)
    command = command_of(event.input)
    if command is None or not recovered.open or writes(command) is Writes.NOTHING:
        return recovered
    return evolve(recovered, _acted=(*recovered._acted, (event.seq, command[:_LONGEST_COMMAND]))[-_PREPARED:])


def _with_recovered(incidents: Incidents, event: events.ToolResult) -> Incidents:
    key, subject = _key(event), subject_of(event.tool, event.input)
    found: dict[str, Relation] = {}
    guesses: dict[str, Incident] = {}
    for other in list(incidents.open)[-_COMPARED:]:
        incident = incidents.open[other]
        if not incident.tool or other == REPLY_FORM:
            continue
        why: Relation = (
            "same_call"
            if other == key
            else relation(incident.tool, incident.subject, incident.error, event.tool, subject)
        )
        if why:
            found[other] = why
        elif not incident.found_elsewhere and ends_guess(incident.subject, incident.error, subject):
            guesses[other] = evolve(incident, found_elsewhere=True)
    incidents = incidents._changed(guesses)
    return incidents._recovered(event, found, tool=event.tool, input=event.input) if found else incidents


def _tool_refused(incidents: Incidents, event: events.ToolRefused) -> Incidents:
    incident = incidents.open.get(_key(event))
    if incident is None or event.refusal == "denied":
        return incidents
    return incidents._changed({incident.key: evolve(incident, refused=incident.refused + 1)})


def _iteration_finished(incidents: Incidents, event: events.IterationFinished) -> Incidents:
    found: dict[str, Relation] = {
        key: "same_call" for key in (REPLY_FORM, MODEL_CALL) if key in incidents.open
    }
    if found and incidents._reply == "proper":
        incidents = incidents._recovered(event, found)
    return evolve(incidents, _reply="none") if incidents._reply != "none" else incidents


def _run_finished(incidents: Incidents, event: events.RunFinished) -> Incidents:
    if event.outcome is not events.Outcome.ANSWERED:
        return incidents
    found: dict[str, Relation] = {
        key: "not_needed"
        for key, incident in incidents.open.items()
        if incident.found_elsewhere or clears_nothing(incident.subject, incident.error)
    }
    return incidents._recovered(event, found) if found else incidents


def _verdict_reached(incidents: Incidents, event: events.VerdictReached) -> Incidents:
    return incidents._changed(
        {
            key: _with_newest(incident, level=event.level, rule=event.rule)
            for key, incident in incidents._newest_of(event.iteration).items()
        }
    )


def _note_prepared(incidents: Incidents, event: events.NotePrepared) -> Incidents:
    about = tuple(incidents._newest_of(incidents.iteration)) if event.text is not None else ()
    return evolve(incidents, advised=about)


def _model_call_started(incidents: Incidents, event: events.ModelCallStarted) -> Incidents:
    """A note that the request does not carry was not read: those in a recording are what a policy would have said."""
    if not incidents.advised:
        return incidents
    sent = [key for key in incidents.advised if event.note and key in incidents.open]
    noted = {key: _with_newest(incidents.open[key], noted=True) for key in sent}
    return evolve(incidents._changed(noted), advised=())


def _with_newest(incident: Incident, **changes: Any) -> Incident:
    return evolve(incident, course=(*incident.course[:-1], evolve(incident.newest, **changes)))


def _escalation_raised(incidents: Incidents, event: events.EscalationRaised) -> Incidents:
    if event.source in OF_NO_FAILURE:
        return incidents
    about = {event.key: incidents.open[event.key]} if event.key in incidents.open else {}
    if event.source == "model" and MODEL_CALL in incidents.open:
        about = {MODEL_CALL: incidents.open[MODEL_CALL]}
    about = about or incidents._newest_of(incidents.iteration)
    asked = {key: evolve(incident, asked=incident.asked + 1) for key, incident in about.items()}
    return evolve(incidents._changed(asked), asked_about=tuple(asked))


def _escalation_answered(incidents: Incidents, event: events.EscalationAnswered) -> Incidents:
    answered = {
        key: _with_newest(incidents.open[key], answer=event.choice if event.by == "operator" else "")
        for key in incidents.asked_about
        if key in incidents.open
    }
    return evolve(incidents._changed(answered), asked_about=())


HANDLERS: dict[type[events.Event], Callable[[Incidents, Any], Incidents]] = {
    events.IterationStarted: _iteration_started,
    events.ModelCallStarted: _model_call_started,
    events.ReplyFinished: _reply_finished,
    events.ReplyRejected: _reply_rejected,
    events.ModelFaulted: _model_faulted,
    events.ToolSucceeded: _tool_succeeded,
    events.ToolFailed: _tool_failed,
    events.ToolRefused: _tool_refused,
    events.IterationFinished: _iteration_finished,
    events.RunFinished: _run_finished,
    events.VerdictReached: _verdict_reached,
    events.NotePrepared: _note_prepared,
    events.EscalationRaised: _escalation_raised,
    events.EscalationAnswered: _escalation_answered,
}
