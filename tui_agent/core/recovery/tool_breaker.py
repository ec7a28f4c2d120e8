"""The circuit breaker of each tool: closed, open for some iterations, half-open for one probe.

| counts | replies in a row in which one tool failed over different inputs, infrastructure faults included; one call
|        | that fails again and again is the attempts ledger's; of commands only with one and the same error |
| resets | a success of the tool; another error after a change of the workspace; by hand |
| levels | guide when it opens: the tool is left out of the list, then one call is tried, then closed or open again for
|        | twice as long · the last tool with which something can be done is never left out |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tui_agent.core.events import BreakerSet, FailureKind, Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.detector import Account, Beginning, Detector, Standing, Step
from tui_agent.core.recovery.iteration import CallResult, CallStatus, command_of
from tui_agent.core.recovery.parameters import Count, Parameters
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import failure_signature
from tui_agent.core.recovery.verdict import verdict
from tui_agent.core.tool_facts import ACTING, Effect, named

if TYPE_CHECKING:
    from tui_agent.core.events import Kept


class BreakerParameters(Parameters):
    """Tools that fail over different inputs."""

    breaker: bool = True
    """A tool that fails over different inputs is left out for a while."""
    breaker_failures: Count = 5
    """Failures in a row that open it."""
    breaker_iterations: Count = 3
    """Steps for which it is left out the first time; doubled when the probe fails."""


class BreakerPhase(StrEnum):
    """Closed: works; open: left out of the tool list; half-open: one call is let through as a probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True)
class BreakerState:
    """One tool's breaker. `reopen_at` is the iteration from which a probe is let through (0: not by itself)."""

    phase: BreakerPhase = BreakerPhase.CLOSED
    failures: int = 0
    """Failures in a row that count."""
    reopen_at: int = 0
    span: int = 0
    """Iterations for which it is or was left out; doubles with each failed probe."""
    by_hand: bool = False
    keys: frozenset[str] = frozenset()
    """Inputs that failed since the last success."""
    signature: str = ""
    changes: int = 0
    """Changes of the workspace seen when it failed last."""


@dataclass(frozen=True)
class ToolBreakers(Detector[BreakerParameters]):
    """Breakers by tool; a tool without one is closed. `opened` are those that opened in the last iteration, `kept`
    those that had failed as often and stay because nothing can be done without them.
    """

    name = "breaker"
    parameters = BreakerParameters
    off = {"breaker": False}

    states: dict[str, BreakerState] = field(default_factory=dict)
    opened: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    changes: int = 0
    acting: frozenset[str] = frozenset()
    """Tools of the run that can change something; if they are not known, those of them that were called."""
    known: bool = False
    """The tools of the run are known."""

    @classmethod
    def rungs(cls, policy: BreakerParameters) -> frozenset[str]:
        return frozenset({"guide", "withhold"}) if policy.breaker else frozenset()

    def open_tools(self, *, active: bool) -> frozenset[str]:
        """Name the tools that are left out of the list now. If the policy has no breaker, only those opened by hand."""
        return frozenset(
            tool
            for tool, state in self.states.items()
            if state.phase is BreakerPhase.OPEN and (active or state.by_hand)
        )

    def apply(self, step: Step[BreakerParameters]) -> ToolBreakers:
        """Fold a finished iteration: results in call order, then the waits that end."""
        iteration = step.iteration
        states, opened, kept, changes = self.states, dict[str, None](), dict[str, None](), self.changes
        counted: set[str] = set()
        acting = self.acting if self.known else self.acting | _acting(one.tool for one in iteration.results)
        for result in iteration.results:
            changes += result.changed
            old = states.get(result.tool)
            new = _after(old, result, iteration.number, step.policy, changes, again=result.tool in counted)
            if result.failure is not None:
                counted.add(result.tool)
            if new is old:
                continue
            if new and new.phase is BreakerPhase.OPEN and _is_last(result.tool, acting, states):
                # It goes on as it was: closed, or with one call at a time.
                phase = BreakerPhase.CLOSED if old is None else old.phase
                new = evolve(new, phase=phase, span=0 if old is None else old.span, reopen_at=0)
                kept[result.tool] = None
            states = {**states, result.tool: new} if new else _without(states, result.tool)
            if new and new.phase is BreakerPhase.OPEN:
                opened[result.tool] = None
        for tool, state in states.items():
            due = 0 < state.reopen_at <= iteration.number + 1
            if state.phase is BreakerPhase.OPEN and due and not state.by_hand:
                states = {**states, tool: evolve(state, phase=BreakerPhase.HALF_OPEN)}
        told = opened or kept or self.opened or self.kept
        if states is self.states and not told and changes == self.changes and acting == self.acting:
            return self
        return evolve(
            self, states=states, opened=tuple(opened), kept=tuple(kept), changes=changes, acting=acting
        )

    def _set_by_hand(self, event: BreakerSet, _: BreakerParameters) -> ToolBreakers:
        """Open a breaker until the operator closes it, or close it."""
        tool = event.tool
        if named(tool).effect is Effect.DIALOGUE:
            return self
        if not event.open:
            return evolve(self, states=_without(self.states, tool)) if tool in self.states else self
        state = self.states.get(tool, BreakerState())
        by_hand = evolve(state, phase=BreakerPhase.OPEN, by_hand=True, reopen_at=0)
        return evolve(self, states={**self.states, tool: by_hand})

    hears = {BreakerSet: _set_by_hand}

    def next_run(self, run: Beginning[BreakerParameters]) -> ToolBreakers:
        """Tools that the operator opened stay open; all counts are forgotten."""
        tools, effects = run.event.tools, run.event.effects
        by_hand = {
            tool: BreakerState(BreakerPhase.OPEN, by_hand=True)
            for tool, state in self.states.items()
            if state.by_hand
        }
        breakers = ToolBreakers(by_hand, acting=_acting(tools, effects or {}), known=bool(tools))
        kept = run.event.kept if run.policy.persist else None
        return breakers if kept is None else breakers.with_kept(kept)

    def with_kept(self, kept: Kept) -> ToolBreakers:
        """Take over the breakers of an earlier run: those that were open let one call through."""
        states = {
            one.tool: BreakerState(BreakerPhase.HALF_OPEN, failures=one.failures, span=one.span)
            for one in kept.breakers
            if one.tool not in self.states
        }
        return evolve(self, states={**self.states, **states}) if states else self

    def afresh(self) -> ToolBreakers:
        """Let one call through of each tool that was left out, unless the operator did that."""
        states = {
            tool: state if state.by_hand else evolve(state, phase=BreakerPhase.HALF_OPEN)
            for tool, state in self.states.items()
            if state.by_hand or state.phase is not BreakerPhase.CLOSED
        }
        return evolve(self, states=states, opened=(), kept=())

    def verdict(self, standing: Standing[BreakerParameters]) -> VerdictRecord:
        """`guide` when a breaker opened: the model must know that the tool is gone, and for how long."""
        if not self.opened and self.kept:
            tools = " and ".join(self.kept)
            reason = f"{tools} failed over different inputs and stays: nothing can be done without it"
            return verdict(Level.GUIDE, Rule.BREAKER_LAST_TOOL, reason)
        if not self.opened:
            return self.silent
        reason = "; ".join(f"{tool} is left out for {self.states[tool].span} steps" for tool in self.opened)
        return verdict(Level.GUIDE, Rule.BREAKER_OPEN, reason)

    def account(self, standing: Standing[BreakerParameters], key: str, tool: str) -> Account:
        state = self.states.get(tool)
        if state is None:
            return Account()
        failures = f"{state.failures} of {standing.policy.breaker_failures} failures of different calls"
        return Account(f"{tool}: {failures}, {state.phase.replace('_', '-')}")


def _acting(tools: Iterable[str], effects: Mapping[str, str] | None = None) -> frozenset[str]:
    """Choose those of the tools that can change something, as far as it is known."""
    known = effects or {}
    return frozenset(
        tool for tool in tools if (known[tool] in ACTING if tool in known else not named(tool).looks_only)
    )


def _is_last(tool: str, acting: frozenset[str], states: Mapping[str, BreakerState]) -> bool:
    """Tell if nothing could be done any more without this tool."""
    left = (one for one in acting if one != tool)
    return tool in acting and all(one in states and states[one].phase is BreakerPhase.OPEN for one in left)


def _after(
    old: BreakerState | None,
    result: CallResult,
    iteration: int,
    policy: BreakerParameters,
    changes: int,
    *,
    again: bool,
) -> BreakerState | None:
    """`again`: another call of the same reply has failed already, and a reply is one sign (`failure.batch`)."""
    # Without its dialogue an agent can neither end nor ask.
    if result.facts.effect is Effect.DIALOGUE or (old is not None and old.by_hand):
        return old
    if result.status is CallStatus.SUCCEEDED:
        return None
    failure = result.failure
    if failure is None or failure.kind is not FailureKind.TOOL_EXECUTION:
        return old
    state = old or BreakerState()
    if state.phase is BreakerPhase.OPEN:
        return old
    if state.phase is BreakerPhase.HALF_OPEN:
        return _opened(state, iteration, state.span * 2)
    signature = failure_signature(failure)
    if not failure.transient:
        if state.failures and changes > state.changes and signature != state.signature:
            state = BreakerState()  # an edit, and it fails in another way: work, not a broken tool
        elif state.failures and signature != state.signature and command_of(result.input) is not None:
            state = BreakerState()  # other programs that fail each in its own way: not the tool
        elif result.key in state.keys:
            return evolve(state, signature=signature, changes=changes)
    state = evolve(
        state,
        failures=state.failures + (not (again and state.failures)),
        keys=state.keys | {result.key},
        signature=signature,
        changes=changes,
    )
    if state.failures >= policy.breaker_failures:
        return _opened(state, iteration, policy.breaker_iterations)
    return state


def _opened(state: BreakerState, iteration: int, span: int) -> BreakerState:
    return evolve(state, phase=BreakerPhase.OPEN, span=span, reopen_at=iteration + span + 1)


def _without(states: dict[str, BreakerState], tool: str) -> dict[str, BreakerState]:
    return {other: state for other, state in states.items() if other != tool}
