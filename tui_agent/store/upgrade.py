"""Journals of older versions, brought up to today's events while they are read.

One step a version, from the raw object of a line to the raw object of the next version's line. A step is one
to one: it renames, moves and fills in, and never drops or splits an event, so that `seq` stays without gaps.
Files on disk are never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tui_agent.core.events import SCHEMA_VERSION

Raw = dict[str, Any]
Step = Callable[[Raw], Raw]


def _from_version_1(raw: Raw) -> Raw:
    """Version 2 only adds fields, whose defaults say what version 1 could not."""
    return raw


STEPS: dict[int, Step] = {1: _from_version_1}
"""From the version in the key to the next one."""


class UnknownVersionError(ValueError):
    """The line was written by a newer program, or by one that never was."""

    def __init__(self, version: object) -> None:
        super().__init__(f"schema version {version!r}; this program reads up to {SCHEMA_VERSION}")
        self.version = version


def upgrade(raw: Raw, steps: Mapping[int, Step] | None = None, newest: int | None = None) -> Raw:
    """`raw` as an object of version `newest` (None: today's). Raises `UnknownVersionError` if no way leads
    there.
    """
    steps = STEPS if steps is None else steps
    newest = SCHEMA_VERSION if newest is None else newest
    version = raw.get("v", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version > newest:
        raise UnknownVersionError(version)
    while version < newest:
        step = steps.get(version)
        if step is None:
            raise UnknownVersionError(version)
        version += 1
        raw = {**step(raw), "v": version}
    return raw
