"""Services of this machine that listen on Unix sockets: whoever connects has them act with the rights of others.

A mount that is read-only does not keep a program from connecting. What is in sight inside the walls is covered.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TABLE = Path("/proc/net/unix")
_MOST = 300
"""Sockets that are covered; each is a mount."""


def sockets_in_sight(out_of_sight: Iterable[Path]) -> tuple[Path, ...]:
    """The sockets with a path in this network namespace that exist now, but for those in folders `out_of_sight`."""
    places = tuple(out_of_sight)
    try:
        lines = _TABLE.read_bytes().decode("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    found: dict[Path, None] = {}
    for line in lines:
        _, at, name = line.partition(" /")
        path = Path(f"/{name}")
        if at and not any(path.is_relative_to(place) for place in places):
            # A path in another mount namespace leads nowhere here.
            with suppress(OSError, ValueError):
                if path.is_socket():
                    found[path.resolve()] = None
    return tuple(found)[:_MOST]
