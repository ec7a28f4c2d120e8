"""What a person means by SESSION or FILE: a file, a session's id (or the beginning of one) or title, or the newest."""

from __future__ import annotations

from pathlib import Path

from tui_agent.cli.options import UsageError


def saved_session(state_dir: Path, wanted: str | None) -> Path:
    """The folder of a session, or the file that `wanted` names; without `wanted` the newest session.

    Raises `UsageError` where there is no session at all, `SessionError` where none or more than one fits.
    """
    if wanted is not None and Path(wanted).expanduser().exists():
        return Path(wanted).expanduser()
    from tui_agent.sessions.store import SessionStore

    store = SessionStore(state_dir)
    if wanted is not None:
        return store.find(wanted)
    newest = store.newest()
    if newest is None:
        raise UsageError(
            f"no session is saved under {store.sessions_dir} yet.\n`agent-tui demo` makes one without a key."
        )
    return newest
