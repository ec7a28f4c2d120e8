"""Long results: cut in the middle for the model, and kept whole in a file that it can read on.

Names of kept files come from their content, so that the same failure reads the same each time it is met and
signatures can be compared. Nothing here knows which tool wrote the text.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from tui_agent.terminal_text import sanitize

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.tools.tool import TextMask

DEFAULT_LIMIT = 30_000
"""Characters of a result that the model reads."""

_WRITTEN_AT_ONCE = 1 << 18

_LOOKED_AT = 1 << 14
"""Bytes at the end of an output in which its last lines are looked for."""

_WIDEST = 200
"""Characters of such a line."""

KEPT_BYTES = 50_000_000
"""Bytes of one output that are kept on disk; what comes after is counted, not kept."""


def join_cut(head: str, tail: str, total: int, whole: str = "") -> str:
    """Both ends of a text of `total` characters, cut at lines if one ends near, with a notice on the part
    between them that is left out; `whole` names the file with all of it.
    """
    newline = head.rfind("\n")
    if newline > len(head) * 3 // 4:
        head = head[: newline + 1]
    newline = tail.find("\n")
    if 0 <= newline < len(tail) // 4:
        tail = tail[newline + 1 :]
    where = f"; the whole is in {whole} (use read_file or grep on it)" if whole else ""
    notice = f"[... {total - len(head) - len(tail):,} of {total:,} characters left out here{where} ...]"
    return f"{head}{'' if head.endswith(chr(10)) or not head else chr(10)}{notice}\n{tail}"


def decode_output(data: bytes) -> str:
    """Bytes of a program as text: what is not UTF-8 becomes U+FFFD, and line ends become `\\n`."""
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def last_lines(file: Path, count: int) -> list[str]:
    """The last lines of an output that is kept in `file`, each safe to show; none if it cannot be read."""
    try:
        with file.open("rb") as stream:
            beginning = max(0, stream.seek(0, os.SEEK_END) - _LOOKED_AT)
            stream.seek(beginning)
            text = decode_output(stream.read())
    except OSError:
        return []
    lines = sanitize(text).rstrip().split("\n")[1 if beginning and "\n" in text.rstrip() else 0 :]
    return [line[:_WIDEST] for line in lines[-count:]] if any(lines) else []


class Capture:
    """Collects an output of any size in bounded memory and, once it is too long for the model, in a bounded
    file.

    Fed from one thread; read after the last `feed`. A disk that is full or broken costs the file, never the
    output.
    """

    def __init__(
        self,
        folder: Path,
        prefix: str,
        limit: int = DEFAULT_LIMIT,
        kept: int = KEPT_BYTES,
        mask: TextMask | None = None,
    ) -> None:
        """`mask` is fed what goes into the file, and only that."""
        self._folder = folder
        self._prefix = re.sub(r"[^A-Za-z0-9_.-]", "_", prefix) or "output"
        self._limit = limit
        self._kept_limit = kept
        self._ends_limit = limit * 4
        """Bytes held at each end: a character of UTF-8 takes at most 4."""
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self._temporary: Path | None = None
        self._kept = 0
        self._unwritten = bytearray()
        self._trouble = ""
        self._mask = mask
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def total(self) -> int:
        """Bytes fed so far."""
        return self._total

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._total += len(data)
        self._hash.update(data)
        if self._total > self._limit and self._file is None and not self._trouble:
            self._open()
            self._write(bytes(self._head))
        room = max(0, self._ends_limit - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._ends_limit:
            del self._tail[: -self._ends_limit]
        self._write(data)

    def finish(self) -> tuple[str, str]:
        """The whole text or its two ends as decoded text, and the path of the file with all of it ("": no
        file).
        """
        text = decode_output(bytes(self._head) + bytes(self._tail))
        complete = self._total <= len(self._head) + len(self._tail)
        if complete and len(text) <= self._limit:
            self.discard()
            return text, ""
        self._flush(final=True)
        whole = self._close()
        half = self._limit // 2
        head = decode_output(bytes(self._head))[:half] if not complete else text[:half]
        tail = decode_output(bytes(self._tail))[-half:] if not complete else text[-half:]
        # Of what was never in memory only bytes are known; for the notice that is near enough.
        cut = join_cut(head, tail, len(text) if complete else self._total, whole)
        if self._trouble:
            cut += f"\n[{self._trouble}]"
        elif self._total > self._kept:
            cut += f"\n[only the first {self._kept:,} of {self._total:,} bytes were kept in the file]"
        return cut, whole

    def _open(self) -> None:
        temporary = self._folder / f".{self._prefix}-{secrets.token_hex(6)}.part"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except OSError as error:
            self._lost(error)
            return
        self._temporary = temporary

    def _write(self, data: bytes) -> None:
        # What will not be kept is not masked, and what is masked is masked in large pieces.
        if self._file is None or self._kept >= self._kept_limit:
            return
        self._unwritten += data
        if len(self._unwritten) >= _WRITTEN_AT_ONCE:
            self._flush()

    def _flush(self, *, final: bool = False) -> None:
        data = bytes(self._unwritten)
        self._unwritten.clear()
        if self._mask is None or self._file is None or self._kept >= self._kept_limit:
            self._put(data)
            return
        text = self._mask.feed(self._decoder.decode(data, final))
        self._put((text + self._mask.flush() if final else text).encode("utf-8", "replace"))

    def _put(self, data: bytes) -> None:
        if self._file is None:
            return
        data = data[: max(0, self._kept_limit - self._kept)]
        try:
            self._file.write(data)
            self._kept += len(data)
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        self._trouble = f"the whole output could not be kept: {os.strerror(error.errno or 0)}"
        self.discard()

    def discard(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.unlink()
            self._temporary = None

    def _close(self) -> str:
        if self._file is None or self._temporary is None:
            return ""
        name = self._folder / f"{self._prefix}-{self._hash.hexdigest()[:12]}.txt"
        try:
            self._file.close()
            self._temporary.replace(name)
        except OSError as error:
            self._lost(error)
            return ""
        self._file, self._temporary = None, None
        return str(name)
