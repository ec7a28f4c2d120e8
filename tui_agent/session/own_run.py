"""A command of the operator's own (`!COMMAND`) while it runs, until it ends or is interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.session.session import Session

TAIL = 4_000
"""Characters of its output that are kept while it runs."""


class OwnRun:
    """The command under way. `printed` is the end of what it wrote; `progress` takes each piece as it comes."""

    def __init__(
        self, command: str, session: Session, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self.command = command
        self.began = monotonic()
        self.printed = ""
        self._session = session
        self._progress = progress
        self._task: asyncio.Task[str] | None = None

    async def finish(self) -> str:
        """Its output, as the model reads it; of one that was interrupted the end, with a line that says so."""
        self._task = asyncio.ensure_future(self._session.run_own_command(self.command, self._add))
        try:
            await asyncio.wait({self._task})
        finally:
            self._task.cancel()
        if not self._task.cancelled():
            return self._task.result()
        printed = f"{self.printed.rstrip()}\n(interrupted)".lstrip()
        self._session.record_own_command(self.command, printed)
        return printed

    def interrupt(self) -> None:
        """End it, with everything it started."""
        if self._task is not None:
            self._task.cancel()

    def _add(self, piece: str) -> None:
        self.printed = (self.printed + piece)[-TAIL:]
        self._progress(piece)
