"""A session's file that grows while it is watched, and what is compared of two tellings of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_agent.core import events
from tui_agent.formats.importers.normalise import RECORDING_ENDS
from tui_agent.watch.watched import QUIET, Watched

LATER = QUIET * 2


class Growth:
    """Writes a file piece by piece; each look comes a moment later, without waiting."""

    def __init__(self, path: Path, policy: str = "combined") -> None:
        self.path = path
        self.watched = Watched(path, policy)
        self.now = 4e9
        """In seconds since the epoch; after the times of all files."""

    def add(self, piece: bytes) -> int | None:
        """Append, and look."""
        with self.path.open("ab") as file:
            file.write(piece)
        return self.look(QUIET / 100)

    def look(self, after: float = 0.0) -> int | None:
        """Look again `after` seconds."""
        self.now += after
        return self.watched.update(self.now)


def told(recorded: list[events.Event]) -> list[dict[str, Any]]:
    """What both a whole recording and a growing one tell."""
    kept = []
    for event in recorded:
        if isinstance(event, events.LaneEvent | events.SessionStarted):
            continue
        if isinstance(event, events.Notice) and event.origin == "import":
            continue
        if isinstance(event, events.RunFinished) and event.reason == RECORDING_ENDS:
            continue
        kept.append(event.model_dump(exclude={"seq", "at", "duration"}))
    return kept
