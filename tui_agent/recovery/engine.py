"""The recovery engine: one state that folds the events into every detector and joins what they say.

Tool results of the open iteration are kept until it ends; then each detector is given the whole iteration, in the
order of the calls. All detectors fold under every policy, so that the panes can show them; only those that the
policy switches on have a say. The engine asks nobody and changes nothing: it is a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tui_agent import events as e
from tui_agent.evolve import evolve
from tui_agent.recovery import verdict
from tui_agent.recovery.attempts import AttemptLedger
from tui_agent.recovery.cognition import CognitiveState
from tui_agent.recovery.iteration import Iteration, Outcome, close, outcome_of
from tui_agent.recovery.model_faults import ModelFaults
from tui_agent.recovery.policy import PRESETS, RecoveryPolicy, policy_of_run
from tui_agent.recovery.ring import ErrorRing
from tui_agent.recovery.signature import call_key
from tui_agent.recovery.streak import ErrorStreak
from tui_agent.recovery.stuck import StuckPatterns
from tui_agent.recovery.tool_breaker import BreakerPhase, ToolBreakers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Refusal = Literal["", "blocked", "withheld", "breaker"]


@dataclass(frozen=True)
class Permit:
    """Whether a call may run now. `reason` is for the model; `earlier_result` what it reads for a withheld call."""

    allowed: bool
    refusal: Refusal = ""
    reason: str = ""
    earlier_result: str = ""


ALLOWED = Permit(allowed=True)


@dataclass(frozen=True)
class RecoveryState:
    """All detectors of one run, and what they said last."""

    policy: RecoveryPolicy = PRESETS["combined"]
    operator_present: bool = True
    tools: tuple[str, ...] = ()
    """Tools of the run, for the note on unknown ones."""
    ring: ErrorRing = field(default_factory=ErrorRing)
    attempts: AttemptLedger = field(default_factory=AttemptLedger)
    streak: ErrorStreak = field(default_factory=ErrorStreak)
    cognition: CognitiveState = field(default_factory=CognitiveState)
    faults: ModelFaults = field(default_factory=ModelFaults)
    stuck: StuckPatterns = field(default_factory=StuckPatterns)
    breakers: ToolBreakers = field(default_factory=ToolBreakers)
    pending: tuple[Outcome, ...] = ()
    """Results of the open iteration, in the order in which they came."""
    rejected: e.Failure | None = None
    """The open iteration's text-only reply that was not taken as an answer."""
    last: Iteration | None = None
    """The iteration that ended last."""
    unmended: bool = False
    """An iteration failed, nothing succeeded since, and the model was not yet told to go on (5.3)."""
    raised: e.EscalationRaised | None = None
    """The question that waits for the operator."""
    spoken: tuple[e.VerdictRecord, ...] = ()
    """The verdicts of the active detectors after the last iteration or model fault."""

    def apply(self, event: e.Event) -> RecoveryState:
        """The state after one more event; events that do not concern recovery change nothing."""
        handler = _HANDLERS.get(type(event))
        return self if handler is None else handler(self, event)

    # --- what it says ----------------------------------------------------------------------------------------

    def verdicts(self) -> tuple[e.VerdictRecord, ...]:
        """Every active detector's verdict after the last iteration or model fault, `continue` included."""
        return self.spoken

    def strongest(self) -> e.VerdictRecord:
        """The verdict that counts: the highest level, ties in the order of `verdict.DETECTORS`."""
        return verdict.strongest(self.spoken)

    def subject(self) -> tuple[str, dict[str, Any]] | None:
        """The call (tool, input) that the strongest verdict is about, when it is about one."""
        detector = self.strongest().detector
        if detector == verdict.ATTEMPTS:
            entry = self.attempts.subject(self.policy)
            return None if entry is None else (entry.tool, dict(entry.input))
        call = self.stuck.subject if detector == verdict.STUCK else None
        return None if call is None else (call.tool, dict(call.input))

    def permit(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        earlier: Sequence[tuple[str, Mapping[str, Any]]] = (),
    ) -> Permit:
        """Whether this call may be executed. `earlier` are the calls of the same reply that were let through."""
        refusal = self._breaker_refusal(tool, earlier)
        if refusal is not None:
            return refusal
        if self.policy.attempts == "block" and self.attempts.entries:
            key = self.attempts.key(tool, arguments)
            before = sum(
                1 for name, other in earlier if name == tool and self.attempts.key(name, other) == key
            )
            if self.attempts.blocks(key, before):
                times = self.attempts.entries[key].count
                reason = (
                    f"This call of {tool} was not executed: it has failed {times} times and is blocked until the "
                    "operator answers. Reach the goal in another way."
                )
                return Permit(allowed=False, refusal="blocked", reason=reason)
        if self.policy.stuck and self.stuck.patterns:
            known = self.stuck.withheld(call_key(tool, arguments))
            if known is not None:
                ended = "succeeded" if known.succeeded else "failed"
                reason = (
                    f"This call of {tool} was not executed again: it {ended} several times with the same outcome, "
                    "and nothing has changed since. Do something else."
                )
                return Permit(allowed=False, refusal="withheld", reason=reason, earlier_result=known.content)
        return ALLOWED

    def _breaker_refusal(self, tool: str, earlier: Sequence[tuple[str, Mapping[str, Any]]]) -> Permit | None:
        state = self.breakers.states.get(tool)
        if state is None or state.phase is BreakerPhase.CLOSED:
            return None
        if state.by_hand:
            reason = f"{tool} was switched off by the operator. Work without it."
        elif not self.policy.breaker:
            return None
        elif state.phase is BreakerPhase.OPEN:
            reason = (
                f"{tool} is switched off until iteration {state.reopen_at}: it failed {state.failures} times in a row "
                "over different inputs. Work without it."
            )
        elif any(name == tool for name, _ in earlier):
            reason = f"{tool} failed too often: one call of it is tried first, this one was not executed."
        else:
            return None
        return Permit(allowed=False, refusal="breaker", reason=reason)

    def open_tools(self) -> frozenset[str]:
        """Tools that are left out of the tool list now."""
        return self.breakers.open_tools(active=self.policy.breaker) if self.breakers.states else frozenset()

    def takes_text_as_answer(self) -> bool:
        """Whether a text-only reply ends the run now as its answer, or is a `no_tool_call` failure."""
        if self.policy.text_only == "failure_once":
            return not self.unmended
        return self.policy.text_only == "answer"

    # --- joining ---------------------------------------------------------------------------------------------

    def _judged(self) -> RecoveryState:
        return evolve(self, spoken=tuple(self._verdicts()))

    def _verdicts(self) -> Iterator[e.VerdictRecord]:
        policy, present = self.policy, self.operator_present
        if policy.attempts != "off":
            yield self.attempts.verdict(policy)
        if policy.ring:
            yield self.ring.verdict(policy)
        if policy.streak != "off":
            yield self.streak.verdict(policy, present)
        if policy.cognition != "off":
            yield self.cognition.verdict(policy)
        if policy.stuck:
            yield self.stuck.verdict(present)
        if policy.breaker:
            yield self.breakers.verdict()
        yield self.faults.verdict()


def _run_started(state: RecoveryState, event: e.RunStarted) -> RecoveryState:
    policy = policy_of_run(event.policy, event.policy_settings)
    return RecoveryState(
        policy=policy,
        operator_present=event.operator_present,
        tools=event.tools,
        attempts=AttemptLedger(as_sent=policy.attempts_key == "as_sent", limit=policy.attempts_limit),
        streak=ErrorStreak(limit=policy.streak_limit),
        cognition=CognitiveState(confidence=policy.confidence_start),
        breakers=state.breakers.next_run(),
    )


def _iteration_started(state: RecoveryState, _: e.IterationStarted) -> RecoveryState:
    return evolve(state, pending=(), rejected=None) if state.pending or state.rejected else state


def _result(state: RecoveryState, event: e.ToolResult) -> RecoveryState:
    return evolve(state, pending=(*state.pending, outcome_of(event)))


def _reply_rejected(state: RecoveryState, event: e.ReplyRejected) -> RecoveryState:
    return evolve(state, rejected=event.failure)


def _reply_finished(state: RecoveryState, event: e.ReplyFinished) -> RecoveryState:
    changes: dict[str, Any] = {}
    stuck = state.stuck.replied(with_calls=bool(event.calls))
    if stuck is not state.stuck:
        changes["stuck"] = stuck
    if state.faults.last is not None:
        changes["faults"] = state.faults.answered()
        changes["cognition"] = state.cognition.model_answered(state.policy)
    return evolve(state, **changes) if changes else state


def _iteration_finished(state: RecoveryState, event: e.IterationFinished) -> RecoveryState:
    policy = state.policy
    last = close(
        event.iteration,
        state.pending,
        state.rejected,
        seq=event.seq,
        at=event.at,
        cancelled=event.cancelled,
    )
    unmended = state.unmended
    if last.rejected is not None or last.succeeded:
        unmended = False
    elif last.failed:
        unmended = True
    return evolve(
        state,
        pending=(),
        rejected=None,
        last=last,
        unmended=unmended,
        ring=state.ring.apply(last, policy, state.tools),
        attempts=state.attempts.apply(last, policy),
        streak=state.streak.apply(last),
        cognition=state.cognition.apply(last, policy),
        stuck=state.stuck.apply(last, policy),
        breakers=state.breakers.apply(last, policy),
    )._judged()


def _model_faulted(state: RecoveryState, event: e.ModelFaulted) -> RecoveryState:
    faults = state.faults.apply(event)
    stuck, policy = state.stuck, state.policy
    if event.fault.kind is e.FaultKind.CONTEXT_OVERFLOW:
        stuck = stuck.overflowed(policy)
    spoken = [faults.verdict()]
    if policy.stuck and stuck is not state.stuck:
        spoken.insert(0, stuck.verdict(state.operator_present))
    return evolve(
        state,
        faults=faults,
        stuck=stuck,
        cognition=state.cognition.faulted_by(event, policy),
        spoken=tuple(spoken),
    )


def _operator_spoke(state: RecoveryState, _: e.OperatorSpoke) -> RecoveryState:
    return evolve(state, stuck=state.stuck.next_era(), unmended=False)


def _escalation_raised(state: RecoveryState, event: e.EscalationRaised) -> RecoveryState:
    return evolve(state, raised=event)


def _escalation_answered(state: RecoveryState, event: e.EscalationAnswered) -> RecoveryState:
    raised = state.raised if state.raised is not None and state.raised.id == event.id else None
    if raised is not None and raised.source == "model":
        return evolve(state, raised=None)
    if raised is not None and raised.source == "ask_operator":
        return evolve(state, raised=None, stuck=state.stuck.next_era())
    attempts = state.attempts
    keys = _keys_asked_about(state, event, raised)
    if event.choice in {"answer", "retry", "edit"} and event.by == "operator":
        attempts = attempts.allow(keys)
    else:
        attempts = attempts.settle(keys)
    if event.by == "policy":
        return evolve(state, raised=None, attempts=attempts)
    return evolve(
        state,
        raised=None,
        attempts=attempts,
        streak=state.streak.answered(),
        cognition=state.cognition.answered(state.policy),
        stuck=state.stuck.next_era(),
    )


def _keys_asked_about(
    state: RecoveryState, event: e.EscalationAnswered, raised: e.EscalationRaised | None
) -> tuple[str, ...]:
    """The calls that an answer concerns: the one named in it, in the question, or those that asked."""
    if event.tool and event.input is not None:
        return (state.attempts.key(event.tool, event.input),)
    if raised is not None and raised.tool:
        return (state.attempts.key(raised.tool, raised.input),)
    if raised is None or raised.source == verdict.ATTEMPTS:
        return state.attempts.spoke
    return ()


def _breaker_set(state: RecoveryState, event: e.BreakerSet) -> RecoveryState:
    return evolve(state, breakers=state.breakers.set_by_hand(event.tool, opened=event.open))


_HANDLERS: dict[type[e.Event], Callable[[RecoveryState, Any], RecoveryState]] = {
    e.RunStarted: _run_started,
    e.IterationStarted: _iteration_started,
    e.ReplyFinished: _reply_finished,
    e.ReplyRejected: _reply_rejected,
    e.ModelFaulted: _model_faulted,
    e.ToolSucceeded: _result,
    e.ToolFailed: _result,
    e.ToolRefused: _result,
    e.ToolCancelled: _result,
    e.IterationFinished: _iteration_finished,
    e.OperatorSpoke: _operator_spoke,
    e.EscalationRaised: _escalation_raised,
    e.EscalationAnswered: _escalation_answered,
    e.BreakerSet: _breaker_set,
}
