"""Logs of Inspect in a ZIP archive (`.eval`) as a source: a file of JSON a sample, written while the evaluation runs.

Its files are packed with zstd, which Python's `zipfile` reads from 3.14 on. What is unpacked has the bound of a
document.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import IO, Any

from tui_agent.formats.importers.reading import MAX_DOCUMENT, Allowance, Document, zstd_reader
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.formats.importers.values import object_at

MAGIC = b"PK\x03\x04"
_ZSTD = 93
_HEAD = struct.Struct("<26xHH")
"""The lengths of the name and of the extra field, at the end of what stands before a packed file."""
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"


class Archive(Document):
    """One log, as the document that Inspect writes as `.json`."""

    def value(self, file: IO[bytes]) -> Any:
        """The log."""
        try:
            with zipfile.ZipFile(file) as archive:
                return self._document(file, archive)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            struct.error,
            NotImplementedError,
            RuntimeError,
        ) as error:
            why = f"it cannot be unpacked ({error})."
            raise TranscriptError(self.path, why, "It is damaged, or being written.") from error

    def _document(self, file: IO[bytes], archive: zipfile.ZipFile) -> dict[str, Any]:
        names = archive.namelist()
        room, allowance = MAX_DOCUMENT, Allowance(self.path)
        head = next((name for name in _HEADERS if name in names), "")
        samples: list[Any] = []
        document: dict[str, Any] = {}
        for name in (head, *(one for one in names if one.startswith(_SAMPLES) and one.endswith(".json"))):
            if not name:
                continue
            text = self._unpacked(file, archive, archive.getinfo(name), room)
            room -= len(text)
            if room < 0:
                why = f"it has more than {MAX_DOCUMENT:,} bytes unpacked."
                raise TranscriptError(self.path, why, "Evaluate fewer samples at once.")
            value = self.parsed(allowance.take(text))
            if name == head:
                document = dict(object_at(value))
            else:
                samples.append(value)
        return {**document, "samples": samples}

    def _unpacked(self, file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: int) -> bytes:
        """The file, with one byte more than there is room for at most."""
        if info.compress_type != _ZSTD:
            with archive.open(info) as unpacked:
                return unpacked.read(room + 1)
        file.seek(info.header_offset)
        file.seek(sum(_HEAD.unpack(file.read(_HEAD.size))), io.SEEK_CUR)
        packed = file.read(min(info.compress_size, MAX_DOCUMENT))
        zstd = zstd_reader(self.path)
        try:
            with zstd.open(io.BytesIO(packed), "rb") as unpacked:
                return bytes(unpacked.read(room + 1))
        except zstd.ZstdError as error:
            raise zipfile.BadZipFile(str(error)) from error
