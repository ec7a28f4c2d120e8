"""The index of all sessions in one SQLite file: a row each for the list, and their texts for the search.

The journals are the truth: the file may be deleted at any time, and one that is damaged or of another version is
made anew.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tui_agent import __version__
from tui_agent.store.errors import SessionError
from tui_agent.store.summary import SearchText, SessionRow

T = TypeVar("T")

INDEX_NAME = "index.sqlite3"
_LONGEST_PASSAGE = 20_000
_COLUMNS = tuple(column.name for column in fields(SessionRow))
_VERSION = zlib.crc32(f"{__version__} {_COLUMNS}".encode()) >> 1
"""Of the tables, as SQLite holds it: each release, and each change of `SessionRow`, makes the file anew."""
_KINDS = tuple(
    {"str": (str,), "int": (int,), "float": (int, float)}.get(str(column.type), (int, float, type(None)))
    for column in fields(SessionRow)
)
_TABLES = ("sessions", "places", "passages")
_LARGEST = 2**63 - 1
_NOT_THE_FILE = tuple(
    f"SQLITE_{why}"
    for why in (
        "BUSY",
        "LOCKED",
        "FULL",
        "READONLY",
        "IOERR",
        "CANTOPEN",
        "NOMEM",
        "PERM",
        "AUTH",
        "INTERRUPT",
    )
)
"""How the names of faults begin for which the file is not to blame."""
_SELECT = " ".join(("SELECT", ", ".join(_COLUMNS), "FROM sessions"))
_INSERT = " ".join(
    ("INSERT INTO sessions", f"({', '.join(_COLUMNS)})", "VALUES", f"({', '.join('?' for _ in _COLUMNS)})")
)
_OPEN, _CLOSE = "\x02", "\x03"
_HITS = (
    "SELECT places.session_id, sessions.title, places.seq, places.role, snippet(passages, 0, ?, ?, '…', 16) "
    "FROM passages JOIN places ON places.id = passages.rowid "
    "JOIN sessions ON sessions.id = places.session_id WHERE passages MATCH ?"
)
_MOST_PLACES = 5_000
"""Hits that a search for sessions looks at: the best ones, if a word is everywhere."""


class Hit(NamedTuple):
    """A place in which a search found something. `spans` are the found words in `snippet`, as (start, end)."""

    session_id: str
    title: str
    seq: int
    role: str
    snippet: str
    spans: tuple[tuple[int, int], ...]


class SessionIndex:
    """The rows and the texts. May be used from any thread; every method is one transaction."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / INDEX_NAME
        self._memory: sqlite3.Connection | None = None

    def rows(self) -> list[SessionRow]:
        """All rows, the one that changed last first."""
        found = self._do(lambda database: database.execute(_SELECT).fetchall())
        rows = [SessionRow(*row) for row in found if _is_sound(row)]
        return sorted(rows, key=lambda row: (row.ended_at, row.id), reverse=True)

    def row(self, session_id: str) -> SessionRow | None:
        """One row, if there is one."""
        found = self._do(
            lambda database: database.execute(_SELECT + " WHERE id = ?", (session_id,)).fetchone()
        )
        return SessionRow(*found) if found is not None and _is_sound(found) else None

    def known(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of each session's journal as it was indexed; rows that are damaged are not known."""
        return {row.id: (row.size, row.changed_ns) for row in self.rows()}

    def put(self, summaries: Iterable[tuple[SessionRow, list[SearchText]]]) -> None:
        """Add or replace sessions."""
        sessions = list(summaries)

        def write(database: sqlite3.Connection) -> None:
            for row, passages in sessions:
                _forget(database, row.id)
                database.execute(_INSERT, tuple(_storable(getattr(row, name)) for name in _COLUMNS))
                for passage in passages:
                    place = database.execute(
                        "INSERT INTO places (session_id, seq, role) VALUES (?, ?, ?)",
                        (row.id, passage.seq, passage.role),
                    ).lastrowid
                    database.execute(
                        "INSERT INTO passages (rowid, text) VALUES (?, ?)", (place, _plain(passage.text))
                    )

        self._do(write)

    def drop(self, session_ids: Iterable[str]) -> None:
        """Remove sessions."""
        names = list(session_ids)

        def write(database: sqlite3.Connection) -> None:
            for session_id in names:
                _forget(database, session_id)

        self._do(write)

    def search(self, words: str, limit: int = 50) -> list[Hit]:
        """Places that hold all `words` (the last may be unfinished), the best first; none for no words."""
        quoted = _query(words)
        if not quoted:
            return []
        return [_as_hit(row) for row in self._places(quoted, limit)]

    def found(self, words: str, limit: int = 200) -> list[Hit]:
        """The best place of each session in which a place holds all `words`, the best first."""
        quoted = _query(words)
        if not quoted:
            return []
        best: dict[str, Hit] = {}
        for row in self._places(quoted, _MOST_PLACES):
            if row[0] not in best:
                best[row[0]] = _as_hit(row)
            if len(best) == limit:
                break
        return list(best.values())

    def _places(self, quoted: str, limit: int) -> list[Any]:
        query = f"{_HITS} ORDER BY passages.rank LIMIT ?"
        return self._do(lambda database: database.execute(query, (_OPEN, _CLOSE, quoted, limit)).fetchall())

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Carry out one transaction. A file that is damaged is made anew, and filled by the next `known`."""
        try:
            with self._connected() as database:
                return work(database)
        except SessionError as failed:
            if not _is_damage(failed.__cause__):
                raise
        self._delete()
        with self._connected() as database:
            return work(database)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        database: sqlite3.Connection | None = None
        try:
            database = self._memory or self._open()
            with database:
                yield database
        except (sqlite3.Error, OSError) as fault:
            raise SessionError(
                "The index of the sessions cannot be used",
                f"{fault} ({self.path})",
                "Free some space, or delete that file: it is made anew from the sessions.",
            ) from fault
        finally:
            if database is not None and database is not self._memory:
                database.close()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.OperationalError:
            # A state folder that cannot be written: the index lives as long as we do.
            self._memory = _prepared(sqlite3.connect(":memory:", check_same_thread=False))
            return self._memory
        except sqlite3.DatabaseError:
            self._delete()
            return self._connect()

    def _delete(self) -> None:
        for name in (INDEX_NAME, f"{INDEX_NAME}-wal", f"{INDEX_NAME}-shm"):
            self.path.with_name(name).unlink(missing_ok=True)

    def _connect(self) -> sqlite3.Connection:
        # SQLite gives a new file the umask's mode, and the files beside it the mode of the file.
        # Never opened here once it exists: closing it would drop the locks of this process's other connections.
        with contextlib.suppress(OSError):
            self.path.touch(mode=0o600)
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)
        return _prepared(sqlite3.connect(self.path, timeout=10.0))


def _prepared(database: sqlite3.Connection) -> sqlite3.Connection:
    """The tables are there, in our version. Raises `sqlite3.DatabaseError` for a file that is no database."""
    try:
        if _current(database):
            return database
        database.execute("PRAGMA journal_mode = WAL")
        with database:
            database.execute("BEGIN IMMEDIATE")
            if not _current(database):
                for table in _TABLES:
                    database.execute(f"DROP TABLE IF EXISTS {table}")
                columns = ", ".join(f"{name} PRIMARY KEY" if name == "id" else name for name in _COLUMNS)
                database.execute(f"CREATE TABLE sessions ({columns}) WITHOUT ROWID")
                database.execute("CREATE TABLE places (id INTEGER PRIMARY KEY, session_id, seq, role)")
                database.execute("CREATE INDEX places_of_session ON places (session_id)")
                database.execute(
                    "CREATE VIRTUAL TABLE passages USING fts5(text, tokenize = 'unicode61 remove_diacritics 2')"
                )
                database.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        database.close()
        raise
    return database


def _current(database: sqlite3.Connection) -> bool:
    """True if the tables are ours: by the version, and by their columns, which somebody else may have
    changed.
    """
    if database.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
        return False
    there = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not there.issuperset(_TABLES):
        return False
    return tuple(row[1] for row in database.execute("PRAGMA table_info(sessions)")) == _COLUMNS


def _is_damage(fault: BaseException | None) -> bool:
    """True if the file is to blame, and not the disk, a lock or the permissions."""
    if not isinstance(fault, sqlite3.Error):
        return False
    name = getattr(fault, "sqlite_errorname", "")
    return not name.startswith(_NOT_THE_FILE)


def _is_sound(row: tuple[Any, ...]) -> bool:
    """True if the columns hold the values of a `SessionRow`."""
    return all(
        isinstance(value, kinds) and not isinstance(value, bool)
        for value, kinds in zip(row, _KINDS, strict=True)
    )


def _storable(value: Any) -> Any:
    """A value as SQLite can hold it: whole numbers of 64 bits, texts without half characters."""
    if isinstance(value, int):
        return max(-_LARGEST, min(value, _LARGEST))
    return _plain_text(value) if isinstance(value, str) else value


def _plain_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _forget(database: sqlite3.Connection, session_id: str) -> None:
    database.execute(
        "DELETE FROM passages WHERE rowid IN (SELECT id FROM places WHERE session_id = ?)", (session_id,)
    )
    database.execute("DELETE FROM places WHERE session_id = ?", (session_id,))
    database.execute("DELETE FROM sessions WHERE id = ?", (session_id,))


def _query(words: str) -> str:
    """The words as FTS5 asks for them, the last one unfinished; empty for none."""
    quoted = ['"' + word.replace('"', '""') + '"' for word in _plain(words).split()]
    return " ".join(quoted) + "*" if quoted else ""


def _as_hit(row: tuple[str, str, int, str, str]) -> Hit:
    session_id, title, seq, role, marked = row
    return Hit(session_id, title, seq, role, *_spans(marked))


def _plain(text: str) -> str:
    return _plain_text(text[:_LONGEST_PASSAGE]).replace(_OPEN, " ").replace(_CLOSE, " ").replace("\0", " ")


def _spans(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The snippet without its marks, and the places of the marks."""
    plain: list[str] = []
    spans: list[tuple[int, int]] = []
    length = start = 0
    for piece in marked.split(_OPEN):
        inside, closed, after = piece.partition(_CLOSE)
        if closed:
            start = length
            spans.append((start, start + len(inside)))
        plain += (inside, after)
        length += len(inside) + len(after)
    return "".join(plain), tuple(spans)
