"""Cognition: open uncertainties, the stall, and the strategy that follows from them (FunnelCanary).

| counts | stall: iterations without a successful call, failed model calls included, errors of form not if they have
|        | a ladder of their own · uncertainties: a line for each tool that failed and each kind of model fault |
| resets | stall: a success, the operator's answer · a line: a success of that tool, an answer of the model |

The strategies, in this order. `walk` is FunnelCanary's confidence, which rises with every iteration that has a success
and falls with every one in which all failed; `chance` estimates from recorded runs whether the next step succeeds.

| strategy | level | walk (FunnelCanary) | chance (combined) |
| CONCLUDE | continue | confidence at the threshold, no uncertainty | – (the chance says nothing about being done) |
| DEGRADE | degrade | stall and confidence below the lower threshold | – |
| PIVOT | pivot | stall | too many uncertainties, or a stall, and each of the last errors was seen before in its shape |
| DEGRADE | degrade | too many uncertainties | |
| CONTINUE | continue | else | else |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from tui_agent.core.events import FailureKind, Level, ModelFaulted, ReplyFinished, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.absence import did_not_answer
from tui_agent.core.recovery.detector import Account, Answer, Beginning, Detector, Standing, Step
from tui_agent.core.recovery.iteration import CallStatus, Iteration, shape_of
from tui_agent.core.recovery.next_step import NextStep
from tui_agent.core.recovery.parameters import Count, Parameters, Share
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import verdict
from tui_agent.quantities import of_limit

HISTORY = 120
"""Points of the confidence curve that are kept."""

NO_CALL = "Reply without a tool call"

_LONGEST_NAME = 80

_SHAPES = 50
"""Shapes of errors that are remembered in a run."""


class CognitionParameters(Parameters):
    """Confidence, stall and uncertainties."""

    cognition: Literal["off", "walk", "chance"] = "chance"
    """The ground for PIVOT: nothing, FunnelCanary's confidence, or repetition; with it the chance of the next step is
    estimated.
    """
    pivot_errors: Count = 3
    """PIVOT under `chance` needs so many of the newest errors to have been seen before, in their shape."""
    confidence_start: Share = 0.3
    """Confidence at the start of a run."""
    confidence_up: Share = 0.1
    """Gained by a step with a successful call."""
    confidence_down: Share = 0.1
    """Lost by a step in which all failed, and by a failed model call."""
    confidence_cap: Share = 0.9
    """Highest confidence."""
    confidence_threshold: Share = 0.7
    """CONCLUDE from here on, when no uncertainty is open."""
    degrade_threshold: Share = 0.3
    """A stall below it is DEGRADE, else PIVOT."""
    stall_threshold: Count = 4
    """Steps without a success that make a stall."""
    uncertainty_limit: Count = 5
    """Open uncertainties at which the note asks for another way (`walk`: at which the run ends as partial)."""


class Strategy(StrEnum):
    """The agent's next act, by its own state."""

    CONTINUE = "CONTINUE"
    PIVOT = "PIVOT"
    DEGRADE = "DEGRADE"
    CONCLUDE = "CONCLUDE"


@dataclass(frozen=True)
class CognitiveState(Detector[CognitionParameters]):
    """Values in [0, 1]; `uncertainties` are open lines, oldest first; `stall` counts iterations."""

    name = "cognition"
    parameters = CognitionParameters
    off = {"cognition": "off"}

    confidence: float = 0.3
    """FunnelCanary's walk, counted under every policy: the one figure that is shown. Under `chance` a success whose
    outcome was known does not raise it."""
    next_step: NextStep = field(default_factory=NextStep)
    """The chance that the next step succeeds."""
    uncertainties: tuple[str, ...] = ()
    stall: int = 0
    strategy: Strategy = Strategy.CONTINUE
    history: tuple[tuple[int, float], ...] = ()
    """(iteration, confidence), one point an iteration."""
    shapes: tuple[str, ...] = ()
    """Shapes of the run's errors, oldest first, each once; see `repeated`."""
    repeated: tuple[bool, ...] = ()
    """Of the newest errors, oldest first: had its shape been seen before?"""
    unknown_tool_lines: frozenset[str] = frozenset()
    """Lines about tools that do not exist: they can never succeed, so any success settles them."""
    counted: bool = False
    """The last iteration brought a success or a failure."""
    faulted: int = -1
    """The iteration that lost confidence for a failed model call: once, however often it was retried."""

    @classmethod
    def rungs(cls, policy: CognitionParameters) -> frozenset[str]:
        return _RUNGS[policy.cognition]

    def next_run(self, run: Beginning[CognitionParameters]) -> CognitiveState:
        return CognitiveState(confidence=run.policy.confidence_start, next_step=self.next_step.next_run())

    def apply(self, step: Step[CognitionParameters]) -> CognitiveState:
        """An iteration with denials, cancellations or an answer alone changes nothing."""
        iteration, policy = step.iteration, step.policy
        failing = iteration.failing(policy)
        idle = failing or iteration.refused or iteration.unanswered
        if not (iteration.succeeded or idle or iteration.failed):
            return evolve(self, counted=False) if self.counted else self
        # The walk does not go by the chance, which is there to be seen.
        estimates = step.shown or policy.cognition == "chance"
        next_step = self.next_step.apply(iteration) if estimates else self.next_step
        confidence, stall = self.confidence, self.stall
        if iteration.succeeded:
            stall = 0
            if policy.cognition != "chance" or next_step.successes > self.next_step.successes:
                confidence = min(policy.confidence_cap, confidence + policy.confidence_up)
        elif idle:
            stall += 1
            if failing:  # what a failed model call costs in confidence was taken when it failed
                confidence = max(0.0, confidence - policy.confidence_down)
        uncertainties, unknown = self._lines_after(iteration)
        shapes, repeated = self._shapes_after(iteration, policy, moved=step.any_change)
        confidence = round(confidence, 6)
        return evolve(
            self,
            confidence=confidence,
            next_step=next_step,
            stall=stall,
            uncertainties=uncertainties,
            unknown_tool_lines=unknown,
            shapes=shapes,
            repeated=repeated,
            counted=True,
            history=(*self.history, (iteration.number, confidence))[-HISTORY:],
        )._with_strategy(policy)

    def _shapes_after(
        self, iteration: Iteration, policy: CognitionParameters, *, moved: bool
    ) -> tuple[tuple[str, ...], tuple[bool, ...]]:
        """Several failures of one reply are one error, as repeated as any of them. What did not answer may come back,
        and an error after a change is another trial: both repeat none.
        """
        found = {shape_of(failure) for failure in iteration.failures() if not did_not_answer(failure)}
        if not found:
            return self.shapes, self.repeated
        seen = not moved and not found.isdisjoint(self.shapes)
        shapes = (*(shape for shape in self.shapes if shape not in found), *sorted(found))
        return shapes[-_SHAPES:], (*self.repeated, seen)[-policy.pivot_errors :]

    def _lines_after(self, iteration: Iteration) -> tuple[tuple[str, ...], frozenset[str]]:
        if not iteration.failed and not self.uncertainties:
            return self.uncertainties, self.unknown_tool_lines
        lines = dict.fromkeys(self.uncertainties)
        unknown = set(self.unknown_tool_lines)
        if iteration.rejected is not None:
            lines[NO_CALL] = None
        elif iteration.results:
            lines.pop(NO_CALL, None)
        for result in iteration.results:
            line = tool_failed_line(result.tool)
            if result.failure is not None:
                lines[line] = None
                if result.failure.kind is FailureKind.UNKNOWN_TOOL:
                    unknown.add(line)
            elif result.status is CallStatus.SUCCEEDED:
                for settled in (line, *unknown):
                    lines.pop(settled, None)
                unknown.clear()
        return tuple(lines), frozenset(unknown)

    def _faulted(self, event: ModelFaulted, policy: CognitionParameters) -> CognitiveState:
        """Count a failed model call: its line is open until the model answers; confidence falls once an iteration."""
        line = _FAULT_PREFIX + event.fault.kind.in_words
        changes: dict[str, Any] = {"next_step": self.next_step.model_faulted(event.iteration)}
        if line not in self.uncertainties:
            changes["uncertainties"] = (*self.uncertainties, line)
        if event.iteration != self.faulted:
            confidence = round(max(0.0, self.confidence - policy.confidence_down), 6)
            history = (*self.history, (event.iteration, confidence))[-HISTORY:]
            changes |= {"confidence": confidence, "faulted": event.iteration, "history": history}
        return evolve(self, **changes)._with_strategy(policy)

    def _replied(self, _: ReplyFinished, policy: CognitionParameters) -> CognitiveState:
        """Settle what was open about the model's interface."""
        if not any(line.startswith(_FAULT_PREFIX) for line in self.uncertainties):
            return self
        lines = tuple(line for line in self.uncertainties if not line.startswith(_FAULT_PREFIX))
        return evolve(self, uncertainties=lines)._with_strategy(policy)

    hears = {ModelFaulted: _faulted, ReplyFinished: _replied}

    def answered(self, answer: Answer[CognitionParameters]) -> CognitiveState:
        """End the stall, and change of the estimate what the operator's answer is about."""
        if not answer.informs:
            return self
        return evolve(self, stall=0, next_step=self.next_step.answered())._with_strategy(answer.policy)

    def afresh(self) -> CognitiveState:
        """Close what was open; the errors that were seen stay known."""
        return evolve(
            self,
            next_step=self.next_step.answered(),
            uncertainties=(),
            unknown_tool_lines=frozenset(),
            stall=0,
            repeated=(),
            strategy=Strategy.CONTINUE,
            counted=False,
        )

    def _with_strategy(self, policy: CognitionParameters) -> CognitiveState:
        strategy = self._strategy(policy)
        return self if strategy is self.strategy else evolve(self, strategy=strategy)

    def _strategy(self, policy: CognitionParameters) -> Strategy:
        """Choose by the table at the head of this file, line by line."""
        stalled = self.stall >= policy.stall_threshold
        crowded = self._crowded(policy)
        if policy.cognition == "chance":
            goes_round = sum(self.repeated) >= policy.pivot_errors
            return Strategy.PIVOT if crowded or (stalled and goes_round) else Strategy.CONTINUE
        if self.confidence >= policy.confidence_threshold and not self.uncertainties:
            return Strategy.CONCLUDE
        if stalled:
            return Strategy.DEGRADE if self.confidence < policy.degrade_threshold else Strategy.PIVOT
        return Strategy.DEGRADE if crowded else Strategy.CONTINUE

    def _crowded(self, policy: CognitionParameters) -> bool:
        # If the form has a ladder of its own, names of tools that do not exist end nothing here.
        apart = {NO_CALL, *self.unknown_tool_lines} if policy.form != "count" else frozenset[str]()
        return sum(line not in apart for line in self.uncertainties) >= policy.uncertainty_limit

    def verdict(self, standing: Standing[CognitionParameters]) -> VerdictRecord:
        """Say the strategy as a verdict, after an iteration that brought something."""
        if not self.counted or self.strategy is Strategy.CONTINUE:
            return self.silent
        policy = standing.policy
        value = f"confidence {self.confidence:.2f}"
        stalled = f"{self.stall} steps without a success"
        match self.strategy:
            case Strategy.CONCLUDE:
                reason = f"{value} and no open uncertainty: an answer is due"
                return verdict(Level.CONTINUE, Rule.COGNITION_CONCLUDE, reason)
            case Strategy.PIVOT if policy.cognition == "chance" and self._crowded(policy):
                reason = f"{len(self.uncertainties)} open uncertainties"
                return verdict(Level.PIVOT, Rule.COGNITION_UNCERTAIN, reason)
            case Strategy.PIVOT:
                why = value if policy.cognition == "walk" else "and the same kind of error again"
                return verdict(Level.PIVOT, Rule.COGNITION_PIVOT, f"{stalled}, {why}")
            case _ if self.stall >= policy.stall_threshold and policy.cognition == "walk":
                return verdict(Level.DEGRADE, Rule.COGNITION_DEGRADE, f"{stalled}, {value}")
            case _:
                reason = f"{len(self.uncertainties)} open uncertainties"
                return verdict(Level.DEGRADE, Rule.COGNITION_UNCERTAIN, reason)

    def account(self, standing: Standing[CognitionParameters], key: str, tool: str) -> Account:
        policy = standing.policy
        stalled = of_limit(self.stall, policy.stall_threshold, "steps without progress")
        return Account(f"{stalled}, {len(self.uncertainties)} of {policy.uncertainty_limit} unresolved")


_RUNGS: dict[str, frozenset[str]] = {
    "off": frozenset(),
    "walk": frozenset({"pivot", "degrade"}),
    "chance": frozenset({"pivot"}),
}

_FAULT_PREFIX = "API error: "


def tool_failed_line(tool: str) -> str:
    """Write the open line of a tool whose call failed (FunnelCanary's words)."""
    return f"Tool execution failed: {tool[:_LONGEST_NAME]}"
