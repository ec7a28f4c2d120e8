"""Files into records: lines of JSON or one JSON document, within limits.

Only this file opens transcripts, and it knows nothing of formats. A torn last line is tolerated and marked, a damaged
line inside is counted, and what cannot be a transcript at all raises `TranscriptError`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_agent.formats.importers.transcript import TranscriptError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LINE = 64 * 2**20
"""Longest line in bytes; recorded sessions with pictures reach a few megabytes."""
MAX_FILE = 1024 * 2**20
"""Largest file of lines in bytes."""
MAX_DOCUMENT = 256 * 2**20
"""Largest JSON document in bytes: it has to be held whole, several times over."""

Record = dict[str, Any]


@dataclass
class Recording:
    """The content of a file or a folder: `document` where it is one JSON value, `records` where it is lines."""

    path: Path
    records: list[Record] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """The line of each record, from 1."""
    document: Any = None
    meta: Record = field(default_factory=dict)
    """The `meta.json` beside the lines, for formats that keep one."""
    damaged: list[int] = field(default_factory=list)
    torn: bool = False
    modified: float = 0.0
    """When the file was last written, in seconds since the epoch."""

    @property
    def objects(self) -> list[Record]:
        """The objects it holds: of its list, its lines, or the one that it is."""
        document = self.document
        if isinstance(document, list):
            return [item for item in document if isinstance(item, dict)]
        return self.records or ([document] if isinstance(document, dict) else [])


def read_recording(path: Path) -> Recording:
    """The records at `path`, a file or a folder of one session. Raises `TranscriptError`."""
    try:
        modified = max(path.stat().st_mtime, 0.0)
        recording = _read_folder(path) if path.is_dir() else _read_file(path)
    except OSError as error:
        why = f"it cannot be read ({error.strerror or error})."
        raise TranscriptError(str(path), why, "Check the name and its permissions.") from error
    recording.modified = modified
    return recording


def _read_folder(path: Path) -> Recording:
    """A session kept as a folder: lines and `meta.json`, or one JSON file an event."""
    for name in ("messages.jsonl", "events.jsonl"):
        lines = path / name
        if lines.is_file():
            recording = _read_file(lines)
            recording.path = path
            recording.meta = _meta(path / "meta.json")
            return recording
    folder = path / "events" if (path / "events").is_dir() else path
    files = sorted(file for file in folder.glob("*.json") if file.is_file())
    if not files:
        why = "the folder holds no session: no events.jsonl, no messages.jsonl, no event files."
        raise TranscriptError(str(path), why, "Name the session's own folder or file.")
    recording = Recording(path)
    for position, file in enumerate(files, start=1):
        value = _loads(_bytes(file, MAX_LINE))
        if isinstance(value, dict):
            recording.records.append(value)
            recording.lines.append(position)
        else:
            recording.damaged.append(position)
    return recording


def _meta(path: Path) -> Record:
    if not path.is_file():
        return {}
    value = _loads(_bytes(path, MAX_DOCUMENT))
    return value if isinstance(value, dict) else {}


def _read_file(path: Path) -> Recording:
    size = path.stat().st_size
    if size == 0:
        raise TranscriptError(str(path), "the file is empty.", "Name a recorded session.")
    if size > MAX_FILE:
        why = f"it has {size:,} bytes, more than the {MAX_FILE:,} that are read."
        raise TranscriptError(str(path), why, "Split it, or name a smaller part.")
    head = _head(path)
    if head[:1] == b"[" or (head[:1] == b"{" and not _first_line_is_object(path)):
        return _read_document(path, size)
    if head[:1] != b"{":
        kind = "binary data" if b"\0" in head or not _is_text(head) else "text"
        why = f"it begins with {kind}, not with JSON."
        raise TranscriptError(str(path), why, "Name a .json, .jsonl or .traj file of a recorded session.", 1)
    return _read_lines(path)


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
    for number, line in _raw_lines(path):
        if line.strip():
            return isinstance(_loads(line), dict)
        if number > 1_000:
            break
    return False


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                why = f"the line is longer than {MAX_LINE:,} bytes."
                raise TranscriptError(str(path), why, "No known recorder writes such lines.", number)
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _read_lines(path: Path) -> Recording:
    recording = Recording(path)
    last_number, last_damaged = 0, False
    for number, line in _raw_lines(path):
        if not line.strip():
            continue
        value = _loads(line)
        last_number, last_damaged = number, not isinstance(value, dict)
        if isinstance(value, dict):
            recording.records.append(value)
            recording.lines.append(number)
        else:
            recording.damaged.append(number)
    if last_damaged and recording.records:
        recording.damaged.pop()
        recording.torn = True
    if len(recording.damaged) > len(recording.records):
        first = recording.damaged[0] if recording.damaged else last_number
        why = f"{len(recording.damaged)} of its lines are not JSON objects; this is the first."
        raise TranscriptError(str(path), why, "It is damaged, or not a recorded session.", first)
    if len(recording.records) == 1 and not recording.damaged:
        recording.document = recording.records[0]
    return recording


def _read_document(path: Path, size: int) -> Recording:
    if size > MAX_DOCUMENT:
        why = f"it is one JSON document of {size:,} bytes, more than the {MAX_DOCUMENT:,} that are read."
        raise TranscriptError(str(path), why, "Split it into smaller files.")
    raw = _bytes(path, MAX_DOCUMENT)
    try:
        document = json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except RecursionError as error:
        why = "its JSON is nested too deeply."
        raise TranscriptError(str(path), why, "No known recorder writes such files.") from error
    except json.JSONDecodeError as error:
        why = f"it is not valid JSON ({error.msg}, column {error.colno})."
        raise TranscriptError(str(path), why, "It may be cut off: record it again.", error.lineno) from error
    except ValueError as error:
        why = f"it is not valid JSON ({error})."
        raise TranscriptError(str(path), why, "It is damaged, or not a recorded session.") from error
    return Recording(path, document=document)


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
