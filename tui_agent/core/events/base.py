"""Fields of every event: its place, its time and the version of its form."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from tui_agent.core.values import Value

SCHEMA_VERSION = 2
"""Version that new events carry in `v`; readers upgrade older ones (see `store.journal`)."""


class Event(Value):
    """Base of all events. `seq` counts from 1 in a session; `at` is seconds since the epoch, UTC.

    Every event's own first field is `type`, so that a line tells what it is in its first bytes.
    """

    seq: int = 0
    at: Annotated[float, Field(ge=-6.2e10, le=2.5e11)] = 0.0
    """Within the years 5 and 9892: what a calendar can show."""
    v: int = SCHEMA_VERSION

    def stamped(self, seq: int, at: float) -> Self:
        """The same event with its place and time."""
        return self.with_values({"seq": seq, "at": at})
