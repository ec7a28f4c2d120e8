"""A journal opened for reading anywhere: where each line lies, when it happened and what it is, without
parsing.

The file is mapped, not read, so that memory stays small however long the session is; an event is parsed when
it is asked for. What a line means is none of this module's business.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tui_agent.events import SCHEMA_VERSION, Event
from tui_agent.sessions.errors import disk_error
from tui_agent.sessions.journal import check_line, check_torn, journal_path
from tui_agent.sessions.lines import MAX_LINE_BYTES, head


class EventSource(Protocol):
    """Events by number, from 1, with what is known of each without parsing it."""

    dropped_bytes: int

    def __len__(self) -> int: ...

    def event(self, number: int) -> Event:
        """One event. Raises `JournalError` where its line turns out to be damaged."""
        ...

    def at(self, number: int) -> float:
        """When it happened, in seconds since the epoch."""
        ...

    def kind(self, number: int) -> str:
        """Its type."""
        ...


class EventList:
    """Events that are in memory already: an imported transcript, or a test's."""

    dropped_bytes = 0

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def __len__(self) -> int:
        return len(self._events)

    def event(self, number: int) -> Event:
        """See `EventSource`."""
        return self._events[number - 1]

    def at(self, number: int) -> float:
        """See `EventSource`."""
        return self._events[number - 1].at

    def kind(self, number: int) -> str:
        """See `EventSource`."""
        return str(self._events[number - 1].__dict__["type"])


class JournalIndex:
    """The lines of a journal. Raises `JournalError` for what `journal.read_journal` refuses, where lines
    show it."""

    def __init__(self, path: Path) -> None:
        self.path = journal_path(path)
        self.dropped_bytes = 0
        self._ends = array("Q", [0])
        self._times = array("d")
        self._kinds: list[str] = []
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        except OSError as fault:
            raise disk_error("The session cannot be read", self.path, fault) from fault
        for number, (start, end) in enumerate(_line_ends(self._data), 1):
            self._note(number, start, end)
        if not self._kinds:
            check_torn(self.path, b"", 1)

    def _note(self, number: int, start: int, end: int) -> None:
        data = self._data
        if data[end - 1] != 10:
            self._note_torn(number, start, end)
            return
        known = head(data[start : min(end, start + 160)])
        if (
            known is None
            or known.seq != number
            or known.version != SCHEMA_VERSION
            or number == 1
            or end - start > MAX_LINE_BYTES
            or data[end - 2] != 125
        ):
            event = check_line(self.path, data[start:end], number)
            self._keep(end, event.at, event.__dict__["type"])
        else:
            self._keep(end, known.at, known.type)

    def _note_torn(self, number: int, start: int, end: int) -> None:
        event = check_torn(self.path, self._data[start:end], number)
        if event is None:
            self.dropped_bytes = end - start
        else:
            self._keep(end, event.at, event.__dict__["type"])

    def _keep(self, end: int, at: float, kind: str) -> None:
        self._ends.append(end)
        self._times.append(at)
        self._kinds.append(_INTERNED.setdefault(kind, kind))

    def __len__(self) -> int:
        return len(self._kinds)

    def event(self, number: int) -> Event:
        """See `EventSource`."""
        return check_line(self.path, self._data[self._ends[number - 1] : self._ends[number]], number)

    def at(self, number: int) -> float:
        """See `EventSource`."""
        return self._times[number - 1]

    def kind(self, number: int) -> str:
        """See `EventSource`."""
        return self._kinds[number - 1]


_INTERNED: dict[str, str] = {}


def _line_ends(data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    start, size = 0, len(data)
    while start < size:
        found = data.find(b"\n", start)
        end = size if found == -1 else found + 1
        yield start, end
        start = end
