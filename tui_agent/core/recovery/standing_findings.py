"""Reports of programs since the workspace changed, so that the same report once more is no news.

| counts | findings (`failure.findings`) by call; the same from the same call again is a failure like any other
| resets | any change of the workspace; for its call: other findings, or none
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.iteration import CallResult, CallStatus
from tui_agent.core.recovery.signature import failure_signature

if TYPE_CHECKING:
    from tui_agent.core.recovery.changes import Changes

_KEPT = 100
"""Calls that are remembered."""


@dataclass(frozen=True)
class StandingFindings:
    """By key of the call, the signature of what it reported last; oldest first."""

    reports: dict[str, tuple[str, int]] = field(default_factory=dict)
    """With the change of the workspace that was the last one then."""

    def judge(
        self, results: Sequence[CallResult], changes: Changes, marks: Sequence[int]
    ) -> tuple[StandingFindings, tuple[CallResult, ...]]:
        """The results in call order, those that only repeat findings as failures; what stands after them.

        The same call twice in one reply is one sign, and repeats nothing. `results` are in the order of the calls;
        `marks`: for each, the last change before it.
        """
        if not self.reports and all(result.finding is None for result in results):
            return self, tuple(results)
        before, reports = self.reports, dict(self.reports)
        judged = []
        for result, mark in zip(results, marks, strict=True):
            signature = "" if result.finding is None else failure_signature(result.finding)
            known, at = before.get(result.key, ("", 0))
            if signature and known == signature and not changes.since(at, result.key, mark):
                result = evolve(result, status=CallStatus.FAILED, failure=result.finding)
            if signature or result.passed:
                reports.pop(result.key, None)
            if signature:
                reports[result.key] = signature, mark
            judged.append(result)
        for key in list(reports)[:-_KEPT]:
            del reports[key]
        return StandingFindings(reports), tuple(judged)
