"""What every event has: its place, its time and the version of its form."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 2
"""Version that new events carry in `v`; readers upgrade older ones (see `sessions.journal`)."""


class Event(BaseModel):
    """Base of all events. `seq` counts from 1 in a session; `at` is seconds since the epoch, UTC.

    Every event's own first field is `type`, so that a line tells what it is in its first bytes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int = 0
    at: Annotated[float, Field(ge=-6.2e10, le=2.5e11)] = 0.0
    """Within the years 5 and 9892: what a calendar can show."""
    v: int = SCHEMA_VERSION

    def stamped(self, seq: int, at: float) -> Self:
        """The same event with its place and time."""
        copy = object.__new__(type(self))
        # What `model_copy` does, at a fraction of its cost: this is done once for every event there is.
        _set(copy, "__dict__", {**self.__dict__, "seq": seq, "at": at})
        _set(copy, "__pydantic_fields_set__", self.__pydantic_fields_set__)
        _set(copy, "__pydantic_extra__", None)
        _set(copy, "__pydantic_private__", None)
        return copy


_set = object.__setattr__
