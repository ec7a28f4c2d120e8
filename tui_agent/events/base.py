"""What every event has: its place, its time and the version of its form."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1
"""Version that new events carry in `v`; readers upgrade older ones (see `sessions.journal`)."""


class Event(BaseModel):
    """Base of all events. `seq` counts from 1 in a session; `at` is seconds since the epoch, UTC."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int = 0
    at: float = 0.0
    v: int = SCHEMA_VERSION

    def stamped(self, seq: int, at: float) -> Self:
        """The same event with its place and time."""
        return self.model_copy(update={"seq": seq, "at": at})
