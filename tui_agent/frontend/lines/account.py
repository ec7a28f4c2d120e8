"""A run that has ended, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.quantities import counted, dollars, seconds

if TYPE_CHECKING:
    from tui_agent.core.projections import entries


def account(entry: entries.OutcomeEntry) -> Iterator[str]:
    """The run in numbers."""
    if entry.iteration:
        yield counted(entry.iteration, "step")
    if entry.failures:
        yield f"{counted(entry.failures, 'failure')}, {entry.recoveries} recovered"
    if entry.asked:
        times = {1: "once", 2: "twice"}.get(entry.asked, f"{entry.asked} times")
        yield f"asked you {times}"
    if entry.duration:
        yield seconds(entry.duration)
    if entry.cost:
        yield dollars(entry.cost)
