"""The state: everything that screens, files and reports show, folded from the events and from nothing else.

`apply` is pure and total: any event on any state gives a state, in constant time. Live, replay, resume and
fork are this function over the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tui_agent.core.append_log import AppendLog
from tui_agent.core.events import (
    Approval,
    ApprovalAnswered,
    ApprovalAsked,
    BudgetRaised,
    CheckpointSaved,
    Compacted,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    EscalationAnswered,
    EscalationRaised,
    Event,
    HookReported,
    Interrupted,
    IterationFinished,
    IterationStarted,
    MessageQueued,
    MessageUnqueued,
    Mode,
    ModeChanged,
    ModelCallStarted,
    ModelFaulted,
    ModelWindowLearned,
    NotePrepared,
    Notice,
    OperatorSpoke,
    Outcome,
    ParentPoint,
    ReplyFinished,
    Rewound,
    RunFinished,
    RunStarted,
    ServerAnswered,
    ServerAsked,
    ServerChanged,
    SessionResumed,
    SessionStarted,
    SettingChanged,
    StopRequested,
    TitleChanged,
    ToolCancelled,
    ToolFailed,
    ToolRefused,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
    WaitSkipped,
    WindowCut,
)
from tui_agent.core.evolve import evolve
from tui_agent.core.names import ToolCallForm
from tui_agent.core.projections.background import BackgroundFacts
from tui_agent.core.projections.conversation import Conversation, Surroundings
from tui_agent.core.projections.history import History
from tui_agent.core.projections.known_files import KnownFiles
from tui_agent.core.projections.metrics import Metrics
from tui_agent.core.projections.timeline import Timeline
from tui_agent.core.recovery.engine import RecoveryState, was_cut
from tui_agent.core.recovery.model_faults import AWAY

FINISH, ASK_OPERATOR = "finish", "ask_operator"
"""Tools that the loop itself carries out: the answer that ends the run, and a question to the operator."""


SUMMARY_TRIES = 3
"""An iteration each; a failure that does not pass by itself counts as all of them."""


class Phase(StrEnum):
    """What the run is doing now."""

    IDLE = "idle"
    READY = "ready"
    """Between iterations, or held by STEP or PAUSED."""
    MODEL = "model"
    BACKOFF = "backoff"
    COMPACTING = "compacting"
    """A model writes a summary of the conversation."""
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
    parent: ParentPoint | None = None
    source: str = ""
    started_at: float = 0.0
    mode: Mode = Mode.AUTO
    policy: str = ""
    model: str = ""
    approve: Approval | None = None
    """What the next run uses, where it was chosen already; approvals apply at once."""
    raised: Mapping[str, float | None] = field(default_factory=dict)
    """Budgets of the session that the operator raised; None: without a limit."""
    rules: frozenset[str] = frozenset()
    """Permission rules that the operator allowed for this session (`ApprovalAsked.rules`)."""


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
    limits: Mapping[str, float] = field(default_factory=dict)
    """Budgets by their keys (`core.budgets`), as they are now."""
    budget_warning: float = 0.8
    context_tokens: int | None = None
    tools_tokens: int = 0
    fallback_models: tuple[str, ...] = ()
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By kind of fault, before those."""
    summary_model: str = ""
    """Writes the summaries of the conversation; empty: `model`. Any `Model` takes it as a request's model."""
    compact_at: float = 0.85
    tool_calls: ToolCallForm = "auto"
    operator_present: bool = True
    sandbox: str = ""
    attempt: int = 0
    """Of the model call in this iteration, from 1."""
    retry_at: float = 0.0
    """When the wait before the next attempt ends (`Phase.BACKOFF`)."""
    window_dropped: int = 0
    request_tokens: int = 0
    request_budget: int | None = None
    outcome: Outcome | None = None
    reason: str = ""
    answer: str = ""
    rule: str = ""


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
    background: BackgroundFacts = field(default_factory=BackgroundFacts)
    """Commands that run beside the conversation."""
    windows: dict[str, int | None] = field(default_factory=dict)
    """Tokens that a prompt may have, by model, as far as they are known; None: the model does not say."""
    text_models: frozenset[str] = frozenset()
    """Models that cannot call tools and write their calls as text."""
    calibration: dict[str, float] = field(default_factory=dict)
    """By model: what the provider counted of its last request's tokens to what we had estimated of them."""
    called: ModelCallStarted | None = None
    """The newest model call."""
    compaction_asked: CompactionRequested | None = None
    """The operator wants a summary, and none was tried since."""
    compacting: CompactionStarted | None = None
    """The summary that a model is asked for now."""
    compaction_failures: int = 0
    """Summaries that failed in a row, until the window was cut."""
    compaction_failed_in: int = 0
    """The iteration in which the last of them failed."""
    note: str | None = None
    """The note that will go with the next model call."""
    note_edited: bool = False
    note_rules: tuple[str, ...] = ()
    """Ids of the rules that wrote the newest note."""
    sent_note: str | None = None
    """The note that went with the newest model call."""
    verdict: VerdictReached | None = None
    """The newest verdict of the run."""
    judged: bool = True
    """The iteration that ended last has its verdict."""
    fault: ModelFaulted | None = None
    """The model call that failed last, until another is made."""
    budget_answer: EscalationAnswered | None = None
    """What was answered when a budget was used up."""
    warned: frozenset[str] = frozenset()
    """Budgets whose end is near, as the operator knows."""
    answer: EscalationAnswered | None = None
    """What was answered to the question of this verdict or fault."""
    text_answer: str | None = None
    """The answer that the model has given, once the run is to end with it."""
    cut_text: str = ""
    """Text replies that the length limit cut: the beginning of the answer."""
    interrupted: bool = False
    """What was under way was cut short and is to be closed."""
    unpriced_noticed: bool = False
    """The operator knows that the cost of this run is known in part only."""
    stop: StopRequested | None = None
    """The run is to end, or none is to begin by itself."""
    queue: tuple[MessageQueued, ...] = ()
    approvals: tuple[ApprovalAsked, ...] = ()
    escalation: EscalationRaised | None = None
    iteration_open: bool = False
    """Between `IterationStarted` and `IterationFinished`."""
    rewound: Rewound | None = None
    """The newest rewind, as long as it can be taken back."""
    known_files: KnownFiles = field(default_factory=KnownFiles)
    """Files of the workspace as the model last read or wrote them."""
    hook_context: tuple[str, ...] = ()
    """What hooks said in this iteration; it joins the note."""
    servers: dict[str, ServerChanged] = field(default_factory=dict)
    """The MCP servers of this process by name, each as it stood last."""
    server_questions: tuple[ServerAsked, ...] = ()
    """What the operator is asked because of a server."""

    @property
    def checkpoints(self) -> AppendLog[CheckpointSaved]:
        """Kept states of the workspace, oldest first."""
        return self.conversation.checkpoints

    @property
    def running(self) -> bool:
        """A run goes on (also while it waits)."""
        return self.phase not in {Phase.IDLE, Phase.DONE}


def apply(state: RunState, event: Event) -> RunState:
    """The state after one more event."""
    kind = type(event)
    attempt = _attempt(state, event) if kind in _OF_A_CALL else 1
    metrics = state.metrics.apply(event)
    before, after = state.metrics.incidents.recovered, metrics.incidents.recovered
    recovered = after.tail(len(before)) if len(after) > len(before) else ()
    changes: dict[str, Any] = {
        "seq": event.seq,
        "at": event.at,
        "conversation": state.conversation.apply(event, Surroundings(attempt, recovered, metrics)),
        "history": state.history.apply(event),
        "recovery": state.recovery.apply(event),
        "metrics": metrics,
        "timeline": state.timeline.apply(event, recovered),
        "background": state.background.apply(event),
    }
    handler = _HANDLERS.get(kind)
    if handler is not None:
        changes.update(handler(state, event))
    return evolve(state, **changes)


# A set of types, since `isinstance` on pydantic models costs more than all else that is done here.
_OF_A_CALL = frozenset({ToolStarted, ApprovalAsked, ToolSucceeded, ToolFailed, ToolRefused, ToolCancelled})


def _attempt(state: RunState, event: Any) -> int:
    """The attempt that the event's call makes; the conversation keeps it from the call's start on."""
    if type(event) is not ToolStarted:
        call = state.conversation.call(event.call_id)
        if call is not None and call.started is not None:
            return call.attempt
    recovery = state.recovery
    key = getattr(event, "key", "") or recovery.key(event.tool, event.input)
    return recovery.attempts.count(key) + 1


def fold(events: Iterable[Event], state: RunState | None = None) -> RunState:
    """The state after all `events`, from an empty one or from `state`."""
    state = RunState() if state is None else state
    for event in events:
        state = apply(state, event)
    return state


Changes = dict[str, Any]


def _session_started(_: RunState, event: SessionStarted) -> Changes:
    facts = SessionFacts(event.session_id, event.workspace, event.title, event.parent, event.source, event.at)
    return {"session": facts}


def _title_changed(state: RunState, event: TitleChanged) -> Changes:
    return {"session": evolve(state.session, title=event.title)}


def _mode_changed(state: RunState, event: ModeChanged) -> Changes:
    return {"session": evolve(state.session, mode=event.mode)}


def _setting_changed(state: RunState, event: SettingChanged) -> Changes:
    value = Approval(event.value) if event.setting == "approve" else event.value
    changes: Changes = {"session": evolve(state.session, **{event.setting: value})}
    if event.setting == "model":
        changes["run"] = evolve(state.run, model=event.value)
    return changes


def _run_started(state: RunState, event: RunStarted) -> Changes:
    run = RunFacts(
        event.run,
        event.task,
        event.policy,
        event.model,
        event.system_prompt,
        event.tools,
        max_iterations=event.max_iterations,
        limits=_limits(state.session, event),
        budget_warning=event.budget_warning,
        context_tokens=event.context_tokens,
        tools_tokens=event.tools_tokens,
        fallback_models=event.fallback_models,
        fallbacks=event.fallbacks,
        summary_model=event.summary_model,
        compact_at=event.compact_at,
        tool_calls=event.tool_calls,
        operator_present=event.operator_present,
        sandbox=event.sandbox,
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
        "judged": True,
        "fault": None,
        "answer": None,
        "text_answer": None,
        "cut_text": "",
        "interrupted": False,
        "unpriced_noticed": False,
        "budget_answer": None,
        "warned": frozenset(),
        "compaction_failures": 0,
        "stop": None,
    }


def _limits(session: SessionFacts, event: RunStarted) -> dict[str, float]:
    """The budgets of a run; what the operator raised for the session stays raised."""
    limits = dict(event.budgets)
    if event.max_cost is not None:
        limits["max_cost"] = event.max_cost
    for key, limit in session.raised.items():
        if key not in limits:
            continue
        if limit is None:
            del limits[key]
        else:
            limits[key] = max(limit, limits[key])
    return limits


def _budget_raised(state: RunState, event: BudgetRaised) -> Changes:
    limits = {key: limit for key, limit in state.run.limits.items() if key != event.key}
    if event.limit is not None:
        limits[event.key] = event.limit
    changes: Changes = {
        "run": evolve(state.run, limits=limits),
        "budget_answer": None,
        "warned": state.warned - {event.key},
    }
    if "session" in event.key:
        raised = {**state.session.raised, event.key: event.limit}
        changes["session"] = evolve(state.session, raised=raised)
    return changes


def title_of(task: str, limit: int = 72) -> str:
    """A session's title where nobody gave one: the task's first line, shortened to `limit` characters."""
    line = next((line.strip() for line in task.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _message_queued(state: RunState, event: MessageQueued) -> Changes:
    return {"queue": (*state.queue, event)}


def _without(state: RunState, queued_id: str | None) -> tuple[MessageQueued, ...]:
    return tuple(message for message in state.queue if message.id != queued_id)


def _message_unqueued(state: RunState, event: MessageUnqueued) -> Changes:
    return {"queue": _without(state, event.id)}


def _operator_spoke(state: RunState, event: OperatorSpoke) -> Changes:
    return {"queue": _without(state, event.queued)}


def _iteration_started(state: RunState, event: IterationStarted) -> Changes:
    return {
        "phase": Phase.READY,
        "run": evolve(state.run, iteration=event.iteration, attempt=0),
        "iteration_open": True,
        "hook_context": (),
        "answer": None,
        "budget_answer": None,
        "text_answer": None,
        "fault": None,
    }


def _model_call_started(state: RunState, event: ModelCallStarted) -> Changes:
    run = evolve(
        state.run,
        attempt=event.attempt,
        model=state.run.model or event.model,
        window_dropped=event.dropped_groups,
        request_tokens=event.tokens,
        request_budget=event.budget,
    )
    return {
        "phase": Phase.MODEL,
        "run": run,
        "called": event,
        "sent_note": event.note,
        "note": None,
        "note_edited": False,
        "fault": None,
        "answer": None,
    }


def _model_window_learned(state: RunState, event: ModelWindowLearned) -> Changes:
    return {"windows": {**state.windows, event.model: event.tokens}}


def _model_faulted(state: RunState, event: ModelFaulted) -> Changes:
    budget = state.run.context_tokens if event.context_tokens is None else event.context_tokens
    run = evolve(state.run, retry_at=event.at + event.delay, context_tokens=budget)
    phase = Phase.BACKOFF if event.action in {"retry", "fallback", "shrink", "text_calls"} else Phase.READY
    changes: Changes = {"phase": phase, "run": run, "note": state.sent_note, "fault": event, "answer": None}
    if event.action == "text_calls":
        changes["text_models"] = state.text_models | {event.model}
    ratio = counted(state, event.fault.prompt_tokens)
    if ratio is not None:
        changes["calibration"] = {**state.calibration, event.model: ratio}
    if event.fault.window is not None and event.context_tokens is not None:
        changes["windows"] = {**state.windows, event.model: event.context_tokens}
    elif event.fault.kind in AWAY and state.windows.get(event.model, 0) is None:
        # A server that was away when it was asked may say it later.
        changes["windows"] = {
            model: tokens for model, tokens in state.windows.items() if model != event.model
        }
    return changes


def _wait_skipped(state: RunState, event: WaitSkipped) -> Changes:
    fault = state.fault
    if fault is None or state.phase is not Phase.BACKOFF:
        return {}
    return {
        "fault": fault.model_copy(update={"delay": 0.0}),
        "run": evolve(state.run, retry_at=event.at),
    }


def _reply_finished(state: RunState, event: ReplyFinished) -> Changes:
    changes: Changes = {"phase": Phase.TOOLS if event.calls else Phase.READY}
    called = state.called
    if called is not None and state.run.iteration == 1 and state.windows.get(called.model, 0) is None:
        # A server that had not loaded its model yet can say its window now.
        changes["windows"] = {model: size for model, size in state.windows.items() if model != called.model}
    ratio = counted(state, event.prompt_tokens) if event.by == "model" else None
    if state.called is not None and ratio is not None:
        changes["calibration"] = {**state.calibration, state.called.model: ratio}
    return changes


def counted(state: RunState, prompt_tokens: int | None) -> float | None:
    """Tokens counted by the provider for one that we estimated, in the newest call; None where that says nothing."""
    called = state.called
    if called is None or not called.tokens or not prompt_tokens:
        return None
    ratio = prompt_tokens * called.calibration / called.tokens
    return ratio if _PLAUSIBLE[0] <= ratio <= _PLAUSIBLE[1] else None


_PLAUSIBLE = (0.4, 3.0)
"""Tokens counted for one estimated. Servers that count only what was not cached, or nothing, are outside."""


def _compaction_requested(state: RunState, event: CompactionRequested) -> Changes:
    # Between runs, what ended the last one keeps nothing from beginning any more.
    return {"compaction_asked": event} if state.running else {"compaction_asked": event, "stop": None}


def _compaction_started(state: RunState, event: CompactionStarted) -> Changes:
    changes: Changes = {"compacting": event, "compaction_asked": None}
    if state.running:
        changes["phase"] = Phase.COMPACTING
    return changes


def _compaction_ended(state: RunState, event: Compacted | CompactionFailed) -> Changes:
    changes: Changes = {
        "compacting": None,
        "compaction_asked": None,
        "compaction_failures": _failures(state, event),
        "compaction_failed_in": state.run.iteration,
    }
    if state.running:
        changes["phase"] = Phase.READY
    return changes


def _failures(state: RunState, event: Compacted | CompactionFailed) -> int:
    if isinstance(event, Compacted):
        return 0
    return state.compaction_failures + 1 if event.transient else SUMMARY_TRIES


def _window_cut(_: RunState, __: WindowCut) -> Changes:
    return {"compaction_failures": 0}


def _tool_succeeded(state: RunState, event: ToolSucceeded) -> Changes:
    if event.tool == FINISH:
        return {"text_answer": str(event.input.get("answer", ""))}
    return {"known_files": state.known_files.with_read(event.files, event.seq)} if event.files else {}


def _iteration_finished(state: RunState, event: IterationFinished) -> Changes:
    changes: Changes = {
        "phase": Phase.READY,
        "approvals": (),
        "iteration_open": False,
        "judged": False,
        "interrupted": False,
        "answer": None,
    }
    reply, rejected = state.recovery.reply, state.recovery.rejected
    if reply is None:
        # The call that carried the note never came back, so the model has not read it.
        changes["note"] = state.note or state.sent_note
    elif was_cut(reply):
        changes["cut_text"] = state.cut_text + reply.text
    elif not reply.calls and rejected is None and not event.cancelled:
        changes["text_answer"] = state.cut_text + reply.text
    else:
        changes["cut_text"] = ""
    return changes


def _hook_reported(state: RunState, event: HookReported) -> Changes:
    return {"hook_context": (*state.hook_context, event.context)} if event.context else {}


def _verdict_reached(_: RunState, event: VerdictReached) -> Changes:
    return {"verdict": event, "judged": True}


def _note_prepared(_: RunState, event: NotePrepared) -> Changes:
    return {"note": event.text, "note_edited": event.edited, "note_rules": event.rules}


def _approval_asked(state: RunState, event: ApprovalAsked) -> Changes:
    return {"phase": Phase.APPROVAL, "approvals": (*state.approvals, event)}


def _approval_answered(state: RunState, event: ApprovalAnswered) -> Changes:
    asked = next((asked for asked in state.approvals if asked.id == event.id), None)
    waiting = tuple(other for other in state.approvals if other.id != event.id)
    changes: Changes = {"approvals": waiting, "phase": Phase.APPROVAL if waiting else Phase.TOOLS}
    if asked is not None and event.decision in {"session", "always"}:
        changes["session"] = evolve(state.session, rules=state.session.rules.union(asked.rules))
    return changes


def _escalation_raised(_: RunState, event: EscalationRaised) -> Changes:
    return {"phase": Phase.ESCALATION, "escalation": event, "budget_answer": None}


def _escalation_answered(state: RunState, event: EscalationAnswered) -> Changes:
    in_tools = bool(state.conversation.calls)
    asked = state.escalation
    about_budget = "budget_answer" if asked is not None and asked.source == "budget" else "answer"
    return {
        "phase": Phase.TOOLS if in_tools else Phase.READY,
        "escalation": None,
        about_budget: event,
        "interrupted": state.interrupted and state.iteration_open,
    }


def _interrupted(state: RunState, event: Interrupted) -> Changes:
    asked = state.escalation is not None and event.cause == "operator"
    return {"interrupted": state.running and (state.iteration_open or asked)}


def _session_resumed(state: RunState, event: SessionResumed) -> Changes:
    run = state.run
    for server in state.servers.values():
        run = _offering(run, server, None)
    if event.operator_present is not None:
        run = evolve(run, operator_present=event.operator_present)
    changes: Changes = {"run": run, "servers": {}, "server_questions": ()}
    if event.workspace:
        # Whoever wrote the recording may have written approvals for himself into it.
        changes["session"] = evolve(
            state.session, workspace=event.workspace, rules=frozenset(), approve=None, model=""
        )
    return changes


def _server_changed(state: RunState, event: ServerChanged) -> Changes:
    run = _offering(state.run, state.servers.get(event.server), event)
    return {"run": run, "servers": {**state.servers, event.server: event}}


def _offering(run: RunFacts, before: ServerChanged | None, now: ServerChanged | None) -> RunFacts:
    """The run with other tools of one server; its tools are counted with the run's from the start on."""
    if not run.number:
        return run
    gone = frozenset(before.tools) if before is not None else frozenset()
    added = now.tools if now is not None else ()
    kept = tuple(name for name in run.tools if name not in gone and name not in added)
    tokens = run.tools_tokens - (before.tools_tokens if before else 0) + (now.tools_tokens if now else 0)
    return evolve(run, tools=(*kept, *added), tools_tokens=max(0, tokens))


def _server_asked(state: RunState, event: ServerAsked) -> Changes:
    return {"server_questions": (*state.server_questions, event)}


def _server_answered(state: RunState, event: ServerAnswered) -> Changes:
    return {"server_questions": tuple(asked for asked in state.server_questions if asked.id != event.id)}


def _notice(state: RunState, event: Notice) -> Changes:
    match event.origin:
        case "cost":
            return {"unpriced_noticed": True}
        case "budget":
            return {"warned": state.warned | {event.about}}
        case _:
            return {}


def _stop_requested(_: RunState, event: StopRequested) -> Changes:
    return {"stop": event}


def _rewound(state: RunState, event: Rewound) -> Changes:
    changes: Changes = {"rewound": None if event.undoes else event}
    if event.scope != "files" and not event.undoes:
        changes["known_files"] = state.known_files.up_to(event.to_seq)
    return changes


def _run_finished(state: RunState, event: RunFinished) -> Changes:
    run = evolve(state.run, outcome=event.outcome, reason=event.reason, answer=event.answer, rule=event.rule)
    return {
        "phase": Phase.DONE,
        "run": run,
        "note": None,
        "approvals": (),
        "escalation": None,
        "iteration_open": False,
        "interrupted": False,
    }


_HANDLERS: dict[type[Event], Callable[[RunState, Any], Changes]] = {
    SessionStarted: _session_started,
    TitleChanged: _title_changed,
    ModeChanged: _mode_changed,
    SettingChanged: _setting_changed,
    RunStarted: _run_started,
    BudgetRaised: _budget_raised,
    MessageQueued: _message_queued,
    MessageUnqueued: _message_unqueued,
    OperatorSpoke: _operator_spoke,
    IterationStarted: _iteration_started,
    ModelCallStarted: _model_call_started,
    ModelWindowLearned: _model_window_learned,
    ModelFaulted: _model_faulted,
    WaitSkipped: _wait_skipped,
    ToolSucceeded: _tool_succeeded,
    Interrupted: _interrupted,
    StopRequested: _stop_requested,
    Notice: _notice,
    SessionResumed: _session_resumed,
    ReplyFinished: _reply_finished,
    CompactionRequested: _compaction_requested,
    CompactionStarted: _compaction_started,
    Compacted: _compaction_ended,
    CompactionFailed: _compaction_ended,
    WindowCut: _window_cut,
    IterationFinished: _iteration_finished,
    HookReported: _hook_reported,
    VerdictReached: _verdict_reached,
    NotePrepared: _note_prepared,
    ApprovalAsked: _approval_asked,
    ApprovalAnswered: _approval_answered,
    EscalationRaised: _escalation_raised,
    EscalationAnswered: _escalation_answered,
    RunFinished: _run_finished,
    Rewound: _rewound,
    ServerChanged: _server_changed,
    ServerAsked: _server_asked,
    ServerAnswered: _server_answered,
}
