"""Answers to another agent, given in a console: left in the folder of the conversation, taken by its hooks.

A conversation has such a folder once a hook of it was heard, so the folder says too whether an answer can get there.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FILE = "answer.txt"
_LONGEST = 10_000
"""Characters of an answer."""


def mark_of(agent: str, session: str, lane: str = "") -> str:
    """How the name of a conversation's folder ends."""
    return hashlib.sha256(f"{agent}\0{session}\0{lane}".encode("utf-8", "replace")).hexdigest()[:12]


def conversation(sessions: Path, agent: str, session: str) -> Path | None:
    """The folder that hooks keep of a conversation; None if none of it was heard."""
    return next(iter(sessions.glob(f"*-{mark_of(agent, session)}")), None)


def leave(folder: Path, text: str) -> None:
    """Leave an answer for the next hook; an earlier one that was not taken yet stands before it. Raises `OSError`."""
    waiting = take(folder)
    aside = folder / f".{_FILE}-{os.getpid()}"
    aside.touch(mode=0o600)
    aside.write_text(f"{waiting}\n{text}".strip()[:_LONGEST], "utf-8")
    aside.replace(folder / _FILE)


def take(folder: Path) -> str:
    """The answer that waits; empty: none does. Nobody else gets it."""
    taken = folder / f".{_FILE}-taken-{os.getpid()}"
    with suppress(OSError, UnicodeDecodeError):
        (folder / _FILE).replace(taken)
        text = taken.read_text("utf-8")
        taken.unlink()
        return text.strip()
    return ""
