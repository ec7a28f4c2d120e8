"""`agent-tui replay --print`: a saved session as text, for where there is no screen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.cli.saved import saved_session

if TYPE_CHECKING:
    from tui_agent.config import Settings
    from tui_agent.events import Event


def print_session(settings: Settings, wanted: str | None, until: int | None) -> int:
    """Write transcript and recovery timeline to standard output, up to event `until` where one is given.

    Raises `SessionError` for what is neither a session nor a recording that can be read as one.
    """
    from tui_agent.sessions.export import transcript_text

    events = _events(saved_session(settings.state_dir, wanted))
    shown = events if until is None else [event for event in events if event.seq <= until]
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stdout.write(transcript_text(shown))
    return 0


def _events(path: Path) -> Sequence[Event]:
    """Events of our own session, as far as it can be read, or of a recording of another agent."""
    from tui_agent.sessions.errors import JournalError
    from tui_agent.sessions.importers.load import load_transcript
    from tui_agent.sessions.journal import read_journal

    try:
        contents = read_journal(path, salvage=True)
    except JournalError:
        if path.is_dir():
            raise
        return load_transcript(path).events
    if contents.damage is not None:
        sys.stderr.write(f"agent-tui: {contents.damage}\nWhat comes before it is shown.\n")
    if contents.dropped_bytes:
        sys.stderr.write(f"agent-tui: a torn last line of {contents.dropped_bytes} bytes was left out.\n")
    return contents.events
