"""Files into records, as they come: lines of JSON, one JSON document, or a folder with a file an event.

Only this file, `databases` and `archives` read transcripts, through `untrusted_files`, and they know nothing of
formats. A source is asked again and again for what is new; a torn last line waits for its rest, and what was truncated,
replaced or rewritten begins anew. What cannot be a transcript at all raises `TranscriptError`.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from tui_agent import installed, untrusted_files
from tui_agent.formats.importers.damaged_lines import Heads, joined_lines, records_within
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.formats.importers.values import object_at, parsed

MAX_LINE = 64 * 2**20
"""Longest line in bytes; recorded sessions with pictures reach a few megabytes."""
MAX_FILE = 1024 * 2**20
"""Largest file of lines in bytes."""
MAX_DOCUMENT = 256 * 2**20
"""Largest JSON document in bytes: it has to be held whole, several times over."""
MAX_VALUES = 24_000_000
"""Commas and opening brackets of one session: a value in memory takes up to thirty times its bytes in the file."""
MAX_EVENT_FILES = 100_000
"""Most files of a folder with a file an event."""
_MOST_PIECES = 100
"""Lines into which a record may have been broken."""
_MOST_JOINS = 100
"""Lines of a file at which such a record is looked for."""
_MARK = 256
"""Bytes at the beginning, and before the place that was reached, by which a rewritten file is told."""

Record = dict[str, Any]
LINE_FILES = ("messages.jsonl", "events.jsonl")
"""Names of the file of lines in a session's folder."""
DOCUMENT_FILE = "api_conversation_history.json"
"""The file with the messages of a task of Cline, Roo or Kilo, in its folder."""
COMPRESSED = ".zst"
BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""How text in UTF-16 begins, as PowerShell writes it."""
OPENING = re.compile(rb"\A[^\n{}\[\]]{1,200}(?=\{\r?\n)")
"""The words of a program before the document that it printed."""


@dataclass
class Recording:
    """New content of a file or a folder since it was read last; the first time all of it.

    `document` if it is one JSON value, `records` if it is lines.
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

    def take(self, value: Any, number: int) -> None:
        """A line or a file of events, the `number`-th."""
        if isinstance(value, dict):
            self.records.append(value)
            self.lines.append(number)
        else:
            self.damaged.append(number)


class Source(Protocol):
    """Something that grows."""

    def read(self) -> Recording | None:
        """New content; None if there is none. Raises `OSError`, and `TranscriptError` for what is no
        transcript.
        """


class Allowance:
    """The room that one session has left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = MAX_VALUES

    def take(self, text: bytes) -> bytes:
        """The text, of which there is room to hold the values. Raises `TranscriptError`."""
        self._values -= text.count(b",") + text.count(b"[") + text.count(b"{")
        if self._values < 0:
            why = f"it holds more than {MAX_VALUES:,} values."
            raise TranscriptError(self._path, why, "No known recorder writes such sessions.")
        return text


def is_database(path: Path) -> bool:
    """A session in a database, or the database."""
    return path.parent.suffix == ".db" or path.suffix == ".db"


# --- lines ------------------------------------------------------------------------------------------------


_Stamp = tuple[int, int, int, int]
_NOTHING: _Stamp = (0, 0, 0, 0)


class _File(ABC):
    """A file that is read again if its size, its time or its place on the disk has changed."""

    largest = MAX_FILE
    too_large = "it has {:,} bytes, more than the {:,} that are read."

    def __init__(self, path: Path, within: Path | None = None) -> None:
        """`within`: the folder that the file has to be in; None if somebody named it."""
        self.path = path
        self.within = within
        self._seen = _NOTHING

    def read(self) -> Recording | None:
        """See `Source`."""
        if _stamp(self.path.stat()) == self._seen:
            return None
        with untrusted_files.opened(self.path, self.within) as file:
            state = os.fstat(file.fileno())
            if state.st_size > self.largest:
                why = self.too_large.format(state.st_size, self.largest)
                raise TranscriptError(self.path, why, "Split it into smaller files.")
            stamp = _stamp(state)
            recording = self._changed(file, stamp)
        self._seen = stamp
        if recording is not None:
            recording.modified = max(state.st_mtime, 0.0)
        return recording

    @abstractmethod
    def _changed(self, file: IO[bytes], stamp: _Stamp) -> Recording | None:
        """New content of the file, whose state now is given."""


def _stamp(state: os.stat_result) -> _Stamp:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


class LineFile(_File):
    """A file of JSON lines that somebody appends to."""

    def __init__(self, path: Path, folder: Path | None = None, within: Path | None = None) -> None:
        """`folder`: the session's, if the file is one in it; a `meta.json` beside the lines is read too."""
        super().__init__(path, within or folder)
        self.folder = folder
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        """Up to here the lines were read."""
        self._number = 0
        self._good = 0
        self._bad = 0
        self._first = b""
        self._last = b""
        self._allowance = Allowance(self.path)
        self._heads = Heads()
        self._joins = _MOST_JOINS

    def value(self, line: bytes) -> Any:
        """The record in a line; None if there is none, or not yet."""
        return parsed(line)

    def _changed(self, file: IO[bytes], stamp: _Stamp) -> Recording | None:
        again = bool(self._offset) and (stamp[:2] != self._seen[:2] or not self._goes_on(file))
        if again:
            self._begin()
        recording = self._read_on(file)
        recording.again = again
        return recording if recording.records or recording.damaged or recording.torn or again else None

    def _goes_on(self, file: IO[bytes]) -> bool:
        """True if the part that was read is still there."""
        if file.read(len(self._first)) != self._first:
            return False
        file.seek(self._offset - len(self._last))
        return file.read(len(self._last)) == self._last

    def _read_on(self, file: IO[bytes]) -> Recording:
        recording = Recording(self.folder or self.path)
        if self.folder is not None:
            recording.meta = _meta(self.folder / "meta.json")
        file.seek(self._offset)
        ahead: deque[bytes] = deque()
        while line := self._line(file, ahead):
            value = self.value(self._allowance.take(line if self._offset else line.removeprefix(BOM)))
            if not line.endswith(b"\n") and not isinstance(value, dict):
                recording.torn = bool(line.strip())
                break
            self._pass(line)
            if isinstance(value, dict):
                self._heads.learn(line)
                recording.take(value, self._number)
            elif line.strip():
                self._damaged(line, file, ahead, recording)
        self._good += len(recording.records)
        self._bad += len(recording.damaged)
        if self._bad > self._good:
            first = recording.damaged[0] if recording.damaged else self._number
            why = f"{self._bad} of its lines are not JSON objects; this is the first."
            raise TranscriptError(self.path, why, "It is damaged, or not a recorded session.", first)
        if self._good == self._number == 1 and recording.records:
            recording.document = recording.records[0]
        return recording

    def _line(self, file: IO[bytes], ahead: deque[bytes]) -> bytes:
        """The next line: one that was looked at before, or one more of the file."""
        line = ahead.popleft() if ahead else file.readline(MAX_LINE + 1)
        if len(line) > MAX_LINE:
            why = f"the line is longer than {MAX_LINE:,} bytes."
            raise TranscriptError(self.path, why, "No known recorder writes such lines.", self._number + 1)
        return line

    def _pass(self, line: bytes) -> None:
        self._number += 1
        self._first = self._first or line[:_MARK]
        self._offset += len(line)
        self._last = line[-_MARK:]
        if self._offset > MAX_FILE:
            why = f"it has more than {MAX_FILE:,} bytes."
            raise TranscriptError(self.path, why, "Split it into smaller files.")

    def _damaged(self, line: bytes, file: IO[bytes], ahead: deque[bytes], recording: Recording) -> None:
        """Take what can be read of a line that is no record."""
        number = self._number
        records, left = records_within(line, self._heads)
        if left and not records and line.startswith(b'{"') and self._joins:
            self._joins -= 1
            while len(ahead) < _MOST_PIECES and (more := file.readline(MAX_LINE + 1)):
                ahead.append(more)
            record, pieces = joined_lines((line, *ahead))
            if record is not None:
                records, left = [record], False
                for _ in range(pieces - 1):
                    self._pass(self._allowance.take(ahead.popleft()))
        for record in records:
            recording.take(record, number)
        if left:
            recording.damaged.append(number)


class TextFile(LineFile):
    """Lines of text, each of which is a record."""

    def value(self, line: bytes) -> Any:
        """The line as `text`, without its end; None while it has no end."""
        return {"text": line.decode("utf-8", "replace").rstrip("\r\n")} if line.endswith(b"\n") else None


class WideFile(LineFile):
    """Lines of JSON in UTF-16."""

    largest = MAX_DOCUMENT

    def _changed(self, file: IO[bytes], stamp: _Stamp) -> Recording | None:
        again = bool(self._offset)
        self._begin()
        recording = self._read_on(io.BytesIO(file.read().decode("utf-16", "replace").encode()))
        recording.again = again
        return recording


class CompressedFile(LineFile):
    """Lines of JSON that were compressed when the session was put away."""

    def _changed(self, file: IO[bytes], stamp: _Stamp) -> Recording | None:
        zstd = zstd_reader(self.path)
        again = bool(self._offset)
        self._begin()
        try:
            with zstd.open(file, "rb") as unpacked:
                recording = self._read_on(unpacked)
        except (zstd.ZstdError, EOFError) as error:
            why = f"it cannot be unpacked ({error})."
            raise TranscriptError(self.path, why, "It is damaged, or no zstd file.") from error
        recording.again = again
        return recording


# --- what is written whole ----------------------------------------------------------------------------------

_SAME_TICK = 0.1
"""Seconds within which a folder's time may stay the same although a file was added."""


class Document(_File):
    """One JSON value, written anew with each step of the agent."""

    largest = MAX_DOCUMENT
    too_large = "it is one JSON document of {:,} bytes, more than the {:,} that are read."

    def _changed(self, file: IO[bytes], stamp: _Stamp) -> Recording | None:
        """A document that is half written is waited for."""
        try:
            return Recording(self.path, document=self.value(file))
        except TranscriptError:
            if self._seen == _NOTHING:
                raise
            return None

    def value(self, file: IO[bytes]) -> Any:
        """What the file holds. Raises `TranscriptError`."""
        return self.parsed(Allowance(self.path).take(OPENING.sub(b"", file.read(), count=1)))

    def parsed(self, text: bytes) -> Any:
        """The JSON value of a text. Raises `TranscriptError`."""
        try:
            return json.loads(text.removeprefix(BOM))
        except RecursionError as error:
            why = "its JSON is nested too deeply."
            raise TranscriptError(self.path, why, "No known recorder writes such files.") from error
        except json.JSONDecodeError as error:
            why = f"it is not valid JSON ({error.msg}, column {error.colno})."
            raise TranscriptError(
                self.path, why, "It may be cut off: record it again.", error.lineno
            ) from error
        except ValueError as error:
            why = f"it is not valid JSON ({error})."
            raise TranscriptError(self.path, why, "It is damaged, or not a recorded session.") from error


class EventFiles:
    """A session's folder with one JSON file an event."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = path / "events" if (path / "events").is_dir() else path
        self._known: dict[str, None] = {}
        self._allowance = Allowance(path)
        self._modified = 0

    def read(self) -> Recording | None:
        """See `Source`. A newest file that is half written is waited for."""
        modified = self._folder.stat().st_mtime_ns
        if modified == self._modified:
            return None
        names = sorted(
            one.name for one in os.scandir(self._folder) if one.name.endswith(".json") and one.is_file()
        )
        if not names:
            why = "the folder holds no session: no events.jsonl, no messages.jsonl, no event files."
            raise TranscriptError(self.path, why, "Name the session's own folder or file.")
        if len(names) > MAX_EVENT_FILES:
            why = f"the folder holds more than {MAX_EVENT_FILES:,} event files."
            raise TranscriptError(self.path, why, "No known recorder writes such sessions.")
        again = not self._known.keys() <= set(names)
        if again:
            self._known.clear()
            self._allowance = Allowance(self.path)
        recording = Recording(self.path, again=again, modified=modified / 1e9)
        for position, name in enumerate(names, start=1):
            if name in self._known:
                continue
            text = untrusted_files.content(self._folder / name, MAX_LINE, self.path)
            value = parsed(self._allowance.take(text))
            if not isinstance(value, dict) and name == names[-1] and recording.records:
                recording.torn = True
                break
            recording.take(value, position)
            self._known[name] = None
        if not recording.torn and time.time() - modified / 1e9 > _SAME_TICK:
            self._modified = modified
        return recording if recording.records or recording.damaged or again else None


class Journals:
    """A session's folder with journals of lines, of which the newest is written; old ones may be taken away."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[Path, LineFile] = {}

    def read(self) -> Recording | None:
        """See `Source`. What was in a journal that was cut is known already."""
        whole = Recording(self.path)
        for path in sorted(untrusted_files.found(self.path, "journal/*.jsonl")):
            new = self._files.setdefault(path, LineFile(path, within=self.path)).read()
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


def zstd_reader(path: Path) -> Any:
    """Python's own reader of zstd, or its backport for Python before 3.14."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    why = "it is compressed (zstd), and nothing is installed that reads it."
    raise TranscriptError(path, why, f"Install it: {installed.adding('zstd')}, or unpack it with `unzstd`.")


def _meta(path: Path) -> Record:
    try:
        return object_at(parsed(Allowance(path).take(untrusted_files.content(path, MAX_LINE, path.parent))))
    except OSError:
        return {}
