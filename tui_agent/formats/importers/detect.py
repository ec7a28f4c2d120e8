"""Which format a recording has, by what is in it; a file's name is never asked.

The order matters: formats with marks of their own come before those whose messages they share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.formats.importers import (
    claude_code,
    codex,
    mini_swe_agent,
    mistral_vibe,
    openai_messages,
    openhands,
    openhands_history,
    own,
    swe_agent,
    tau_bench,
)
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.quantities import counted

if TYPE_CHECKING:
    from types import ModuleType

    from tui_agent.formats.importers.reading import Record, Recording

FORMATS: tuple[ModuleType, ...] = (
    own,
    claude_code,
    codex,
    openhands,
    openhands_history,
    tau_bench,
    swe_agent,
    mini_swe_agent,
    mistral_vibe,
    openai_messages,
)
"""Modules with `NAME`, `matches(recording)` and `read(recording, report)` (`own`: `read_events`)."""


def detect(recording: Recording) -> ModuleType:
    """The module of the recording's format. Raises `TranscriptError` that lists what was tried."""
    for module in FORMATS:
        if module.matches(recording):
            return module
    tried = ", ".join(str(module.NAME) for module in FORMATS)
    why = "its content is none of the known kinds of transcript."
    raise TranscriptError(str(recording.path), why, f"Tried: {tried}. {_seen(recording)}")


def _seen(recording: Recording) -> str:
    document = recording.document
    if isinstance(document, dict):
        keys = _keys(document)
        return f"It is an object with the keys {keys}." if keys else "It is an empty object."
    if isinstance(document, list):
        return f"It is a list of {counted(len(document), 'item')}."
    if recording.records:
        keys = _keys(recording.records[0])
        return f"Its first record has the keys {keys}." if keys else "Its first record is empty."
    return "It has no record."


def _keys(record: Record) -> str:
    """A few keys for the message; what is not printable in them is left out."""
    names = ("".join(char for char in str(key)[:30] if char.isprintable()) for key in list(record)[:8])
    return ", ".join(sorted(name for name in names if name))
