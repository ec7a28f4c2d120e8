"""The end of a long journal, for a first look at a session while the whole of it is read.

Nothing is written, and nothing is said of what is wrong: the reader of the whole says it.
"""

from __future__ import annotations

import os
from pathlib import Path

from tui_agent.core.fold import fold
from tui_agent.core.state import RunState
from tui_agent.store.journal import journal_path
from tui_agent.store.lines import decode, head
from tui_agent.store.private import unblocked

TAIL = 1024 * 1024
"""Bytes of a journal's end in which a place to begin is looked for; shorter journals are read as quickly."""

ENOUGH = 500
"""Events that make some screens of conversation."""


def latest(path: Path) -> RunState | None:
    """The newest runs of a session (its folder or its file), folded by themselves: a conversation to look at.

    Figures of the whole session are not in it, nor figures of a run that is longer than the tail. None if the
    journal is short, or its end cannot be read.
    """
    try:
        with open(journal_path(path), "rb", opener=unblocked) as file:
            size = file.seek(0, os.SEEK_END)
            if size <= TAIL:
                return None
            file.seek(size - TAIL)
            # The first piece is the rest of a line, the last one is empty or torn.
            lines = file.read(TAIL).split(b"\n")[1:-1]
        start = _beginning(lines)
        return None if start is None else fold(map(decode, lines[start:]))
    except (OSError, ValueError, RecursionError):
        return None


def _beginning(lines: list[bytes]) -> int | None:
    """The beginning of the newest run, or else of an iteration, that leaves enough to look at."""
    heads = [head(line) for line in lines[:-ENOUGH]]
    for kind in ("run_started", "iteration_started"):
        for place in range(len(heads) - 1, -1, -1):
            if (known := heads[place]) is not None and known.type == kind:
                return place
    return None
