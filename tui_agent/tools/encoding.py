"""Bytes of a file as text and back, so that an edit changes only what it means to change.

Byte order marks, UTF-16, bytes that are not UTF-8 and line ends survive a round trip.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

SAMPLE = 1_000_000
"""Bytes from which a file's encoding is recognised."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class BinaryContentError(ValueError):
    """The bytes are no text."""


@dataclass(frozen=True)
class Encoding:
    """How a file's text is kept: the codec, how it treats bytes that do not fit, and its byte order mark."""

    codec: str
    errors: str
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """Text of a whole file. Raises `UnicodeDecodeError` for a torn UTF-16 or UTF-32."""
        return data[len(self.mark) :].decode(self.codec, self.errors)

    def searched(self) -> Encoding:
        """As a search reads it, whatever the bytes: those that are no UTF-8 are kept, a torn UTF-16 is replaced."""
        if self.codec in {"utf-8", "latin-1"}:
            return Encoding("utf-8", "surrogateescape", self.mark)
        return Encoding(self.codec, "replace", self.mark)

    def encode(self, text: str) -> bytes:
        """The file's bytes. Raises `UnicodeEncodeError` if the file's encoding has no such character."""
        return self.mark + text.encode(self.codec, self.errors)


UTF8 = Encoding("utf-8", "strict")


def detect(sample: bytes) -> Encoding:
    """The encoding of a file from its first bytes. Raises `BinaryContentError` for what is no text.

    UTF-8 is assumed; bytes that do not fit it are kept as they are (`surrogateescape`), unless nothing in the
    sample is multi-byte UTF-8: then every byte is one character (Latin-1).
    """
    for mark, codec in _MARKS:
        if sample.startswith(mark):
            return Encoding(codec, "surrogateescape" if codec == "utf-8" else "strict", mark)
    if b"\0" in sample:
        raise BinaryContentError
    # The sample may end inside a character.
    text = sample.decode("utf-8", "surrogateescape") if len(sample) < SAMPLE else _whole_characters(sample)
    escaped = any("\udc80" <= c <= "\udcff" for c in text)
    if escaped and not any(c > "\x7f" and not "\udc80" <= c <= "\udcff" for c in text):
        return Encoding("latin-1", "strict")
    return Encoding("utf-8", "surrogateescape")


def _whole_characters(sample: bytes) -> str:
    end = len(sample)
    while end > len(sample) - 4 and sample[end - 1] & 0xC0 == 0x80:
        end -= 1
    if sample[end - 1] & 0x80:
        end -= 1
    return sample[:end].decode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """Text for the model: lone surrogates (bytes that were not UTF-8) become U+FFFD, so that it can be
    stored.
    """
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


_SURROGATES = re.compile("[\ud800-\udfff]")
