"""OpenCode's database as a source: one session of it, and those of its sub-agents, row by row as they change.

It is opened for reading only (`untrusted_files.database`): the name of a session in it is `opencode.db/ID`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tui_agent import untrusted_files
from tui_agent.formats.importers.reading import MAX_DOCUMENT, Allowance, Record, Recording
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.formats.importers.values import object_at, parsed

_MOST_SESSIONS = 10_000
"""The newest of a database that are listed."""
_ROWS = """
WITH RECURSIVE family(id) AS (
    SELECT id FROM session WHERE id = :session
    UNION SELECT session.id FROM session JOIN family ON session.parent_id = family.id
)
SELECT 'session', id, '', id, time_created, time_updated,
    json_object('id', id, 'parentID', parent_id, 'directory', directory, 'title', title)
    FROM session WHERE id IN family AND time_updated >= :since
UNION ALL SELECT 'message', id, '', session_id, time_created, time_updated, data
    FROM message WHERE session_id IN family AND time_updated >= :since
UNION ALL SELECT 'part', id, message_id, session_id, time_created, time_updated, data
    FROM part WHERE session_id IN family AND time_updated >= :since
"""
_NEWEST = "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC LIMIT 1"
_ROW = 500
"""Bytes that a row takes beside its text."""
_OWN = ("table", "id", "messageID", "sessionID", "at")
"""Names that the columns have in a row's object; in its data they may mean something else."""


def sessions_in(database: Path, within: Path | None = None) -> list[tuple[Path, float, str]]:
    """Its sessions, but for those of sub-agents, the newest first: their names, the times of their last
    writing (seconds since the epoch), and their folders; none if it cannot be read.
    """
    query = (
        "SELECT id, time_updated, directory FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC"
    )
    listed: list[tuple[Path, float, str]] = []
    with suppress(sqlite3.Error, OSError), untrusted_files.database(database, within) as connection:
        for key, at, folder in connection.execute(query).fetchmany(_MOST_SESSIONS):
            if isinstance(key, str) and isinstance(at, int | float) and "/" not in key:
                listed.append((database / key, at / 1_000, str(folder)))
    return listed


class DatabaseSession:
    """The rows of one session that are new, or were changed, as objects like those of OpenCode's own export."""

    def __init__(self, path: Path, within: Path | None = None) -> None:
        """`path`: the database's, with the session's id behind it; without one the newest session."""
        self.path = path
        self._within = within
        self._database = path if path.suffix == ".db" else path.parent
        self._session = "" if path.suffix == ".db" else path.name
        self._since = 0
        self._known: dict[str, int] = {}
        """Rows of the last moment that was read, by a mark of their content: that moment may not be over."""
        self._seen: tuple[float, ...] = ()

    def read(self) -> Recording | None:
        """See `reading.Source`."""
        seen = tuple(_written(self._database))
        if seen == self._seen:
            return None
        self._database.stat()
        try:
            with untrusted_files.database(self._database, self._within) as connection:
                changed = list(self._changed(connection))
        except sqlite3.Error as error:
            if "locked" in str(error) or "busy" in str(error):
                return None
            why = f"it cannot be read ({error})."
            raise TranscriptError(
                self.path, why, "It may be damaged, or no database of OpenCode's."
            ) from error
        self._seen = seen
        return Recording(self.path, changed, modified=self._since / 1_000) if changed else None

    def _changed(self, connection: sqlite3.Connection) -> Iterator[Record]:
        if not self._session:
            self._session = next((key for (key,) in connection.execute(_NEWEST)), "")
        rows, left = [], MAX_DOCUMENT
        for row in connection.execute(_ROWS, {"session": self._session, "since": self._since}):
            if not (isinstance(row[4], int) and isinstance(row[5], int) and isinstance(row[1], str)):
                continue  # no row of OpenCode's
            left -= len(str(row[6])) + _ROW
            if left < 0:
                why = f"its session has more than {MAX_DOCUMENT:,} bytes."
                raise TranscriptError(self.path, why, "No known recorder writes such sessions.")
            rows.append(row)
        rows.sort(key=lambda row: (row[4], row[0] == "part", row[1]))
        latest = max((row[5] for row in rows), default=self._since)
        known, self._known = self._known, {row[1]: hash(row[6]) for row in rows if row[5] == latest}
        self._since = latest
        allowance = Allowance(self.path)
        for *columns, _, data in rows:
            if known.get(columns[1]) != hash(data):
                text = allowance.take(str(data).encode("utf-8", "replace"))
                yield {**object_at(parsed(text)), **dict(zip(_OWN, columns, strict=True))}


def _written(database: Path) -> Iterator[float]:
    for name in (database.name, f"{database.name}-wal"):
        with suppress(OSError):
            state = (database.parent / name).stat()
            yield from (state.st_mtime_ns, state.st_size)
