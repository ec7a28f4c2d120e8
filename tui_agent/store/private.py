"""How files are opened: for their owner alone, whatever the umask, and without waiting for anybody."""

from __future__ import annotations

import os
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make `folder`, and what is missing above it, with mode 0700. Folders that exist stay as they are."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def unblocked(path: str | Path, flags: int) -> int:
    """An opener (as of `open`) that waits for nobody: a named pipe without a writer reads as empty."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def private(path: str | Path, flags: int) -> int:
    """An opener (as of `open`) whose new files have mode 0600."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
