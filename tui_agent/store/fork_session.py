"""A fork as the front doors make it: a new id, added text with secrets masked, and the checkpoints it shares."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from tui_agent.store.fork import WhatIf, fork
from tui_agent.store.redaction import Redactor
from tui_agent.store.retention import adopt_checkpoints
from tui_agent.store.session import new_session_id


async def fork_session(parent: Path, sessions_dir: Path, *, seq: int | None, what_if: WhatIf) -> Path:
    """Fork the session in the folder (or file) `parent` after event `seq` (None: the last); the new one's folder.

    The fork holds the checkpoints it shares with its parent. Raises `SessionError`.
    """
    now = time.time()
    folder = await asyncio.to_thread(
        fork,
        parent,
        sessions_dir,
        new_session_id(now),
        at=now,
        seq=seq,
        what_if=what_if,
        redactor=Redactor.from_environment(os.environ),
    )
    await adopt_checkpoints(folder)
    return folder
