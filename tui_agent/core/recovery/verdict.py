"""Verdicts: what detectors say, and how their verdicts are joined.

A verdict is a value with a level, the detector's name, a reason in words and the id of its rule. Nothing here
decides; it ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tui_agent.core.names import Level
from tui_agent.core.values import VerdictRecord

NOTHING = VerdictRecord(level=Level.CONTINUE, detector="")
"""The verdict when no detector has one."""


def verdict(level: Level, rule: str, reason: str) -> VerdictRecord:
    """Make the verdict of the detector whose rule this is (`recovery.rules`)."""
    return VerdictRecord(level=level, detector=rule.partition(".")[0], reason=reason, rule=str(rule))


@cache
def silent(detector: str) -> VerdictRecord:
    """Make the verdict of a detector that has nothing to say."""
    return VerdictRecord(level=Level.CONTINUE, detector=detector)


def strongest(verdicts: Iterable[VerdictRecord]) -> VerdictRecord:
    """Choose the verdict of the highest level; of equals the first, so callers keep the order of the detectors."""
    said = [record for record in verdicts if record.reason or record.level is not Level.CONTINUE]
    return max(said, key=lambda record: record.level.rank, default=NOTHING)
