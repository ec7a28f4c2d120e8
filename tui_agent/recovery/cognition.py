"""Cognition: confidence, open uncertainties, stall, and the strategy that follows from them (FunnelCanary)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tui_agent.events import FailureKind, Level, ModelFaulted, VerdictRecord
from tui_agent.evolve import evolve
from tui_agent.recovery.iteration import Iteration, Status
from tui_agent.recovery.verdict import COGNITION, silent

if TYPE_CHECKING:
    from tui_agent.recovery.policy import RecoveryPolicy

HISTORY = 120
"""Points of the confidence curve that are kept."""

NO_CALL = "Reply without a tool call"

_LONGEST_NAME = 80


class Strategy(StrEnum):
    """What the agent should do next, by its own state."""

    CONTINUE = "CONTINUE"
    PIVOT = "PIVOT"
    DEGRADE = "DEGRADE"
    CONCLUDE = "CONCLUDE"


@dataclass(frozen=True)
class CognitiveState:
    """Confidence in [0, 1]; `uncertainties` are open lines, oldest first; `stall` counts iterations.

    `history` holds (iteration, confidence), one point an iteration. `phantoms` are the lines about tools that
    do not exist: they can never succeed, so any success after them settles them.
    """

    confidence: float = 0.3
    uncertainties: tuple[str, ...] = ()
    stall: int = 0
    strategy: Strategy = Strategy.CONTINUE
    history: tuple[tuple[int, float], ...] = ()
    phantoms: frozenset[str] = frozenset()
    moved: bool = False
    """The last iteration brought a success or a failure."""
    faulted: int = -1
    """The iteration that lost confidence for a failed model call: it loses it once, however often it is retried."""

    def apply(self, iteration: Iteration, policy: RecoveryPolicy) -> CognitiveState:
        """Fold a finished iteration. One with denials, cancellations or an answer alone moves nothing."""
        moved = iteration.succeeded or iteration.failing
        if not moved:
            return evolve(self, moved=False) if self.moved else self
        confidence, stall = self.confidence, self.stall + 1
        if iteration.succeeded:
            confidence, stall = min(policy.confidence_cap, confidence + policy.confidence_up), 0
        elif iteration.failed:
            confidence = max(0.0, confidence - policy.confidence_down)
        uncertainties, phantoms = self._lines_after(iteration)
        return self._with(
            policy,
            confidence=round(confidence, 6),
            stall=stall,
            uncertainties=uncertainties,
            phantoms=phantoms,
            moved=True,
            history=(*self.history, (iteration.number, round(confidence, 6)))[-HISTORY:],
        )

    def _lines_after(self, iteration: Iteration) -> tuple[tuple[str, ...], frozenset[str]]:
        if not iteration.failed and not self.uncertainties:
            return self.uncertainties, self.phantoms
        lines = dict.fromkeys(self.uncertainties)
        phantoms = set(self.phantoms)
        if iteration.rejected is not None:
            lines[NO_CALL] = None
        elif iteration.outcomes:
            lines.pop(NO_CALL, None)
        for outcome in iteration.outcomes:
            line = _tool_line(outcome.tool)
            if outcome.failure is not None:
                lines[line] = None
                if outcome.failure.kind is FailureKind.UNKNOWN_TOOL:
                    phantoms.add(line)
            elif outcome.status is Status.SUCCEEDED:
                for settled in (line, *phantoms):
                    lines.pop(settled, None)
                phantoms.clear()
        return tuple(lines), frozenset(phantoms)

    def faulted_by(self, event: ModelFaulted, policy: RecoveryPolicy) -> CognitiveState:
        """A model call failed: its line is open until the model answers; the confidence falls once an iteration."""
        line = _fault_line(event.fault.kind.value)
        changes: dict[str, Any] = {}
        if line not in self.uncertainties:
            changes["uncertainties"] = (*self.uncertainties, line)
        if event.iteration != self.faulted:
            confidence = round(max(0.0, self.confidence - policy.confidence_down), 6)
            changes |= {"confidence": confidence, "faulted": event.iteration}
            changes["history"] = (*self.history, (event.iteration, confidence))[-HISTORY:]
        return self._with(policy, **changes) if changes else self

    def model_answered(self, policy: RecoveryPolicy) -> CognitiveState:
        """The model answered: what was open about its interface is settled."""
        lines = tuple(line for line in self.uncertainties if not line.startswith(_FAULT_PREFIX))
        return self if lines == self.uncertainties else self._with(policy, uncertainties=lines)

    def answered(self, policy: RecoveryPolicy) -> CognitiveState:
        """The operator's answer ends the stall."""
        return self._with(policy, stall=0) if self.stall else self

    def _with(self, policy: RecoveryPolicy, **changes: Any) -> CognitiveState:
        changed = evolve(self, **changes)
        strategy = changed._strategy(policy)
        return changed if strategy is changed.strategy else evolve(changed, strategy=strategy)

    def _strategy(self, policy: RecoveryPolicy) -> Strategy:
        """In FunnelCanary's order. Where DEGRADE waits for the streak, a stall is PIVOT until the streak's limit."""
        if self.confidence >= policy.confidence_threshold and not self.uncertainties:
            return Strategy.CONCLUDE
        if self.stall >= policy.stall_threshold:
            waits = policy.cognition == "pivot" and self.stall <= policy.streak_limit
            low = self.confidence < policy.degrade_threshold
            return Strategy.DEGRADE if low and not waits else Strategy.PIVOT
        if len(self.uncertainties) >= policy.uncertainty_limit:
            return Strategy.DEGRADE
        return Strategy.CONTINUE

    def verdict(self, policy: RecoveryPolicy) -> VerdictRecord:
        """`pivot` and `degrade` by the strategy; CONCLUDE is said and never cuts work short."""
        if not self.moved:
            return silent(COGNITION)
        level, reason = Level.CONTINUE, ""
        stalled = self.stall >= policy.stall_threshold
        crowded = len(self.uncertainties) >= policy.uncertainty_limit
        if self.strategy is Strategy.CONCLUDE:
            reason = f"Confidence {self.confidence:.2f} and no open uncertainty: an answer is due"
        elif crowded and (policy.cognition == "pivot" or not stalled):
            level, reason = Level.DEGRADE, f"{len(self.uncertainties)} open uncertainties"
        elif stalled:
            acts = self.strategy is Strategy.DEGRADE and policy.cognition == "act"
            level = Level.DEGRADE if acts else Level.PIVOT
            reason = f"{self.stall} iterations without a success, confidence {self.confidence:.2f}"
        if level is Level.CONTINUE and not reason:
            return silent(COGNITION)
        return VerdictRecord(level=level, detector=COGNITION, reason=reason)


_FAULT_PREFIX = "API error: "


def _fault_line(kind: str) -> str:
    return f"{_FAULT_PREFIX}{kind}"


def _tool_line(tool: str) -> str:
    return f"Tool execution failed: {tool[:_LONGEST_NAME]}"
