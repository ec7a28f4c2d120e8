"""A run that has ended, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.quantities import counted, dollars, of_failures, seconds

if TYPE_CHECKING:
    from tui_agent.core.projections import entries


def account(entry: entries.OutcomeEntry) -> Iterator[str]:
    """Say the run in numbers."""
    if entry.iteration:
        yield counted(entry.iteration, "step")
    if entry.failures:
        yield of_failures(entry.failures, entry.recoveries)
    if entry.asked:
        times = {1: "once", 2: "twice"}.get(entry.asked, f"{entry.asked} times")
        yield f"asked you {times}"
    if entry.duration:
        yield seconds(entry.duration)
    if entry.cost:
        yield dollars(entry.cost)
