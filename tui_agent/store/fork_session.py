"""A fork as the front doors make it: a new id, added text with secrets masked, and the checkpoints it shares."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import NamedTuple

from tui_agent.store.fork import WhatIf, fork
from tui_agent.store.fork_point import ForkPoint
from tui_agent.store.opening import new_session_id
from tui_agent.store.redaction import Redactor
from tui_agent.store.retention import adopt_checkpoints

DROP = "drop"
"""As a note: send none (as in `/note drop`)."""


class ForkChoice(NamedTuple):
    """Fork after event `seq`, and go differently from there."""

    seq: int
    what_if: WhatIf

    @property
    def settings(self) -> frozenset[str]:
        """What was chosen for the fork and no option of this start may outweigh."""
        chosen = {"policy": self.what_if.policy, "model": self.what_if.model}
        return frozenset(name for name, value in chosen.items() if value is not None)


def fork_choice(
    point: ForkPoint, *, policy: str = "", model: str = "", answer: str = "", note: str = ""
) -> ForkChoice:
    """The fork at this point with what was entered. What is empty goes as it went; `DROP` as a note sends none.

    Another answer is given where the question is open.
    """
    what_if = WhatIf(
        policy=policy if policy != point.policy and policy else None,
        model=model or None,
        answer=answer or None,
        note="" if note.lower() == DROP else note or None,
    )
    return ForkChoice(point.answer_seq if answer and point.question is not None else point.seq, what_if)


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
