"""Files into records, as they come: lines of JSON, one JSON document, or a folder with a file an event.

Only this file and `databases` open transcripts, and they know nothing of formats. A source is asked again and again for
what is new; a torn last line waits for its rest, and what was truncated, replaced or rewritten begins anew. What cannot
be a transcript at all raises `TranscriptError`.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from tui_agent.formats.importers.databases import DatabaseSession, is_database
from tui_agent.formats.importers.transcript import TranscriptError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 64 * 2**20
"""Longest line in bytes; recorded sessions with pictures reach a few megabytes."""
MAX_FILE = 1024 * 2**20
"""Largest file of lines in bytes."""
MAX_DOCUMENT = 256 * 2**20
"""Largest JSON document in bytes: it has to be held whole, several times over."""
_MARK = 256
"""Bytes at the beginning, and before the place that was reached, by which a rewritten file is told."""

Record = dict[str, Any]
LINE_FILES = ("messages.jsonl", "events.jsonl")
"""Names of the file of lines in a session's folder."""
COMPRESSED = ".zst"


@dataclass
class Recording:
    """What is new in a file or a folder since it was read last; the first time all of it.

    `document` where it is one JSON value, `records` where it is lines.
    """

    path: Path
    records: list[Record] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """The line of each record, from 1."""
    document: Any = None
    meta: Record = field(default_factory=dict)
    """The `meta.json` beside the lines, for formats that keep one."""
    damaged: list[int] = field(default_factory=list)
    torn: bool = False
    """The last line has no end yet."""
    again: bool = False
    """All from the beginning: what was read before holds no more."""
    modified: float = 0.0
    """When the file was last written, in seconds since the epoch."""

    @property
    def objects(self) -> list[Record]:
        """The objects it holds: of its list, its lines, or the one that it is."""
        document = self.document
        if isinstance(document, list):
            return [item for item in document if isinstance(item, dict)]
        return self.records or ([document] if isinstance(document, dict) else [])


class Source(Protocol):
    """Something that grows."""

    def read(self) -> Recording | None:
        """What is new; None where nothing is. Raises `OSError`, and `TranscriptError` for what is no transcript."""


def read_recording(path: Path) -> Recording:
    """All that there is at `path`, a file or a folder of one session. Raises `TranscriptError`."""
    try:
        recording = source_of(path).read()
        if recording is None:
            raise TranscriptError(str(path), "the file is empty.", "Name a recorded session.")
    except OSError as error:
        raise unreadable(path, error) from error
    return recording


def unreadable(path: Path, error: OSError) -> TranscriptError:
    """Why nothing is known of `path`."""
    why = f"it cannot be read ({error.strerror or error})."
    return TranscriptError(str(path), why, "Check the name and its permissions.")


def source_of(path: Path) -> Source:
    """The source at `path`, by what is there now. Raises `OSError`, `TranscriptError`."""
    if is_database(path):
        return DatabaseRows(path)
    if path.is_dir():
        if (path / "journal").is_dir():
            return Journals(path)
        for name in LINE_FILES:
            if (path / name).is_file():
                return LineFile(path / name, path)
        return EventFiles(path)
    if path.name.endswith(COMPRESSED):
        return CompressedFile(path)
    head = _head(path)
    if head[:1] == b"[" or (head[:1] == b"{" and not _first_line_is_object(path)):
        return Document(path)
    if head and head[:1] != b"{":
        kind = "binary data" if b"\0" in head or not _is_text(head) else "text"
        why = f"it begins with {kind}, not with JSON."
        raise TranscriptError(str(path), why, "Name a .json, .jsonl or .traj file of a recorded session.", 1)
    return LineFile(path)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(4_096)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def _is_text(head: bytes) -> bool:
    try:
        head[: len(head) - 3].decode()
    except UnicodeDecodeError:
        return False
    return True


def _first_line_is_object(path: Path) -> bool:
    """Also where its end is not there yet, and nothing says that it is a document."""
    with path.open("rb") as file:
        for _ in range(1_000):
            line = file.readline(MAX_LINE + 1)
            if line.strip():
                return isinstance(_loads(line), dict)
    return False


# --- lines ------------------------------------------------------------------------------------------------


class LineFile:
    """A file of JSON lines that somebody appends to."""

    def __init__(self, path: Path, folder: Path | None = None) -> None:
        """`folder`: the session's, where the file is one in it; a `meta.json` beside the lines is read too."""
        self.path = path
        self.folder = folder
        self._seen = _NOTHING
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        """Up to here the lines were read."""
        self._number = 0
        self._good = 0
        self._bad = 0
        self._first = b""
        self._last = b""

    def read(self) -> Recording | None:
        """See `Source`."""
        state = self.path.stat()
        seen = _stamp(state)
        if seen == self._seen:
            return None
        if state.st_size > MAX_FILE:
            why = f"it has {state.st_size:,} bytes, more than the {MAX_FILE:,} that are read."
            raise TranscriptError(str(self.path), why, "Split it, or name a smaller part.")
        with self.path.open("rb") as file:
            again = bool(self._offset) and (seen[:2] != self._seen[:2] or not self._goes_on(file))
            if again:
                self._begin()
            recording = self._read_on(file)
        self._seen = seen
        if not (recording.records or recording.damaged or recording.torn or again):
            return None
        recording.again = again
        recording.modified = max(state.st_mtime, 0.0)
        return recording

    def _goes_on(self, file: IO[bytes]) -> bool:
        """Whether what was read is still there."""
        if file.read(len(self._first)) != self._first:
            return False
        file.seek(self._offset - len(self._last))
        return file.read(len(self._last)) == self._last

    def _read_on(self, file: IO[bytes]) -> Recording:
        recording = Recording(self.folder or self.path)
        if self.folder is not None:
            recording.meta = _meta(self.folder / "meta.json")
        file.seek(self._offset)
        for line in _lines(file, self.path, self._number):
            whole = line.endswith(b"\n")
            value = _loads(line.removeprefix(b"\xef\xbb\xbf") if not self._offset else line)
            if not whole and not isinstance(value, dict):
                recording.torn = bool(line.strip())
                break
            self._number += 1
            if not self._offset:
                self._first = line[:_MARK]
            self._offset += len(line)
            self._last = line[-_MARK:]
            if isinstance(value, dict):
                recording.records.append(value)
                recording.lines.append(self._number)
            elif line.strip():
                recording.damaged.append(self._number)
        self._count(recording)
        return recording

    def _count(self, recording: Recording) -> None:
        self._good += len(recording.records)
        self._bad += len(recording.damaged)
        if self._bad > self._good:
            first = recording.damaged[0] if recording.damaged else self._number
            why = f"{self._bad} of its lines are not JSON objects; this is the first."
            raise TranscriptError(str(self.path), why, "It is damaged, or not a recorded session.", first)
        if self._good == self._number == 1 and recording.records:
            recording.document = recording.records[0]


def _lines(file: IO[bytes], path: Path, number: int) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            why = f"the line is longer than {MAX_LINE:,} bytes."
            raise TranscriptError(str(path), why, "No known recorder writes such lines.", number)
        yield line


# --- what is written whole ----------------------------------------------------------------------------------

_NOTHING = (0, 0, 0, 0)
_SAME_TICK = 0.1
"""Seconds within which a folder's time may stay the same although a file was added."""


def _stamp(state: os.stat_result) -> tuple[int, int, int, int]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


class Document:
    """One JSON value, written anew with each step of the agent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = _NOTHING

    def read(self) -> Recording | None:
        """See `Source`. A document that is half written is waited for."""
        state = self.path.stat()
        if (seen := _stamp(state)) == self._seen:
            return None
        first, self._seen = self._seen == _NOTHING, seen
        if state.st_size > MAX_DOCUMENT:
            why = f"it is one JSON document of {state.st_size:,} bytes, more than the {MAX_DOCUMENT:,} that are read."
            raise TranscriptError(str(self.path), why, "Split it into smaller files.")
        try:
            document = self._parsed()
        except TranscriptError:
            if first:
                raise
            return None
        return Recording(self.path, document=document, modified=max(state.st_mtime, 0.0))

    def _parsed(self) -> Any:
        raw = _bytes(self.path, MAX_DOCUMENT)
        path = str(self.path)
        try:
            return json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
        except RecursionError as error:
            why = "its JSON is nested too deeply."
            raise TranscriptError(path, why, "No known recorder writes such files.") from error
        except json.JSONDecodeError as error:
            why = f"it is not valid JSON ({error.msg}, column {error.colno})."
            raise TranscriptError(path, why, "It may be cut off: record it again.", error.lineno) from error
        except ValueError as error:
            why = f"it is not valid JSON ({error})."
            raise TranscriptError(path, why, "It is damaged, or not a recorded session.") from error


class EventFiles:
    """A session's folder with one JSON file an event."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = path / "events" if (path / "events").is_dir() else path
        self._known: dict[str, None] = {}
        self._modified = 0

    def read(self) -> Recording | None:
        """See `Source`. A newest file that is half written is waited for."""
        modified = self._folder.stat().st_mtime_ns
        if modified == self._modified:
            return None
        names = sorted(entry.name for entry in os.scandir(self._folder) if _is_event(entry))
        if not names:
            why = "the folder holds no session: no events.jsonl, no messages.jsonl, no event files."
            raise TranscriptError(str(self.path), why, "Name the session's own folder or file.")
        again = not self._known.keys() <= set(names)
        if again:
            self._known.clear()
        recording = Recording(self.path, again=again, modified=modified / 1e9)
        for position, name in enumerate(names, start=1):
            if name in self._known:
                continue
            value = _loads(_bytes(self._folder / name, MAX_LINE))
            if isinstance(value, dict):
                recording.records.append(value)
                recording.lines.append(position)
            elif name == names[-1] and recording.records:
                recording.torn = True
                break
            else:
                recording.damaged.append(position)
            self._known[name] = None
        if not recording.torn and time.time() - modified / 1e9 > _SAME_TICK:
            self._modified = modified
        return recording if recording.records or recording.damaged or again else None


def _is_event(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".json") and entry.is_file()


class Journals:
    """A session's folder with journals of lines, of which the newest is written; old ones may be taken away."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[Path, LineFile] = {}

    def read(self) -> Recording | None:
        """See `Source`. What was in a journal that was cut is known already."""
        whole = Recording(self.path)
        for path in sorted((self.path / "journal").glob("*.jsonl")):
            new = self._files.setdefault(path, LineFile(path)).read()
            if new is not None:
                whole.records += new.records
                whole.lines += new.lines
                whole.damaged += new.damaged
                whole.torn = new.torn
                whole.modified = max(whole.modified, new.modified)
        if not whole.modified:
            return None
        whole.meta = _meta(self.path / "meta.json")
        return whole


class DatabaseRows:
    """A session in a database."""

    def __init__(self, path: Path) -> None:
        self._session = DatabaseSession(path)

    def read(self) -> Recording | None:
        """See `Source`."""
        rows = self._session.rows()
        if not rows:
            return None
        return Recording(self._session.path, rows, modified=self._session.modified)


class CompressedFile:
    """Lines of JSON that were compressed when the session was put away."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = _NOTHING

    def read(self) -> Recording | None:
        """See `Source`."""
        state = self.path.stat()
        if (seen := _stamp(state)) == self._seen:
            return None
        again, self._seen = self._seen != _NOTHING, seen
        recording = Recording(self.path, again=again, modified=max(state.st_mtime, 0.0))
        zstd = zstd_reader(self.path)
        size = 0
        try:
            with zstd.open(self.path, "rb") as file:
                for number, line in enumerate(_lines(file, self.path, 0), start=1):
                    size += len(line)
                    if size > MAX_FILE:
                        why = f"it unpacks to more than the {MAX_FILE:,} bytes that are read."
                        raise TranscriptError(str(self.path), why, "Split it, or name a smaller part.")
                    value = _loads(line)
                    if isinstance(value, dict):
                        recording.records.append(value)
                        recording.lines.append(number)
                    elif line.strip():
                        recording.damaged.append(number)
        except (zstd.ZstdError, EOFError) as error:
            why = f"it cannot be unpacked ({error})."
            raise TranscriptError(str(self.path), why, "It is damaged, or no zstd file.") from error
        return recording


def zstd_reader(path: Path) -> Any:
    """Python's own reader of zstd, or its backport for Python before 3.14."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    why = "it is compressed (zstd), and nothing is installed that reads it."
    raise TranscriptError(
        str(path), why, "Install it: pip install 'agent-tui[zstd]', or unpack it with `unzstd`."
    )


def _meta(path: Path) -> Record:
    if not path.is_file():
        return {}
    value = _loads(_bytes(path, MAX_DOCUMENT))
    return value if isinstance(value, dict) else {}


def _bytes(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise TranscriptError(
            str(path), f"it has more than {limit:,} bytes.", "No known recorder writes that."
        )
    return raw


def _loads(raw: bytes) -> Any:
    """The JSON value of one line or file; None for anything that is not one."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
