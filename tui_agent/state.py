"""The state: everything that screens, files and reports show, folded from the events and from nothing else.

`apply` is pure and total: any event on any state gives a state, in constant time. Live, replay, resume and
fork are this function over the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tui_agent import events as e
from tui_agent.appendlog import AppendLog
from tui_agent.evolve import evolve
from tui_agent.folds.conversation import Conversation
from tui_agent.folds.history import History
from tui_agent.folds.metrics import Metrics
from tui_agent.folds.timeline import Timeline
from tui_agent.recovery.engine import RecoveryState


class Phase(StrEnum):
    """What the run is doing now."""

    IDLE = "idle"
    READY = "ready"
    """Between iterations, or held by STEP or PAUSED."""
    MODEL = "model"
    BACKOFF = "backoff"
    TOOLS = "tools"
    APPROVAL = "approval"
    ESCALATION = "escalation"
    DONE = "done"


@dataclass(frozen=True)
class SessionFacts:
    """What holds for the whole session."""

    id: str = ""
    workspace: str = ""
    title: str = ""
    parent: e.ParentPoint | None = None
    source: str = ""
    started_at: float = 0.0
    mode: e.Mode = e.Mode.AUTO
    policy: str = ""
    model: str = ""
    approve: e.Approval | None = None
    """What the next run uses, where it was chosen already; approvals apply at once."""
    rules: frozenset[str] = frozenset()
    """What the operator allowed for this session (`ApprovalAsked.rule`)."""


@dataclass(frozen=True)
class RunFacts:
    """The newest run. `iteration` counts from 1; `outcome` is None while it goes on."""

    number: int = 0
    task: str = ""
    policy: str = ""
    model: str = ""
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    iteration: int = 0
    max_iterations: int = 50
    max_cost: float | None = None
    context_tokens: int | None = None
    operator_present: bool = True
    attempt: int = 0
    """Of the model call in this iteration, from 1."""
    retry_at: float = 0.0
    """When the wait before the next attempt ends (`Phase.BACKOFF`)."""
    window_dropped: int = 0
    request_tokens: int = 0
    request_budget: int | None = None
    outcome: e.Outcome | None = None
    reason: str = ""
    answer: str = ""


@dataclass(frozen=True)
class RunState:
    """One value for all panes, reports and the loop itself."""

    seq: int = 0
    at: float = 0.0
    phase: Phase = Phase.IDLE
    session: SessionFacts = SessionFacts()
    run: RunFacts = RunFacts()
    conversation: Conversation = field(default_factory=Conversation)
    history: History = field(default_factory=History)
    recovery: RecoveryState = field(default_factory=RecoveryState)
    metrics: Metrics = field(default_factory=Metrics)
    timeline: Timeline = field(default_factory=Timeline)
    note: str | None = None
    """The note that will go with the next model call."""
    note_edited: bool = False
    sent_note: str | None = None
    """The note that went with the newest model call."""
    verdict: e.VerdictReached | None = None
    queue: tuple[e.MessageQueued, ...] = ()
    approvals: tuple[e.ApprovalAsked, ...] = ()
    escalation: e.EscalationRaised | None = None
    iteration_open: bool = False
    """Between `IterationStarted` and `IterationFinished`."""
    rewound: e.Rewound | None = None
    """The newest rewind, as long as it can be taken back."""
    hook_context: tuple[str, ...] = ()
    """What hooks said in this iteration; it joins the note."""

    @property
    def checkpoints(self) -> AppendLog[e.CheckpointSaved]:
        """Kept states of the workspace, oldest first."""
        return self.conversation.checkpoints

    @property
    def running(self) -> bool:
        """A run goes on (also while it waits)."""
        return self.phase not in {Phase.IDLE, Phase.DONE}


def apply(state: RunState, event: e.Event) -> RunState:
    """The state after one more event."""
    kind = type(event)
    attempt = _attempt(state, event) if kind in _OF_A_CALL else 1
    changes: dict[str, Any] = {
        "seq": event.seq,
        "at": event.at,
        "conversation": state.conversation.apply(event, attempt),
        "history": state.history.apply(event),
        "recovery": state.recovery.apply(event),
        "metrics": state.metrics.apply(event),
        "timeline": state.timeline.apply(event),
    }
    handler = _HANDLERS.get(kind)
    if handler is not None:
        changes.update(handler(state, event))
    return evolve(state, **changes)


# A set of types, since `isinstance` on pydantic models costs more than all else that is done here.
_OF_A_CALL = frozenset(
    {e.ToolStarted, e.ApprovalAsked, e.ToolSucceeded, e.ToolFailed, e.ToolRefused, e.ToolCancelled}
)


def _attempt(state: RunState, event: Any) -> int:
    """The attempt that the event's call makes; the conversation keeps it from the call's start on."""
    if type(event) is not e.ToolStarted:
        call = state.conversation.call(event.call_id)
        if call is not None and call.started is not None:
            return call.attempt
    return state.recovery.attempts.count(event.tool, event.input) + 1


def fold(events: Iterable[e.Event], state: RunState | None = None) -> RunState:
    """The state after all `events`, from an empty one or from `state`."""
    state = RunState() if state is None else state
    for event in events:
        state = apply(state, event)
    return state


Changes = dict[str, Any]


def _session_started(_: RunState, event: e.SessionStarted) -> Changes:
    facts = SessionFacts(event.session_id, event.workspace, event.title, event.parent, event.source, event.at)
    return {"session": facts}


def _title_changed(state: RunState, event: e.TitleChanged) -> Changes:
    return {"session": evolve(state.session, title=event.title)}


def _mode_changed(state: RunState, event: e.ModeChanged) -> Changes:
    return {"session": evolve(state.session, mode=event.mode)}


def _setting_changed(state: RunState, event: e.SettingChanged) -> Changes:
    value = e.Approval(event.value) if event.setting == "approve" else event.value
    changes: Changes = {"session": evolve(state.session, **{event.setting: value})}
    if event.setting == "model":
        changes["run"] = evolve(state.run, model=event.value)
    return changes


def _run_started(state: RunState, event: e.RunStarted) -> Changes:
    run = RunFacts(
        event.run,
        event.task,
        event.policy,
        event.model,
        event.system_prompt,
        event.tools,
        max_iterations=event.max_iterations,
        max_cost=event.max_cost,
        context_tokens=event.context_tokens,
        operator_present=event.operator_present,
    )
    session = evolve(
        state.session,
        policy=event.policy,
        model=event.model,
        approve=event.approve,
        title=state.session.title or title_of(event.task),
    )
    return {
        "run": run,
        "session": session,
        "phase": Phase.READY,
        "note": None,
        "note_edited": False,
        "sent_note": None,
        "verdict": None,
        "approvals": (),
        "escalation": None,
        "iteration_open": False,
        "hook_context": (),
    }


def title_of(task: str, limit: int = 72) -> str:
    """A session's title where nobody gave one: the task's first line, shortened to `limit` characters."""
    line = next((line.strip() for line in task.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _message_queued(state: RunState, event: e.MessageQueued) -> Changes:
    return {"queue": (*state.queue, event)}


def _without(state: RunState, queued_id: str | None) -> tuple[e.MessageQueued, ...]:
    return tuple(message for message in state.queue if message.id != queued_id)


def _message_unqueued(state: RunState, event: e.MessageUnqueued) -> Changes:
    return {"queue": _without(state, event.id)}


def _operator_spoke(state: RunState, event: e.OperatorSpoke) -> Changes:
    return {"queue": _without(state, event.queued)}


def _iteration_started(state: RunState, event: e.IterationStarted) -> Changes:
    return {
        "phase": Phase.READY,
        "run": evolve(state.run, iteration=event.iteration, attempt=0),
        "iteration_open": True,
        "hook_context": (),
    }


def _model_call_started(state: RunState, event: e.ModelCallStarted) -> Changes:
    run = evolve(
        state.run,
        attempt=event.attempt,
        model=event.model or state.run.model,
        window_dropped=event.dropped_groups,
        request_tokens=event.tokens,
        request_budget=event.budget,
    )
    return {
        "phase": Phase.MODEL,
        "run": run,
        "sent_note": event.note,
        "note": None,
        "note_edited": False,
    }


def _model_faulted(state: RunState, event: e.ModelFaulted) -> Changes:
    budget = state.run.context_tokens if event.context_tokens is None else event.context_tokens
    run = evolve(state.run, retry_at=event.at + event.delay, context_tokens=budget)
    phase = Phase.BACKOFF if event.action in {"retry", "fallback", "shrink"} else Phase.READY
    return {"phase": phase, "run": run, "note": state.sent_note}


def _reply_finished(state: RunState, event: e.ReplyFinished) -> Changes:
    return {"phase": Phase.TOOLS if event.calls else Phase.READY}


def _iteration_finished(_: RunState, __: e.IterationFinished) -> Changes:
    return {"phase": Phase.READY, "approvals": (), "iteration_open": False}


def _hook_reported(state: RunState, event: e.HookReported) -> Changes:
    return {"hook_context": (*state.hook_context, event.context)} if event.context else {}


def _verdict_reached(_: RunState, event: e.VerdictReached) -> Changes:
    return {"verdict": event}


def _note_prepared(_: RunState, event: e.NotePrepared) -> Changes:
    return {"note": event.text, "note_edited": event.edited}


def _approval_asked(state: RunState, event: e.ApprovalAsked) -> Changes:
    return {"phase": Phase.APPROVAL, "approvals": (*state.approvals, event)}


def _approval_answered(state: RunState, event: e.ApprovalAnswered) -> Changes:
    asked = next((asked for asked in state.approvals if asked.id == event.id), None)
    waiting = tuple(other for other in state.approvals if other.id != event.id)
    changes: Changes = {"approvals": waiting, "phase": Phase.APPROVAL if waiting else Phase.TOOLS}
    if asked is not None and event.decision == "session" and asked.rule:
        changes["session"] = evolve(state.session, rules=state.session.rules | {asked.rule})
    return changes


def _escalation_raised(_: RunState, event: e.EscalationRaised) -> Changes:
    return {"phase": Phase.ESCALATION, "escalation": event}


def _escalation_answered(state: RunState, _: e.EscalationAnswered) -> Changes:
    in_tools = bool(state.conversation.calls)
    return {"phase": Phase.TOOLS if in_tools else Phase.READY, "escalation": None}


def _rewound(_: RunState, event: e.Rewound) -> Changes:
    return {"rewound": None if event.undoes else event}


def _run_finished(state: RunState, event: e.RunFinished) -> Changes:
    run = evolve(state.run, outcome=event.outcome, reason=event.reason, answer=event.answer)
    return {"phase": Phase.DONE, "run": run, "note": None, "approvals": (), "escalation": None}


_HANDLERS: dict[type[e.Event], Callable[[RunState, Any], Changes]] = {
    e.SessionStarted: _session_started,
    e.TitleChanged: _title_changed,
    e.ModeChanged: _mode_changed,
    e.SettingChanged: _setting_changed,
    e.RunStarted: _run_started,
    e.MessageQueued: _message_queued,
    e.MessageUnqueued: _message_unqueued,
    e.OperatorSpoke: _operator_spoke,
    e.IterationStarted: _iteration_started,
    e.ModelCallStarted: _model_call_started,
    e.ModelFaulted: _model_faulted,
    e.ReplyFinished: _reply_finished,
    e.IterationFinished: _iteration_finished,
    e.HookReported: _hook_reported,
    e.VerdictReached: _verdict_reached,
    e.NotePrepared: _note_prepared,
    e.ApprovalAsked: _approval_asked,
    e.ApprovalAnswered: _approval_answered,
    e.EscalationRaised: _escalation_raised,
    e.EscalationAnswered: _escalation_answered,
    e.RunFinished: _run_finished,
    e.Rewound: _rewound,
}
