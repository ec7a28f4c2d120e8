"""A fork as the front doors make it: a new id, added text with secrets masked, the checkpoints it shares, and
the workspace as it was, if that is wanted.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from tui_agent.core.events import Rewound, SessionStarted
from tui_agent.session.fork_point import ForkPoint, fork_point, open_parent
from tui_agent.session.forked_journal import WhatIf, fork
from tui_agent.session.opening import new_session_id
from tui_agent.session.rewind import kept_then
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import CheckpointError, SessionError
from tui_agent.store.file_changes import FileChange
from tui_agent.store.journal_index import JournalIndex
from tui_agent.store.provenance import is_foreign
from tui_agent.store.redaction import Redactor
from tui_agent.store.retention import adopt_checkpoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.core.state import RunState

DROP = "drop"
"""As a note: send none (as in `/note drop`)."""


class ForkChoice(NamedTuple):
    """Fork after event `seq` (None: the last), and go differently from there."""

    seq: int | None
    what_if: WhatIf = WhatIf()
    files: bool = False
    """Bring the workspace back to how it was there."""

    @property
    def settings(self) -> frozenset[str]:
        """Choices for the fork that no option of this start may outweigh."""
        chosen = {"policy": self.what_if.policy, "model": self.what_if.model}
        return frozenset(name for name, value in chosen.items() if value is not None)


def fork_choice(
    point: ForkPoint,
    *,
    policy: str = "",
    model: str = "",
    answer: str = "",
    note: str = "",
    files: bool = False,
) -> ForkChoice:
    """The fork at this point with what was entered. What is empty stays as it was; `DROP` as a note sends none.

    Another answer is given if the question is open.
    """
    what_if = WhatIf(
        policy=policy if policy != point.policy and policy else None,
        model=model or None,
        answer=answer or None,
        note="" if note.lower() == DROP else note or None,
    )
    seq = point.answer_seq if answer and point.question is not None else point.seq
    return ForkChoice(seq, what_if, files)


async def read_point(
    parent: Path, state: RunState, seq: int | None, sessions_dir: Path
) -> tuple[ForkPoint, Sequence[FileChange]]:
    """The beginning of a fork after event `seq` (None: the last), and the files that are different now."""
    point = await asyncio.to_thread(fork_point, parent, state, seq)
    return point, await changed_since(parent, sessions_dir, point.seq)


async def changed_since(parent: Path, sessions_dir: Path, seq: int) -> tuple[FileChange, ...]:
    """Changes that bringing the workspace back to its state after event `seq` would make now; none if no
    checkpoint of that is on this machine. Raises `SessionError` if the session cannot be read.
    """
    source = await asyncio.to_thread(open_parent, parent, seq)
    kept = await asyncio.to_thread(kept_then, *source)
    if kept is None or is_foreign(parent, sessions_dir):
        return ()
    with suppress(CheckpointError):
        return tuple(await _checkpoints(source[0], sessions_dir).diff(kept.ref))
    return ()


def _checkpoints(source: JournalIndex, sessions_dir: Path, session_id: str = "") -> Checkpoints:
    started = cast("SessionStarted", source.event(1))
    return Checkpoints(sessions_dir.parent, Path(started.workspace), session_id or started.session_id)


async def fork_session(parent: Path, sessions_dir: Path, choice: ForkChoice) -> Path:
    """Fork the session in the folder (or file) `parent`; the new one's folder.

    The fork holds the checkpoints it shares with its parent. Raises `SessionError`.
    """
    now = time.time()
    session_id = new_session_id(now)
    what_if = choice.what_if
    source, seq = await asyncio.to_thread(open_parent, parent, choice.seq)
    checkpoints = _checkpoints(source, sessions_dir, session_id)
    if choice.files:
        what_if = replace(what_if, rewound=await _files_back(source, seq, checkpoints))
    try:
        folder = await asyncio.to_thread(
            fork,
            parent,
            sessions_dir,
            session_id,
            at=now,
            seq=seq,
            what_if=what_if,
            redactor=Redactor.from_environment(os.environ),
        )
    except SessionError:
        if what_if.rewound is not None:
            await checkpoints.restore(what_if.rewound.undo_ref)
        raise
    await adopt_checkpoints(folder)
    return folder


async def _files_back(source: JournalIndex, seq: int, checkpoints: Checkpoints) -> Rewound:
    """Bring the workspace back to how it was after event `seq`, and the event to record."""
    kept = await asyncio.to_thread(kept_then, source, seq)
    if kept is None:
        raise SessionError(
            "The files cannot be brought back", "no checkpoint was kept there", "Fork without the files."
        )
    restored = await checkpoints.restore(kept.ref)
    names = tuple(change.path for change in restored.changes)
    return Rewound(scope="files", to_seq=seq, ref=kept.ref, undo_ref=restored.undo_ref, files=names)
