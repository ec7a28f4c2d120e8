"""What the operator sees as the conversation: closed entries, the open reply and the calls that run.

Entries close once and never change again, so that appending stays constant in cost however long a session is;
everything that still moves (a streaming reply, running calls) is in the two open fields.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tui_agent.core import events
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve

PROGRESS_TAIL = 4_000
"""Characters of a running command's output that stay on screen."""


@dataclass(frozen=True)
class Entry:
    """One closed block of the conversation; `seq` and `at` are those of the event that opened it."""

    seq: int
    at: float
    iteration: int


@dataclass(frozen=True)
class OperatorEntry(Entry):
    """What the operator said: a task, a queued message that was delivered, or an answer (`answers` the question)."""

    text: str
    answers: str = ""


@dataclass(frozen=True)
class ReplyEntry(Entry):
    """What the model said. `partial`: cut by a fault or an interrupt, never stored in the history."""

    text: str
    reasoning: str = ""
    partial: bool = False
    model: str = ""


class CallState(StrEnum):
    """How far a call is. The last five are final."""

    REQUESTED = "requested"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class CallEntry(Entry):
    """One tool call from request to result. `duration` in seconds; `attempt` counts from 1 for this very call."""

    call_id: str
    tool: str
    input: dict[str, Any]
    index: int = 0
    arguments: str = ""
    """Raw text as sent, for calls that could not be parsed."""
    state: CallState = CallState.REQUESTED
    attempt: int = 1
    started: float | None = None
    duration: float = 0.0
    progress: str = ""
    content: str = ""
    diff: str = ""
    changed: tuple[str, ...] = ()
    output_file: str = ""
    failure: events.Failure | None = None
    refusal: str = ""
    reason: str = ""
    rule: str = ""
    """Id of the rule that refused it."""


@dataclass(frozen=True)
class FaultEntry(Entry):
    """A failed model call and what was done about it. `until` is when the wait before a retry ends."""

    fault: events.Fault
    action: str
    attempt: int
    model: str
    next_model: str = ""
    until: float = 0.0
    rule: str = ""


@dataclass(frozen=True)
class NoticeEntry(Entry):
    """A remark of the console itself."""

    severity: str
    text: str
    rule: str = ""


@dataclass(frozen=True)
class EscalationEntry(Entry):
    """A question that was put to the operator and answered."""

    question: str
    source: str
    choice: str
    answer: str
    rule: str = ""


@dataclass(frozen=True)
class OutcomeEntry(Entry):
    """How a run ended; loud unless it was answered."""

    outcome: events.Outcome
    reason: str
    answer: str
    rule: str = ""


@dataclass(frozen=True)
class OpenReply:
    """A reply that is still coming in."""

    seq: int
    at: float
    model: str = ""
    attempt: int = 1
    text: str = ""
    reasoning: str = ""


@dataclass(frozen=True)
class Conversation:
    """Closed entries in order, then what is open: the reply that streams, the calls of this iteration."""

    entries: AppendLog[Entry] = field(default_factory=AppendLog)
    reply: OpenReply | None = None
    calls: tuple[CallEntry, ...] = ()
    iteration: int = 0
    escalation: events.EscalationRaised | None = None
    checkpoints: AppendLog[events.CheckpointSaved] = field(default_factory=AppendLog)
    """States of the workspace that were kept along this conversation."""
    rewound_from: tuple[int, Conversation] | None = None
    """The newest rewind's `seq` and the conversation before it, until the next run: what an undo brings back."""

    def apply(self, event: events.Event, attempt: int = 1) -> Conversation:
        """Fold one event. `attempt` is the attempts ledger's count for the call that the event starts."""
        handler = _HANDLERS.get(type(event))
        return self if handler is None else handler(self, event, attempt)

    def call(self, call_id: str) -> CallEntry | None:
        """An open call by its id."""
        return next((call for call in self.calls if call.call_id == call_id), None)

    def _closed(self, *entries: Entry, **changes: Any) -> Conversation:
        log = self.entries
        for entry in entries:
            log = log.append(entry)
        return evolve(self, entries=log, **changes)

    def _with_call(self, call_id: str, **changes: Any) -> Conversation:
        calls = tuple(evolve(call, **changes) if call.call_id == call_id else call for call in self.calls)
        return evolve(self, calls=calls)


def _run_started(conversation: Conversation, event: events.RunStarted, _: int) -> Conversation:
    entry = OperatorEntry(event.seq, event.at, 0, event.task)
    return conversation._closed(entry, reply=None, calls=(), iteration=0, escalation=None, rewound_from=None)


def _operator_spoke(conversation: Conversation, event: events.OperatorSpoke, _: int) -> Conversation:
    return conversation._closed(OperatorEntry(event.seq, event.at, conversation.iteration, event.text))


def _iteration_started(conversation: Conversation, event: events.IterationStarted, _: int) -> Conversation:
    return evolve(conversation, iteration=event.iteration, reply=None, calls=())


def _model_call_started(conversation: Conversation, event: events.ModelCallStarted, _: int) -> Conversation:
    return evolve(conversation, reply=OpenReply(event.seq, event.at, event.model, event.attempt))


def _reply_delta(conversation: Conversation, event: events.ReplyDelta, _: int) -> Conversation:
    reply = conversation.reply or OpenReply(event.seq, event.at)
    grown = evolve(reply, text=reply.text + event.text, reasoning=reply.reasoning + event.reasoning)
    return evolve(conversation, reply=grown)


def _reply_finished(conversation: Conversation, event: events.ReplyFinished, _: int) -> Conversation:
    calls = tuple(
        CallEntry(event.seq, event.at, conversation.iteration, call.id, call.name, {}, index, call.arguments)
        for index, call in enumerate(event.calls)
    )
    if not event.text and not event.reasoning:
        return evolve(conversation, reply=None, calls=calls)
    seq = conversation.reply.seq if conversation.reply else event.seq
    entry = ReplyEntry(seq, event.at, conversation.iteration, event.text, event.reasoning, model=event.model)
    return conversation._closed(entry, reply=None, calls=calls)


def _reply_rejected(conversation: Conversation, event: events.ReplyRejected, _: int) -> Conversation:
    text = f"Not taken as an answer: {event.failure.message} The agent is asked to go on."
    return conversation._closed(
        NoticeEntry(event.seq, event.at, conversation.iteration, "info", text, event.rule)
    )


def _model_faulted(conversation: Conversation, event: events.ModelFaulted, _: int) -> Conversation:
    fault = FaultEntry(
        event.seq,
        event.at,
        conversation.iteration,
        event.fault,
        event.action,
        event.attempt,
        event.model,
        event.next_model,
        event.at + event.delay,
        event.rule,
    )
    partial = _partial_reply(conversation, event.at, event.partial_text)
    return conversation._closed(*partial, fault, reply=None)


def _partial_reply(conversation: Conversation, at: float, text: str = "") -> tuple[Entry, ...]:
    reply = conversation.reply
    shown = text or (reply.text if reply else "")
    reasoning = reply.reasoning if reply else ""
    if not shown and not reasoning:
        return ()
    seq = reply.seq if reply else 0
    model = reply.model if reply else ""
    return (ReplyEntry(seq, at, conversation.iteration, shown, reasoning, partial=True, model=model),)


def _tool_started(conversation: Conversation, event: events.ToolStarted, attempt: int) -> Conversation:
    return conversation._with_call(
        event.call_id,
        input=event.input,
        tool=event.tool,
        state=CallState.RUNNING,
        attempt=attempt,
        started=event.at,
    )


def _approval_asked(conversation: Conversation, event: events.ApprovalAsked, attempt: int) -> Conversation:
    return conversation._with_call(event.call_id, input=event.input, state=CallState.WAITING, attempt=attempt)


def _tool_progress(conversation: Conversation, event: events.ToolProgress, _: int) -> Conversation:
    call = conversation.call(event.call_id)
    if call is None:
        return conversation
    return conversation._with_call(event.call_id, progress=(call.progress + event.text)[-PROGRESS_TAIL:])


_FINAL_STATES: dict[type[events.Event], CallState] = {
    events.ToolSucceeded: CallState.SUCCEEDED,
    events.ToolFailed: CallState.FAILED,
    events.ToolCancelled: CallState.CANCELLED,
}


def _tool_ended(conversation: Conversation, event: events.ToolResult, attempt: int) -> Conversation:
    state = _FINAL_STATES.get(type(event), CallState.BLOCKED)
    changes: dict[str, Any] = {"content": event.content, "duration": event.duration, "progress": ""}
    call = conversation.call(event.call_id)
    if call is None or call.started is None:
        changes["attempt"] = attempt
    if event.input:
        changes["input"] = event.input
    match event:
        case events.ToolSucceeded():
            changes |= {"diff": event.diff, "changed": event.changed, "output_file": event.output_file}
        case events.ToolFailed():
            changes |= {"failure": event.failure, "output_file": event.output_file}
        case events.ToolRefused():
            state = CallState.DENIED if event.refusal == "denied" else CallState.BLOCKED
            changes |= {"refusal": event.refusal, "reason": event.reason, "rule": event.rule}
        case events.ToolCancelled():
            changes["reason"] = event.reason
    return conversation._with_call(event.call_id, state=state, **changes)


def _iteration_finished(conversation: Conversation, event: events.IterationFinished, _: int) -> Conversation:
    return conversation._closed(
        *_partial_reply(conversation, event.at), *conversation.calls, calls=(), reply=None
    )


def _notice(conversation: Conversation, event: events.Notice, _: int) -> Conversation:
    return conversation._closed(
        NoticeEntry(event.seq, event.at, conversation.iteration, event.severity, event.text)
    )


def _escalation_raised(conversation: Conversation, event: events.EscalationRaised, _: int) -> Conversation:
    return evolve(conversation, escalation=event)


def _escalation_answered(
    conversation: Conversation, event: events.EscalationAnswered, _: int
) -> Conversation:
    asked = conversation.escalation
    question = asked.question if asked else ""
    source = asked.source if asked else ""
    answer = event.text or event.choice
    rule = asked.rule if asked else ""
    entry = EscalationEntry(
        event.seq, event.at, conversation.iteration, question, source, event.choice, answer, rule
    )
    return conversation._closed(entry, escalation=None)


def _run_finished(conversation: Conversation, event: events.RunFinished, _: int) -> Conversation:
    entry = OutcomeEntry(
        event.seq, event.at, conversation.iteration, event.outcome, event.reason, event.answer, event.rule
    )
    return conversation._closed(
        *_partial_reply(conversation, event.at),
        *conversation.calls,
        entry,
        calls=(),
        reply=None,
        escalation=None,
    )


def _session_resumed(conversation: Conversation, event: events.SessionResumed, _: int) -> Conversation:
    if not event.dropped_bytes:
        return conversation
    text = (
        f"The journal ended in the middle of an event ({event.dropped_bytes:,} bytes): its process was killed or "
        "the disk was full. That one event is lost; everything before it is here."
    )
    return conversation._closed(NoticeEntry(event.seq, event.at, conversation.iteration, "warning", text))


def _checkpoint_saved(conversation: Conversation, event: events.CheckpointSaved, _: int) -> Conversation:
    return evolve(conversation, checkpoints=conversation.checkpoints.append(event))


def _rewound(conversation: Conversation, event: events.Rewound, _: int) -> Conversation:
    if event.scope == "files":
        return conversation
    before = conversation.rewound_from
    if event.undoes:
        if before is None or before[0] != event.undoes:
            return conversation
        return before[1]._closed(_rewind_notice(event, "The rewind was taken back."))
    # Between iterations nothing is open, so what was closed up to there is what was opened up to there.
    length = bisect_right(conversation.entries, event.to_seq, key=lambda entry: entry.seq)
    kept = bisect_right(conversation.checkpoints, event.to_seq, key=lambda saved: saved.seq)
    cut = evolve(
        conversation,
        entries=conversation.entries.prefix(length),
        checkpoints=conversation.checkpoints.prefix(kept),
        reply=None,
        calls=(),
        escalation=None,
    )
    return cut._closed(
        _rewind_notice(event, "The conversation was rewound to here."), rewound_from=(event.seq, conversation)
    )


def _rewind_notice(event: events.Rewound, text: str) -> NoticeEntry:
    return NoticeEntry(event.seq, event.at, 0, "info", text)


_HANDLERS: dict[type[events.Event], Callable[[Conversation, Any, int], Conversation]] = {
    events.RunStarted: _run_started,
    events.OperatorSpoke: _operator_spoke,
    events.IterationStarted: _iteration_started,
    events.IterationFinished: _iteration_finished,
    events.ModelCallStarted: _model_call_started,
    events.ReplyDelta: _reply_delta,
    events.ReplyFinished: _reply_finished,
    events.ReplyRejected: _reply_rejected,
    events.ModelFaulted: _model_faulted,
    events.ToolStarted: _tool_started,
    events.ToolProgress: _tool_progress,
    events.ToolSucceeded: _tool_ended,
    events.ToolFailed: _tool_ended,
    events.ToolRefused: _tool_ended,
    events.ToolCancelled: _tool_ended,
    events.ApprovalAsked: _approval_asked,
    events.EscalationRaised: _escalation_raised,
    events.EscalationAnswered: _escalation_answered,
    events.Notice: _notice,
    events.SessionResumed: _session_resumed,
    events.CheckpointSaved: _checkpoint_saved,
    events.Rewound: _rewound,
    events.RunFinished: _run_finished,
}
