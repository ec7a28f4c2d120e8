"""Stuck patterns: runs of calls that bring nothing new, successes included.

| counts | the same call with the same outcome · two calls in turn with the same outcomes · replies in a row without a
|        | call · overflows of the window in a row; calls within a progress epoch, refusals of a blocked call included;
|        | of a call that waits many more (`polling`), of one that the operator wants as many (`wanted`) · different
|        | calls with one result (`paraphrases`) |
| resets | a change of files, a new outcome, a new call with a new outcome, the operator's words begin an epoch, so that
|        | re-reading after an edit, re-running tests, paging and polling are work and not loops |
| levels | guide when seen · the call is withheld · still on: ask if an operator is there, else stop, which a pivot
|        | precedes if the run goes on alone; of different calls with one result no more than guide |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from tui_agent.core.events import FaultKind, Level, ModelFaulted, ReplyFinished, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.absence import did_not_answer
from tui_agent.core.recovery.detector import Answer, Detector, Standing, Step
from tui_agent.core.recovery.iteration import FORM_ERRORS, CallResult, CallStatus
from tui_agent.core.recovery.parameters import Count, CountFrom0, Parameters
from tui_agent.core.recovery.paraphrases import near_identical, only_looks, says_much
from tui_agent.core.recovery.polling import clock_moved, waits
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import same_text
from tui_agent.core.recovery.verdict import verdict
from tui_agent.core.tool_facts import UNKNOWN, ToolFacts
from tui_agent.quantities import counted_in_words

REPEAT = "repeat"
ALTERNATION = "alternation"
PARAPHRASES = "paraphrases"
MONOLOGUE = "monologue"
OVERFLOW = "overflow"

_COUNTED = frozenset({CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.BLOCKED, CallStatus.WAITING})

_LAST_ROUND = 2
"""Rounds for which a pattern went on after it was seen: in the first its calls are withheld, the second is one too
many. A round of an alternation is both of its calls."""


class StuckParameters(Parameters):
    """Patterns of calls that bring nothing new."""

    stuck: bool = True
    """Patterns of calls that bring nothing new: warned of, then withheld, then escalated or stopped."""
    stuck_window: Annotated[int, Field(ge=6)] = 20
    """How many of the newest calls are searched for patterns."""
    stuck_repeats: Annotated[int, Field(ge=2)] = 4
    """How often the same call may have the same outcome; at most `stuck_window`."""
    stuck_waits: Annotated[int, Field(ge=2)] = 30
    """The same for a call that waits: it sleeps or watches, takes a second or more, or shows a clock."""
    stuck_paraphrases: CountFrom0 = 4
    """Different calls that only look and show the same, at which the model is told; 0: never."""
    stuck_alternation: Annotated[int, Field(ge=4)] = 6
    """Calls in a row that alternate between two, with the same outcomes; at most `stuck_window`."""
    stuck_monologue: Annotated[int, Field(ge=2)] = 3
    """Assistant messages in a row without a call."""
    stuck_overflows: Count = 2
    """Overflow retries in a row without effect."""


@dataclass(frozen=True)
class Sighting:
    """One executed call in the window. `content` is the outcome: the result, or the failure's message."""

    key: str
    tool: str
    input: Mapping[str, Any]
    succeeded: bool
    content: str
    epoch: int
    era: int
    waited: bool = False
    """It is polled: this call of it or one before in the row waited."""
    times: int = 1
    """Calls of it in the row, this one included."""
    reply: int = 0
    """The iteration in which it was made."""
    facts: ToolFacts = UNKNOWN

    def same_outcome(self, other: Sighting) -> bool:
        """Ended alike, volatile parts of the text left out."""
        return self.succeeded == other.succeeded and same_text(self.content, other.content)


@dataclass(frozen=True)
class Pattern:
    """A pattern that was seen in this epoch. `extensions`: calls by which it went on since it was seen."""

    name: str
    keys: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()
    extensions: int = 0
    moving: bool = True
    """It was seen or went on in the last iteration."""
    waited: bool = False
    """Its call waits for something."""
    calls: int = 0
    """Different calls with one result, if these are the pattern."""

    @property
    def rounds(self) -> int:
        """Rounds for which it goes on after a warning, its call withheld. Replies without a call are for the form to
        end, and a call that was not made before is never withheld.
        """
        return 0 if self.name in {MONOLOGUE, PARAPHRASES} else self.extensions // max(1, len(self.keys))

    @property
    def exhausted(self) -> bool:
        """It goes on although it was warned of."""
        return self.rounds >= _LAST_ROUND

    @property
    def words(self) -> str:
        """The pattern in words."""
        if self.name == REPEAT:
            return f"the same call of {self.tools[0]} with the same outcome again and again"
        if self.name == ALTERNATION:
            return f"two calls ({' and '.join(self.tools)}) in turn with the same outcomes"
        if self.name == PARAPHRASES:
            calls = counted_in_words(self.calls, "different call")
            return f"{calls} with one and the same result, and nothing changed in between"
        if self.name == MONOLOGUE:
            return "several messages in a row without a tool call"
        return "the prompt stays too long although the request was shortened"


@dataclass(frozen=True)
class StuckPatterns(Detector[StuckParameters]):
    """The last calls with their outcomes, the epoch that counts, and the patterns seen in it."""

    name = "stuck"
    parameters = StuckParameters
    off = {"stuck": False}
    judges_faults = True

    window: tuple[Sighting, ...] = ()
    epoch: int = 0
    era: int = 0
    """Epochs that a change of the workspace or the operator began. Calls of one alternation share it, while the first
    of each, being new, begins an epoch of its own."""
    patterns: tuple[Pattern, ...] = ()
    silent_replies: int = 0
    """Assistant messages in a row without a call."""
    overflows: int = 0
    """Overflow faults in a row."""

    # --- folding ---------------------------------------------------------------------------------------------

    @classmethod
    def rungs(cls, policy: StuckParameters) -> frozenset[str]:
        return frozenset({"guide", "withhold", "escalate", "stop"}) if policy.stuck else frozenset()

    def apply(self, step: Step[StuckParameters]) -> StuckPatterns:
        """Fold a finished iteration, in call order; the same call twice in it counts once."""
        state = self._rested()
        counted: set[str] = set()
        for result, changed in zip(step.iteration.results, step.changed, strict=True):
            if result.key in counted:
                if changed:
                    state = state.disturbed()
                continue
            counted.add(result.key)
            if result.status is CallStatus.WITHHELD:
                state = state._extended(result.key)
            elif result.failure is not None and (
                did_not_answer(result.failure) or result.failure.kind in FORM_ERRORS
            ):
                continue  # what does not answer may come back; what was never executed says nothing of progress
            elif result.status in _COUNTED:
                state = state._with_call(result, step, changed=changed)
        return state._with_monologue(step.policy)

    def _replied(self, event: ReplyFinished, _: StuckParameters) -> StuckPatterns:
        """Count a reply without a call; overflows in a row end."""
        with_calls = bool(event.calls)
        silent_replies = 0 if with_calls else self.silent_replies + 1
        if silent_replies == self.silent_replies and not self.overflows:
            return self
        patterns = self.patterns
        if with_calls and any(pattern.name == MONOLOGUE for pattern in patterns):
            patterns = tuple(pattern for pattern in patterns if pattern.name != MONOLOGUE)
        return evolve(self, silent_replies=silent_replies, overflows=0, patterns=patterns)

    def _faulted(self, event: ModelFaulted, policy: StuckParameters) -> StuckPatterns:
        """Count a prompt that was too long, again or for the first time."""
        if event.fault.kind is not FaultKind.CONTEXT_OVERFLOW:
            return self
        state = evolve(self._rested(), overflows=self.overflows + 1)
        beyond = state.overflows - policy.stuck_overflows
        return state if beyond < 0 else state._noted(Pattern(OVERFLOW, extensions=beyond))

    hears = {ReplyFinished: _replied, ModelFaulted: _faulted}

    def disturbed(self) -> StuckPatterns:
        """Begin an era: what was counted says nothing any more."""
        return evolve(self._next_epoch(), era=self.era + 1, silent_replies=0)

    def _next_epoch(self) -> StuckPatterns:
        return evolve(self, epoch=self.epoch + 1, patterns=())

    def _rested(self) -> StuckPatterns:
        if not any(pattern.moving for pattern in self.patterns):
            return self
        return evolve(self, patterns=tuple(evolve(pattern, moving=False) for pattern in self.patterns))

    def answered(self, answer: Answer[StuckParameters]) -> StuckPatterns:
        """Begin an era: the operator's answer is new information."""
        return self.disturbed() if answer.informs else self

    def afresh(self) -> StuckPatterns:
        return evolve(self.disturbed(), overflows=0)

    def _with_call(self, result: CallResult, step: Step[StuckParameters], *, changed: bool) -> StuckPatterns:
        policy = step.policy
        call = Sighting(
            result.key,
            result.tool,
            result.input,
            result.passed,
            result.outcome,
            self.epoch,
            self.era,
            waits(result.input, result.duration),
            reply=step.iteration.number,
            facts=result.facts,
        )
        earlier = [other for other in self.window if other.key == call.key]
        state = self
        if changed and (call.succeeded or not earlier):  # what a repeated failure writes is nothing new
            state = self.disturbed()
        elif self._moves(call, earlier) if earlier else self._is_new(call):
            state = self._next_epoch()
        progress = state is not self
        call = evolve(call, epoch=state.epoch, era=state.era) if progress else _in_row(call, earlier)
        state = evolve(state, window=(*state.window, call)[-policy.stuck_window :])
        if not earlier:
            return state._paraphrased(call, policy)
        if progress:
            return state
        if any(call.key in pattern.keys for pattern in state.patterns):
            return state._extended(call.key)
        found = state._repeat(call, policy, step.wanted) or state._alternation(policy)
        return state if found is None else state._noted(found)

    @staticmethod
    def _moves(call: Sighting, earlier: Iterable[Sighting]) -> bool:
        """Tell if this call has not had the outcome in the window (polling)."""
        return not any(call.same_outcome(other) for other in earlier)

    def _is_new(self, call: Sighting) -> bool:
        """Tell if neither the call nor its outcome is in the window, or if it may have done something unseen."""
        if call.succeeded and not call.facts.looks_only:
            return True
        content, succeeded = call.content, call.succeeded
        return not any(other.content == content and other.succeeded == succeeded for other in self.window)

    def _repeat(self, call: Sighting, policy: StuckParameters, wanted: int) -> Pattern | None:
        if call.times <= wanted or (call.waited and call.times < policy.stuck_waits):
            return None
        alike = sum(
            other.epoch == call.epoch and other.key == call.key and other.same_outcome(call)
            for other in self.window
        )
        if alike < policy.stuck_repeats and not call.waited:
            return None
        return Pattern(REPEAT, frozenset({call.key}), (call.tool,), waited=call.waited)

    def _alternation(self, policy: StuckParameters) -> Pattern | None:
        length = policy.stuck_alternation
        tail = self.window[-length:]
        if len(tail) < length or any(call.era != self.era for call in tail):
            return None
        first, second = tail[0], tail[1]
        waiting = any(call.waited for call in tail) and tail[-1].times < policy.stuck_waits
        if first.key == second.key or waiting:
            return None
        for place, call in enumerate(tail[2:]):
            model = second if place % 2 else first
            if call.key != model.key or not call.same_outcome(model):
                return None
        return Pattern(ALTERNATION, frozenset({first.key, second.key}), (first.tool, second.tool))

    def _paraphrased(self, call: Sighting, policy: StuckParameters) -> StuckPatterns:
        """Note a call that is new and shows what others have shown; the calls of one reply count once."""
        enough = policy.stuck_paraphrases
        counts = enough and call.succeeded and not call.waited and only_looks(call.facts, call.input)
        if not counts:
            return self
        if not says_much(call.content):
            return self._in_vain(call, enough + 1)
        replies = {call.key: call.reply}
        for other in self.window:
            alike = other.era == call.era and other.succeeded and other.content == call.content
            if alike and other.reply not in replies.values() and only_looks(other.facts, other.input):
                replies.setdefault(other.key, other.reply)
        return self._noted(Pattern(PARAPHRASES, calls=len(replies))) if len(replies) >= enough else self

    def _in_vain(self, call: Sighting, enough: int) -> StuckPatterns:
        """Note searches for one word in many spellings that all end in the same few words."""
        keys: set[str] = set()
        for other in reversed(self.window):
            if (
                other.era != call.era
                or not call.same_outcome(other)
                or not near_identical(call.input, other.input)
            ):
                break
            keys.add(other.key)
        return self._noted(Pattern(PARAPHRASES, calls=len(keys))) if len(keys) >= enough else self

    def _with_monologue(self, policy: StuckParameters) -> StuckPatterns:
        beyond = self.silent_replies - policy.stuck_monologue
        return self if beyond < 0 else self._noted(Pattern(MONOLOGUE, extensions=beyond))

    def _extended(self, key: str) -> StuckPatterns:
        patterns = tuple(
            evolve(pattern, extensions=pattern.extensions + 1, moving=True)
            if key in pattern.keys
            else pattern
            for pattern in self.patterns
        )
        return evolve(self, patterns=patterns)

    def _noted(self, found: Pattern) -> StuckPatterns:
        others = tuple(
            pattern for pattern in self.patterns if (pattern.name, pattern.keys) != (found.name, found.keys)
        )
        return evolve(self, patterns=(*others, found))

    # --- judging ---------------------------------------------------------------------------------------------

    def withheld(self, key: str) -> Sighting | None:
        """Find the newest result of a call that is not worth executing again; None if it may run."""
        if not any(key in pattern.keys for pattern in self.patterns):
            return None
        return next((call for call in reversed(self.window) if call.key == key), None)

    @property
    def moving(self) -> Pattern | None:
        """The pattern that was seen or went on in the last iteration, the most stubborn one."""
        moving = [pattern for pattern in self.patterns if pattern.moving]
        return max(moving, key=lambda pattern: pattern.extensions, default=None)

    def subject(self, standing: Standing[Any]) -> Sighting | None:
        """The newest call of the pattern that moves."""
        pattern = self.moving
        keys = frozenset[str]() if pattern is None else pattern.keys
        return next((call for call in reversed(self.window) if call.key in keys), None)

    def verdict(self, standing: Standing[StuckParameters]) -> VerdictRecord:
        """`guide` when seen and while its call is withheld; then `escalate` with an operator, or `stop`, which `pivot`
        precedes if the run goes on alone.
        """
        pattern = self.moving
        if pattern is None:
            return self.silent
        if not pattern.exhausted:
            rule = Rule.STUCK_WAITS if pattern.waited else Rule.STUCK_GUIDE
            if pattern.name == PARAPHRASES:
                rule = Rule.STUCK_PARAPHRASES
            return verdict(Level.GUIDE, rule, f"Stuck: {pattern.words}")
        if standing.operator_present:
            return verdict(Level.ESCALATE, Rule.STUCK_ASK, f"Still stuck: {pattern.words}")
        if standing.goes_on and pattern.rounds < 2 * _LAST_ROUND and pattern.name != OVERFLOW:
            first = pattern.extensions == _LAST_ROUND * len(pattern.keys)
            level = Level.PIVOT if first else Level.GUIDE
            return verdict(level, Rule.STUCK_PIVOT, f"Still stuck: {pattern.words}")
        return verdict(Level.STOP, Rule.STUCK_STOP, f"Still stuck: {pattern.words}")


def _in_row(call: Sighting, earlier: Sequence[Sighting]) -> Sighting:
    """Count the call after the newest of its kind that ended alike."""
    before = next((other for other in reversed(earlier) if call.same_outcome(other)), None)
    if before is None or before.epoch != call.epoch:
        return call
    waited = call.waited or before.waited or clock_moved(call.content, before.content)
    return evolve(call, times=before.times + 1, waited=waited)
