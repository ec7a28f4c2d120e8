"""How each event changes the recovery state.

Tool results of the open iteration are kept until it ends; then each detector is given the whole iteration, in the order
of the calls. Which detectors there are is not known here: each says which other events it hears.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.names import OF_BOUNDS, OF_NO_FAILURE
from tui_agent.core.recovery.changes import unexplained
from tui_agent.core.recovery.detector import Answer, Beginning, Detector, Step
from tui_agent.core.recovery.detectors import DETECTORS
from tui_agent.core.recovery.engine import RecoveryState
from tui_agent.core.recovery.iteration import Iteration, close, in_call_order, result_of_call
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.policy import policy_of_run
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.wanted import times_wanted
from tui_agent.core.recovery.writes import Writes, writes

_Handler = Callable[[RecoveryState, Any], RecoveryState]
_Detectors = tuple[Detector[Any], ...]


def apply(state: RecoveryState, event: events.Event) -> RecoveryState:
    """Give the state after one more event; events that do not concern recovery change nothing."""
    handler = HANDLERS.get(type(event))
    return state if handler is None else handler(state, event)


def so_far(state: RecoveryState, iteration: int, seq: int, at: float) -> RecoveryState:
    """Give what it comes to if the open iteration ends with what its calls have come to."""
    if not state.pending and state.rejected is None:
        return state
    ended = apply(state, events.IterationFinished(iteration=iteration, seq=seq, at=at))
    return ended.having(ended.of(ErrorRing).with_lanes_of(state.of(ErrorRing)))


# --- what detectors hear -----------------------------------------------------------------------------------------

_Hears = tuple[tuple[int, Callable[[Any, Any, Any], Any]], ...]
_HEARD: dict[type[events.Event], _Hears] = {
    heard: tuple((place, kind.hears[heard]) for place, kind in enumerate(DETECTORS) if heard in kind.hears)
    for heard in {heard: None for kind in DETECTORS for heard in kind.hears}
}
"""For each event that detectors hear, their places and what each does."""


def _hears(state: RecoveryState, event: events.Event) -> RecoveryState:
    """Let the detectors hear an event."""
    before, after = state.detectors, None
    for place, take in _HEARD[type(event)]:
        detector = take(before[place], event, state.policy)
        if detector is not before[place]:
            after = list(before) if after is None else after
            after[place] = detector
    return state if after is None else evolve(state, detectors=tuple(after))


def _hearing(handler: _Handler) -> _Handler:
    """Make a handler that lets the detectors hear the event first."""
    return lambda state, event: handler(_hears(state, event), event)


def _disturbed(state: RecoveryState) -> _Detectors:
    return tuple(detector.disturbed() for detector in state.detectors)


# --- a run and its steps -----------------------------------------------------------------------------------------


def _run_started(state: RecoveryState, event: events.RunStarted) -> RecoveryState:
    policy = policy_of_run(event.policy, event.policy_settings)
    run = Beginning(event, policy)
    return RecoveryState(
        policy=policy,
        with_a_say=policy.detectors,
        operator_present=event.operator_present,
        on_escalation=event.on_escalation,
        tools=event.tools,
        detectors=tuple(detector.next_run(run) for detector in state.detectors),
        wanted=times_wanted(event.task, policy.stuck_waits),
    )


def _iteration_started(state: RecoveryState, _: events.IterationStarted) -> RecoveryState:
    if not any((state.pending, state.rejected, state.reply, state.looked, state.advice)):
        return state
    return evolve(state, pending=(), rejected=None, reply=None, looked=(), advice=None)


def _result(state: RecoveryState, event: events.ToolResult) -> RecoveryState:
    return evolve(state, pending=(*state.pending, result_of_call(event, state.policy)))


def _reply_rejected(state: RecoveryState, event: events.ReplyRejected) -> RecoveryState:
    return state if event.unverified else evolve(state, rejected=event.failure)


def _reply_finished(state: RecoveryState, event: events.ReplyFinished) -> RecoveryState:
    return evolve(state, reply=event)


_EVERY = frozenset(kind.name for kind in DETECTORS)


def _iteration_finished(state: RecoveryState, event: events.IterationFinished) -> RecoveryState:
    return _ended(state, event, _EVERY)


def _iteration_judged(state: RecoveryState, event: events.IterationFinished) -> RecoveryState:
    return _ended(state, event, state.with_a_say)


def _ended(state: RecoveryState, event: events.IterationFinished, names: frozenset[str]) -> RecoveryState:
    """End the iteration: the detectors with these names are given all of it."""
    policy, reply = state.policy, state.reply
    results = in_call_order(state.pending)
    before = changes = state.changes
    marks: tuple[int, ...] = (0,) * len(results)
    changed: tuple[bool, ...] = ()
    trials = policy.trials != "off"
    if names is _EVERY or trials or policy.findings:
        changes, marks, changed = changes.apply(results, state.effects(), state.looked)
    if not trials:
        changed = tuple(result.changed for result in results)
    findings, results = state.findings.judge(results, changes, marks)
    time_outs, results = state.time_outs.judge(results) if policy.unfinished else (state.time_outs, results)
    polls, results = state.polls.judge(results, policy.stuck_waits if policy.stuck else 0, state.wanted)
    last = close(
        event.iteration,
        results,
        state.rejected,
        seq=event.seq,
        at=event.at,
        cancelled=event.cancelled,
        unanswered=reply is None and state.of(ModelFaults).last is not None and not event.cancelled,
    )
    step = Step(
        last,
        policy,
        reply,
        state.tools,
        changes,
        marks,
        changed,
        any_change=trials and changes.count > before.count,
        wanted=state.wanted,
        shown=names is _EVERY,
    )
    detectors = tuple([one.apply(step) if one.name in names else one for one in state.detectors])
    return evolve(
        state,
        pending=(),
        rejected=None,
        reply=None,
        looked=(),
        last=last,
        findings=findings,
        polls=polls,
        time_outs=time_outs,
        changes=changes,
        failed_since_success=_failed_since_success(state, last),
        progressed=last.number if step.any_change else state.progressed,
        sent_back=0 if step.any_change else state.sent_back + (last.rejected is not None),
        detectors=detectors,
        last_verdicts=state.verdicts_of(detectors),
    )


def _failed_since_success(state: RecoveryState, last: Iteration) -> bool:
    if last.rejected is not None or last.succeeded or last.cancelled:
        # What is said after an interruption is for whoever interrupted.
        return False
    return last.failed or state.failed_since_success


def _model_faulted(state: RecoveryState, event: events.ModelFaulted) -> RecoveryState:
    faulted = _hears(state, event)
    standing = faulted.standing()
    found = [
        detector.verdict(standing)
        for detector, before in zip(faulted.detectors, state.detectors, strict=True)
        if detector.judges_faults and detector is not before and detector.name in state.with_a_say
    ]
    return evolve(faulted, last_verdicts=tuple(found))


def _started_afresh(state: RecoveryState, event: events.StartedAfresh) -> RecoveryState:
    return evolve(
        state,
        changes=state.changes.by((), event.files) if event.files else state.changes,
        fresh_starts=state.fresh_starts + 1,
        detectors=tuple(detector.afresh() for detector in state.detectors),
        last=None,
        last_verdicts=(),
        failed_since_success=False,
        advice=None,
    )


def _advised(state: RecoveryState, event: events.Advised) -> RecoveryState:
    return evolve(state, advice=event)


# --- the operator ------------------------------------------------------------------------------------------------


def _operator_spoke(state: RecoveryState, event: events.OperatorSpoke) -> RecoveryState:
    wanted = max(state.wanted, times_wanted(event.text, state.policy.stuck_waits))
    return evolve(state, detectors=_disturbed(state), failed_since_success=False, wanted=wanted)


def _escalation_raised(state: RecoveryState, event: events.EscalationRaised) -> RecoveryState:
    return evolve(state, raised=event)


def _escalation_answered(state: RecoveryState, event: events.EscalationAnswered) -> RecoveryState:
    raised = state.raised if state.raised is not None and state.raised.id == event.id else None
    if raised is not None and raised.source in {ModelFaults.name, *OF_BOUNDS}:
        return evolve(state, raised=None)
    answer = Answer(event, raised, state.policy)
    if raised is not None and raised.source in OF_NO_FAILURE:
        return evolve(state, raised=None, detectors=_disturbed(state) if answer.informs else state.detectors)
    wanted = state.wanted
    if answer.informs:
        wanted = max(wanted, times_wanted(event.text, state.policy.stuck_waits))
    detectors = tuple(detector.answered(answer) for detector in state.detectors)
    return evolve(state, raised=None, detectors=detectors, wanted=wanted)


def _session_resumed(state: RecoveryState, event: events.SessionResumed) -> RecoveryState:
    if event.operator_present is None:
        return state
    unanswered = event.on_escalation or state.on_escalation
    return evolve(state, operator_present=event.operator_present, on_escalation=unanswered)


# --- changes of the workspace ------------------------------------------------------------------------------------


def _checkpoint_saved(state: RecoveryState, event: events.CheckpointSaved) -> RecoveryState:
    """Take a look at the workspace: while calls of the open reply have ended it is about them, else about the last
    iteration, or about what somebody else has done since. A slow one may be about an iteration before the last.
    """
    if event.before:
        return evolve(state, changes=state.changes.looked_at(watched=True))
    if not event.files:
        return state
    last = state.last
    if last is not None and event.iteration == last.number:
        return _seen_late(state, last, event.files)
    late = last is not None and event.iteration < last.number
    files = state.changes.not_own(event.files) if late else event.files
    if state.pending:
        return evolve(state, looked=(*state.looked, *files))
    changes = state.changes.by_others(unexplained((), files))
    return state if changes is state.changes else evolve(state, changes=changes, detectors=_disturbed(state))


def _seen_late(state: RecoveryState, last: Iteration, files: tuple[str, ...]) -> RecoveryState:
    """Take in what the last iteration has changed, which is known only after it was judged."""
    changes = state.changes.seen_after(last, files)
    if changes is state.changes or not last.succeeded:
        return evolve(state, changes=changes)
    return evolve(state, changes=changes, detectors=_disturbed(state))


def _changed_by_others(state: RecoveryState, names: tuple[str, ...]) -> RecoveryState:
    """Take in a change by no call of the run: the operator's, another session's, a background command's."""
    if not names:
        return state
    return evolve(state, changes=state.changes.by((), names), detectors=_disturbed(state))


def _own_command_ended(state: RecoveryState, event: events.OwnCommandEnded) -> RecoveryState:
    if writes(event.command) is Writes.NOTHING:
        return state
    return _changed_by_others(state, (event.command,))


def _background_started(state: RecoveryState, event: events.BackgroundStarted) -> RecoveryState:
    calls = () if state.reply is None else state.reply.calls
    keys = [call.key for call in calls if call.id == event.call_id]
    return evolve(state, changes=state.changes.begun_beside(event.id, keys, event.command))


def _background_ended(state: RecoveryState, event: events.BackgroundEnded) -> RecoveryState:
    state = evolve(state, changes=state.changes.ended_beside(event.id))
    return _changed_by_others(state, (event.command or event.id,))


def _rewound(state: RecoveryState, event: events.Rewound) -> RecoveryState:
    return state if event.scope == "conversation" else _changed_by_others(state, ("the files, brought back",))


def _notice(state: RecoveryState, event: events.Notice) -> RecoveryState:
    if event.origin != "checkpoint":
        return state
    return evolve(state, changes=state.changes.looked_at(watched=False))


_OWN: dict[type[events.Event], _Handler] = {
    events.RunStarted: _run_started,
    events.IterationStarted: _iteration_started,
    events.ReplyFinished: _reply_finished,
    events.ReplyRejected: _reply_rejected,
    events.ToolSucceeded: _result,
    events.ToolFailed: _result,
    events.ToolRefused: _result,
    events.ToolCancelled: _result,
    events.ToolEnded: _result,
    events.IterationFinished: _iteration_finished,
    events.StartedAfresh: _started_afresh,
    events.Advised: _advised,
    events.OperatorSpoke: _operator_spoke,
    events.EscalationRaised: _escalation_raised,
    events.EscalationAnswered: _escalation_answered,
    events.SessionResumed: _session_resumed,
    events.CheckpointSaved: _checkpoint_saved,
    events.OwnCommandEnded: _own_command_ended,
    events.BackgroundStarted: _background_started,
    events.BackgroundEnded: _background_ended,
    events.Rewound: _rewound,
    events.Notice: _notice,
}


def _handlers(own: dict[type[events.Event], _Handler]) -> dict[type[events.Event], _Handler]:
    """Join what is done here with what detectors hear."""
    joined = {kind: _hearing(handler) if kind in _HEARD else handler for kind, handler in own.items()}
    return {**dict.fromkeys(_HEARD, _hears), **joined, events.ModelFaulted: _model_faulted}


HANDLERS = _handlers(_OWN)

JUDGED = _handlers({**_OWN, events.IterationFinished: _iteration_judged})
"""The same without the detectors that the policy leaves out, which are there to be shown."""
