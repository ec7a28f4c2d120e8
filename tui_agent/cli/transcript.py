"""`agent-tui replay --print`: a saved session as text, for use without a screen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tui_agent.formats.exporters import transcript_text
from tui_agent.session.recordings import open_recording
from tui_agent.store.session_store import SessionStore
from tui_agent.terminal_text import visible

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings


def print_session(settings: Settings, wanted: str | None) -> int:
    """Write transcript and recovery timeline to standard output, up to event `settings.at` if one is given.

    Raises `SessionError` for what is neither a session nor a recording that can be read as one.
    """
    recording = open_recording(SessionStore(settings.state_dir).resolve(wanted), settings)
    events, damage = recording.readable()
    notices = (
        recording.notices
        if damage is None
        else (*recording.notices, f"{damage} What comes before it is shown.")
    )
    for notice in notices:
        sys.stderr.write(f"agent-tui: {visible(notice)}\n")
    shown = events if settings.at is None else [event for event in events if event.seq <= settings.at]
    sys.stdout.write(transcript_text(shown))
    return 0
