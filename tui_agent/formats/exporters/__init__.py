"""Exports of a session: Markdown, HTML, JSON, OpenAI messages, ATIF, and plain text for `replay --print`.

Each is made by `export_session` from the events alone. What a model or a tool wrote is hostile in each of these forms
and is escaped for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tui_agent.core.events import Event

Format = Literal["markdown", "html", "json", "messages", "atif", "text"]

FORMATS: tuple[Format, ...] = ("markdown", "html", "json", "messages", "atif", "text")
SUFFIXES: dict[Format, str] = {
    "markdown": ".md",
    "html": ".html",
    "json": ".json",
    "messages": ".messages.json",
    "atif": ".atif.json",
    "text": ".txt",
}


def export_session(source: Path | Sequence[Event], form: Format) -> str:
    """The session in one of `FORMATS`. `source` is its folder, its journal, or its events.

    Raises `store.errors.JournalError` if the journal cannot be read, `ValueError` for an unknown format.
    """
    events = _events(source)
    match form:
        case "markdown":
            from tui_agent.formats.exporters.markdown import to_markdown

            return to_markdown(events)
        case "html":
            from tui_agent.formats.exporters.html import to_html

            return to_html(events)
        case "json":
            from tui_agent.formats.exporters.json import to_json

            return to_json(events)
        case "messages":
            from tui_agent.formats.exporters.messages import to_messages

            return to_messages(events)
        case "atif":
            from tui_agent.formats.exporters.atif import to_atif

            return to_atif(events)
        case "text":
            return transcript_text(events)
        case _:
            raise ValueError(f"unknown format {form!r}; choose one of {', '.join(FORMATS)}")


def transcript_text(events: Iterable[Event]) -> str:
    """Transcript and recovery timeline as plain text, for `replay --print`."""
    from tui_agent.formats.exporters.plain import to_text

    return to_text(list(events))


def _events(source: Path | Sequence[Event]) -> list[Event]:
    if not isinstance(source, Path):
        return list(source)
    from tui_agent.store.journal import read_journal

    return read_journal(source).events
