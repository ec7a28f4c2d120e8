"""Tally: how many failures there were, and what became of them, for every place that says so.

Sub-agents at work count with the run. What one of them has left open when it ends is its own matter: the result of its
call says what came of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.quantities import of_failures

if TYPE_CHECKING:
    from tui_agent.core.projections.incidents import Incident
    from tui_agent.core.state import RunState


@dataclass(frozen=True)
class Problem:
    """Something that fails and has not been recovered. `state` is that of the run, or of the sub-agent, in which."""

    incident: Incident
    state: RunState

    @property
    def lane(self) -> str:
        """The sub-agent's name; empty: the run's own."""
        return self.state.lane_name


@dataclass(frozen=True)
class Tally:
    """`failures` = `recovered` + `left`; `open` has what they are of, the one that failed last at the end."""

    failures: int = 0
    open: tuple[Problem, ...] = ()

    @property
    def left(self) -> int:
        """Failures that nothing has recovered."""
        return sum(problem.incident.times for problem in self.open)

    @property
    def recovered(self) -> int:
        """Failures that were recovered, in either way."""
        return self.failures - self.left

    def in_words(self, *, ended: bool) -> str:
        """Write the three counts."""
        return of_failures(self.failures, self.recovered, ended=ended)


def with_lanes(state: RunState) -> Iterator[RunState]:
    """Give the run and its sub-agents at work; with the run each of them has ended."""
    yield state
    if state.run.outcome is None:
        yield from (lane for lane in state.lanes.values() if lane.run.outcome is None)


def tally(state: RunState) -> Tally:
    """Count the failures of the run and of its sub-agents at work."""
    states = tuple(with_lanes(state))
    problems = [Problem(found, each) for each in states for found in each.metrics.incidents.standing.values()]
    problems.sort(key=lambda problem: problem.incident.newest.at)
    return Tally(sum(each.metrics.failures for each in states), tuple(problems))
