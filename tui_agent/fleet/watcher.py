"""A process that looks at a folder of growing sessions (`python -m tui_agent.fleet.watcher DIR`) and prints a
row for each that changed.

A process of its own, so that reading and judging many recordings keeps no key of the board waiting. It ends with who
started it.
"""

from __future__ import annotations

import os
import select
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.core.fold import apply_unseen
from tui_agent.core.state import RunState
from tui_agent.fleet import wire
from tui_agent.fleet.row import RunRow, row_of
from tui_agent.formats.importers.load import find_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.watch.watched import Watched

LOOK = 0.5
"""Seconds between two looks at the sessions that are known."""
SEARCH = 2.0
"""Seconds between two looks for new ones."""
REST = 4
"""Times that a look took, for which there is none: a folder of thousands leaves half of a core alone."""


@dataclass
class _Session:
    """One session: what of it stands is folded once, what may still change each time."""

    watched: Watched
    row: RunRow | None = None
    stands: tuple[int, RunState] = field(default_factory=lambda: (0, RunState()))

    def look(self, now: float) -> bool:
        """Read on; whether its row is another one. Raises `TranscriptError`."""
        stand = self.watched.update(now)
        if stand is None:
            return False
        told = self.watched.events
        count, state = self.stands if self.stands[0] <= stand else (0, RunState())
        for event in told[count:stand]:
            state = apply_unseen(state, event)
        self.stands = stand, state
        for event in told[stand:]:
            state = apply_unseen(state, event)
        before, self.row = self.row, row_of(state)
        return self.row != before


class Watcher:
    """All sessions of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sessions: dict[Path, _Session | None] = {}
        """None: a file that is no session."""
        self._sizes: dict[Path, tuple[int, int]] = {}
        self._searched = float("-inf")

    def look(self, now: float) -> list[wire.Stands]:
        """The rows that are others than at the last look. `now`: in seconds since the epoch."""
        if now - self._searched >= SEARCH:
            self._searched = now
            for path in find_transcripts([self._folder]):
                self._sessions.setdefault(path, _Session(Watched(path, within=self._folder)))
        changed = []
        for path, session in self._sessions.items():
            try:
                if session is not None and session.look(now) and session.row is not None:
                    changed.append(wire.Stands(run=str(path), row=session.row))
            except (TranscriptError, OSError):
                self._sessions[path] = None
        return changed


def main() -> None:
    """Write a message for each row that changed, until standard input ends."""
    watcher = Watcher(Path(sys.argv[1]))
    while True:
        began = time.monotonic()
        for message in watcher.look(time.time()):
            os.write(1, message.line())
        wait = max(LOOK, REST * (time.monotonic() - began))
        if select.select([0], [], [], wait)[0] and not os.read(0, 65_536):
            return


if __name__ == "__main__":
    main()
