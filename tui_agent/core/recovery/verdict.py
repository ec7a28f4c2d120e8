"""Verdicts: what detectors say, and how their verdicts are joined.

A verdict is a value with a level, the detector's name, a reason in words and the id of its rule. Nothing here
decides; it ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from tui_agent.core.names import Level
from tui_agent.core.values import VerdictRecord

if TYPE_CHECKING:
    from tui_agent.core.recovery.rules import Rule

RING = "ring"
ATTEMPTS = "attempts"
TRIALS = "trials"
STREAK = "streak"
COGNITION = "cognition"
FORM = "form"
STUCK = "stuck"
BREAKER = "breaker"
MODEL = "model"
IMPLICIT = "implicit"

DETECTORS = (TRIALS, ATTEMPTS, FORM, RING, STREAK, COGNITION, STUCK, BREAKER, MODEL, IMPLICIT)
"""The detectors in the order in which ties are settled: the one that knows most about the cause first."""

NOTHING = VerdictRecord(level=Level.CONTINUE, detector="")
"""The verdict when no detector has one."""


def verdict(level: Level, rule: Rule, reason: str) -> VerdictRecord:
    """The verdict of the rule's detector."""
    return VerdictRecord(level=level, detector=rule.partition(".")[0], reason=reason, rule=rule.value)


@cache
def silent(detector: str) -> VerdictRecord:
    """The verdict of a detector that has nothing to say."""
    return VerdictRecord(level=Level.CONTINUE, detector=detector)


def strongest(verdicts: Iterable[VerdictRecord]) -> VerdictRecord:
    """The verdict of the highest level; of equals the first, so callers give them in the order of `DETECTORS`."""
    said = [record for record in verdicts if record.reason or record.level is not Level.CONTINUE]
    return max(said, key=lambda record: record.level.rank, default=NOTHING)
