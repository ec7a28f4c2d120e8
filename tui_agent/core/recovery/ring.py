"""The error ring: the last five failures, and whether they are one and the same (Forge).

| counts | one slot for each reply that failed, whatever number of its calls failed; not a breach of form, if that
|        | has a ladder of its own; of each sub-agent the failure that stands, until a call of its own succeeds |
| resets | any successful call empties it, and the answer to its own question; a different failure, or a change of the
|        | workspace in between, only breaks the row |
| levels | guide: a failure below five in a row, or one error of five different calls · else five identical: ask if
|        | an operator is there, else stop, but not if nothing answered · if the run goes on alone: pivot, and stop
|        | at ten |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tui_agent.core.events import Failure, FailureKind, Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.names import RING_SLOTS
from tui_agent.core.recovery.absence import did_not_answer
from tui_agent.core.recovery.detector import Account, Answer, Detector, Standing, Step
from tui_agent.core.recovery.forge_note import forge_note
from tui_agent.core.recovery.parameters import Parameters
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import exact_signature, failure_signature
from tui_agent.core.recovery.verdict import verdict

_LAST_ROW = 2 * RING_SLOTS
"""Identical failures in a row that are the end of a run which goes on alone: it was asked for another way before."""


class RingParameters(Parameters):
    """Identical failures in a row."""

    ring: Literal["off", "stop", "ask"] = "ask"
    """Five identical failures in a row: not judged, stop (Forge), or ask the operator if one is there, else stop."""
    ring_signature: Literal["normalised", "exact_note"] = "normalised"
    """The identity of failures: kind, tool and normalised message, or the exact text of the note (Forge)."""


@dataclass(frozen=True)
class RingSlot:
    """The failure of one reply, the first of them if several calls failed.

    `signature` is what is compared, of all failures of the reply; `at` is in seconds since the epoch.
    """

    kind: FailureKind
    tool: str
    message: str
    signature: str
    iteration: int
    at: float
    seq: int
    after_change: bool = False
    """The workspace changed between the failure before it and this one."""
    key: str = ""
    """The call that failed, by its key; "" for a reply without one."""
    absent: bool = False
    """A service that it needs did not answer: it may be tried again after a wait."""
    lane: str = ""
    """The work of the sub-agent whose failure it is; empty: the run's own."""


@dataclass(frozen=True)
class ErrorRing(Detector[RingParameters]):
    """The slots, filled from the left; None is an empty one."""

    name = "ring"
    parameters = RingParameters
    off = {"ring": "off"}

    slots: tuple[RingSlot | None, ...] = (None,) * RING_SLOTS
    failed: bool = False
    """The last iteration brought a failure."""
    mark: int = 0
    """The change of the workspace that was the last one when the newest slot was filled."""
    row: int = 0
    """Identical failures in a row, those that have left their slots included."""

    @property
    def key(self) -> str:
        """The call of the newest slot: what it changes itself is no change between."""
        return self.newest.key if self.newest is not None else ""

    @property
    def newest(self) -> RingSlot | None:
        """The slot that was filled last."""
        return next((slot for slot in reversed(self.slots) if slot is not None), None)

    @property
    def filled(self) -> int:
        """Number of filled slots, 0 to 5."""
        return sum(slot is not None for slot in self.slots)

    @property
    def identical(self) -> int:
        """How many of the newest failures in a row equal the newest, itself included; 0 when empty.

        A change of the workspace in between begins a new row.
        """
        newest: RingSlot | None = None
        count = 0
        for slot in reversed(self.slots):
            if slot is None:
                continue
            if newest is None:
                newest = slot
            elif slot.signature != newest.signature:
                break
            count += 1
            if slot.after_change:
                break
        return count

    @property
    def tripped(self) -> bool:
        """All five are filled and identical."""
        return self.identical == RING_SLOTS

    @classmethod
    def rungs(cls, policy: RingParameters) -> frozenset[str]:
        if policy.ring == "off":
            return frozenset()
        return frozenset({"guide", "stop", *(("escalate",) if policy.ring == "ask" else ())})

    def apply(self, step: Step[RingParameters]) -> ErrorRing:
        """A success empties the ring; the failures after it fill one slot (`failure.batch`)."""
        iteration, policy = step.iteration, step.policy
        if iteration.broke_form and policy.form != "count":
            return evolve(self, failed=False) if self.failed else self
        failures: list[Failure] = [] if iteration.rejected is None else [iteration.rejected]
        cleared = False
        for result in iteration.results:
            if result.worked:
                failures.clear()
                cleared = True
            elif result.failure is not None:
                failures.append(result.failure)
        if not iteration.failed and not (cleared and self.slots[0]):
            return evolve(self, failed=False) if self.failed else self
        slots = [] if cleared else [slot for slot in self.slots if slot is not None]
        mark, row = self.mark, 0 if cleared else self.row
        if failures:
            moved = policy.trials != "off" and bool(step.changes.since(mark, self.key))
            slot = _slot(failures, step, after_change=moved)
            goes_on = bool(slots) and not moved and slot.signature == slots[-1].signature
            slots.append(slot)
            mark, row = step.changes.count, row + 1 if goes_on else 1
        return ErrorRing(_padded(slots), iteration.failed, mark, row)

    def with_lane(self, lane: str, theirs: ErrorRing) -> ErrorRing:
        """This ring with the failure that stands in a sub-agent's own: one slot, however often it failed, since its
        own ring judges the row.
        """
        standing = theirs.newest
        slots = [slot for slot in self.slots if slot is not None and slot.lane != lane]
        if standing is not None:
            slots.append(evolve(standing, lane=lane, after_change=False))
        return evolve(self, slots=_padded(slots))

    def with_lanes_of(self, ring: ErrorRing) -> ErrorRing:
        """This ring with the failures of the sub-agents in another one, whose work goes on."""
        lanes = [slot for slot in ring.slots if slot is not None and slot.lane]
        own = [slot for slot in self.slots if slot is not None and not slot.lane]
        return evolve(self, slots=_padded([*own, *lanes])) if lanes else self

    def answered(self, answer: Answer[RingParameters]) -> ErrorRing:
        """Begin anew once the ring's own question was answered."""
        return ErrorRing(mark=self.mark) if answer.informs and self.tripped else self

    def afresh(self) -> ErrorRing:
        return ErrorRing(mark=self.mark)

    def _of_different_calls(self) -> bool:
        """Tell if no two of the failures are of one call: a survey of what is broken, or ways that all end alike."""
        keys = [slot.key for slot in self.slots if slot is not None]
        return all(keys) and len(set(keys)) == len(keys)

    def verdict(self, standing: Standing[RingParameters]) -> VerdictRecord:
        """Judge by the newest slot, after an iteration that brought a failure."""
        if not self.failed:
            return self.silent
        policy = standing.policy
        newest = self.newest
        if newest is None:
            reason = "A failure, and a success after it in the same reply"
            return verdict(Level.GUIDE, Rule.RING_GUIDE, reason)
        what = f"{newest.kind.in_words}{f', {newest.tool}' if newest.tool else ''}"
        if not self.tripped:
            reason = f"{what}: {self.identical} of {RING_SLOTS} identical errors in a row"
            return verdict(Level.GUIDE, Rule.RING_GUIDE, reason)
        reason = f"{max(self.row, RING_SLOTS)} identical consecutive errors ({what})"
        if policy.trials != "off" and self._of_different_calls():
            return verdict(Level.GUIDE, Rule.RING_GUIDE, f"{reason}, of {RING_SLOTS} different calls")
        if policy.ring == "ask" and standing.operator_present:
            return verdict(Level.ESCALATE, Rule.RING_ASK, reason)
        if policy.ring == "ask" and newest.absent:
            return verdict(Level.GUIDE, Rule.RING_GUIDE, f"{reason}, and what did not answer may come back")
        if policy.ring == "ask" and standing.goes_on and self.row < _LAST_ROW:
            level = Level.PIVOT if self.row == RING_SLOTS else Level.GUIDE
            return verdict(level, Rule.RING_PIVOT, reason)
        return verdict(Level.STOP, Rule.RING_STOP, reason)

    def account(self, standing: Standing[Any], key: str, tool: str) -> Account:
        identical = self.identical if self.filled else 0
        return Account(
            f"{identical} of {RING_SLOTS} identical in a row, {self.filled} of {RING_SLOTS} slots full"
        )


def _padded(slots: Sequence[RingSlot]) -> tuple[RingSlot | None, ...]:
    kept = slots[-RING_SLOTS:]
    return (*kept, *(None for _ in range(RING_SLOTS - len(kept))))


def _slot(failures: Sequence[Failure], step: Step[RingParameters], *, after_change: bool) -> RingSlot:
    iteration = step.iteration
    if step.policy.ring_signature == "exact_note":
        signature = exact_signature("\n\n".join(forge_note(failure, step.tools) for failure in failures))
    else:
        signature = "\n".join(dict.fromkeys(failure_signature(failure) for failure in failures))
    first = failures[0]
    return RingSlot(
        first.kind,
        first.tool,
        first.message,
        signature,
        iteration.number,
        iteration.at,
        iteration.seq,
        after_change,
        next((result.key for result in iteration.results if result.failure == first), ""),
        did_not_answer(first),
    )
