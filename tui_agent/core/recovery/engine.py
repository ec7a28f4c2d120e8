"""The recovery state: every detector of one run, folded from the events, and what they say together.

Tool results of the open iteration are kept until it ends; then each detector is given the whole iteration, in the
order of the calls. All detectors fold under every policy, so that the panes can show them; only those that the
policy switches on have a say. The state asks nobody and changes nothing: it is a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.names import OF_BOUNDS, OF_NO_FAILURE, OnEscalation
from tui_agent.core.recovery import refusals, trials, verdict
from tui_agent.core.recovery.answers import choice_of
from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger, brings_back
from tui_agent.core.recovery.changes import Changes, unexplained
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.form import FormErrors
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.iteration import (
    CallResult,
    CallStatus,
    Iteration,
    close,
    in_call_order,
    result_of_call,
)
from tui_agent.core.recovery.kept import attempts_with, breakers_with
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy, policy_of_run
from tui_agent.core.recovery.polling import FailingPoll
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import call_key
from tui_agent.core.recovery.standing_findings import StandingFindings
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.recovery.stuck import Sighting, StuckPatterns
from tui_agent.core.recovery.tool_breaker import BreakerPhase, ToolBreakers
from tui_agent.core.recovery.wanted import times_wanted
from tui_agent.core.recovery.writes import Writes, writes

Refusal = Literal["", "blocked", "withheld", "breaker"]

_QUESTION = re.compile(r"[?？؟][\"'”’»)\]*_]*(?=\s|$)|？")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_CHOICE = re.compile(r"[ \t]*(?:[-*+•]|\(?\w[.)])[ \t]")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True)
class Permit:
    """Whether a call may run now. `reason` is for the model; `earlier_result` what it reads for a withheld call."""

    allowed: bool
    refusal: Refusal = ""
    reason: str = ""
    earlier_result: str = ""
    rule: str = ""


ALLOWED = Permit(allowed=True)


@dataclass(frozen=True)
class RecoveryState:
    """All detectors of one run, and what they said last."""

    policy: RecoveryPolicy = PRESETS["combined"]
    with_a_say: frozenset[str] = PRESETS["combined"].detectors
    """The policy's detectors."""
    operator_present: bool = True
    on_escalation: OnEscalation = "partial"
    """What happens where an operator would be asked and nobody is there."""
    tools: tuple[str, ...] = ()
    """Tools of the run, for the note on unknown ones."""
    ring: ErrorRing = field(default_factory=ErrorRing)
    changes: Changes = field(default_factory=Changes)
    """What changed in the workspace and the environment during the run."""
    seen: tuple[str, ...] = ()
    """Files of which a look at the workspace said in the open iteration that they have changed."""
    attempts: AttemptLedger = field(default_factory=AttemptLedger)
    streak: ErrorStreak = field(default_factory=ErrorStreak)
    cognition: CognitiveState = field(default_factory=CognitiveState)
    form: FormErrors = field(default_factory=FormErrors)
    faults: ModelFaults = field(default_factory=ModelFaults)
    stuck: StuckPatterns = field(default_factory=StuckPatterns)
    breakers: ToolBreakers = field(default_factory=ToolBreakers)
    findings: StandingFindings = field(default_factory=StandingFindings)
    polls: FailingPoll = field(default_factory=FailingPoll)
    implicit: ImplicitFailures = field(default_factory=ImplicitFailures)
    wanted: int = 0
    """As often the operator's words want the same call; 0: they say nothing of it."""
    pending: tuple[CallResult, ...] = ()
    """Results of the open iteration, in the order in which they came."""
    reply: events.ReplyFinished | None = None
    """The open iteration's reply."""
    rejected: events.Failure | None = None
    """The open iteration's text-only reply that was not taken as an answer."""
    last: Iteration | None = None
    """The iteration that ended last."""
    failed_since_success: bool = False
    """An iteration failed, nothing succeeded since, and no text-only reply was rejected for it yet."""
    advice: events.Advised | None = None
    """What another model suggests after the last iteration."""
    raised: events.EscalationRaised | None = None
    """The question that waits for the operator."""
    last_verdicts: tuple[events.VerdictRecord, ...] = ()
    """The verdicts of the active detectors after the last iteration or model fault."""

    def apply(self, event: events.Event) -> RecoveryState:
        """The state after one more event; events that do not concern recovery change nothing."""
        handler = HANDLERS.get(type(event))
        return self if handler is None else handler(self, event)

    @property
    def not_taken(self) -> bool:
        """The open iteration's reply is not taken as an answer."""
        return self.rejected is not None or self.implicit.asked is not None

    # --- what it says ----------------------------------------------------------------------------------------

    @property
    def goes_on(self) -> bool:
        """Nobody can be asked, and what would be asked about is guided, withheld or done in another way."""
        return not self.operator_present and self.on_escalation == "continue"

    def strongest(self) -> events.VerdictRecord:
        """The verdict that counts: the highest level, ties in the order of `verdict.DETECTORS`."""
        return verdict.strongest(self.last_verdicts)

    def subject(self) -> AttemptEntry | Sighting | None:
        """The call (tool, input, key) that the strongest verdict is about, when it is about one."""
        match self.strongest().detector:
            case verdict.ATTEMPTS:
                return self.attempts.subject(self.policy)
            case verdict.TRIALS:
                return trials.subject(self.attempts)
            case verdict.STUCK:
                return self.stuck.subject
            case _:
                return None

    def so_far(self, iteration: int, seq: int, at: float) -> RecoveryState:
        """What it comes to if the open iteration ends with what its calls have come to."""
        if not self.pending and self.rejected is None:
            return self
        ended = self.apply(events.IterationFinished(iteration=iteration, seq=seq, at=at))
        return evolve(ended, ring=ended.ring.with_lanes_of(self.ring))

    def key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The identity of a call under the policy."""
        return call_key(tool, arguments, self.policy.attempts_key)

    def permit(self, tool: str, key: str, earlier: Mapping[str, int] | None = None) -> Permit:
        """Whether this call may be executed. `earlier` counts, by key and by tool, the calls of the same reply that
        were let through.
        """
        earlier = earlier or {}
        refusal = self._breaker_refusal(tool, earlier)
        if refusal is not None:
            return refusal
        if self.policy.attempts == "block" and self.attempts.entries:
            entry = self.attempts.blocking(key, earlier.get(key, 0))
            if entry is not None and not self._changed_since(entry.mark, key) and not self._waited(entry):
                reason = entry.refusal(operator_present=self.operator_present).text
                return Permit(False, "blocked", reason, rule=Rule.ATTEMPTS_BLOCK)
        if self.policy.stuck and self.stuck.patterns:
            known = self.stuck.withheld(key)
            if known is not None and not self._just_changed(key):
                reason = refusals.withheld(tool, succeeded=known.succeeded)
                return Permit(False, "withheld", reason, known.content, Rule.STUCK_WITHHOLD)
        return ALLOWED

    def blocks(self, entry: AttemptEntry) -> bool:
        """Whether this call would not run now: it is blocked, no further try is allowed, and nothing has changed."""
        barred = self.policy.attempts == "block" and entry.blocked and not entry.allowed
        return barred and not self._changed_since(entry.mark, entry.key) and not self._waited(entry)

    def _waited(self, entry: AttemptEntry) -> bool:
        """Whether what did not answer this call has had its time to come back, or was started in the open reply."""
        if entry.again is None or entry.settled == "skip":
            return False
        step = 1 if self.last is None else self.last.number + 1
        if step >= entry.again.step or any(brings_back(entry, result) for result in self.pending):
            return True
        now = 0.0 if self.reply is None else self.reply.at + sum(result.duration for result in self.pending)
        return now >= entry.again.at

    def _changed_since(self, mark: int, key: str) -> bool:
        """Whether something has changed since the change numbered `mark`, in the open iteration included."""
        return self.policy.trials != "off" and bool(self._changes_now().since(mark, key))

    def _just_changed(self, key: str) -> bool:
        """Whether another call of the open reply has changed something."""
        return self._changed_since(self.changes.count, key)

    def _changes_now(self) -> Changes:
        """The changes, with those of the calls of the open iteration that have ended."""
        if not (self.pending or self.seen):
            return self.changes
        return self.changes.apply(in_call_order(self.pending), self._effects(), self.seen)[0]

    def _effects(self) -> dict[int, str]:
        """What the tools of the open reply's calls may do, by their place."""
        calls = () if self.reply is None else self.reply.calls
        return {place: call.effect for place, call in enumerate(calls)}

    def attempt_of(self, key: str, failure: events.Failure) -> int:
        """Which failure of its call this one is."""
        return self.attempts.count_with(key, failure, self.policy, self._changes_now())

    # --- when to look at the workspace -----------------------------------------------------------------------

    def refuses_a_call(self) -> bool:
        """Whether a call of the open reply would not run because nothing is known to have changed."""
        if self.policy.trials == "off" or self.reply is None:
            return False
        if not (self.attempts.entries or self.stuck.patterns):
            return False
        return any(
            self.permit(call.name, call.key).refusal in {"blocked", "withheld"} for call in self.reply.calls
        )

    def depends_on_order(self) -> bool:
        """Whether a call of the open reply has failed again, and another one may have changed something before it."""
        if self.policy.trials == "off" or len(self.pending) < 2:
            return False
        return any(not result.passed and result.key in self.attempts.entries for result in self.pending)

    def has_just_blocked(self) -> bool:
        """Whether a call of the last iteration is blocked now: what changes from here on lets it run again."""
        entries = self.attempts.entries
        return self.policy.trials != "off" and any(
            key in entries and entries[key].blocked for key in self.attempts.triggered
        )

    def _breaker_refusal(self, tool: str, earlier: Mapping[str, int]) -> Permit | None:
        state = self.breakers.states.get(tool)
        if state is None or state.phase is BreakerPhase.CLOSED:
            return None
        rule = Rule.BREAKER_OPEN
        if state.by_hand:
            reason, rule = refusals.switched_off(tool), Rule.BREAKER_BY_HAND
        elif not self.policy.breaker:
            return None
        elif state.phase is BreakerPhase.OPEN:
            reason = refusals.left_out(
                tool,
                state.failures,
                state.reopen_at,
                different=len(state.keys) > 1,
                probed=state.span > self.policy.breaker_iterations,
            )
        elif earlier.get(tool, 0):
            reason, rule = refusals.probing(tool), Rule.BREAKER_PROBE
        else:
            return None
        return Permit(False, "breaker", reason, rule=rule)

    def open_tools(self) -> frozenset[str]:
        """Tools that are left out of the tool list now."""
        return self.breakers.open_tools(active=self.policy.breaker) if self.breakers.states else frozenset()

    def rejects_text(self, text: str) -> bool:
        """Whether a text-only reply is a `no_tool_call` failure; else it ends the run as its answer.

        `combined` rejects it once for a failing step where nobody reads it, and never a question.
        """
        match self.policy.text_only:
            case "failure":
                return True
            case "answer":
                return False
            case "failure_once":
                return self.failed_since_success and not self.operator_present and not puts_question(text)

    # --- joining ---------------------------------------------------------------------------------------------

    def _judged(self) -> RecoveryState:
        return evolve(self, last_verdicts=tuple(self.verdicts()))

    def verdicts(self) -> Iterator[events.VerdictRecord]:
        """What each detector that the policy uses says now."""
        policy, present, active = self.policy, self.operator_present, self.with_a_say
        if verdict.TRIALS in active:
            yield trials.trials_verdict(self.attempts, policy, operator_present=present)
        if verdict.ATTEMPTS in active:
            yield self.attempts.verdict(policy, goes_on=self.goes_on and policy.attempts == "block")
        yield self.form.verdict(policy, present)
        if verdict.RING in active:
            yield self.ring.verdict(policy, present)
        if verdict.STREAK in active:
            yield self.streak.verdict(policy, present, goes_on=self.goes_on)
        if verdict.COGNITION in active:
            yield self.cognition.verdict(policy)
        if verdict.STUCK in active:
            yield self.stuck.verdict(present)
        if verdict.BREAKER in active:
            yield self.breakers.verdict()
        yield self.faults.verdict()
        if verdict.IMPLICIT in active:
            yield self.implicit.verdict()


def puts_question(text: str) -> bool:
    """Whether the last paragraph of a reply holds a question, code left out; choices belong to what stands above."""
    words = _CODE.sub("", _FENCE.sub("", text[-4_000:]))
    for paragraph in reversed([one for one in _PARAGRAPHS.split(words) if one.strip()]):
        if _QUESTION.search(paragraph):
            return True
        if not all(_CHOICE.match(line) for line in paragraph.splitlines() if line.strip()):
            return False
    return False


def _run_started(state: RecoveryState, event: events.RunStarted) -> RecoveryState:
    policy = policy_of_run(event.policy, event.policy_settings)
    attempts = AttemptLedger(limit=policy.attempts_limit)
    breakers = state.breakers.next_run(event.tools, event.effects)
    if policy.persist and event.kept is not None:
        attempts, breakers = attempts_with(attempts, event.kept), breakers_with(breakers, event.kept)
    return RecoveryState(
        policy=policy,
        with_a_say=policy.detectors,
        operator_present=event.operator_present,
        on_escalation=event.on_escalation,
        tools=event.tools,
        attempts=attempts,
        streak=ErrorStreak(limit=policy.streak_limit),
        cognition=CognitiveState(
            confidence=policy.confidence_start, next_step=state.cognition.next_step.next_run()
        ),
        form=FormErrors(written=0 if event.tool_calls == "auto" else None),
        breakers=breakers,
        implicit=state.implicit.next_run(event.task),
        wanted=times_wanted(event.task, policy.stuck_waits),
    )


def _iteration_started(state: RecoveryState, _: events.IterationStarted) -> RecoveryState:
    faults = state.faults.next_iteration()
    kept = (state.pending, state.rejected, state.reply, state.seen, state.advice)
    if not (any(kept) or faults is not state.faults):
        return state
    return evolve(state, pending=(), rejected=None, reply=None, seen=(), advice=None, faults=faults)


def _result(state: RecoveryState, event: events.ToolResult) -> RecoveryState:
    pending = (*state.pending, result_of_call(event, state.policy))
    if pending[-1].status is CallStatus.UNVERIFIED:
        return evolve(state, pending=pending, implicit=state.implicit.sent_back())
    return evolve(state, pending=pending)


def _reply_rejected(state: RecoveryState, event: events.ReplyRejected) -> RecoveryState:
    if event.unverified:
        return evolve(state, implicit=state.implicit.sent_back(event.failure.message))
    return evolve(state, rejected=event.failure)


def _reply_finished(state: RecoveryState, event: events.ReplyFinished) -> RecoveryState:
    changes: dict[str, Any] = {
        "reply": event,
        "implicit": state.implicit.replied(event.missing, event.unread),
    }
    stuck = state.stuck.replied(with_calls=bool(event.calls))
    if stuck is not state.stuck:
        changes["stuck"] = stuck
    if state.faults.last is not None:
        changes["faults"] = state.faults.answered()
        changes["cognition"] = state.cognition.model_answered(state.policy)
    return evolve(state, **changes)


def was_cut(reply: events.ReplyFinished | None) -> bool:
    """Whether the length limit ended a reply of text alone that is worth going on with."""
    return reply is not None and not reply.calls and reply.broken is None and reply.finish_reason == "length"


_EVERY = frozenset(verdict.DETECTORS)


def _iteration_finished(state: RecoveryState, event: events.IterationFinished) -> RecoveryState:
    return _ended(state, event, _EVERY)


def _iteration_judged(state: RecoveryState, event: events.IterationFinished) -> RecoveryState:
    return _ended(state, event, state.with_a_say)


def _ended(state: RecoveryState, event: events.IterationFinished, detectors: frozenset[str]) -> RecoveryState:
    """The iteration is over: `detectors` are given all of it."""
    policy, reply = state.policy, state.reply
    results = in_call_order(state.pending)
    changes, marks = state.changes, (0,) * len(results)
    moved: tuple[bool, ...] = ()
    if detectors is _EVERY or policy.trials != "off" or policy.findings:
        changes, marks, moved = changes.apply(results, state._effects(), state.seen)
    findings, results = state.findings.judge(results, changes, marks)
    polls, results = state.polls.judge(results, policy, state.wanted)
    last = close(
        event.iteration,
        results,
        state.rejected,
        seq=event.seq,
        at=event.at,
        cancelled=event.cancelled,
        unanswered=reply is None and state.faults.last is not None and not event.cancelled,
    )
    failed_since_success = state.failed_since_success
    if last.rejected is not None or last.succeeded or last.cancelled:
        # What is said after an interruption is for whoever interrupted.
        failed_since_success = False
    elif last.failed:
        failed_since_success = True
    trials_count = policy.trials != "off"
    folded: dict[str, Any] = {}
    if verdict.RING in detectors:
        folded["ring"] = state.ring.apply(last, policy, state.tools, changes)
    if verdict.ATTEMPTS in detectors:
        folded["attempts"] = state.attempts.apply(last, policy, changes, marks)
    if verdict.STREAK in detectors:
        folded["streak"] = state.streak.apply(last, policy)
    if verdict.COGNITION in detectors:
        moves = trials_count and changes.count > state.changes.count
        shown = detectors is _EVERY
        folded["cognition"] = state.cognition.apply(last, policy, moved=moves, shown=shown)
    if verdict.STUCK in detectors:
        folded["stuck"] = state.stuck.apply(last, policy, moved if trials_count else (), state.wanted)
    if verdict.BREAKER in detectors:
        folded["breakers"] = state.breakers.apply(last, policy)
    if verdict.IMPLICIT in detectors:
        folded["implicit"] = state.implicit.apply(last, policy, "" if reply is None else reply.text)
    return evolve(
        state,
        pending=(),
        rejected=None,
        reply=None,
        seen=(),
        last=last,
        findings=findings,
        polls=polls,
        changes=changes,
        failed_since_success=failed_since_success,
        form=state.form.apply(last, reply, cut=was_cut(reply)),
        **folded,
    )._judged()


def _model_faulted(state: RecoveryState, event: events.ModelFaulted) -> RecoveryState:
    faults = state.faults.apply(event)
    stuck, policy = state.stuck, state.policy
    if event.fault.kind is events.FaultKind.CONTEXT_OVERFLOW:
        stuck = stuck.overflowed(policy)
    found = [faults.verdict()]
    if policy.stuck and stuck is not state.stuck:
        found.insert(0, stuck.verdict(state.operator_present))
    return evolve(
        state,
        faults=faults,
        stuck=stuck,
        cognition=state.cognition.faulted_by(event, policy),
        last_verdicts=tuple(found),
    )


def _advised(state: RecoveryState, event: events.Advised) -> RecoveryState:
    return evolve(state, advice=event)


def _operator_spoke(state: RecoveryState, event: events.OperatorSpoke) -> RecoveryState:
    wanted = max(state.wanted, times_wanted(event.text, state.policy.stuck_waits))
    return evolve(state, stuck=state.stuck.next_era(), failed_since_success=False, wanted=wanted)


def _interrupted(state: RecoveryState, event: events.Interrupted) -> RecoveryState:
    if event.cause != "operator":
        return state
    return evolve(state, implicit=state.implicit.interrupted())


def _escalation_raised(state: RecoveryState, event: events.EscalationRaised) -> RecoveryState:
    return evolve(state, raised=event)


def _escalation_answered(state: RecoveryState, event: events.EscalationAnswered) -> RecoveryState:
    raised = state.raised if state.raised is not None and state.raised.id == event.id else None
    if raised is not None and raised.source in {"model", *OF_BOUNDS}:
        return evolve(state, raised=None)
    if raised is not None and raised.source in OF_NO_FAILURE:
        stuck = state.stuck.next_era() if event.by == "operator" else state.stuck
        return evolve(state, raised=None, stuck=stuck)
    attempts = state.attempts
    keys = _keys_asked_about(state, event, raised)
    if event.by == "operator" and choice_of(event) in {"retry", "edit"}:
        attempts = attempts.allow(keys)
    else:
        attempts = attempts.settle(keys, event)
    if event.by == "policy":
        return evolve(state, raised=None, attempts=attempts)
    return evolve(
        state,
        raised=None,
        attempts=attempts,
        ring=state.ring.answered(),
        streak=state.streak.answered(),
        cognition=state.cognition.answered(state.policy),
        form=state.form.answered(),
        stuck=state.stuck.next_era(),
        wanted=max(state.wanted, times_wanted(event.text, state.policy.stuck_waits)),
    )


def _keys_asked_about(
    state: RecoveryState, event: events.EscalationAnswered, raised: events.EscalationRaised | None
) -> tuple[str, ...]:
    """The calls that an answer concerns: those whose attempts asked, and the one that the operator edited."""
    keys: tuple[str, ...] = ()
    if raised is None or raised.source in {verdict.ATTEMPTS, verdict.TRIALS}:
        keys = state.attempts.triggered
    if event.choice == "edit" and event.tool and event.input is not None:
        keys = (state.key(event.tool, event.input),)
    elif raised is not None and raised.key:
        keys = (raised.key,)
    return keys


def _checkpoint_saved(state: RecoveryState, event: events.CheckpointSaved) -> RecoveryState:
    """A look at the workspace: while calls of the open reply have ended it is about them, else about the last
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
        return evolve(state, seen=(*state.seen, *files))
    return _changed_by_others(state, unexplained((), files))


def _seen_late(state: RecoveryState, last: Iteration, files: tuple[str, ...]) -> RecoveryState:
    """What the last iteration has changed is known only after it was judged."""
    changes = state.changes.seen_after(last, files)
    if changes is state.changes or not last.succeeded:
        return evolve(state, changes=changes)
    return evolve(state, changes=changes, stuck=state.stuck.next_era())


def _changed_by_others(state: RecoveryState, names: tuple[str, ...]) -> RecoveryState:
    """Not by a call of the run: the operator, another session, a command in the background."""
    if not names:
        return state
    return evolve(state, changes=state.changes.by((), names), stuck=state.stuck.next_era())


def _own_command_ended(state: RecoveryState, event: events.OwnCommandEnded) -> RecoveryState:
    state = evolve(state, implicit=state.implicit.any_file_shown())
    if writes(event.command) is Writes.NOTHING:
        return state
    return _changed_by_others(state, (event.command,))


def _background_started(state: RecoveryState, event: events.BackgroundStarted) -> RecoveryState:
    calls = () if state.reply is None else state.reply.calls
    keys = [call.key for call in calls if call.id == event.call_id]
    return evolve(state, changes=state.changes.by(keys, (event.command,)))


def _background_ended(state: RecoveryState, event: events.BackgroundEnded) -> RecoveryState:
    return _changed_by_others(state, (event.command or event.id,))


def _rewound(state: RecoveryState, event: events.Rewound) -> RecoveryState:
    return state if event.scope == "conversation" else _changed_by_others(state, ("the files, brought back",))


def _notice(state: RecoveryState, event: events.Notice) -> RecoveryState:
    if event.origin != "checkpoint":
        return state
    return evolve(state, changes=state.changes.looked_at(watched=False))


def _session_resumed(state: RecoveryState, event: events.SessionResumed) -> RecoveryState:
    if event.operator_present is None:
        return state
    unanswered = event.on_escalation or state.on_escalation
    return evolve(state, operator_present=event.operator_present, on_escalation=unanswered)


def _breaker_set(state: RecoveryState, event: events.BreakerSet) -> RecoveryState:
    return evolve(state, breakers=state.breakers.set_by_hand(event.tool, opened=event.open))


HANDLERS: dict[type[events.Event], Callable[[RecoveryState, Any], RecoveryState]] = {
    events.RunStarted: _run_started,
    events.IterationStarted: _iteration_started,
    events.ReplyFinished: _reply_finished,
    events.ReplyRejected: _reply_rejected,
    events.ModelFaulted: _model_faulted,
    events.ToolSucceeded: _result,
    events.ToolFailed: _result,
    events.ToolRefused: _result,
    events.ToolCancelled: _result,
    events.ToolEnded: _result,
    events.IterationFinished: _iteration_finished,
    events.Advised: _advised,
    events.OperatorSpoke: _operator_spoke,
    events.Interrupted: _interrupted,
    events.EscalationRaised: _escalation_raised,
    events.EscalationAnswered: _escalation_answered,
    events.SessionResumed: _session_resumed,
    events.BreakerSet: _breaker_set,
    events.CheckpointSaved: _checkpoint_saved,
    events.OwnCommandEnded: _own_command_ended,
    events.BackgroundStarted: _background_started,
    events.BackgroundEnded: _background_ended,
    events.Rewound: _rewound,
    events.Notice: _notice,
}

WITH_A_SAY: dict[type[events.Event], Callable[[RecoveryState, Any], RecoveryState]] = {
    **HANDLERS,
    events.IterationFinished: _iteration_judged,
}
"""The same without the detectors that the policy leaves out, which are there to be shown."""
