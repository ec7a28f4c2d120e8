"""The state of a long session beside its journal, so that opening it need not fold all of it.

The journal alone is the truth. A saved state names the bytes of the journal that it comes from and the code
that made it, by their digests; if one of them has changed, or the file is damaged, it is ignored.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO

from pydantic import BaseModel, NonNegativeInt, TypeAdapter

from tui_agent import __version__, core
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve
from tui_agent.core.projections.entries import AnyEntry
from tui_agent.core.projections.history import Group
from tui_agent.core.projections.timeline import TimelineLine
from tui_agent.core.state import RunState
from tui_agent.store import lines, upgrade
from tui_agent.store.journal import BEGINNING, JOURNAL_NAME, Mark
from tui_agent.store.private import private, unblocked

STATE_NAME = "state.jsonl"

LONG = 1024 * 1024
"""Bytes of a journal from which on its state is saved; shorter ones are folded as quickly."""

_CHUNK = 1024 * 1024


class _Head(BaseModel, extra="forbid"):
    """The first line of the file. Digests are SHA-256 in hex."""

    code: str
    size: NonNegativeInt
    """Bytes of the journal that the state comes from."""
    journal: str
    state: str
    """Of all lines behind this one: the state without its long logs, then these by and by."""


@dataclass
class _Logs:
    """A part of the logs that grow with the session: little enough for other threads not to wait for it."""

    entries: list[AnyEntry]
    groups: list[Group]
    timeline: list[TimelineLine]


ITEMS = 100
"""Of each log in a line."""


@dataclass(frozen=True)
class SavedState:
    """A state, and the place in the journal behind the last event that is in it."""

    state: RunState
    mark: Mark


NOTHING = SavedState(RunState(), BEGINNING)


@cache
def _state() -> TypeAdapter[RunState]:
    return TypeAdapter(RunState)


@cache
def _logs() -> TypeAdapter[_Logs]:
    return TypeAdapter(_Logs)


@cache
def _code() -> str:
    """A digest of what a state is, and of how events are read and folded into it."""
    digest = hashlib.sha256(f"{__version__} {version('tree-sitter-bash')}".encode())
    for source in sorted(sources()):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def sources() -> Iterator[Path]:
    """The files whose code makes a state: the core, what it stands on, and what reads events."""
    folder = Path(core.__path__[0])
    yield from folder.rglob("*.py")
    yield from folder.parent.glob("*.py")
    yield from (Path(str(part.__file__)) for part in (lines, upgrade))


def _with_logs(state: RunState, logs: _Logs) -> RunState:
    return evolve(
        state,
        conversation=evolve(state.conversation, entries=AppendLog(logs.entries)),
        history=evolve(state.history, groups=AppendLog(logs.groups)),
        timeline=evolve(state.timeline, lines=AppendLog(logs.timeline)),
    )


def _encoded(state: RunState) -> Iterator[bytes]:
    entries, groups, timeline = state.conversation.entries, state.history.groups, state.timeline.lines
    bare = _with_logs(state, _Logs([], [], []))
    yield _state().dump_json(bare, warnings="error")
    for place in range(0, max(len(entries), len(groups), len(timeline)), ITEMS):
        part = slice(place, place + ITEMS)
        logs = _Logs(entries[part], groups[part], timeline[part])
        yield b"\n" + _logs().dump_json(logs, warnings="error")


def _decoded(encoded: Iterator[bytes]) -> RunState:
    """The state of its lines. Raises `ValueError` for what `_encoded` did not make."""
    first = next(encoded, b"")
    logs = _Logs([], [], [])
    for part in map(_logs().validate_json, encoded):
        logs.entries += part.entries
        logs.groups += part.groups
        logs.timeline += part.timeline
    return _with_logs(_state().validate_json(first), logs)


def _digest(file: IO[bytes], size: int) -> hashlib._Hash:
    """Of the next `size` bytes, or of fewer at the end of the file."""
    digest = hashlib.sha256()
    while piece := file.read(min(size, _CHUNK)):
        digest.update(piece)
        size -= len(piece)
    return digest


def save(folder: Path, state: RunState, mark: Mark) -> None:
    """Save the state of the session in `folder`, whose journal goes up to `mark`, if the journal is long.

    A state of another place is not saved. Never raises: without it the next opening takes longer.
    """
    if mark.size < LONG or mark.seq != state.seq:
        return
    unfinished = folder / f"{STATE_NAME}.part"
    try:
        body = b"".join(_encoded(state))
        head = _Head(
            code=_code(),
            size=mark.size,
            journal=mark.digest.hexdigest(),
            state=hashlib.sha256(body).hexdigest(),
        )
        unfinished.unlink(missing_ok=True)  # a link or a pipe is not written to
        with open(unfinished, "xb", opener=private) as file:
            file.writelines([head.model_dump_json().encode(), b"\n", body])
        unfinished.replace(folder / STATE_NAME)
    except (OSError, ValueError, RecursionError):
        with suppress(OSError):
            unfinished.unlink()


def load(folder: Path) -> SavedState:
    """The saved state of the session in `folder`; `NOTHING` if it does not fit the journal or this code."""
    try:
        with open(folder / STATE_NAME, "rb", opener=unblocked) as file:
            head = _Head.model_validate_json(file.readline(_CHUNK))
            start = file.tell()
            if head.code != _code() or _digest(file, sys.maxsize).hexdigest() != head.state:
                return NOTHING
            with open(folder / JOURNAL_NAME, "rb", opener=unblocked) as journal:
                digest = _digest(journal, head.size)
            if digest.hexdigest() != head.journal:
                return NOTHING
            file.seek(start)
            state = _decoded(file)
    except (OSError, ValueError, RecursionError):
        return NOTHING
    return SavedState(state, Mark(state.seq, head.size, digest))
