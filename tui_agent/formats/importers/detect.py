"""Which format a recording has, by what is in it; a file's name is never asked.

The order matters: formats with marks of their own come before those whose messages they share.
"""

from __future__ import annotations

from typing import Any

from tui_agent.formats.importers.aider import Aider
from tui_agent.formats.importers.anthropic_messages import AnthropicMessages
from tui_agent.formats.importers.antigravity import Antigravity
from tui_agent.formats.importers.atif import ATIF
from tui_agent.formats.importers.claude_code import ClaudeCode
from tui_agent.formats.importers.claude_stream import ClaudeStream, QwenStream
from tui_agent.formats.importers.cline_stream import ClineStream
from tui_agent.formats.importers.codex import Codex
from tui_agent.formats.importers.codex_exec import CodexExec
from tui_agent.formats.importers.copilot_cli import CopilotCLI
from tui_agent.formats.importers.crush import Crush
from tui_agent.formats.importers.cursor import Cursor
from tui_agent.formats.importers.gemini_cli import GeminiCLI
from tui_agent.formats.importers.gemini_stream import GeminiStream
from tui_agent.formats.importers.goose import Goose
from tui_agent.formats.importers.inspect_ai import InspectAI
from tui_agent.formats.importers.kimi_code import KimiCode
from tui_agent.formats.importers.kimi_stream import KimiStream
from tui_agent.formats.importers.mini_swe_agent import MiniSWEAgent
from tui_agent.formats.importers.mistral_vibe import MistralVibe, MistralVibeStore
from tui_agent.formats.importers.openai_messages import OpenAIMessages
from tui_agent.formats.importers.opencode import OpenCode
from tui_agent.formats.importers.opencode_stream import OpenCodeStream
from tui_agent.formats.importers.openhands import OpenHands, OpenHandsResults
from tui_agent.formats.importers.otel_spans import OTelSpans
from tui_agent.formats.importers.own import OwnSession
from tui_agent.formats.importers.pi import Pi
from tui_agent.formats.importers.qwen_code import QwenCode
from tui_agent.formats.importers.reading import Recording
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.swe_agent import SWEAgent
from tui_agent.formats.importers.tau_bench import TauBench
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.quantities import counted

FORMATS: tuple[type[Format], ...] = (
    OwnSession,
    QwenCode,
    ClaudeCode,
    QwenStream,
    ClaudeStream,
    Codex,
    CodexExec,
    CopilotCLI,
    GeminiCLI,
    GeminiStream,
    KimiCode,
    KimiStream,
    Cursor,
    Antigravity,
    Aider,
    InspectAI,
    Pi,
    Crush,
    Goose,
    OpenCode,
    OpenCodeStream,
    ClineStream,
    OTelSpans,
    ATIF,
    OpenHands,
    OpenHandsResults,
    TauBench,
    SWEAgent,
    MiniSWEAgent,
    MistralVibeStore,
    MistralVibe,
    AnthropicMessages,
    OpenAIMessages,
)


def detect(recording: Recording) -> type[Format]:
    """The reader of the recording's format. Raises `TranscriptError` that lists what was tried."""
    for reader in FORMATS:
        if reader.matches(recording):
            return reader
    tried = ", ".join(reader.name for reader in FORMATS)
    why = "its content is none of the known kinds of transcript."
    raise TranscriptError(recording.path, why, f"Tried: {tried}. {_seen(recording)}")


def _seen(recording: Recording) -> str:
    document: Any = recording.document
    if isinstance(document, list):
        return f"It is a list of {counted(len(document), 'item')}."
    whole = isinstance(document, dict)
    names = list(document if whole else next(iter(recording.records), {}))[:8]
    # What is not printable in a key is left out.
    keys = ["".join(char for char in name[:30] if char.isprintable()) for name in names]
    if not any(keys):
        return "It is an empty object." if whole else "Its first record is empty."
    has = "It is an object with" if whole else "Its first record has"
    return f"{has} the keys {', '.join(sorted(filter(None, keys)))}."
