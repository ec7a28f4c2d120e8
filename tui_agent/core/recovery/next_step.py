"""The chance that the next iteration holds a successful call, estimated from recorded runs.

Its grounds: the stall, the repetition of the last error or call, the kind of failure, and the run's own
record, which weighs more as it grows. The figures stand in `next_step_table`, the data and the training in
`docs/lab/next_step`. An outcome that is already known teaches nothing: only a success with something new in
it, or an operator, raises the chance. A number is stated only if it held in every recorded set and says more than
the set's own base rate: after a stall in a run of which no step has succeeded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tui_agent.core.events import Failure, FailureKind
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery import next_step_table as table
from tui_agent.core.recovery.error_shape import error_shape
from tui_agent.core.recovery.iteration import FORM_ERRORS, CallResult, CallStatus, Iteration
from tui_agent.core.recovery.signature import same_text

LONGEST_STALL = 4
"""Longer stalls count as this one: beyond it there is little difference and little data."""

PRIOR_SUCCESSES, PRIOR_FAILURES = 4, 1
"""The beginning of a run's own record: as if it had had so many steps already. Its first steps move it
little.
"""

LOWEST_RECORD, HIGHEST_RECORD = -6, 10
"""Half steps of the binary logarithm of successes to failures, those of the beginning included: from eight failures a
success to thirty-two successes a failure."""

HIGHEST_EVIDENCE = 5
"""Doublings of the run's own successes, from 31 on: the more there were, the less a stall says."""

_SHAPES = 8
"""Errors that are looked back upon."""

_OUTCOMES = 20
"""Outcomes that are looked back upon; the stuck patterns look back as far."""

_LONGEST_OUTCOME = 2_000
"""Characters of an outcome that are compared: half from its beginning and half from its end."""


class Cause(StrEnum):
    """The obstacle to a success of the last iteration."""

    NONE = "none"
    TOOL = "tool"
    """A tool ran and failed, or its call was blocked."""
    INFRASTRUCTURE = "infrastructure"
    """A time-out, a tool's server that is gone, a failed model call."""
    FORM = "form"
    """A reply without a call, a malformed call, a tool that does not exist."""


class Outlook(StrEnum):
    """The forecast for the next step."""

    UNKNOWN = "no estimate yet"
    OPEN = "open"
    """Recorded sets differ, or the run's own record says as much."""
    UNLIKELY = "unlikely"
    """In every recorded set."""


class Cell(NamedTuple):
    """The grounds of the estimate. `record` is in half steps of a binary logarithm (see `LOWEST_RECORD`),
    `evidence` in doublings of the run's successes.
    """

    stall: int
    repeated: bool
    cause: Cause
    record: int
    evidence: int = 0

    @property
    def barren(self) -> bool:
        """True in the longest stall that is told apart, if no step has succeeded."""
        return self.stall == LONGEST_STALL and not self.evidence

    @property
    def chance(self) -> float:
        """The model's estimate for this cell, between 0 and 1."""
        logit = (
            table.INTERCEPT
            + table.STALL[self.stall]
            + table.REPEATED * self.repeated
            + table.CAUSE[self.cause.value]
            + table.RECORD * self.record
            + table.EVIDENCE * self.evidence * (self.stall > 0)
        )
        return 1.0 / (1.0 + math.exp(-logit))

    @property
    def steps(self) -> int:
        """Recorded steps with this stall, repetition and cause, and a record at most one half step away."""
        counts = table.STEPS.get(f"{self.stall} {int(self.repeated)} {self.cause.value}", ())
        place = self.record - LOWEST_RECORD
        return sum(counts[max(0, place - 1) : place + 2])


class Known(NamedTuple):
    """A call and how it ended; `text` is cut in the middle."""

    key: str
    status: CallStatus
    text: str

    def among(self, others: Iterable[Known]) -> bool:
        """True if the same call ended alike before, volatile parts of the text left out."""
        alike = [other for other in others if other.key == self.key and other.status is self.status]
        return any(same_text(self.text, other.text) for other in alike)


@dataclass(frozen=True)
class NextStep:
    """`chance` is None until an iteration brought a success or a failure.

    `stall`: iterations without a new success, form failures not counted. `successes` and `failures` count iterations.
    `shapes` are those of the last errors of tools, oldest first.
    """

    chance: float | None = None
    stall: int = 0
    repeated: bool = False
    """The newest error has the shape of an earlier one, or its call has ended so before."""
    cause: Cause = Cause.NONE
    successes: int = 0
    failures: int = 0
    shapes: tuple[str, ...] = ()
    outcomes: tuple[Known, ...] = ()
    faulted: int = -1
    """The iteration whose failed model call was counted, so that its end is not counted again."""

    @property
    def cell(self) -> Cell:
        """The grounds of the estimate."""
        odds = math.log2((self.successes + PRIOR_SUCCESSES) / (self.failures + PRIOR_FAILURES))
        record = min(max(math.floor(2 * odds), LOWEST_RECORD), HIGHEST_RECORD)
        evidence = min((self.successes + 1).bit_length() - 1, HIGHEST_EVIDENCE)
        return Cell(min(self.stall, LONGEST_STALL), self.repeated, self.cause, record, evidence)

    @property
    def stated(self) -> float | None:
        """The chance if it held in every recorded set; None if they differ, or it adds nothing to their base rates."""
        return self.chance if self.outlook is Outlook.UNLIKELY else None

    @property
    def outlook(self) -> Outlook:
        """The estimate in one word."""
        if self.chance is None:
            return Outlook.UNKNOWN
        return Outlook.UNLIKELY if self.cell.barren and self.chance < table.HOLDS_BELOW else Outlook.OPEN

    @property
    def samples(self) -> int:
        """Recorded steps like the one ahead; 0 before the first estimate."""
        return 0 if self.chance is None else self.cell.steps

    @property
    def words(self) -> str:
        """Write the chance and its grounds, from counts; empty if no number is stated."""
        if self.stated is None:
            return ""
        share = min(99, max(1, round(100 * self.stated)))
        rests = f"in {self.samples:,} recorded cases like this" if self.samples else "by the recorded runs"
        return f"no step of {self.failures} has worked: about {share} in 100 next steps do then, {rests}"

    # --- folding ---------------------------------------------------------------------------------------------

    def apply(self, iteration: Iteration) -> NextStep:
        """Fold a finished iteration. One with denials, refusals, cancellations or an answer alone changes nothing."""
        if iteration.cancelled or not (iteration.succeeded or iteration.failed):
            return self
        ended = tuple(
            _known(result)
            for result in iteration.results[-_OUTCOMES:]
            if result.status in {CallStatus.SUCCEEDED, CallStatus.FAILED}
        )
        known = [one.among(self.outcomes) for one in ended]
        shapes = tuple(
            error_shape(failure.message)
            for failure in iteration.failures()
            if failure.kind not in FORM_ERRORS
        )[-_SHAPES:]
        news = {
            "outcomes": (*self.outcomes, *ended)[-_OUTCOMES:],
            "shapes": (*self.shapes, *shapes)[-_SHAPES:],
        }
        if not iteration.succeeded:
            cause = _cause(tuple(iteration.failures()))
            seen = cause is Cause.FORM and self.cause is Cause.FORM
            repeated = seen or any(known) or any(shape in self.shapes for shape in shapes)
            return evolve(self, **news)._failed(cause, repeated=repeated, iteration=iteration.number)
        if all(known[place] for place, one in enumerate(ended) if one.status is CallStatus.SUCCEEDED):
            return evolve(self, **news)
        better = evolve(
            self, **news, stall=0, repeated=False, cause=Cause.NONE, successes=self.successes + 1, faulted=-1
        )
        return evolve(better, chance=better.cell.chance)

    def model_faulted(self, iteration: int) -> NextStep:
        """A model call failed in `iteration`: it counts in the stall, once however often it is tried.

        The record is of calls of tools and stays: the retry may still bring one that succeeds.
        """
        if iteration == self.faulted:
            return self
        repeated = self.cause is Cause.INFRASTRUCTURE and self.faulted >= 0
        changed = evolve(
            self, stall=self.stall + 1, repeated=repeated, cause=Cause.INFRASTRUCTURE, faulted=iteration
        )
        return changed._no_better_than(self)

    def answered(self) -> NextStep:
        """The operator's answer is news about the errors that it was about: they are no repetition any more.

        The stall and the record stay: an answer alone has not made a call succeed.
        """
        forgotten = tuple(one for one in self.outcomes if one.status is CallStatus.SUCCEEDED)
        changed = evolve(self, repeated=False, shapes=(), outcomes=forgotten)
        return evolve(changed, chance=changed.cell.chance) if self.repeated else changed

    def next_run(self) -> NextStep:
        """A new task is not judged by the stall of the last; the record of the model stays."""
        changed = evolve(self, stall=0, repeated=False, cause=Cause.NONE, faulted=-1)
        return changed if self.chance is None else evolve(changed, chance=changed.cell.chance)

    def _failed(self, cause: Cause, *, repeated: bool, iteration: int) -> NextStep:
        counted = cause is Cause.FORM or iteration == self.faulted
        changed = evolve(
            self,
            stall=self.stall + (not counted),
            repeated=repeated,
            cause=cause,
            failures=self.failures + 1,
        )
        return changed._no_better_than(self)

    def _no_better_than(self, before: NextStep) -> NextStep:
        """With its estimate; a failure never raises the chance, whatever the table says."""
        estimate = self.cell.chance
        return evolve(self, chance=estimate if before.chance is None else min(before.chance, estimate))


def _known(result: CallResult) -> Known:
    text = result.outcome
    if len(text) > _LONGEST_OUTCOME:
        half = _LONGEST_OUTCOME // 2
        text = f"{text[:half]}…{text[-half:]}"
    return Known(result.key, result.status, text)


def _cause(failures: tuple[Failure, ...]) -> Cause:
    """Of several failures the one that weighs most: a tool's error, then infrastructure, then form."""
    real = [failure for failure in failures if failure.kind not in FORM_ERRORS]
    if not real:
        return Cause.FORM
    waited = all(
        failure.transient or failure.unknown_effect or failure.kind is FailureKind.MODEL_API
        for failure in real
    )
    return Cause.INFRASTRUCTURE if waited else Cause.TOOL
