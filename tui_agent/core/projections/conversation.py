"""The conversation as the operator sees it: closed entries, the open reply and the calls that run.

Entries close once and never change again, so that appending stays constant in cost however long a session is;
everything that still moves (a streaming reply, running calls) is in the two open fields.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tui_agent.core import events
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve
from tui_agent.core.names import UPDATE_PLAN, CallState
from tui_agent.core.projections.background import in_words
from tui_agent.core.projections.entries import (
    PROGRESS_TAIL,
    AnyEntry,
    CallEntry,
    EscalationEntry,
    FaultEntry,
    NoteEntry,
    NoticeEntry,
    OpenReply,
    OperatorEntry,
    OutcomeEntry,
    OwnCommandEntry,
    ReplyEntry,
    SummaryEntry,
)
from tui_agent.core.projections.incidents import Incident
from tui_agent.core.projections.lane import Lane
from tui_agent.core.projections.metrics import Metrics
from tui_agent.core.projections.plan import Plan, plan_of
from tui_agent.core.recovery.forge_note import ANALYZE
from tui_agent.core.recovery.iteration import Answer


class Surroundings(NamedTuple):
    """Values that an event's entry takes from the other projections.

    `attempt`: the attempts ledger's count for the call; `recovered`: the incidents that the event ended;
    `metrics`: those after the event; `answer`: the meaning of the result's exit code, if it is no failure.
    """

    attempt: int = 1
    recovered: Sequence[Incident] = ()
    metrics: Metrics = Metrics()
    answer: Answer = ""


ALONE = Surroundings()


@dataclass(frozen=True)
class Conversation:
    """Closed entries in order, then what is open: the model's fault that is retried, the reply that streams, the
    calls of this iteration.
    """

    entries: AppendLog[AnyEntry] = field(default_factory=AppendLog)
    fault: FaultEntry | None = None
    reply: OpenReply | None = None
    calls: tuple[CallEntry, ...] = ()
    note: NoteEntry | None = None
    """The newest note; while its call is under way, it waits for the reply."""
    note_sent: bool = False
    note_rules: tuple[str, ...] = ()
    note_edited: bool = False
    iteration: int = 0
    escalation: events.EscalationRaised | None = None
    checkpoints: AppendLog[events.CheckpointSaved] = field(default_factory=AppendLog)
    """States of the workspace that were kept along this conversation."""
    plans: AppendLog[Plan] = field(default_factory=AppendLog)
    """The model's plans, the newest last; one without steps: there is none any more."""
    rewound_from: tuple[int, Conversation] | None = None
    """The newest rewind's `seq` and the conversation before it, until the next run: what an undo brings back."""

    def apply(self, event: events.Event, around: Surroundings = ALONE) -> Conversation:
        """Fold one event."""
        handler = _HANDLERS.get(type(event))
        return self if handler is None else handler(self, event, around)

    @property
    def plan(self) -> Plan | None:
        """The model's next act, if it announces one."""
        return self.plans[-1] if self.plans and self.plans[-1].steps else None

    @property
    def newest_reply(self) -> str:
        """The newest reply or answer, whole; empty: none has come."""
        said = (
            entry.text if isinstance(entry, ReplyEntry) else entry.answer
            for entry in reversed(self.entries)
            if isinstance(entry, ReplyEntry | OutcomeEntry)
        )
        return next((text for text in said if text), "")

    @property
    def question(self) -> EscalationEntry | None:
        """The open question to the operator."""
        asked = self.escalation
        if asked is None:
            return None
        return EscalationEntry(
            asked.seq, asked.at, self.iteration, asked.question, asked.source, rule=asked.rule
        )

    @property
    def unclosed(self) -> tuple[AnyEntry, ...]:
        """The part of the conversation under way: note, fault, reply, calls, question."""
        note = self.note if self.note_sent else None
        reply = None
        if (come := self.reply) is not None:
            reply = ReplyEntry(come.seq, come.at, self.iteration, come.text, come.reasoning)
        found: tuple[AnyEntry | None, ...] = (note, self.fault, reply, *self.calls, self.question)
        return tuple(entry for entry in found if entry is not None)

    def call(self, call_id: str) -> CallEntry | None:
        """An open call by its id."""
        return next((call for call in self.calls if call.call_id == call_id), None)

    def _closed(self, *entries: AnyEntry, **changes: Any) -> Conversation:
        log = self.entries
        for entry in entries:
            log = log.append(entry)
        return evolve(self, entries=log, **changes)

    def _with_notice(self, event: events.Event, severity: str, text: str, rule: str = "") -> Conversation:
        return self._closed(NoticeEntry(event.seq, event.at, self.iteration, severity, text, rule))

    def _with_call(self, call_id: str, **changes: Any) -> Conversation:
        calls = tuple(evolve(call, **changes) if call.call_id == call_id else call for call in self.calls)
        return evolve(self, calls=calls)


def _run_started(conversation: Conversation, event: events.RunStarted, _: Surroundings) -> Conversation:
    only_here = event.model if event.session_model else ""
    entry = OperatorEntry(
        event.seq,
        event.at,
        0,
        event.task,
        images=event.images,
        model=only_here,
        ran=_ran_before(conversation),
    )
    plan = conversation.plan
    if plan is not None:
        left = Plan(seq=event.seq) if plan.finished else evolve(plan, seq=event.seq, earlier=True)
        conversation = evolve(conversation, plans=conversation.plans.append(left))
    return conversation._closed(
        entry,
        fault=None,
        reply=None,
        calls=(),
        note=None,
        note_sent=False,
        iteration=0,
        escalation=None,
        rewound_from=None,
    )


def _operator_spoke(conversation: Conversation, event: events.OperatorSpoke, _: Surroundings) -> Conversation:
    entry = OperatorEntry(
        event.seq,
        event.at,
        conversation.iteration,
        event.text,
        images=event.images,
        ran=_ran_before(conversation),
    )
    return conversation._closed(entry)


def _own_command_ended(
    conversation: Conversation, event: events.OwnCommandEnded, _: Surroundings
) -> Conversation:
    return conversation._closed(
        OwnCommandEntry(event.seq, event.at, 0, event.command, event.printed, event.exit_code)
    )


def _ran_before(conversation: Conversation) -> tuple[str, ...]:
    """Commands that the operator ran himself since his last message."""
    ran: list[str] = []
    for place in range(len(conversation.entries) - 1, -1, -1):
        entry = conversation.entries[place]
        if type(entry) is OwnCommandEntry:
            ran.append(entry.command)
        elif type(entry) is OperatorEntry or (type(entry) is EscalationEntry and entry.ran):
            break
    return tuple(reversed(ran))


def _iteration_started(
    conversation: Conversation, event: events.IterationStarted, _: Surroundings
) -> Conversation:
    return evolve(conversation, iteration=event.iteration, reply=None, calls=())


def _model_call_started(
    conversation: Conversation, event: events.ModelCallStarted, _: Surroundings
) -> Conversation:
    reply = OpenReply(event.seq, event.at, event.model, event.attempt)
    fault = conversation.fault
    if fault is not None and fault.action == "retry":
        # The wait may have been skipped, or have gone on through a pause.
        conversation = evolve(conversation, fault=evolve(fault, until=event.at))
    if not event.note:
        return evolve(conversation, reply=reply, note_sent=False)
    before = conversation.note
    if conversation.note_sent and before is not None and before.text == event.note:
        return evolve(conversation, reply=reply)
    known = {"", *(_wording(part) for part in before.text.split("\n\n"))} if before is not None else {""}
    last = conversation.entries[-1] if len(conversation.entries) else None
    above = last.text if isinstance(last, NoticeEntry) else ""
    # A paragraph that ends so only leads to the next one.
    advice = (part for part in event.note.split("\n\n") if not part.endswith(":") and part not in above)
    fresh = next((part for part in advice if _wording(part) not in known), "").removeprefix(f"{ANALYZE}\n")
    note = NoteEntry(
        event.seq,
        event.at,
        conversation.iteration,
        event.note,
        conversation.note_rules,
        fresh,
        _failed_before(conversation),
        edited=conversation.note_edited,
    )
    return evolve(conversation, reply=reply, note=note, note_sent=True)


_NO_WORDING = re.compile(r"\d+\.\d+|[^\w\s]{4,}")
"""Durations, and rules drawn across a text."""


def _wording(paragraph: str) -> str:
    """The parts by which one paragraph differs from another for a reader."""
    return _NO_WORDING.sub("", paragraph).strip()


def _failed_before(conversation: Conversation) -> tuple[tuple[str, str], ...]:
    """Tool and key of the calls that failed in the iteration before."""
    found: list[tuple[str, str]] = []
    for place in range(len(conversation.entries) - 1, -1, -1):
        entry = conversation.entries[place]
        if entry.iteration < conversation.iteration - 1 or type(entry) is OperatorEntry:
            break
        if type(entry) is CallEntry and entry.state in {CallState.FAILED, CallState.BLOCKED}:
            found.append((entry.tool, entry.key))
    return tuple(reversed(found))


def _note_prepared(conversation: Conversation, event: events.NotePrepared, _: Surroundings) -> Conversation:
    return evolve(conversation, note_rules=event.rules, note_edited=event.edited)


def _reply_delta(conversation: Conversation, event: events.ReplyDelta, _: Surroundings) -> Conversation:
    reply = conversation.reply or OpenReply(event.seq, event.at)
    text, reasoning = reply.text + event.text, reply.reasoning + event.reasoning
    return evolve(conversation, reply=evolve(reply, text=text, reasoning=reasoning, heard=event.at))


def _reply_finished(conversation: Conversation, event: events.ReplyFinished, _: Surroundings) -> Conversation:
    calls = tuple(
        CallEntry(
            event.seq,
            event.at,
            conversation.iteration,
            call.id,
            call.name,
            {},
            index,
            call.arguments,
            key=call.key,
            facts=call.facts,
        )
        for index, call in enumerate(event.calls)
    )
    said: list[AnyEntry] = []
    if conversation.note_sent and conversation.note is not None:
        said.append(evolve(conversation.note, calls=event.calls))
    if conversation.fault is not None:
        said.append(conversation.fault)
    if event.text or event.reasoning:
        seq = conversation.reply.seq if conversation.reply else event.seq
        said.append(
            ReplyEntry(seq, event.at, conversation.iteration, event.text, event.reasoning, model=event.model)
        )
    return conversation._closed(*said, fault=None, reply=None, calls=calls, note_sent=False)


def _reply_rejected(conversation: Conversation, event: events.ReplyRejected, _: Surroundings) -> Conversation:
    text = f"{event.in_words.capitalize()}: {event.failure.message}"
    return conversation._with_notice(event, "info", text, event.rule)


def _model_faulted(conversation: Conversation, event: events.ModelFaulted, _: Surroundings) -> Conversation:
    before = conversation.fault
    fault = FaultEntry(
        event.seq if before is None else before.seq,
        event.at,
        conversation.iteration,
        event.fault,
        event.action,
        event.attempt,
        event.model,
        event.next_model,
        event.at + event.delay,
        event.rule,
        event.then,
        () if before is None else (*before.earlier, evolve(before, earlier=())),
    )
    partial = _partial_reply(conversation, event.at, event.partial_text)
    if event.action in _TRIED_AGAIN:
        return conversation._closed(*partial, fault=fault, reply=None)
    return conversation._closed(*partial, fault, fault=None, reply=None)


def _limit_wait_started(
    conversation: Conversation, event: events.LimitWaitStarted, _: Surroundings
) -> Conversation:
    """The fault is open again while the run waits: it shows how long, and the keys that end the wait."""
    newest = conversation.entries.tail(max(0, len(conversation.entries) - _LOOKED_BACK))
    closed = next((entry for entry in reversed(newest) if isinstance(entry, FaultEntry)), None)
    before = conversation.fault or (None if closed is None else evolve(closed, seq=event.seq, earlier=()))
    if before is None:
        return conversation
    waits = {"action": "wait", "at": event.at, "until": event.until, "rule": event.rule}
    return evolve(conversation, fault=evolve(before, **waits, then="the run waits for the limit to reset"))


_LOOKED_BACK = 8
"""Closed entries among which the fault stands that the operator was asked about."""

_TRIED_AGAIN = frozenset({"retry", "wait", "fallback", "shrink", "text_calls"})
"""Tries after a fault within the iteration; they make one entry."""


def _compaction_started(
    conversation: Conversation, event: events.CompactionStarted, _: Surroundings
) -> Conversation:
    return evolve(conversation, reply=OpenReply(event.seq, event.at, event.model, summarises=event.groups))


def _compacted(conversation: Conversation, event: events.Compacted, _: Surroundings) -> Conversation:
    entry = SummaryEntry(
        event.seq,
        event.at,
        conversation.iteration,
        event.groups,
        event.summary,
        event.tokens_before,
        event.tokens_after,
        event.model,
        event.cost,
        event.duration,
        rule=event.rule,
    )
    return conversation._closed(entry, reply=None)


def _started_afresh(conversation: Conversation, event: events.StartedAfresh, _: Surroundings) -> Conversation:
    entry = SummaryEntry(
        event.seq,
        event.at,
        conversation.iteration,
        event.groups,
        event.remark,
        event.tokens_before,
        event.tokens_after,
        afresh=event.in_words,
        rule=event.rule,
    )
    return conversation._closed(entry)


def _compaction_failed(
    conversation: Conversation, event: events.CompactionFailed, _: Surroundings
) -> Conversation:
    entry = SummaryEntry(
        event.seq,
        event.at,
        conversation.iteration,
        conversation.reply.summarises if conversation.reply else 0,
        model=event.model,
        cost=event.cost,
        duration=event.duration,
        failed=event.in_words,
        rule=event.rule,
    )
    return conversation._closed(entry, reply=None)


def _partial_reply(
    conversation: Conversation, at: float, text: str = "", *, kept: bool = False
) -> tuple[AnyEntry, ...]:
    reply = conversation.reply
    shown = text or (reply.text if reply else "")
    reasoning = reply.reasoning if reply else ""
    if not shown and not reasoning:
        return ()
    seq = reply.seq if reply else 0
    model = reply.model if reply else ""
    return (
        ReplyEntry(seq, at, conversation.iteration, shown, reasoning, partial=True, kept=kept, model=model),
    )


def _tool_started(
    conversation: Conversation, event: events.ToolStarted, around: Surroundings
) -> Conversation:
    return conversation._with_call(
        event.call_id,
        input=event.input,
        tool=event.tool,
        state=CallState.RUNNING,
        attempt=around.attempt,
        started=event.at,
        reads_only=event.reads_only,
    )


def _approval_asked(
    conversation: Conversation, event: events.ApprovalAsked, around: Surroundings
) -> Conversation:
    return conversation._with_call(
        event.call_id, input=event.input, state=CallState.WAITING, attempt=around.attempt
    )


def _tool_progress(conversation: Conversation, event: events.ToolProgress, _: Surroundings) -> Conversation:
    call = conversation.call(event.call_id)
    if call is None:
        return conversation
    return conversation._with_call(event.call_id, progress=(call.progress + event.text)[-PROGRESS_TAIL:])


_ANSWERED: dict[Answer, CallState] = {
    "": CallState.FAILED,
    "no_match": CallState.SUCCEEDED,
    "findings": CallState.FOUND,
}


def _tool_ended(conversation: Conversation, event: events.ToolResult, around: Surroundings) -> Conversation:
    changes: dict[str, Any] = {
        "content": event.content,
        "duration": event.duration,
        "progress": "",
        "attempt": around.attempt,
    }
    if event.input:
        changes["input"] = event.input
    match event:
        case events.ToolSucceeded():
            if event.tool == UPDATE_PLAN:
                plans = conversation.plans.append(plan_of(event.input, event.seq))
                conversation = evolve(conversation, plans=plans)
            changes |= {"diff": event.diff, "changed": event.changed, "output_file": event.output_file}
            changes |= {"state": CallState.SUCCEEDED, "recovered": tuple(around.recovered)}
        case events.ToolFailed():
            changes |= {"failure": event.failure, "output_file": event.output_file}
            changes["state"] = _ANSWERED[around.answer]
            changes["recovered"] = tuple(around.recovered)
        case events.ToolRefused():
            changes["state"] = CallState.DENIED if event.refusal == "denied" else CallState.BLOCKED
            changes |= {"refusal": event.in_words, "reason": event.reason, "rule": event.rule}
        case events.ToolCancelled():
            changes |= {"state": CallState.CANCELLED, "reason": event.reason}
            del changes["progress"]
        case events.ToolEnded():
            changes["state"] = CallState.NOT_KNOWN
    return conversation._with_call(event.call_id, **changes)


def _lane_event(conversation: Conversation, event: events.LaneEvent, _: Surroundings) -> Conversation:
    call = conversation.call(event.lane)
    if call is None:
        return conversation
    before = call.lane or Lane()
    lane = before.apply(event.event)
    return conversation if lane is before else conversation._with_call(event.lane, lane=lane)


def _iteration_finished(
    conversation: Conversation, event: events.IterationFinished, _: Surroundings
) -> Conversation:
    return conversation._closed(
        *_open_entries(conversation, event.at, event.cut_reply),
        calls=(),
        reply=None,
        fault=None,
        note_sent=False,
    )


def _open_entries(conversation: Conversation, at: float, cut_reply: str = "") -> tuple[AnyEntry, ...]:
    fault = () if conversation.fault is None else (conversation.fault,)
    return (*fault, *_partial_reply(conversation, at, cut_reply, kept=bool(cut_reply)), *conversation.calls)


def _notice(conversation: Conversation, event: events.Notice, _: Surroundings) -> Conversation:
    return conversation._with_notice(event, event.severity, event.text, event.rule)


def _agent_opened(conversation: Conversation, event: events.AgentOpened, _: Surroundings) -> Conversation:
    return conversation._with_notice(event, "info", event.in_words)


def _server_changed(conversation: Conversation, event: events.ServerChanged, _: Surroundings) -> Conversation:
    if event.status not in {"failed", "given up for now"}:
        return conversation
    return conversation._with_notice(event, "warning", f"{event.in_words}.")


def _background_ended(
    conversation: Conversation, event: events.BackgroundEnded, _: Surroundings
) -> Conversation:
    if event.how == "stopped":
        return conversation
    text = f"Background command {event.id} {in_words(event)}: {event.command}"
    return conversation._with_notice(event, "warning" if event.code else "info", text)


def _escalation_raised(
    conversation: Conversation, event: events.EscalationRaised, _: Surroundings
) -> Conversation:
    return evolve(conversation, escalation=event)


def _escalation_answered(
    conversation: Conversation, event: events.EscalationAnswered, _: Surroundings
) -> Conversation:
    asked = conversation.escalation
    question = asked.question if asked else ""
    source = asked.source if asked else ""
    rule = asked.rule if asked else ""
    entry = EscalationEntry(
        event.seq,
        event.at,
        conversation.iteration,
        question,
        source,
        event.choice,
        event.in_words,
        rule,
        event.unasked,
        _ran_before(conversation) if event.message else (),
    )
    return conversation._closed(entry, escalation=None)


def _run_finished(
    conversation: Conversation, event: events.RunFinished, around: Surroundings
) -> Conversation:
    metrics = around.metrics
    entry = OutcomeEntry(
        event.seq,
        event.at,
        conversation.iteration,
        event.outcome,
        event.reason,
        event.answer,
        event.rule,
        metrics.failures,
        metrics.recoveries,
        metrics.escalations - metrics.unasked,
        max(0.0, event.at - metrics.started_at) if metrics.started_at else 0.0,
        metrics.usage.cost,
        event.receipts,
    )
    return conversation._closed(
        *_open_entries(conversation, event.at), entry, calls=(), reply=None, fault=None, escalation=None
    )


def _session_resumed(
    conversation: Conversation, event: events.SessionResumed, _: Surroundings
) -> Conversation:
    if not event.dropped_bytes:
        return conversation
    text = (
        f"The journal ended in the middle of an event ({event.dropped_bytes:,} bytes): its process was killed or "
        "the disk was full. That one event is lost; everything before it is here."
    )
    return conversation._with_notice(event, "warning", text)


def _checkpoint_saved(
    conversation: Conversation, event: events.CheckpointSaved, _: Surroundings
) -> Conversation:
    return evolve(conversation, checkpoints=conversation.checkpoints.append(event))


def _rewound(conversation: Conversation, event: events.Rewound, _: Surroundings) -> Conversation:
    if event.scope == "files":
        names = ", ".join(event.files[:3]) + (" …" if len(event.files) > 3 else "")
        text = f"Files of the workspace went back to an earlier state: {names}."
        return conversation._closed(_rewind_notice(event, text)) if event.files else conversation
    before = conversation.rewound_from
    if event.undoes:
        if before is None or before[0] != event.undoes:
            return conversation
        return before[1]._closed(_rewind_notice(event, "The rewind was taken back."))
    # Between iterations nothing is open, so what was closed up to there is what was opened up to there.
    length = bisect_right(conversation.entries, event.to_seq, key=lambda entry: entry.seq)
    kept = bisect_right(conversation.checkpoints, event.to_seq, key=lambda saved: saved.seq)
    planned = bisect_right(conversation.plans, event.to_seq, key=lambda plan: plan.seq)
    cut = evolve(
        conversation,
        entries=conversation.entries.prefix(length),
        checkpoints=conversation.checkpoints.prefix(kept),
        plans=conversation.plans.prefix(planned),
        fault=None,
        reply=None,
        calls=(),
        note=None,
        note_sent=False,
        escalation=None,
    )
    return cut._closed(
        _rewind_notice(event, "The conversation was rewound to here."), rewound_from=(event.seq, conversation)
    )


def _rewind_notice(event: events.Rewound, text: str) -> NoticeEntry:
    return NoticeEntry(event.seq, event.at, 0, "info", text)


_HANDLERS: dict[type[events.Event], Callable[[Conversation, Any, Surroundings], Conversation]] = {
    events.RunStarted: _run_started,
    events.OperatorSpoke: _operator_spoke,
    events.OwnCommandEnded: _own_command_ended,
    events.IterationStarted: _iteration_started,
    events.IterationFinished: _iteration_finished,
    events.ModelCallStarted: _model_call_started,
    events.NotePrepared: _note_prepared,
    events.ReplyDelta: _reply_delta,
    events.ReplyFinished: _reply_finished,
    events.ReplyRejected: _reply_rejected,
    events.ModelFaulted: _model_faulted,
    events.LimitWaitStarted: _limit_wait_started,
    events.CompactionStarted: _compaction_started,
    events.Compacted: _compacted,
    events.StartedAfresh: _started_afresh,
    events.CompactionFailed: _compaction_failed,
    events.ToolStarted: _tool_started,
    events.ToolProgress: _tool_progress,
    events.ToolSucceeded: _tool_ended,
    events.ToolFailed: _tool_ended,
    events.ToolRefused: _tool_ended,
    events.ToolCancelled: _tool_ended,
    events.ToolEnded: _tool_ended,
    events.ApprovalAsked: _approval_asked,
    events.EscalationRaised: _escalation_raised,
    events.EscalationAnswered: _escalation_answered,
    events.Notice: _notice,
    events.BackgroundEnded: _background_ended,
    events.ServerChanged: _server_changed,
    events.SessionResumed: _session_resumed,
    events.AgentOpened: _agent_opened,
    events.CheckpointSaved: _checkpoint_saved,
    events.Rewound: _rewound,
    events.RunFinished: _run_finished,
    events.LaneEvent: _lane_event,
}
