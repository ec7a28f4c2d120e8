"""One event as one line of a journal, and back.

A line begins with `seq`, `at`, `v` and `type`, in this order, so that a reader knows what it is from its
first bytes and parses the rest only when it is needed. Lines in another order are read as well, only slower.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from tui_agent.core.events import SCHEMA_VERSION, Event, parse_event
from tui_agent.store.upgrade import upgrade

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest line that is read. Outputs are cut far below this, so a longer one is no event."""

_HEAD_PATTERN = re.compile(
    rb'\{"seq":(\d+),"at":(-?\d{1,11}(?:\.\d+)?(?:e-\d+)?),"v":(\d+),"type":"([a-z_]+)"'
)


class NotAnEventError(ValueError):
    """The line is JSON, and no event."""


class Head(NamedTuple):
    """Facts from the first bytes of a line."""

    seq: int
    at: float
    version: int
    type: str


def encode(event: Event) -> bytes:
    """The event's line with its line break. The event must be storable (see `redaction`)."""
    line: bytes = event.__pydantic_serializer__.to_json(event)
    return line + b"\n"


def head(line: bytes) -> Head | None:
    """Number, time, version and type from the first bytes; None if the line is in another order."""
    match = _HEAD_PATTERN.match(line)
    if match is None:
        return None
    seq, at, version, kind = match.groups()
    return Head(int(seq), float(at), int(version), kind.decode())


def decode(line: bytes) -> Event:
    """The event of a line, upgraded if it is older.

    Raises `UnknownVersionError` for a newer one, and `ValueError` (which pydantic's error is) for what is no
    event.
    """
    known = head(line)
    if known is not None and known.version == SCHEMA_VERSION:
        return parse_event(line)
    raw = json.loads(line)
    if not isinstance(raw, dict):
        raise NotAnEventError("not a JSON object")
    upgraded = upgrade(raw)
    return parse_event(line if upgraded is raw else json.dumps(upgraded))
