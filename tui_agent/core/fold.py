"""How each event changes the state.

`apply` is pure and total: any event on any state gives a state, in constant time. Live, replay, resume and fork are
this function over the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.names import FINISH, OF_BOUNDS, Decision, Phase
from tui_agent.core.projections import background, history, metrics
from tui_agent.core.projections.conversation import Surroundings
from tui_agent.core.recovery import folding
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.form import was_cut
from tui_agent.core.recovery.model_faults import AWAY
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.request.tokens import counted
from tui_agent.core.state import SUMMARY_TRIES, UNBOUNDED, RunFacts, RunState, SessionFacts
from tui_agent.terminal_text import clipped

Changes = dict[str, Any]


def apply(state: RunState, event: events.Event) -> RunState:
    """The state after one more event."""
    kind = type(event)
    if kind in _PIECES:
        conversation = state.conversation.apply(event)
        return evolve(state, seq=event.seq, at=event.at, conversation=conversation)
    attempt = _attempt(state, event) if kind in _OF_A_CALL else 1
    changes = _changes(state, event)
    counts: metrics.Metrics = changes.get("metrics", state.metrics)
    answer = counts.incidents.answer(event) if kind is events.ToolFailed else ""
    before, after = state.metrics.incidents.recovered, counts.incidents.recovered
    recovered = after.tail(len(before)) if after is not before else ()
    around = Surroundings(attempt, recovered, counts, answer)
    changes["conversation"] = state.conversation.apply(event, around)
    changes["timeline"] = state.timeline.apply(event, recovered, bool(answer), counts.began(event.at))
    return evolve(state, **changes)


def apply_unseen(state: RunState, event: events.Event) -> RunState:
    """The same without conversation and timeline, which nothing is decided by: for runs that nobody looks into."""
    return evolve(state, **_changes(state, event))


def apply_judged(state: RunState, event: events.Event) -> RunState:
    """Only what verdicts hang on: no history, no counts, no detector that the policy leaves out."""
    kind = type(event)
    if kind not in _JUDGED and kind not in _HANDLERS:
        return state
    return evolve(state, **_changes(state, event, _JUDGED))


def _changes(state: RunState, event: events.Event, parts: _Parts | None = None) -> Changes:
    kind = type(event)
    changes: Changes = {"seq": event.seq, "at": event.at}
    before = state.__dict__
    for name, fold_part in (parts or _PARTS).get(kind, ()):
        changes[name] = fold_part(before[name], event)
    handler = _HANDLERS.get(kind)
    if handler is not None:
        changes |= handler(state, event)
    if state.lanes and kind in RESULTS:
        changes["lanes"] = {
            call: lane for call, lane in state.lanes.items() if call != event.__dict__["call_id"]
        }
    return changes


_Part = Mapping[type[events.Event], Callable[[Any, Any], Any]]
_Parts = dict[type[events.Event], tuple[tuple[str, Callable[[Any, Any], Any]], ...]]


def _by_kind(**parts: _Part) -> _Parts:
    """For each kind of event the parts of the state that it concerns: the others cost nothing."""
    kinds = {kind: None for part in parts.values() for kind in part}
    return {kind: tuple((name, part[kind]) for name, part in parts.items() if kind in part) for kind in kinds}


_PARTS = _by_kind(
    history=history.HANDLERS,
    recovery=folding.HANDLERS,
    metrics=metrics.HANDLERS,
    background=background.HANDLERS,
)
_JUDGED = _by_kind(recovery=folding.JUDGED)


_PIECES = frozenset({events.ReplyDelta, events.ToolProgress})
"""Come by the thousand, and concern nothing but what is on the screen until their whole comes."""

RESULTS = frozenset(
    {events.ToolSucceeded, events.ToolFailed, events.ToolRefused, events.ToolCancelled, events.ToolEnded}
)

# A set of types, since `isinstance` on pydantic models costs more than all else that is done here.
_OF_A_CALL = RESULTS | {events.ToolStarted, events.ApprovalAsked}


def _attempt(state: RunState, event: Any) -> int:
    """The attempt that the event's call makes; a failure may show that it is the first with its error."""
    recovery = state.recovery
    key = getattr(event, "key", "") or recovery.key(event.tool, event.input)
    if type(event) is events.ToolFailed:
        return recovery.attempt_of(key, event.failure)
    return recovery.of(AttemptLedger).count(key) + 1


def fold(recorded: Iterable[events.Event], state: RunState | None = None) -> RunState:
    """The state after all that was recorded, from an empty one or from `state`."""
    state = RunState() if state is None else state
    for event in recorded:
        state = apply(state, event)
    return state


def _session_started(_: RunState, event: events.SessionStarted) -> Changes:
    source = event.source
    facts = SessionFacts(
        event.session_id,
        event.workspace,
        event.title,
        event.parent,
        source,
        recorded=bool(source),
        started_at=event.at,
    )
    return {"session": facts}


def _agent_opened(state: RunState, event: events.AgentOpened) -> Changes:
    return {"session": evolve(state.session, agent=event)}


def _agent_offered(state: RunState, event: events.AgentOffered) -> Changes:
    return {"session": evolve(state.session, offered=event)}


def _agent_option_chosen(state: RunState, event: events.AgentOptionChosen) -> Changes:
    return {"session": evolve(state.session, chosen={**state.session.chosen, event.option: event.value})}


def _title_changed(state: RunState, event: events.TitleChanged) -> Changes:
    return {"session": evolve(state.session, title=event.title)}


def _mode_changed(state: RunState, event: events.ModeChanged) -> Changes:
    return {"session": evolve(state.session, mode=event.mode)}


def _setting_changed(state: RunState, event: events.SettingChanged) -> Changes:
    value = events.Approval(event.value) if event.setting == "approve" else event.value
    changes: Changes = {"session": evolve(state.session, **{event.setting: value})}
    if event.setting == "model":
        changes["run"] = evolve(state.run, model=event.value)
    return changes


def _rules_changed(state: RunState, event: events.RulesChanged) -> Changes:
    if event.decision is Decision.ALLOW:
        rules = state.session.rules.union(event.added).difference(event.removed)
        return {"session": evolve(state.session, rules=rules)}
    added, removed = ({(event.decision, text) for text in texts} for texts in (event.added, event.removed))
    return {"session": evolve(state.session, narrowing=state.session.narrowing.union(added) - removed)}


def _run_started(state: RunState, event: events.RunStarted) -> Changes:
    run = RunFacts(
        event.run,
        event.task,
        event.policy,
        event.model,
        event.agent,
        event.system_prompt,
        history.estimate_tokens(event.system_prompt),
        event.tools,
        max_iterations=event.max_iterations,
        more_steps=event.max_iterations if event.asks_for_steps else 0,
        limits=_limits(state.session, event),
        budget_warning=event.budget_warning,
        context_tokens=event.context_tokens,
        tools_tokens=event.tools_tokens,
        fallback_models=event.fallback_models,
        fallbacks=event.fallbacks,
        on_limit=event.on_limit,
        wait_at_most=event.wait_at_most,
        summary_model=event.summary_model,
        compact_at=event.compact_at,
        advisor=event.advisor,
        tool_calls=event.tool_calls,
        operator_present=event.operator_present,
        sandbox=event.sandbox,
        api_base=event.api_base,
    )
    session = evolve(
        state.session,
        policy=event.policy,
        model=event.session_model or event.model,
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
        "advised": False,
        "fault": None,
        "waiting": None,
        "answer": None,
        "text_answer": None,
        "cut_text": "",
        "closing": None,
        "closing_words": "",
        "interrupted": False,
        "unpriced_noticed": False,
        "budget_answer": None,
        "warned": frozenset(),
        "compaction_failures": 0,
        "summary_by": "",
        "stop": None,
        "lanes": {},
    }


def _limits(session: SessionFacts, event: events.RunStarted) -> dict[str, float]:
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


def _budget_raised(state: RunState, event: events.BudgetRaised) -> Changes:
    if event.key == "max_iterations":
        steps = UNBOUNDED if event.limit is None else int(event.limit)
        return {"run": evolve(state.run, max_iterations=steps), "budget_answer": None}
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


_LONGEST_TITLE = 72


def title_of(task: str) -> str:
    """A session's title if nobody gave one: the task's first line, clipped."""
    line = next((line.strip() for line in task.splitlines() if line.strip()), "")
    return clipped(line, _LONGEST_TITLE)


def _message_queued(state: RunState, event: events.MessageQueued) -> Changes:
    return {"queue": (*state.queue, event)}


def _without(state: RunState, queued_id: str | None) -> tuple[events.MessageQueued, ...]:
    return tuple(message for message in state.queue if message.id != queued_id)


def _message_unqueued(state: RunState, event: events.MessageUnqueued) -> Changes:
    return {"queue": _without(state, event.id)}


def _operator_spoke(state: RunState, event: events.OperatorSpoke) -> Changes:
    return {"queue": _without(state, event.queued)}


def _iteration_started(state: RunState, event: events.IterationStarted) -> Changes:
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


def _model_call_started(state: RunState, event: events.ModelCallStarted) -> Changes:
    run = evolve(
        state.run,
        attempt=event.attempt,
        model=state.run.model or event.model,
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
        "waiting": None,
        "answer": None,
    }


def _model_window_learned(state: RunState, event: events.ModelWindowLearned) -> Changes:
    return {"windows": {**state.windows, event.model: event.tokens}}


def _model_faulted(state: RunState, event: events.ModelFaulted) -> Changes:
    budget = state.run.context_tokens if event.context_tokens is None else event.context_tokens
    run = evolve(state.run, retry_at=event.at + event.delay, context_tokens=budget)
    again = event.action in {"retry", "wait", "fallback", "shrink", "text_calls"}
    changes: Changes = {
        "phase": Phase.BACKOFF if again else Phase.READY,
        "run": run,
        "note": state.sent_note,
        "fault": event,
        "waiting": None,
        "answer": None,
    }
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


def _limit_wait_started(state: RunState, event: events.LimitWaitStarted) -> Changes:
    return {
        "phase": Phase.BACKOFF,
        "waiting": event,
        "run": evolve(state.run, retry_at=event.until),
    }


def _wait_skipped(state: RunState, event: events.WaitSkipped) -> Changes:
    fault, waiting = state.fault, state.waiting
    if fault is None or state.phase is not Phase.BACKOFF:
        return {}
    return {
        "waiting": None if waiting is None else waiting.with_values({"until": event.at}),
        "fault": fault.model_copy(update={"delay": 0.0}),
        "run": evolve(state.run, retry_at=event.at),
    }


def _reply_finished(state: RunState, event: events.ReplyFinished) -> Changes:
    changes: Changes = {"phase": Phase.TOOLS if event.calls else Phase.READY}
    if state.closing is not None and event.text:
        changes["closing_words"] = event.text
    called = state.called
    if called is not None and state.run.iteration == 1 and state.windows.get(called.model, 0) is None:
        # A server that had not loaded its model yet can say its window now.
        changes["windows"] = {model: size for model, size in state.windows.items() if model != called.model}
    ratio = counted(state, event.prompt_tokens) if event.by == "model" else None
    if state.called is not None and ratio is not None:
        changes["calibration"] = {**state.calibration, state.called.model: ratio}
    return changes


def _compaction_requested(state: RunState, event: events.CompactionRequested) -> Changes:
    # Between runs, what ended the last one keeps nothing from beginning any more.
    return {"compaction_asked": event} if state.running else {"compaction_asked": event, "stop": None}


def _compaction_started(state: RunState, event: events.CompactionStarted) -> Changes:
    changes: Changes = {"compacting": event}
    if state.running:
        changes["phase"] = Phase.COMPACTING
    return changes


def _compaction_ended(state: RunState, event: events.Compacted | events.CompactionFailed) -> Changes:
    if isinstance(event, events.CompactionFailed) and event.next_model:
        changes: Changes = {"compacting": None, "summary_by": event.next_model}
    else:
        changes = {
            "compacting": None,
            "compaction_asked": None,
            "summary_by": "",
            "compaction_failures": _failures(state, event),
            "compaction_failed_in": state.run.iteration,
        }
    if state.running:
        changes["phase"] = Phase.READY
    return changes


def _failures(state: RunState, event: events.Compacted | events.CompactionFailed) -> int:
    if isinstance(event, events.Compacted):
        return 0
    return state.compaction_failures + 1 if event.transient else SUMMARY_TRIES


def _window_cut(_: RunState, __: events.WindowCut) -> Changes:
    return {"compaction_failures": 0}


def _tool_succeeded(state: RunState, event: events.ToolSucceeded) -> Changes:
    if event.tool == FINISH:
        answer = str(event.input.get("answer", ""))
        return {"text_answer": answer} | ({"closing_words": answer} if state.closing is not None else {})
    return {"known_files": state.known_files.with_read(event.files, event.seq)} if event.files else {}


def _iteration_finished(state: RunState, event: events.IterationFinished) -> Changes:
    changes: Changes = {
        "phase": Phase.READY,
        "approvals": (),
        "iteration_open": False,
        "judged": False,
        "interrupted": False,
        "waiting": None,
        "answer": None,
    }
    reply = state.recovery.reply
    if reply is None:
        # The call that carried the note never came back, so the model has not read it.
        changes["note"] = state.note or state.sent_note
    elif was_cut(reply):
        changes["cut_text"] = state.cut_text + reply.text
    elif not reply.calls and not state.recovery.not_taken and not event.cancelled:
        changes["text_answer"] = state.cut_text + reply.text
    else:
        changes["cut_text"] = ""
    return changes


def _hook_reported(state: RunState, event: events.HookReported) -> Changes:
    return {"hook_context": (*state.hook_context, event.context)} if event.context else {}


def _verdict_reached(state: RunState, event: events.VerdictReached) -> Changes:
    stands = state.advised and event.level is events.Level.PIVOT
    return {"verdict": event, "judged": True, "advised": stands}


def _advised(_: RunState, __: events.Advised) -> Changes:
    return {"advised": True}


def _note_prepared(_: RunState, event: events.NotePrepared) -> Changes:
    return {"note": event.text, "note_edited": event.edited, "note_rules": event.rules}


def _approval_asked(state: RunState, event: events.ApprovalAsked) -> Changes:
    return {"phase": Phase.APPROVAL, "approvals": (*state.approvals, event)}


def _approval_answered(state: RunState, event: events.ApprovalAnswered) -> Changes:
    asked = next((asked for asked in state.approvals if asked.id == event.id), None)
    waiting = tuple(other for other in state.approvals if other.id != event.id)
    changes: Changes = {"approvals": waiting, "phase": Phase.APPROVAL if waiting else Phase.TOOLS}
    if asked is not None and event.decision in {"session", "always", "everywhere"}:
        remembered = event.rules or asked.rules
        changes["session"] = evolve(state.session, rules=state.session.rules.union(remembered))
    return changes


def _escalation_raised(_: RunState, event: events.EscalationRaised) -> Changes:
    return {"phase": Phase.ESCALATION, "escalation": event, "budget_answer": None}


def _escalation_answered(state: RunState, event: events.EscalationAnswered) -> Changes:
    in_tools = bool(state.conversation.calls)
    asked = state.escalation
    kept_as = "budget_answer" if asked is not None and asked.source in OF_BOUNDS else "answer"
    return {
        "phase": Phase.TOOLS if in_tools else Phase.READY,
        "escalation": None,
        kept_as: event,
        "interrupted": state.interrupted and state.iteration_open,
    }


def _interrupted(state: RunState, event: events.Interrupted) -> Changes:
    asked = state.escalation is not None and event.cause == "operator"
    return {"interrupted": state.running and (state.iteration_open or asked)}


def _session_resumed(state: RunState, event: events.SessionResumed) -> Changes:
    run = state.run
    for server in state.servers.values():
        run = _offering(run, server, None)
    if event.operator_present is not None:
        run = evolve(run, operator_present=event.operator_present)
    changes: Changes = {
        "run": run,
        "servers": {},
        "server_questions": (),
        "metrics": state.metrics.after_absence(max(0.0, event.at - state.at)),
        "session": evolve(state.session, recorded=False),
    }
    if event.workspace:
        # Whoever wrote the recording may have written approvals for himself into it.
        changes["session"] = evolve(
            changes["session"],
            workspace=event.workspace,
            rules=frozenset(),
            narrowing=frozenset(),
            approve=None,
            model="",
            agent=None,
        )
    return changes


def _server_changed(state: RunState, event: events.ServerChanged) -> Changes:
    run = _offering(state.run, state.servers.get(event.server), event)
    return {"run": run, "servers": {**state.servers, event.server: event}}


def _offering(
    run: RunFacts, before: events.ServerChanged | None, now: events.ServerChanged | None
) -> RunFacts:
    """The run with other tools of one server; its tools are counted with the run's from the start on."""
    if not run.number:
        return run
    gone = frozenset(before.tools) if before is not None else frozenset()
    added = now.tools if now is not None else ()
    kept = tuple(name for name in run.tools if name not in gone and name not in added)
    tokens = run.tools_tokens - (before.tools_tokens if before else 0) + (now.tools_tokens if now else 0)
    return evolve(run, tools=(*kept, *added), tools_tokens=max(0, tokens))


def _server_asked(state: RunState, event: events.ServerAsked) -> Changes:
    return {"server_questions": (*state.server_questions, event)}


def _server_answered(state: RunState, event: events.ServerAnswered) -> Changes:
    return {"server_questions": tuple(asked for asked in state.server_questions if asked.id != event.id)}


def _notice(state: RunState, event: events.Notice) -> Changes:
    match event.origin:
        case "cost":
            return {"unpriced_noticed": True}
        case "budget":
            return {"warned": state.warned | {event.about}}
        case "form" if event.rule == Rule.FORM_TEXT_PROTOCOL:
            return {"text_models": state.text_models | {event.about}}
        case _:
            return {}


def _closing_turn_opened(_: RunState, event: events.ClosingTurnOpened) -> Changes:
    return {"closing": event, "note_edited": False}


def _started_afresh(_: RunState, __: events.StartedAfresh) -> Changes:
    return {
        "verdict": None,
        "note": None,
        "note_edited": False,
        "answer": None,
        "advised": False,
        "cut_text": "",
    }


def _stop_requested(_: RunState, event: events.StopRequested) -> Changes:
    return {"stop": event}


def _lane_event(state: RunState, event: events.LaneEvent) -> Changes:
    """A sub-agent's state goes on; the run shares the rules that it was allowed and the failure that stands."""
    inner = event.placed
    lane = apply(state.lane(event.lane), inner)
    if lane.lane_name != event.name:
        lane = evolve(lane, lane_name=event.name)
    changes: Changes = {
        "lanes": {**state.lanes, event.lane: lane},
        "session": evolve(state.session, rules=lane.session.rules),
    }
    if type(inner) is events.IterationFinished:
        ring = state.recovery.of(ErrorRing).with_lane(event.name, lane.recovery.of(ErrorRing))
        changes["recovery"] = state.recovery.having(ring)
    return changes


def _rewound(state: RunState, event: events.Rewound) -> Changes:
    changes: Changes = {"rewinds": state.rewinds[:-1] if event.undoes else (*state.rewinds, event)}
    if event.scope != "files" and not event.undoes:
        changes["known_files"] = state.known_files.up_to(event.to_seq)
    return changes


def _run_finished(state: RunState, event: events.RunFinished) -> Changes:
    run = evolve(
        state.run,
        outcome=event.outcome,
        reason=event.reason,
        answer=event.answer,
        rule=event.rule,
        receipts=event.receipts,
    )
    return {
        "phase": Phase.DONE,
        "run": run,
        "note": None,
        "approvals": (),
        "escalation": None,
        "iteration_open": False,
        "interrupted": False,
        "waiting": None,
    }


_HANDLERS: dict[type[events.Event], Callable[[RunState, Any], Changes]] = {
    events.SessionStarted: _session_started,
    events.AgentOffered: _agent_offered,
    events.AgentOpened: _agent_opened,
    events.AgentOptionChosen: _agent_option_chosen,
    events.TitleChanged: _title_changed,
    events.ModeChanged: _mode_changed,
    events.SettingChanged: _setting_changed,
    events.RulesChanged: _rules_changed,
    events.RunStarted: _run_started,
    events.BudgetRaised: _budget_raised,
    events.MessageQueued: _message_queued,
    events.MessageUnqueued: _message_unqueued,
    events.OperatorSpoke: _operator_spoke,
    events.IterationStarted: _iteration_started,
    events.ModelCallStarted: _model_call_started,
    events.ModelWindowLearned: _model_window_learned,
    events.ModelFaulted: _model_faulted,
    events.LimitWaitStarted: _limit_wait_started,
    events.WaitSkipped: _wait_skipped,
    events.ToolSucceeded: _tool_succeeded,
    events.Interrupted: _interrupted,
    events.StopRequested: _stop_requested,
    events.ClosingTurnOpened: _closing_turn_opened,
    events.StartedAfresh: _started_afresh,
    events.Notice: _notice,
    events.SessionResumed: _session_resumed,
    events.ReplyFinished: _reply_finished,
    events.CompactionRequested: _compaction_requested,
    events.CompactionStarted: _compaction_started,
    events.Compacted: _compaction_ended,
    events.CompactionFailed: _compaction_ended,
    events.WindowCut: _window_cut,
    events.IterationFinished: _iteration_finished,
    events.HookReported: _hook_reported,
    events.VerdictReached: _verdict_reached,
    events.Advised: _advised,
    events.NotePrepared: _note_prepared,
    events.ApprovalAsked: _approval_asked,
    events.ApprovalAnswered: _approval_answered,
    events.EscalationRaised: _escalation_raised,
    events.EscalationAnswered: _escalation_answered,
    events.RunFinished: _run_finished,
    events.Rewound: _rewound,
    events.ServerChanged: _server_changed,
    events.ServerAsked: _server_asked,
    events.ServerAnswered: _server_answered,
    events.LaneEvent: _lane_event,
}
