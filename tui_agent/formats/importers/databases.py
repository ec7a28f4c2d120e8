"""The databases of OpenCode, Crush and goose as sources: one session, and those of its sub-agents, row by row as they
change.

They are opened for reading only (`untrusted_files.database`): the name of a session in one is `opencode.db/ID`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui_agent import untrusted_files
from tui_agent.formats.importers.reading import MAX_DOCUMENT, Allowance, Record, Recording
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.formats.importers.values import object_at, parsed

_MOST_SESSIONS = 10_000
"""The newest of a database that are listed."""


@dataclass(frozen=True)
class _Schema:
    """The tables of an agent's database."""

    agent: str
    tables: frozenset[str]
    """By these it is known."""
    sessions: str
    """Lists the sessions, but for those of sub-agents: id, milliseconds since the epoch, folder; the newest first."""
    rows: str
    """Lists the rows of a session that changed `:since`: table, id, owner, session, milliseconds since the epoch, place
    among the others, when it was changed (by a number that grows), data.
    """


_OPENCODE_SESSIONS = """
WITH every AS ($sessions)
SELECT id, time_updated, directory FROM every WHERE parent_id IS NULL ORDER BY time_updated DESC
"""
_OPENCODE_ROWS = """
WITH RECURSIVE every AS ($sessions), family(id) AS (
    SELECT id FROM every WHERE id = :session
    UNION SELECT every.id FROM every JOIN family ON every.parent_id = family.id
)
SELECT 'session', id, '', id, time_created, time_created, time_updated,
    json_object('id', id, 'parentID', parent_id, 'directory', directory, 'title', title)
    FROM every WHERE id IN family AND time_updated >= :since
"""
_IN_PARTS = """
UNION ALL SELECT 'message', id, '', session_id, time_created, time_created, time_updated, data
    FROM message WHERE session_id IN family AND time_updated >= :since $but
UNION ALL SELECT 'part', id, message_id, session_id, time_created, time_created, time_updated, data
    FROM part WHERE session_id IN family AND time_updated >= :since $but
"""
"""Messages of version 1."""
_WHOLE = """
UNION ALL SELECT 'session_message', id, type, session_id, time_created, time_created, time_updated, data
    FROM session_message WHERE session_id IN family AND time_updated >= :since $but
"""
"""Messages of version 2."""
_FIRST = "SELECT id, parent_id, directory, title, time_created, time_updated FROM session"
_SECOND = _FIRST.replace("session", "session_v2")
_BOTH = "$2 UNION ALL $1 WHERE id NOT IN (SELECT id FROM session_v2)".replace("$1", _FIRST).replace(
    "$2", _SECOND
)
_TAKEN_OVER = "IN (SELECT id FROM session_v2)"
_TWICE = "AND NOT EXISTS (SELECT 1 FROM message WHERE message.session_id = session_message.session_id)"


def _but(rows: str, exception: str = "") -> str:
    return rows.replace("$but", exception)


def _opencode(tables: str, sessions: str, *rows: str) -> _Schema:
    listed, told = (text.replace("$sessions", sessions) for text in (_OPENCODE_SESSIONS, _OPENCODE_ROWS))
    return _Schema("OpenCode", frozenset(tables.split()), listed, "".join((told, *rows)))


_OPENCODES = (
    # Version 2 leaves the tables of version 1 as they were when it took their sessions over.
    _opencode(
        "session_v2 session_message session message part",
        _BOTH,
        _but(_IN_PARTS, f"AND session_id NOT {_TAKEN_OVER}"),
        _but(_WHOLE, f"AND session_id {_TAKEN_OVER}"),
    ),
    _opencode("session_v2 session_message", _SECOND, _but(_WHOLE)),
    # Before it had sessions of its own, one that was taken over had its messages twice.
    _opencode("session session_message message part", _FIRST, _but(_IN_PARTS), _but(_WHOLE, _TWICE)),
    _opencode("session message part", _FIRST, _but(_IN_PARTS)),
)
_CRUSH = _Schema(
    "Crush",
    frozenset({"sessions", "messages", "files"}),
    "SELECT id, updated_at * 1000, '' FROM sessions WHERE parent_session_id IS NULL ORDER BY updated_at DESC",
    """
WITH RECURSIVE family(id) AS (
    SELECT id FROM sessions WHERE id = :session
    UNION SELECT sessions.id FROM sessions JOIN family ON sessions.parent_session_id = family.id
)
SELECT 'session', id, '', id, created_at * 1000, 0, updated_at, json_object('title', title)
    FROM sessions WHERE id IN family AND updated_at >= :since
UNION ALL SELECT 'message', id, role, session_id, created_at * 1000, rowid, updated_at,
    json_object('model', model, 'parts', parts)
    FROM messages WHERE session_id IN family AND updated_at >= :since
""",
)
_GOOSE = _Schema(
    "goose",
    frozenset({"sessions", "messages", "schema_version"}),
    "SELECT id, CAST(strftime('%s', updated_at) AS INTEGER) * 1000, working_dir FROM sessions ORDER BY updated_at DESC",
    """
SELECT 'session', id, '', id, 0, 0, (SELECT max(id) FROM messages WHERE session_id = :session),
    json_object('title', COALESCE(NULLIF(name, ''), description), 'directory', working_dir)
    FROM sessions WHERE id = :session
UNION ALL SELECT 'message', CAST(id AS TEXT), role, session_id, created_timestamp * 1000, id, id,
    json_object('content', content_json)
    FROM messages WHERE session_id = :session AND id >= :since
""",
)
_SCHEMAS = (*_OPENCODES, _GOOSE, _CRUSH)
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_ROW = 500
"""Bytes that a row takes beside its text."""
_OWN = ("table", "id", "messageID", "sessionID", "at")
"""Names that the columns have in a row's object; in its data they may mean something else."""


def sessions_in(database: Path, within: Path | None = None) -> list[tuple[Path, float, str]]:
    """Its sessions, but for those of sub-agents, the newest first: their names, the times of their last
    writing (seconds since the epoch), and their folders; none if it cannot be read.
    """
    listed: list[tuple[Path, float, str]] = []
    with suppress(sqlite3.Error, OSError), untrusted_files.database(database, within) as connection:
        query = _schema(connection).sessions
        for key, at, folder in connection.execute(query).fetchmany(_MOST_SESSIONS):
            if isinstance(key, str) and isinstance(at, int | float) and "/" not in key:
                listed.append((database / key, at / 1_000, str(folder)))
    return listed


def _schema(connection: sqlite3.Connection) -> _Schema:
    """Raises `sqlite3.Error`."""
    tables = {name for (name,) in connection.execute(_TABLES)}
    for schema in _SCHEMAS:
        if schema.tables <= tables:
            return schema
    known = ", ".join(dict.fromkeys(schema.agent for schema in _SCHEMAS))
    raise sqlite3.DatabaseError(f"it has none of the tables of {known}")


class DatabaseSession:
    """The rows of one session that are new, or were changed, as objects with their data and the names in `_OWN`."""

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
        self._first = ""
        """Its oldest row of a message: if it is gone, the conversation was written anew."""
        self._again = False

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
            raise TranscriptError(self.path, why, "It may be damaged, or another agent's.") from error
        self._seen = seen
        modified = max((seen[place] / 1e9 for place in range(0, len(seen), 2)), default=0.0)
        again, self._again = self._again, False
        return Recording(self.path, changed, again=again, modified=modified) if changed else None

    def _changed(self, connection: sqlite3.Connection) -> Iterator[Record]:
        schema = _schema(connection)
        if not self._session:
            self._session = next((key for key, *_ in connection.execute(schema.sessions)), "")
        if self._first and self._oldest(connection) != self._first:
            self._since, self._known, self._again = 0, {}, True
        rows, left = [], MAX_DOCUMENT
        for row in connection.execute(schema.rows, {"session": self._session, "since": self._since}):
            if not (all(isinstance(number, int) for number in row[4:7]) and isinstance(row[1], str)):
                continue  # no row of the agent's
            left -= len(str(row[-1])) + _ROW
            if left < 0:
                why = f"its session has more than {MAX_DOCUMENT:,} bytes."
                raise TranscriptError(self.path, why, "No known recorder writes such sessions.")
            rows.append(row)
        rows.sort(key=lambda row: (row[5], row[0] == "part", row[1]))
        latest = max((row[6] for row in rows), default=self._since)
        known, self._known = self._known, {row[1]: hash(row[7]) for row in rows if row[6] == latest}
        self._since = latest
        if schema is _GOOSE:
            self._first = self._oldest(connection)
        allowance = Allowance(self.path)
        for *columns, _, _, data in rows:
            if known.get(columns[1]) != hash(data):
                text = allowance.take(str(data).encode("utf-8", "replace"))
                yield {**object_at(parsed(text)), **dict(zip(_OWN, columns, strict=True))}

    def _oldest(self, connection: sqlite3.Connection) -> str:
        query = "SELECT min(id) FROM messages WHERE session_id = ?"
        return str(next(connection.execute(query, (self._session,)), ("",))[0])


def _written(database: Path) -> Iterator[float]:
    for name in (database.name, f"{database.name}-wal"):
        with suppress(OSError):
            state = (database.parent / name).stat()
            yield from (state.st_mtime_ns, state.st_size)
