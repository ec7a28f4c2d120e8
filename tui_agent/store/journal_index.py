"""A journal opened for reading anywhere: the place, the time and the type of each line, without parsing.

The file is mapped, not read, so that memory stays small however long the session is; an event is parsed when
it is asked for. What a line means is not decided here.
"""

from __future__ import annotations

import mmap
import re
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tui_agent.core.events import EVENT_TYPES, SCHEMA_VERSION, Event, parse_event
from tui_agent.store.errors import JournalError, disk_error
from tui_agent.store.journal import check_line, check_torn, journal_path
from tui_agent.store.lines import MAX_LINE_BYTES
from tui_agent.store.private import unblocked

# A whole line as `lines.encode` writes it in today's version; one expression over the file is the fastest reader.
_LINE = re.compile(
    rb'\{"seq":(\d+),"at":(-?\d{1,11}(?:\.\d+)?(?:e-\d+)?),"v":%d,"type":"([a-z_]+)".*\}\n' % SCHEMA_VERSION
)
_CALL_ID = re.compile(rb'"type":"tool_[a-z]+","call_id":"((?:[^"\\]|\\.)*)"')
_KINDS = {name.encode(): name for name in EVENT_TYPES}


class EventSource(Protocol):
    """Events by number, from 1, with what is known of each without parsing it."""

    dropped_bytes: int

    def __len__(self) -> int: ...

    def event(self, number: int) -> Event:
        """One event. Raises `JournalError` if its line turns out to be damaged."""

    def at(self, number: int) -> float:
        """When it happened, in seconds since the epoch."""

    @property
    def kinds(self) -> Sequence[str]:
        """The type of each, in order (so at `number - 1`)."""

    def call_id(self, number: int) -> object:
        """Which call an event of a tool belongs to, in any form that is equal for equal ids."""

    def read_on(self) -> bool:
        """Look for events that came since; whether there are any. Raises `JournalError`."""


class EventList:
    """Events that are in memory already: an imported transcript, or a test's."""

    dropped_bytes = 0

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._events: list[Event] = []
        self._kinds: list[str] = []
        self.follow(0, events)

    def follow(self, stand: int, new: Sequence[Event]) -> None:
        """The first `stand` events are as they were, and these come behind them."""
        self._events[stand:] = new
        self._kinds[stand:] = [str(event.__dict__["type"]) for event in new]

    def __len__(self) -> int:
        return len(self._events)

    def event(self, number: int) -> Event:
        """See `EventSource`."""
        return self._events[number - 1]

    def at(self, number: int) -> float:
        """See `EventSource`."""
        return self._events[number - 1].at

    @property
    def kinds(self) -> Sequence[str]:
        """See `EventSource`."""
        return self._kinds

    def call_id(self, number: int) -> object:
        """See `EventSource`."""
        return self._events[number - 1].__dict__["call_id"]

    def read_on(self) -> bool:
        """See `EventSource`; nothing comes."""
        return False


class JournalIndex:
    """The lines of a journal. Raises `JournalError` for what `read_journal` refuses, as far as lines show it."""

    def __init__(self, path: Path, *, salvage: bool = False) -> None:
        """`salvage`: a file that is damaged inside is read up to there, and `damage` says why no further."""
        self.path = journal_path(path)
        self.damage: JournalError | None = None
        self.dropped_bytes = 0
        self._ends = array("Q", [0])
        self._times = array("d")
        self._kinds: list[str] = []
        self._data = self._mapped()
        self._other_form: set[int] = set()
        try:
            self._read()
        except JournalError as damage:
            if not salvage or not self._kinds:
                raise
            self.damage = damage

    def _mapped(self) -> mmap.mmap | bytes:
        try:
            with open(self.path, "rb", opener=unblocked) as file:
                size = file.seek(0, 2)
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        except OSError as fault:
            raise disk_error("The session cannot be read", self.path, fault) from fault

    def read_on(self) -> bool:
        """Read what was written since, to the last line break; whether there was anything. Raises `JournalError`."""
        end, known = self._ends[-1], len(self._kinds)
        if self.damage is not None or not self.path.is_file() or self.path.stat().st_size <= end:
            return False
        self._data = self._mapped()
        if self._data[end - 1 : end + 1].strip(b"\n") and self._data[end : end + 1] == b"\n":
            self._ends[-1] += 1  # the line break of a last event that was whole without it
        self.dropped_bytes = 0
        self._read(self._data.rfind(b"\n") + 1)
        return len(self._kinds) > known

    def _read(self, limit: int | None = None) -> None:
        end = self._ends[-1]
        limit = len(self._data) if limit is None else limit
        for match in _LINE.finditer(self._data, end, limit):
            if match.start() != end:
                end = self._read_other_form(end, match.start())
            number = len(self._kinds) + 1
            seq, at, kind = match.groups()
            if int(seq) != number or number == 1 or match.end() - end > MAX_LINE_BYTES:
                end = self._read_other_form(end, match.end())
                continue
            end = match.end()
            self._keep(end, float(at), _KINDS.get(kind) or kind.decode())
        if end < limit or not self._kinds:
            self._read_other_form(end, limit)

    def _read_other_form(self, start: int, end: int) -> int:
        """Lines in another form than today's: parsed now, so that what is wrong with them is named now."""
        while True:
            number = len(self._kinds) + 1
            found = self._data.find(b"\n", start, end)
            stop = end if found == -1 else found + 1
            line = self._data[start:stop]
            event: Event | None
            event = (
                check_torn(self.path, line, number) if found == -1 else check_line(self.path, line, number)
            )
            if event is None:
                self.dropped_bytes = len(line)
                return stop
            self._other_form.add(number)
            self._keep(stop, event.at, event.__dict__["type"])
            start = stop
            if start >= end:
                return end

    def _keep(self, end: int, at: float, kind: str) -> None:
        self._ends.append(end)
        self._times.append(at)
        self._kinds.append(kind)

    def __len__(self) -> int:
        return len(self._kinds)

    def event(self, number: int) -> Event:
        """See `EventSource`."""
        line = self._line(number)
        if number not in self._other_form:
            try:
                return parse_event(line)
            except ValueError:
                pass  # named below
        return check_line(self.path, line, number)

    def raw(self, number: int) -> bytes:
        """The line of an event as it is in the file, with a line break."""
        line = self._line(number)
        return line if line.endswith(b"\n") else line + b"\n"

    def _line(self, number: int) -> bytes:
        return self._data[self._ends[number - 1] : self._ends[number]]

    def at(self, number: int) -> float:
        """See `EventSource`."""
        return self._times[number - 1]

    @property
    def kinds(self) -> Sequence[str]:
        """See `EventSource`."""
        return self._kinds

    def call_id(self, number: int) -> object:
        """See `EventSource`. As bytes of the file, or of its own kind if the line is in another form."""
        match = _CALL_ID.search(self._data, self._ends[number - 1], self._ends[number])
        return number if match is None or number in self._other_form else match.group(1)
