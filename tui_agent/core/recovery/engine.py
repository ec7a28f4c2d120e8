"""The recovery state: every detector of one run, what they say together, and which calls may run.

All detectors count under every policy, so that the panes can show them; only those that the policy switches on have a
say. The state is a value: it asks nobody and changes nothing. How events change it stands in `folding`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.names import OnEscalation
from tui_agent.core.recovery import refusals, verdict
from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger, brings_back
from tui_agent.core.recovery.changes import Changes
from tui_agent.core.recovery.detector import Account, D, Detector, Standing, Subject
from tui_agent.core.recovery.detectors import DETECTORS, Detectors
from tui_agent.core.recovery.giving_up import gives_up
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.iteration import CallResult, Iteration, in_call_order
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy
from tui_agent.core.recovery.polling import FailingPoll
from tui_agent.core.recovery.questions import puts_question
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import call_key
from tui_agent.core.recovery.standing_findings import StandingFindings
from tui_agent.core.recovery.stuck import StuckPatterns
from tui_agent.core.recovery.time_outs import TimeOuts
from tui_agent.core.recovery.tool_breaker import BreakerPhase, ToolBreakers

Refusal = Literal["", "blocked", "withheld", "breaker"]

_PLACES = {kind: place for place, kind in enumerate(DETECTORS)}
_NAMED = {kind.name: kind for kind in DETECTORS}


@dataclass(frozen=True)
class Permit:
    """Leave for a call to run now, or none. `reason` is for the model, `earlier_result` for a withheld call."""

    allowed: bool
    refusal: Refusal = ""
    reason: str = ""
    earlier_result: str = ""
    rule: str = ""


ALLOWED = Permit(allowed=True)


def _afresh(said: events.VerdictRecord) -> events.VerdictRecord:
    """Put a fresh start in the place of an end; without a model that can be used there is none."""
    if said.level.rank < events.Level.DEGRADE.rank or said.detector == ModelFaults.name:
        return said
    return said.model_copy(update={"level": events.Level.RESTART})


@dataclass(frozen=True)
class RecoveryState:
    """All detectors of one run, and what they said last."""

    policy: RecoveryPolicy = PRESETS["combined"]
    with_a_say: frozenset[str] = PRESETS["combined"].detectors
    """The policy's detectors."""
    operator_present: bool = True
    on_escalation: OnEscalation = "partial"
    """The way on if an operator would be asked and nobody is there."""
    tools: tuple[str, ...] = ()
    """Tools of the run, for the note on unknown ones."""
    detectors: Detectors = field(default_factory=lambda: tuple(kind() for kind in DETECTORS))
    """One of each kind, in the order of `DETECTORS`."""
    changes: Changes = field(default_factory=Changes)
    """Changes in the workspace and the environment during the run."""
    looked: tuple[str, ...] = ()
    """Files of which a look at the workspace said in the open iteration that they have changed."""
    findings: StandingFindings = field(default_factory=StandingFindings)
    polls: FailingPoll = field(default_factory=FailingPoll)
    time_outs: TimeOuts = field(default_factory=TimeOuts)
    fresh_starts: int = 0
    """How often the run has begun anew."""
    wanted: int = 0
    """How often the operator's words want the same call; 0: they do not say."""
    pending: tuple[CallResult, ...] = ()
    """Results of the open iteration, in the order in which they came."""
    reply: events.ReplyFinished | None = None
    """The open iteration's reply."""
    rejected: events.Failure | None = None
    """The failure of the open iteration's reply: text alone that was not taken as an answer."""
    last: Iteration | None = None
    """The iteration that ended last."""
    failed_since_success: bool = False
    """An iteration failed, nothing succeeded since, and no text-only reply was rejected for it yet."""
    progressed: int = 0
    """The newest iteration that changed something."""
    sent_back: int = 0
    """Texts that were rejected since the workspace changed last."""
    advice: events.Advised | None = None
    """Another model's suggestion after the last iteration."""
    raised: events.EscalationRaised | None = None
    """The question that waits for the operator."""
    last_verdicts: tuple[events.VerdictRecord, ...] = ()
    """The verdicts of the active detectors after the last iteration or model fault."""

    def of(self, kind: type[D]) -> D:
        """The state of one detector."""
        return cast(D, self.detectors[_PLACES[kind]])

    def having(self, detector: Detector[Any]) -> RecoveryState:
        """Put another state of one detector in place of its own."""
        place = _PLACES[type(detector)]
        detectors = (*self.detectors[:place], detector, *self.detectors[place + 1 :])
        return evolve(self, detectors=detectors)

    @property
    def not_taken(self) -> bool:
        """The open iteration's reply is not taken as an answer."""
        return self.rejected is not None or self.of(ImplicitFailures).asked is not None

    # --- what it says ----------------------------------------------------------------------------------------

    @property
    def goes_on(self) -> bool:
        """Nobody can be asked, and what would be asked about is guided, withheld or done in another way."""
        return not self.operator_present and self.on_escalation == "continue"

    @property
    def may_start_afresh(self) -> bool:
        """Tell if the run may begin anew once more (`fresh.start`)."""
        return self.fresh_starts < self.policy.fresh_starts

    def standing(self, detectors: Detectors | None = None) -> Standing[RecoveryPolicy]:
        """Tell how the run stands, with these detectors or those that it has.

        A run of which no reply could be used yet has no other way to take, and nothing to leave behind.
        """
        held = self.detectors if detectors is None else detectors
        used = cast(ImplicitFailures, held[_PLACES[ImplicitFailures]]).called
        return Standing(self.policy, self.operator_present, self.goes_on and used, held)

    def verdicts_of(self, detectors: Detectors) -> tuple[events.VerdictRecord, ...]:
        """Ask these detectors what they say, as far as the policy uses them."""
        standing, active = self.standing(detectors), self.with_a_say
        said = tuple([one.verdict(standing) for one in detectors if one.name in active])
        return tuple(map(_afresh, said)) if standing.goes_on and self.may_start_afresh else said

    def strongest(self) -> events.VerdictRecord:
        """Choose the verdict that counts: the highest level, ties in the order of the detectors."""
        return verdict.strongest(self.last_verdicts)

    def subject(self) -> Subject | None:
        """Find the call that the strongest verdict is about, if it is about one."""
        kind = _NAMED.get(self.strongest().detector)
        return None if kind is None else self.of(kind).subject(self.standing())

    def accounts(self, key: str, tool: str) -> Iterator[tuple[str, Account]]:
        """Name each detector with what it has counted, of the call with this key and tool if one is asked about."""
        standing = self.standing()
        for detector in self.detectors:
            yield detector.name, detector.account(standing, key, tool)

    def key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Make the identity of a call under the policy."""
        return call_key(tool, arguments, self.policy.attempts_key)

    def attempt_of(self, key: str, failure: events.Failure) -> int:
        """Count which failure of its call this one is."""
        return self.of(AttemptLedger).count_with(key, failure, self.policy, self._changes_now())

    def open_tools(self) -> frozenset[str]:
        """Name the tools that are left out of the tool list now."""
        breakers = self.of(ToolBreakers)
        return breakers.open_tools(active=self.policy.breaker) if breakers.states else frozenset()

    def rejects_text(self, text: str) -> bool:
        """Tell if a text-only reply is a `no_tool_call` failure; else it ends the run as its answer.

        `combined` rejects it once for a failing step when nobody reads it, and never a question. A run that goes on
        alone persists: what gives up is rejected a few times, until the workspace changes.
        """
        match self.policy.text_only:
            case "failure":
                return True
            case "answer":
                return False
            case "failure_once":
                if self.operator_present or puts_question(text):
                    return False
                tried = self.goes_on and self.of(ImplicitFailures).called
                persists = tried and self.sent_back < self.policy.persistence
                return self.failed_since_success or (persists and gives_up(text))

    # --- which calls may run ---------------------------------------------------------------------------------

    def permit(self, tool: str, key: str, earlier: Mapping[str, int] | None = None) -> Permit:
        """Tell if this call may be executed. `earlier` counts, by key and by tool, the calls of the same reply that
        were let through.
        """
        earlier = earlier or {}
        refusal = self._breaker_refusal(tool, earlier)
        if refusal is not None:
            return refusal
        attempts, stuck = self.of(AttemptLedger), self.of(StuckPatterns)
        if self.policy.attempts == "block" and attempts.entries:
            entry = attempts.blocking(key, earlier.get(key, 0))
            if entry is not None and not self._changed_since(entry.mark, key) and not self._waited(entry):
                reason = entry.refusal(operator_present=self.operator_present).text
                return Permit(False, "blocked", reason, rule=Rule.ATTEMPTS_BLOCK)
        if self.policy.stuck and stuck.patterns:
            known = stuck.withheld(key)
            if known is not None and not self._just_changed(key):
                reason = refusals.withheld(tool, succeeded=known.succeeded)
                return Permit(False, "withheld", reason, known.content, Rule.STUCK_WITHHOLD)
        return ALLOWED

    def blocks(self, entry: AttemptEntry) -> bool:
        """Tell if this call would not run now: it is blocked, no further try is allowed, and nothing has changed."""
        barred = self.policy.attempts == "block" and entry.blocked and not entry.allowed
        return barred and not self._changed_since(entry.mark, entry.key) and not self._waited(entry)

    def unchanged_since(self, entry: AttemptEntry) -> bool:
        """Tell if nothing is known to have changed since this call failed; a policy that looks for no changes knows
        nothing of it.
        """
        return self.policy.trials != "off" and not self._changed_since(entry.mark, entry.key)

    def _waited(self, entry: AttemptEntry) -> bool:
        """Tell if what did not answer this call has had its time to come back, or was started in the open reply."""
        if entry.again is None or entry.settled == "skip":
            return False
        number = 1 if self.last is None else self.last.number + 1
        if number >= entry.again.step or any(brings_back(entry, result) for result in self.pending):
            return True
        now = 0.0 if self.reply is None else self.reply.at + sum(result.duration for result in self.pending)
        return now >= entry.again.at

    def _changed_since(self, mark: int, key: str) -> bool:
        """Tell if something has changed since the change numbered `mark`, in the open iteration included."""
        return self.policy.trials != "off" and bool(self._changes_now().since(mark, key))

    def _just_changed(self, key: str) -> bool:
        """Tell if another call of the open reply has changed something."""
        return self._changed_since(self.changes.count, key)

    def _changes_now(self) -> Changes:
        """Gather the changes, with those of the calls of the open iteration that have ended."""
        if not (self.pending or self.looked):
            return self.changes
        return self.changes.apply(in_call_order(self.pending), self.effects(), self.looked)[0]

    def effects(self) -> dict[int, str]:
        """List what the tools of the open reply's calls may do, by their place."""
        calls = () if self.reply is None else self.reply.calls
        return {place: call.effect for place, call in enumerate(calls)}

    # --- when to look at the workspace -----------------------------------------------------------------------

    def refuses_a_call(self) -> bool:
        """Tell if a call of the open reply would not run because nothing is known to have changed."""
        if self.policy.trials == "off" or self.reply is None:
            return False
        if not (self.of(AttemptLedger).entries or self.of(StuckPatterns).patterns):
            return False
        return any(
            self.permit(call.name, call.key).refusal in {"blocked", "withheld"} for call in self.reply.calls
        )

    def depends_on_order(self) -> bool:
        """Tell if a call of the open reply has failed again, and another one may have changed something before it."""
        if self.policy.trials == "off" or len(self.pending) < 2:
            return False
        entries = self.of(AttemptLedger).entries
        return any(not result.passed and result.key in entries for result in self.pending)

    def has_just_blocked(self) -> bool:
        """Tell if a call of the last iteration is blocked now: what changes from here on lets it run again."""
        attempts = self.of(AttemptLedger)
        entries = attempts.entries
        return self.policy.trials != "off" and any(
            key in entries and entries[key].blocked for key in attempts.triggered
        )

    def _breaker_refusal(self, tool: str, earlier: Mapping[str, int]) -> Permit | None:
        state = self.of(ToolBreakers).states.get(tool)
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
