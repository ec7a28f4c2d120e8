"""Verdicts: how detectors speak, and how their verdicts are joined.

A verdict is a value with a level, the detector's name and a reason in words. Nothing here decides; it ranks.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tui_agent.events import Level, VerdictRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

RING = "ring"
ATTEMPTS = "attempts"
STREAK = "streak"
COGNITION = "cognition"
STUCK = "stuck"
BREAKER = "breaker"
MODEL = "model"

DETECTORS = (ATTEMPTS, RING, STREAK, COGNITION, STUCK, BREAKER, MODEL)
"""The detectors in the order in which ties are settled: the one that knows most about the cause first."""

NOTHING = VerdictRecord(level=Level.CONTINUE, detector="")
"""What is said when nobody says anything."""


@cache
def silent(detector: str) -> VerdictRecord:
    """The verdict of a detector that has nothing to say."""
    return VerdictRecord(level=Level.CONTINUE, detector=detector)


def strongest(verdicts: Iterable[VerdictRecord]) -> VerdictRecord:
    """The verdict of the highest level; of equals the first, so callers give them in the order of `DETECTORS`."""
    best = NOTHING
    for verdict in verdicts:
        if verdict.level.rank > best.level.rank or (best is NOTHING and verdict.reason):
            best = verdict
    return best
