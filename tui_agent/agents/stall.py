"""A silent stall, told from work: no output, no processor time, no other processes and no new record, all at once.

A long build uses the processor, and a model that thinks is silent for a quarter of an hour: so silence is said, and
ends nothing unless a person has set a limit. If the system does not tell of processes (no /proc), nothing is said.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

SAID = 600.0
"""Seconds of silence after which a person is told."""
_BUSY = 0.02
"""Share of a processor from which on an agent works: one that only waits looks at its timers."""
_BURST = 0.1
"""The same, between two looks."""


@dataclass(frozen=True)
class Signs:
    """Signs of work, at one look."""

    output: int
    """Bytes that the agent wrote in all."""
    record: tuple[str, int]
    """Its session, and the size of its file."""
    processes: frozenset[int]
    cpu: float
    """Seconds of processor time of all of its processes."""


@dataclass(frozen=True)
class Silence:
    """How long nothing has moved."""

    signs: Signs
    since: float
    told: bool = False
    look: tuple[float, float] | None = None
    """The time of the newest look, and the processor time then."""

    def after(self, signs: Signs, now: float) -> Silence:
        """One more look."""
        before = self.signs
        same = (signs.output, signs.record, signs.processes) == (
            before.output,
            before.record,
            before.processes,
        )
        looked, cpu = self.look or (self.since, before.cpu)
        burst = signs.cpu - cpu >= _BURST * max(now - looked, 1.0)
        if not same or burst or signs.cpu - before.cpu >= _BUSY * max(now - self.since, 1.0):
            return Silence(signs, now)
        return replace(self, look=(now, signs.cpu))

    def to_tell(self, now: float) -> bool:
        """True once, when it is time to tell a person."""
        return not self.told and now - self.since >= SAID

    def has_told(self) -> Silence:
        return replace(self, told=True)


def tree(leader: int) -> tuple[frozenset[int], float] | None:
    """A process with all that descend from it, and their processor time in seconds; None if nobody tells. Blocking."""
    children: dict[int, list[int]] = defaultdict(list)
    spent: dict[int, float] = {}
    tick = os.sysconf("SC_CLK_TCK")
    with suppress(OSError):
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                children[int(fields[1])].append(int(entry.name))
                spent[int(entry.name)] = (int(fields[11]) + int(fields[12])) / tick
    if leader not in spent:
        return None
    found, open_ = set[int](), [leader]
    while open_:
        one = open_.pop()
        found.add(one)
        open_ += [child for child in children[one] if child not in found]
    return frozenset(found), sum(spent.get(one, 0.0) for one in found)
