"""Which format a recording has, by what is in it; a file's name is never asked.

The order matters: formats with marks of their own come before those whose messages they share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.formats.importers.atif import ATIF
from tui_agent.formats.importers.claude_code import ClaudeCode
from tui_agent.formats.importers.codex import Codex
from tui_agent.formats.importers.copilot_cli import CopilotCLI
from tui_agent.formats.importers.gemini_cli import GeminiCLI
from tui_agent.formats.importers.mini_swe_agent import MiniSWEAgent
from tui_agent.formats.importers.mistral_vibe import MistralVibe
from tui_agent.formats.importers.mistral_vibe_store import MistralVibeStore
from tui_agent.formats.importers.openai_messages import OpenAIMessages
from tui_agent.formats.importers.opencode import OpenCode
from tui_agent.formats.importers.openhands import OpenHands
from tui_agent.formats.importers.openhands_history import OpenHandsResults
from tui_agent.formats.importers.own import OwnSession
from tui_agent.formats.importers.swe_agent import SWEAgent
from tui_agent.formats.importers.tau_bench import TauBench
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.quantities import counted

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording
    from tui_agent.formats.importers.step_reader import Format

FORMATS: tuple[type[Format], ...] = (
    OwnSession,
    ClaudeCode,
    Codex,
    CopilotCLI,
    GeminiCLI,
    OpenCode,
    ATIF,
    OpenHands,
    OpenHandsResults,
    TauBench,
    SWEAgent,
    MiniSWEAgent,
    MistralVibeStore,
    MistralVibe,
    OpenAIMessages,
)


def detect(recording: Recording) -> type[Format]:
    """The reader of the recording's format. Raises `TranscriptError` that lists what was tried."""
    for reader in FORMATS:
        if reader.matches(recording):
            return reader
    tried = ", ".join(reader.name for reader in FORMATS)
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
