"""Why: everything that is known about one failure, verdict or outcome, gathered from the journal around its event."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.call_names import short_input
from tui_agent.console.panes.headline import headline
from tui_agent.console.panes.incident import next_words
from tui_agent.core import events
from tui_agent.core.recovery.signature import failure_signature, normalise
from tui_agent.core.recovery.verdict import ATTEMPTS, BREAKER, COGNITION, FORM, RING, STREAK, silent
from tui_agent.rule_book import Section, book_path, read_book

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_agent.core.projections.incidents import Incident
    from tui_agent.core.recovery.engine import RecoveryState
    from tui_agent.core.state import RunState
    from tui_agent.store.replay import Replay
    from tui_agent.store.session import Session

_PATIENCE = 40
"""Looks at the journal before an event that is on the screen counts as lost: it is written in the background."""


FAR = 5_000
"""Events that are looked at after the one that is asked about."""


class Count(NamedTuple):
    """What one detector said: where it stands, its level and rule, and its reason."""

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
    """What the model read as the call's result."""
    note: str = ""
    """What the model read before its next reply."""
    rule: str = ""
    section: Section | None = None
    """What the book says of the rule."""
    next: str = ""


def newest_trouble(state: RunState) -> int:
    """The event to explain where none was chosen: the question, the newest failure, the end, or the last verdict."""
    if state.escalation is not None:
        return state.escalation.seq
    incident = state.metrics.incidents.current
    if state.running and incident is not None:
        return incident.newest.seq
    entries = state.conversation.entries
    if state.run.outcome is not None and entries:
        return entries[-1].seq
    return 0 if state.verdict is None else state.verdict.seq


async def explain_live(session: Session, seq: int, call_id: str = "") -> Why:
    """As `explain`, for a session that goes on. Raises `JournalError`; `IndexError` for an event that is not there."""
    from tui_agent.store.replay import Replay

    replay = await asyncio.to_thread(Replay.open, session.folder, prepare=False)
    for _ in range(_PATIENCE):
        if replay.length >= seq:
            break
        await asyncio.sleep(0.05)
        replay = await asyncio.to_thread(Replay.open, session.folder, prepare=False)
    return await asyncio.to_thread(explain, replay, seq, call_id)


def explain(replay: Replay, seq: int, call_id: str = "") -> Why:
    """What the journal says about the event `seq`; of a reply with several calls, about `call_id`.

    Reads the journal: not for the screen's thread, but for a `replay` that belongs to it.
    """
    seq = _result_of(replay, seq, call_id)
    event = replay.event(seq)
    end = _judged_at(replay, seq)
    after = replay.state_at(end)
    failure = getattr(event, "failure", None)
    key = getattr(event, "key", "")
    incident = after.metrics.incidents.open.get(key) or _recovered(after, key)
    if failure is None and incident is None and not isinstance(event, events.ModelFaulted):
        incident = after.metrics.incidents.current if not isinstance(event, events.RunFinished) else None
    message = _message(event) or ("" if incident is None else incident.newest.message)
    judged = _verdict(replay, seq, end)
    verdict = None if judged is None else judged[1]
    counted = after
    if judged is not None and judged[1].iteration == after.run.iteration and judged[0] < end:
        counted = replay.state_at(judged[0])  # an answer behind it takes the counts back
    rule = getattr(event, "rule", "") or ("" if verdict is None else verdict.rule)
    last = _run_end(replay, seq)
    now = replay.state_at(last) if not replay.reached or replay.reached >= last else after
    return Why(
        title=_title(event, incident, replay.kind(seq)),
        step=after.run.iteration,
        happened=_happened(event),
        cause=headline(message) if message else "",
        raw=message,
        normalised=normalise(message) if message else "",
        same_as=_same_as(incident, failure, seq),
        counts=tuple(_counts(counted.recovery, verdict, key, getattr(event, "tool", ""))),
        read=str(getattr(event, "content", "")),
        note=after.note or "",
        rule=rule,
        section=_book().get(rule),
        next=_next(after, now, incident, key, seq),
    )


@cache
def _book() -> dict[str, Section]:
    try:
        return read_book(book_path())
    except OSError:
        return {}


def _result_of(replay: Replay, seq: int, call_id: str) -> int:
    """The event of the call's end, where `seq` is that of the reply that made the call."""
    if not call_id or replay.kind(seq) != "reply_finished":
        return seq
    for number in range(seq, min(replay.length, seq + FAR) + 1):
        if replay.kind(number) in {"tool_failed", "tool_succeeded", "tool_refused", "tool_cancelled"}:
            event = replay.event(number)
            if isinstance(event, events.ToolResult) and event.call_id == call_id:
                return number
    return seq


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


def _verdict(replay: Replay, seq: int, end: int) -> tuple[int, events.VerdictReached] | None:
    """The verdict on the iteration of the event, and its place: the one that follows, else the one before."""
    for number in [*range(seq, end + 1), *range(seq - 1, max(0, seq - FAR), -1)]:
        if replay.kind(number) == "verdict_reached":
            event = replay.event(number)
            return (number, event) if isinstance(event, events.VerdictReached) else None
    return None


def _recovered(state: RunState, key: str) -> Incident | None:
    log = state.metrics.incidents.recovered
    return next((log[place] for place in range(len(log) - 1, -1, -1) if key and log[place].key == key), None)


def _title(event: events.Event, incident: Incident | None, kind: str) -> str:
    match event:
        case events.ToolResult():
            return f"{event.tool} {short_input(event.tool, event.input)}".strip()
        case events.ModelFaulted():
            return f"model call: {event.model}"
        case events.RunFinished():
            return f"the run ended: {event.outcome.in_words}"
        case events.EscalationRaised():
            return event.question.split("\n", 1)[0]
        case events.VerdictReached():
            return f"verdict: {event.level}"
        case events.ReplyRejected():
            return "the model's reply"
    if incident is not None and incident.tool:
        return f"{incident.tool} {short_input(incident.tool, incident.input)}".strip()
    return kind.replace("_", " ")


def _happened(event: events.Event) -> str:
    match event:
        case events.ToolFailed():
            kind = event.failure.kind
            more = "" if kind is events.FailureKind.TOOL_EXECUTION else f" ({kind.in_words})"
            return f"the call failed{more}"
        case events.ToolRefused():
            return f"the call was not executed: {event.refusal}"
        case events.ToolSucceeded():
            return "the call succeeded"
        case events.ToolCancelled():
            return "the call was cancelled"
        case events.ModelFaulted():
            status = f", status {event.fault.status}" if event.fault.status else ""
            return f"the model call failed ({event.fault.kind.in_words}{status}); then: {event.then}"
        case events.ReplyRejected():
            return "it was not taken as an answer"
        case events.RunFinished():
            return event.reason
        case events.VerdictReached():
            return f"{event.detector}: {event.reason}" if event.detector else event.reason
        case events.EscalationRaised():
            return "the operator was asked"
        case events.EscalationAnswered():
            return event.in_words if event.unasked else f"the operator answered: {event.in_words}"
    return ""


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
    """Each detector with its count and limit, and what it said in the verdict."""
    said: dict[str, events.VerdictRecord] = {}
    if verdict is not None:  # which holds those that had something to say
        said = {record.detector: silent(record.detector) for record in recovery.verdicts()}
        said |= {record.detector: record for record in verdict.verdicts}
    policy, cognition = recovery.policy, recovery.cognition
    entry = recovery.attempts.entries.get(key) or next(iter(recovery.attempts.newest_first()), None)
    stands = {
        ATTEMPTS: "no call has failed"
        if entry is None
        else f"{entry.tool}: {_of(entry.count, entry.limit, 'failures of this call')}"
        + (", blocked" if entry.blocked and not entry.allowed else ""),
        RING: f"{recovery.ring.identical if recovery.ring.filled else 0} of 5 identical in a row, "
        f"{recovery.ring.filled} of 5 slots full",
        STREAK: _of(recovery.streak.count, recovery.streak.limit, "failing steps in a row"),
        COGNITION: f"{cognition.stall} of {policy.stall_threshold} steps without progress, "
        f"{len(cognition.uncertainties)} of {policy.uncertainty_limit} unresolved",
        FORM: f"{recovery.form.count} of {policy.form_limit} replies in a row that broke the form",
    }
    breaker = recovery.breakers.states.get(tool)
    if breaker is not None:
        failures = f"{breaker.failures} of {policy.breaker_failures} failures of different calls"
        stands[BREAKER] = f"{tool}: {failures}, {breaker.phase}"
    for detector, text in stands.items():
        record = said.pop(detector, None)
        if text or record is not None:
            yield _count(detector, text, record)
    for detector, record in said.items():
        if record.reason:
            yield _count(detector, "", record)


def _of(count: int, limit: int, what: str) -> str:
    return f"{count} of {limit} {what}" if count <= limit else f"{count} {what}, limit {limit}"


def _count(detector: str, stands: str, record: events.VerdictRecord | None) -> Count:
    if record is None:
        return Count(detector, stands, reason="not used by this policy")
    return Count(detector, stands, str(record.level), record.rule, record.reason)


def _next(after: RunState, now: RunState, incident: Incident | None, key: str, seq: int) -> str:
    """What became of it, where that is known; else what comes if it fails once more."""
    recovered = _recovered(now, incident.key if incident is not None else key)
    if recovered is not None and recovered.recovery is not None and recovered.recovery.seq >= seq:
        how = (
            "the same call succeeded"
            if recovered.recovery.how == "same_call"
            else "another call reached the goal"
        )
        recovery = recovered.recovery
        by = f"{recovery.tool} {short_input(recovery.tool, recovery.input)}".strip()
        return f"recovered in step {recovery.iteration}: {how}{f' ({by})' if by else ''}"
    if now.run.outcome is not None:
        ended = f"the run ended: {now.run.outcome.in_words}"
        return f"it was not recovered; {ended}" if incident is not None or key else ""
    if incident is None:
        return ""
    then = next_words(after, incident)
    return f"if it fails again: {then}" if then else ""
