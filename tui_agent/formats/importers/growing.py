"""A session's file or folder, read as it grows: what is new goes to the reader of its format.

Import, analysis and replay read it once; `watch` reads on. The format is told from the first records; if the
file begins anew, so does the reader.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path

from tui_agent import untrusted_files
from tui_agent.formats.importers.aider import HEADING
from tui_agent.formats.importers.archives import MAGIC, Archive
from tui_agent.formats.importers.databases import DatabaseSession
from tui_agent.formats.importers.detect import detect
from tui_agent.formats.importers.reading import (
    BOM,
    COMPRESSED,
    DOCUMENT_FILE,
    LINE_FILES,
    MAX_LINE,
    OPENING,
    UTF_16,
    Allowance,
    CompressedFile,
    Document,
    EventFiles,
    Journals,
    LineFile,
    Recording,
    Source,
    TextFile,
    WideFile,
    is_database,
)
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import ImportReport, TranscriptError
from tui_agent.formats.importers.values import equal_ones, parsed


def read_whole(path: Path) -> Format:
    """The reader of a session, which has read it as it is now. Raises `TranscriptError`."""
    growing = Growing(path)
    try:
        recording = source_of(path).read()
    except OSError as error:
        raise _unreadable(path, error) from error
    if recording is None:
        raise TranscriptError(path, "the file is empty.", "Name a recorded session.")
    reader = growing.take(recording)
    growing.read_beside(reader)
    return reader


def _unreadable(path: Path, error: OSError) -> TranscriptError:
    """Why nothing is known of `path`."""
    why = f"it cannot be read ({error.strerror or error})."
    return TranscriptError(path, why, "Check the name and its permissions.")


def source_of(path: Path, within: Path | None = None) -> Source:
    """The source at `path`, by what is there now. `within`: as for `untrusted_files.opened`.

    Raises `OSError`, `TranscriptError`.
    """
    if is_database(path):
        return DatabaseSession(path, within)
    if path.is_dir() and (path / DOCUMENT_FILE).is_file():
        return Document(path / DOCUMENT_FILE, path)
    if path.is_dir():
        lines = next((name for name in LINE_FILES if (path / name).is_file()), "")
        kind = Journals if (path / "journal").is_dir() else EventFiles
        return LineFile(path / lines, path) if lines and kind is EventFiles else kind(path)
    if path.name.endswith(COMPRESSED):
        return CompressedFile(path, within=within)
    head = untrusted_files.head(path, 4_096, within)
    if head.startswith(UTF_16):
        return WideFile(path, within=within)
    head = head.removeprefix(BOM).lstrip()
    if head.startswith(MAGIC):
        return Archive(path, within)
    if head.startswith(HEADING):
        return TextFile(path, within=within)
    if head[:1] == b"[" or (head[:1] == b"{" and not _first_line_is_object(path, within)):
        return Document(path, within)
    if head and head[:1] != b"{":
        if b'\n{"' in head:
            return LineFile(path, within=within)  # behind a word of the program that wrote it
        if OPENING.match(head):
            return Document(path, within)
        kind_of = "binary data" if b"\0" in head or not _is_text(head) else "text"
        why = f"it begins with {kind_of}, not with JSON."
        raise TranscriptError(path, why, "Name a .json, .jsonl or .traj file of a recorded session.", 1)
    return LineFile(path, within=within)


def _is_text(head: bytes) -> bool:
    try:
        head[: len(head) - 3].decode()
    except UnicodeDecodeError:
        return False
    return True


def _first_line_is_object(path: Path, within: Path | None) -> bool:
    """Also if its end is not there yet, and nothing says that it is a document."""
    with untrusted_files.opened(path, within) as file:
        lines = (file.readline(MAX_LINE + 1) for _ in range(1_000))
        first = next(filter(bytes.strip, lines), b"")
        return isinstance(parsed(Allowance(path).take(first)), dict)


class Growing:
    """A session that is read on: after `read` came back true, `reader` knows more."""

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self.path = path
        self.within = within
        self.reader: Format | None = None
        """None while nothing is there of which the format could be told."""
        self.fault: TranscriptError | None = None
        """Why there is no reader yet."""
        self.modified = 0.0
        """When it was written last, in seconds since the epoch."""
        self._source: Source | None = None
        self._faulty: tuple[int, ...] = ()
        """The file that was of no use, so that it is not read again before it changes."""
        self._beside: dict[Path, LineFile] = {}
        self._marks: list[int] = []
        """Of a document's records: if it is written anew, they tell the changes."""

    def read(self) -> bool:
        """Read what is new; whether there was anything. What is not there, or not yet a session, is waited for.

        Raises `TranscriptError` if a session turns out to be none, or cannot be read any more.
        """
        try:
            if self._source is None:
                mark = _mark(self.path)
                if mark and (mark == self._faulty or not mark[_SIZE]):
                    return False  # what begins it tells how it is read
                self._source = source_of(self.path, self.within)
            recording = self._source.read()
            if recording is not None:
                self.take(recording)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(self.path, error) from error
        except TranscriptError as fault:
            if self.reader is not None:
                raise
            self._source, self.fault, self._faulty = None, fault, _mark(self.path)
            return False
        news = self.reader is not None and self.read_beside(self.reader)
        return news or recording is not None

    def take(self, recording: Recording) -> Format:
        """Have the reader take what is new. Raises `TranscriptError`."""
        self.modified = recording.modified
        reader = self.reader
        if reader is None or (recording.again and recording.document is None):
            reader = self._begin(recording)
        records, lines = reader.records(recording), recording.lines
        if recording.document is not None:
            lines = []
            if self._source is not None:  # it is read on
                known, self._marks = self._marks, [hash(json.dumps(record)) for record in records]
                stand = equal_ones(known, self._marks)
                if stand < len(known) and not reader.revises:
                    reader, stand = self._begin(recording), 0
                records = records[stand:]
        reader.report.damaged += recording.damaged
        reader.report.torn = recording.torn
        reader.read(records, lines)
        reader.around(recording)
        return reader

    def _begin(self, recording: Recording) -> Format:
        self.reader = None
        found = detect(recording)
        self.reader = found(ImportReport(found.name, str(self.path)))
        self.fault = None
        self._beside.clear()
        return self.reader

    def read_beside(self, reader: Format) -> bool:
        """Read on in the other files of the session; whether there was anything new."""
        news = False
        for path in reader.beside(self.path):
            within = Path(os.path.commonpath((self.path.parent, path)))
            file = self._beside.setdefault(path, LineFile(path, within=within))
            with suppress(OSError, TranscriptError):
                recording = file.read()
                if recording is not None and recording.again:
                    self._source = self.reader = None
                    return self.read()
                if recording is not None:
                    reader.read_beside(path, recording.records, recording.lines)
                    reader.around(recording)
                    news = True
        return news


_SIZE = 2
"""The place of a file's size in its mark."""


def _mark(path: Path) -> tuple[int, ...]:
    """By what a file is known again as it was; nothing for a folder, in which more than its names can change."""
    with suppress(OSError):
        state = path.stat()
        if stat.S_ISREG(state.st_mode):
            return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
    return ()
