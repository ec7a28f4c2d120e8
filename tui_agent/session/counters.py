"""Counters that outlive a run (`recovery.persist`): kept with the state of the workspace that they are about.

The next run here begins with them while the workspace is as it was, whichever session it is in.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from tui_agent.core import events
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.kept import kept_of
from tui_agent.core.recovery.tool_breaker import ToolBreakers
from tui_agent.core.state import RunState
from tui_agent.disk import replace_whole
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import CheckpointError
from tui_agent.store.private import make_private, unblocked

logger = logging.getLogger(__name__)

FOLDER = "counters"
_LARGEST = 1_000_000
OLDEST = 86_400.0
"""Seconds after which they say nothing any more: services, packages and networks change too."""


class _File(BaseModel, extra="forbid"):
    ref: str
    """The checkpoint of the workspace as the run left it."""
    at: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    kept: events.Kept


class Counters:
    """The counters of one workspace."""

    def __init__(
        self, state_dir: Path, name: str, checkpoints: Checkpoints, clock: Callable[[], float] = time.time
    ) -> None:
        """`name` stands for the workspace."""
        self._clock = clock
        self._path = state_dir / FOLDER / f"{name}.json"
        self._checkpoints = checkpoints

    async def keep(self, state: RunState) -> None:
        """Keep those of a run that has ended, or forget the earlier ones. What cannot be kept is lost."""
        kept = kept_of(state.recovery.of(AttemptLedger), state.recovery.of(ToolBreakers))
        try:
            if kept is None:
                await asyncio.to_thread(self._path.unlink, missing_ok=True)
                return
            saved = await self._checkpoints.save("the end of a run")
            text = _File(ref=saved.ref, at=self._clock(), kept=kept).model_dump_json()
            await asyncio.to_thread(self._write, text)
        except (CheckpointError, OSError):
            logger.warning("the counters could not be kept", exc_info=True)

    async def begin(self) -> events.Kept | None:
        """Counters with which a run begins now; None if the workspace or the day is another one."""
        try:
            file = await asyncio.to_thread(self._read)
            if file is None or not 0 <= self._clock() - file.at <= OLDEST:
                return None
            unchanged = (await self._checkpoints.save("the beginning of a run")).ref == file.ref
        except (CheckpointError, OSError, ValueError, RecursionError):
            logger.warning("the counters could not be read", exc_info=True)
            return None
        return file.kept if unchanged else None

    def _read(self) -> _File | None:
        try:
            with open(self._path, "rb", opener=unblocked) as file:
                return _File.model_validate_json(file.read(_LARGEST))
        except FileNotFoundError:
            return None

    def _write(self, text: str) -> None:
        make_private(self._path.parent)
        replace_whole(self._path, text)
