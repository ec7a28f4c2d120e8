"""The error ring: the last five failures, and whether they are one and the same (Forge).

Five slots, oldest first. A success empties them; a different failure breaks the pattern without emptying.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.events import Failure, FailureKind, Level, VerdictRecord
from tui_agent.evolve import evolve
from tui_agent.recovery.iteration import Iteration, Status
from tui_agent.recovery.note import forge_note
from tui_agent.recovery.signature import exact_signature, failure_signature
from tui_agent.recovery.verdict import RING, silent

if TYPE_CHECKING:
    from tui_agent.recovery.policy import RecoveryPolicy

SLOTS = 5
"""Forge: five identical signatures trip the breaker."""


@dataclass(frozen=True)
class RingSlot:
    """One failure. `signature` is what is compared; `at` is the event's time, in seconds since the epoch."""

    kind: FailureKind
    tool: str
    message: str
    signature: str
    iteration: int
    at: float
    seq: int


@dataclass(frozen=True)
class ErrorRing:
    """The slots, filled from the left; None is an empty one. `pushed`: the last iteration added to them."""

    slots: tuple[RingSlot | None, ...] = (None,) * SLOTS
    pushed: bool = False

    @property
    def filled(self) -> int:
        """Number of filled slots, 0 to 5."""
        return sum(slot is not None for slot in self.slots)

    @property
    def identical(self) -> int:
        """How many of the newest failures in a row equal the newest, itself included; 0 when empty."""
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
        return count

    @property
    def tripped(self) -> bool:
        """All five are filled and identical."""
        return self.identical == SLOTS

    def apply(self, iteration: Iteration, policy: RecoveryPolicy, tools: tuple[str, ...]) -> ErrorRing:
        """Fold a finished iteration: failures are pushed in call order, a success clears."""
        if not iteration.failed and not iteration.succeeded:
            return evolve(self, pushed=False) if self.pushed else self
        if not iteration.failed and self.slots[0] is None:
            return evolve(self, pushed=False) if self.pushed else self
        slots = [slot for slot in self.slots if slot is not None]
        pushed = False
        if iteration.rejected is not None:
            slots.append(_slot(iteration.rejected, iteration, iteration.at, iteration.seq, policy, tools))
            pushed = True
        seen: set[str] = set()
        for outcome in iteration.outcomes:
            if outcome.status is Status.SUCCEEDED:
                slots.clear()
            elif outcome.failure is not None:
                if policy.batch_once and outcome.key in seen:
                    continue
                seen.add(outcome.key)
                slots.append(_slot(outcome.failure, iteration, outcome.at, outcome.seq, policy, tools))
                pushed = True
        kept = slots[-SLOTS:]
        filled = (*kept, *(None for _ in range(SLOTS - len(kept))))
        return ErrorRing(filled, pushed)

    def verdict(self, policy: RecoveryPolicy) -> VerdictRecord:
        """`stop` when tripped; `guide` after a failure; else nothing."""
        if not self.pushed:
            return silent(RING)
        newest = next((slot for slot in reversed(self.slots) if slot is not None), None)
        if newest is None:
            reason = "A failure, and a success after it in the same reply"
            return VerdictRecord(level=Level.GUIDE, detector=RING, reason=reason)
        what = f"{newest.kind.value}{f' of {newest.tool}' if newest.tool else ''}"
        if self.tripped:
            reason = f"{SLOTS} identical consecutive errors ({what})"
            return VerdictRecord(level=Level.STOP, detector=RING, reason=reason)
        reason = f"{what}: {self.identical} of {SLOTS} identical errors in a row"
        return VerdictRecord(level=Level.GUIDE, detector=RING, reason=reason)


def _slot(
    failure: Failure,
    iteration: Iteration,
    at: float,
    seq: int,
    policy: RecoveryPolicy,
    tools: tuple[str, ...],
) -> RingSlot:
    if policy.ring_signature == "exact_note":
        signature = exact_signature(forge_note(failure, tools))
    else:
        signature = failure_signature(failure)
    return RingSlot(failure.kind, failure.tool, failure.message, signature, iteration.number, at, seq)
