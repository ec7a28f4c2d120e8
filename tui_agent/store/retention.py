"""Work that is due when a session closes, is forked, or is removed, so that lists, retention and checkpoints
stay right.

The session store moves folders and the checkpoints hold files; this joins the two for the front doors. Nothing here
keeps the program from ending: what cannot be done now is left for the next time.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path

from tui_agent.core import events
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import SessionError
from tui_agent.store.journal_index import JournalIndex
from tui_agent.store.session_store import SessionStore

_DAY = 86_400.0
_BEGAN = time.time() - time.monotonic()
"""The time at which the process began, by the clock that never jumps."""


async def put_away(state_dir: Path, session_id: str, retention_days: int | None, now: float) -> None:
    """After session `session_id` was closed: the list shows how it ended, and what is too old goes. Never raises
    `SessionError` or `OSError`.

    A clock that jumped while this process ran does not say what is old: nothing goes then.
    """
    with suppress(SessionError, OSError):
        store = await asyncio.to_thread(SessionStore, state_dir)
        await asyncio.to_thread(store.update, session_id)
        jumped = abs(time.time() - time.monotonic() - _BEGAN) > _DAY
        if retention_days is not None and not jumped:
            await apply_retention(store, retention_days, now)


async def apply_retention(store: SessionStore, days: int, now: float) -> list[str]:
    """Sessions untouched for `days` go to the trash, and what was there as long is removed. Returns the former.

    Raises `SessionError` if the disk refuses.
    """
    if days > 0:
        await empty_trash(store, now - days * _DAY)
    return await asyncio.to_thread(store.retire, days, now)


async def empty_trash(store: SessionStore, before: float) -> list[str]:
    """Remove for good what was deleted before that time, with the checkpoints that only it held.

    Raises `SessionError` if the disk refuses; checkpoints that cannot be dropped stay without complaint.
    """
    workspaces = {row.id: row.workspace for row in await asyncio.to_thread(store.trash)}
    removed = await asyncio.to_thread(store.empty_trash, before)
    for session_id in removed:
        if workspaces.get(session_id):
            with suppress(SessionError):
                await Checkpoints(store.state_dir, Path(workspaces[session_id]), session_id).forget()
    return removed


async def adopt_checkpoints(folder: Path) -> None:
    """Let the fork in `folder` (`STATE/sessions/ID`) hold the checkpoints of what it shares with its parent,
    so that they stay when the parent is removed.

    Never raises `SessionError`: a fork without them still goes on.
    """
    with suppress(SessionError):
        workspace, refs = await asyncio.to_thread(_checkpoints_in, folder)
        if refs:
            await Checkpoints(folder.parent.parent, Path(workspace), folder.name).adopt(refs)


def _checkpoints_in(folder: Path) -> tuple[str, list[str]]:
    """The workspace of a session, and the checkpoints that its events name."""
    source = JournalIndex(folder)
    refs: list[str] = []
    workspace = ""
    for number, kind in enumerate(source.kinds, 1):
        if kind not in {"session_started", "checkpoint_saved", "rewound"}:
            continue
        match source.event(number):
            case events.SessionStarted() as started:
                workspace = started.workspace
            case events.CheckpointSaved() as saved:
                refs.append(saved.ref)
            case events.Rewound() as rewound:
                refs += [rewound.ref, rewound.undo_ref]
    return workspace, list(dict.fromkeys(ref for ref in refs if ref))
