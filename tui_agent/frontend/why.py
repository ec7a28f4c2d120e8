"""Why: everything that is known about one failure, verdict or outcome, gathered from the journal around its event."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.call_names import short_input, subject_of
from tui_agent.core import events
from tui_agent.core.names import MODEL_CALL, REPLY_FORM
from tui_agent.core.projections.incidents import Incident
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.detector import Account
from tui_agent.core.recovery.engine import RecoveryState
from tui_agent.core.recovery.iteration import FORM_ERRORS
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import call_key, failure_signature, normalise
from tui_agent.core.recovery.verdict import silent
from tui_agent.core.state import RunState
from tui_agent.frontend.lines.incident import incident_name, next_words
from tui_agent.frontend.lines.styled import fit_middle
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.rule_book import Section, book_path, read_book
from tui_agent.session.replay import Replay

if TYPE_CHECKING:
    from tui_agent.session.session import Session

_PATIENCE = 40
"""Looks at the journal before an event that is on the screen counts as lost: it is written in the background."""


_CALL = 80
"""Cells of a call that is named beside its count."""

FAR = 5_000
"""Events that are looked at after the one that is asked about."""


class Count(NamedTuple):
    """One detector's part: what it has counted, its level and rule, and its reason."""

    detector: str
    stands: str
    level: str = ""
    rule: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Why:
    """One failure, verdict or outcome. Texts are as recorded; whoever shows them makes them safe."""

    title: str
    step: int = 0
    happened: str = ""
    cause: str = ""
    raw: str = ""
    """The error as it came."""
    normalised: str = ""
    """The error as it is compared: what differs from one time to the next is a placeholder."""
    same_as: tuple[int, ...] = ()
    """Steps whose failure was the same."""
    counts: tuple[Count, ...] = ()
    read: str = ""
    """The call's result as the model read it."""
    note: str = ""
    """The text that the model read before its next reply."""
    rule: str = ""
    section: Section | None = None
    """The book's words about the rule."""
    next: str = ""


def newest_trouble(state: RunState) -> int:
    """The event to explain if none was chosen: the question, the newest failure, the end, or the last
    verdict.
    """
    if state.escalation is not None:
        return state.escalation.seq
    incident = state.metrics.incidents.current
    if state.running and incident is not None:
        return incident.newest.seq
    if state.run.outcome is not None:
        lines = state.timeline.lines
        ends = (lines[place].seq for place in range(len(lines) - 1, -1, -1) if lines[place].kind == "outcome")
        return next(ends, 0)
    return 0 if state.verdict is None else state.verdict.seq


async def explain_live(session: Session, seq: int, call_id: str = "") -> Why:
    """As `explain`, for a session that goes on. Raises `JournalError`; `IndexError` for an event that is not there."""
    replay = await asyncio.to_thread(Replay.open, session.folder, prepare=False)
    for _ in range(_PATIENCE):
        if replay.length >= seq:
            break
        await asyncio.sleep(0.05)
        replay = await asyncio.to_thread(Replay.open, session.folder, prepare=False)
    return await asyncio.to_thread(explain, replay, seq, call_id)


def explain(replay: Replay, seq: int, call_id: str = "") -> Why:
    """The journal's account of the event `seq`; of a reply with several calls, of `call_id`.

    Reads the journal: not for the screen's thread, but for a `replay` that belongs to it.
    """
    seq = _note_of(replay, _result_of(replay, seq, call_id))
    event = replay.event(seq)
    end = _judged_at(replay, seq)
    after = replay.state_at(end)
    failure = getattr(event, "failure", None)
    key = event.key or call_key(event.tool, event.input) if isinstance(event, events.ToolResult) else ""
    incident = _incident(replay, event, after, key)
    succeeded = isinstance(event, events.ToolSucceeded)
    message = _message(event) or ("" if incident is None or succeeded else incident.newest.message)
    verdict = _verdict(replay, seq, end)
    answered = after.metrics.incidents.answer(event)
    rule = getattr(event, "rule", "") or ("" if verdict is None else verdict.rule)
    counted_too = answered and after.recovery.of(AttemptLedger).count(key) > 0
    if answered and not counted_too:
        rule = (Rule.FAILURE_NO_MATCH if answered == "no_match" else Rule.FAILURE_FINDINGS).value
    judged = after if verdict is None else replay.state_at(verdict.seq)
    last = _run_end(replay, seq)
    now = replay.state_at(last) if not replay.reached or replay.reached >= last else after
    return Why(
        title=_title(event, incident, replay.kind(seq)),
        step=after.run.iteration,
        happened=(_happened(event, incident) or _told(after, seq))
        if not answered
        else "the same findings once more with nothing changed since: counted as a failure"
        if counted_too
        else "an answer by its exit code, and no failure",
        cause=headline(message) if message else "",
        raw=message,
        normalised=normalise(message) if message else "",
        same_as=_same_as(incident, failure, seq) if message else (),
        counts=(
            *_counts(judged.recovery, verdict, key, getattr(event, "tool", "")),
            *_known(failure, judged.recovery),
        ),
        read=str(getattr(event, "content", "")),
        note=after.note or "",
        rule=rule,
        section=_book().get(rule),
        next=_next(after, now, incident, seq),
    )


@cache
def _book() -> dict[str, Section]:
    try:
        return read_book(book_path())
    except OSError:
        return {}


def _result_of(replay: Replay, seq: int, call_id: str) -> int:
    """The event of the call's end, if `seq` is that of the reply that made the call."""
    if not call_id or replay.kind(seq) != "reply_finished":
        return seq
    for number in range(seq, min(replay.length, seq + FAR) + 1):
        if replay.kind(number) in events.RESULT_TYPES:
            event = replay.event(number)
            if isinstance(event, events.ToolResult) and event.call_id == call_id:
                return number
    return seq


def _note_of(replay: Replay, seq: int) -> int:
    """The event that prepared the note, if `seq` is that of the model call that the note went with."""
    event = replay.event(seq)
    if isinstance(event, events.ModelCallStarted) and event.note:
        for number in range(seq - 1, max(0, seq - FAR), -1):
            if replay.kind(number) == "note_prepared":
                return number
    return seq


def _incident(replay: Replay, event: events.Event, after: RunState, key: str) -> Incident | None:
    """The incident that the event is a part of, as it stood then."""
    incidents = after.metrics.incidents
    match event:
        case events.ToolSucceeded():
            ended = (found for found in incidents.recovered if found.recovery)
            return next(
                (found for found in ended if found.recovery and found.recovery.seq == event.seq), None
            )
        case events.ToolFailed() if event.failure.kind in FORM_ERRORS:
            key = REPLY_FORM
        case events.ReplyRejected() if not event.unverified:
            key = REPLY_FORM
        case events.ModelFaulted():
            key = MODEL_CALL
        case events.EscalationRaised() | events.EscalationAnswered():
            answered = isinstance(event, events.EscalationAnswered)
            asked = replay.state_at(event.seq - answered).metrics.incidents
            return asked.current if asked.asked_about else None
        case events.VerdictReached() | events.NotePrepared():
            current = incidents.current
            judged = current is not None and current.newest.iteration == after.run.iteration
            return current if judged else None
    return incidents.open.get(key) or _recovered(after, key, event.seq)


def _judged_at(replay: Replay, seq: int) -> int:
    """The last event about the iteration in which `seq` happened: its verdict, or the note after it."""
    end = seq
    for number in range(seq, min(replay.length, seq + FAR) + 1):
        kind = replay.kind(number)
        if number > seq and kind in {"iteration_started", "run_started", "run_finished"}:
            break
        end = number
        if kind == "note_prepared":
            break
    return end


def _run_end(replay: Replay, seq: int) -> int:
    """The last event of the run in which `seq` happened, as far as it has gone."""
    for number in range(seq, replay.length + 1):
        if replay.kind(number) == "run_finished":
            return number
        if number > seq and replay.kind(number) == "run_started":
            return number - 1
    return replay.length


def _verdict(replay: Replay, seq: int, end: int) -> events.VerdictReached | None:
    """The verdict on the iteration of the event: the one that follows, else the one before in the same run."""
    for number in [*range(seq, end + 1), *range(seq - 1, max(0, seq - FAR), -1)]:
        kind = replay.kind(number)
        if number < seq and kind == "run_started":
            return None
        if kind == "verdict_reached":
            event = replay.event(number)
            return event if isinstance(event, events.VerdictReached) else None
    return None


def _recovered(state: RunState, key: str, seq: int) -> Incident | None:
    """The incident of `key` that ended next after the event `seq`."""
    for incident in state.metrics.incidents.recovered:
        if incident.key == key and incident.recovery is not None and incident.recovery.seq >= seq:
            return incident
    return None


def _title(event: events.Event, incident: Incident | None, kind: str) -> str:
    match event:
        case events.ToolResult():
            return f"{event.tool} {subject_of(event)}".strip()
        case events.ModelFaulted():
            return f"model call: {event.model}"
        case events.RunFinished():
            return f"the run ended: {event.outcome.in_words}"
        case events.EscalationRaised():
            return event.in_words.split("\n", 1)[0]
        case events.VerdictReached():
            return f"verdict: {event.level}"
        case events.ReplyRejected():
            return "the model's reply"
        case events.NotePrepared():
            return "the note to the model"
    if incident is not None and incident.tool:
        return f"{incident.tool} {subject_of(incident)}".strip()
    return kind.replace("_", " ")


def _happened(event: events.Event, incident: Incident | None) -> str:
    match event:
        case events.ToolFailed():
            kind = event.failure.kind
            more = "" if kind is events.FailureKind.TOOL_EXECUTION else f" ({kind.in_words})"
            return f"the call failed{more}"
        case events.ToolRefused():
            return f"the call was not executed: {event.in_words}"
        case events.ToolSucceeded():
            if incident is None:
                return "the call succeeded"
            failed = f"{incident_name(incident)} had failed {counted(incident.times, 'time')}"
            return f"the call succeeded: {failed}, last with: {headline(incident.newest.message)}"
        case events.ToolCancelled() | events.ToolEnded():
            ended = isinstance(event, events.ToolEnded)
            return "the call ended; how is not known" if ended else "the call was cancelled"
        case events.ModelFaulted():
            status = f", status {event.fault.status}" if event.fault.status else ""
            return f"the model call failed ({event.fault.kind.in_words}{status}); then: {event.then}"
        case events.ReplyRejected():
            return f"it was {event.in_words}"
        case events.RunFinished():
            return event.reason
        case events.VerdictReached():
            return f"{event.detector}: {event.reason}" if event.detector else event.reason
        case events.EscalationRaised():
            call = f" about {event.tool} {short_input(event.tool, event.input)}" if event.input else ""
            return f"the operator was asked{call}"
        case events.EscalationAnswered():
            return event.in_words if event.unasked else f"the operator answered: {event.in_words}"
    return ""


def _told(state: RunState, seq: int) -> str:
    """The timeline's words about the event; of an end the title says it."""
    lines = state.timeline.lines
    told = (lines[place] for place in range(len(lines) - 1, -1, -1) if lines[place].seq == seq)
    return next((line.text for line in told if line.kind != "outcome"), "")


def _message(event: events.Event) -> str:
    match event:
        case events.ToolFailed() | events.ReplyRejected():
            return event.failure.message
        case events.ModelFaulted():
            return event.fault.message
        case events.ToolRefused():
            return event.reason
    return ""


def _same_as(incident: Incident | None, failure: events.Failure | None, seq: int) -> tuple[int, ...]:
    if incident is None:
        return ()
    signature = incident.signature if failure is None else failure_signature(failure)
    wanted = normalise(incident.newest.message) if failure is None else normalise(failure.message)
    if not signature:
        return ()
    return tuple(
        attempt.iteration
        for attempt in incident.course
        if attempt.seq != seq and normalise(attempt.message) == wanted
    )


def _counts(
    recovery: RecoveryState, verdict: events.VerdictReached | None, key: str, tool: str
) -> Iterator[Count]:
    """List each detector with what it has counted, and what it said in the verdict."""
    said = {name: silent(name) for name in recovery.with_a_say}
    if verdict is not None:  # which holds those that had something to say
        said |= {record.detector: record for record in verdict.verdicts}
    for detector, account in recovery.accounts(key, tool):
        record = said.get(detector)
        words = _account(recovery, account, named=bool(key))
        if words or (record is not None and record.reason):
            yield _count(detector, words, record)


def _account(recovery: RecoveryState, account: Account, *, named: bool) -> str:
    """Write what was counted; the call that was counted comes first, whole unless it is `named` above."""
    call = account.call
    if call is None:
        return account.words
    name = call.tool if named else fit_middle(f"{call.tool} {subject_of(call)}".strip(), _CALL)
    entry = recovery.of(AttemptLedger).entries.get(call.key)
    blocked = ", blocked" if entry is not None and recovery.blocks(entry) else ""
    return f"{name}: {account.words}{blocked}"


def _known(failure: events.Failure | None, recovery: RecoveryState) -> Iterator[Count]:
    """The playbook's words about the failure."""
    known = failure.known if failure is not None and recovery.policy.playbook else None
    if known is not None:
        stands = f"{known.repair}: worked {known.worked} of {known.tried} times, {known.base:.0%} recover without it"
        yield Count("playbook", stands, events.Level.GUIDE.value, Rule.NOTE_PLAYBOOK.value)


def _count(detector: str, stands: str, record: events.VerdictRecord | None) -> Count:
    if record is None:
        return Count(detector, stands, reason="not used by this policy")
    return Count(detector, stands, str(record.level), record.rule, record.reason)


def _next(after: RunState, now: RunState, incident: Incident | None, seq: int) -> str:
    """Its fate, if that is known; else the next rung if it fails once more."""
    if incident is None:
        return ""
    recovered = _recovered(now, incident.key, seq)
    if recovered is not None and recovered.recovery is not None:
        how = (
            "the same call succeeded"
            if recovered.recovery.how == "same_call"
            else "another call reached the goal"
        )
        recovery = recovered.recovery
        by = f"{recovery.tool} {short_input(recovery.tool, recovery.input)}".strip()
        return f"recovered in step {recovery.iteration}: {how}{f' ({by})' if by else ''}"
    if now.run.outcome is not None:
        return f"it was not recovered; the run ended: {now.run.outcome.in_words}"
    then = next_words(after, incident)
    return f"if it fails again: {then}" if then else ""
