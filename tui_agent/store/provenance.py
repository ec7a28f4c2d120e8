"""The origin of a session. One that was recorded elsewhere brings no approvals and no workspace along.

The mark is a file beside the journal, because whoever wrote the journal could have written a mark inside it.
"""

from __future__ import annotations

from pathlib import Path

_MARK = "imported"


def mark_foreign(folder: Path) -> None:
    """Remember that the session in `folder` was recorded elsewhere. Raises `OSError`."""
    (folder / _MARK).touch(mode=0o600)


def is_foreign(folder: Path, sessions: Path) -> bool:
    """True if the session in `folder` was imported, or is not among our own in `sessions`."""
    return (folder / _MARK).exists() or folder.resolve().parent != sessions.resolve()
