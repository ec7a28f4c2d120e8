"""A command of the operator's own (`!COMMAND`) while it runs, until it ends or is interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tui_agent.core import events
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.session.fork_outputs import OUTPUT_FOLDER
from tui_agent.session.goal import Checked, Goal
from tui_agent.tools.errors import ToolError
from tui_agent.tools.shell import Bash
from tui_agent.tools.tool import ToolContext
from tui_agent.tools.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.session.session import Session

TIMEOUT = 3_600.0
"""Seconds that a command of the operator's may take."""

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
        self._task: asyncio.Task[events.OwnCommandEnded] | None = None

    async def finish(self) -> str:
        """Wait for its output, as the model reads it; of one that was interrupted the end, with a line that says so."""
        self._task = asyncio.ensure_future(carried_out(self._session, self.command, self._add))
        try:
            await asyncio.wait({self._task})
        finally:
            self._task.cancel()
        if not self._task.cancelled():
            return self._task.result().printed
        printed = f"{self.printed.rstrip()}\n(interrupted)".lstrip()
        _record(self._session, self.command, printed)
        return printed

    def interrupt(self) -> None:
        """End it, with everything it started."""
        if self._task is not None:
            self._task.cancel()

    def _add(self, piece: str) -> None:
        self.printed = (self.printed + piece)[-TAIL:]
        self._progress(piece)


async def carried_out(
    session: Session,
    command: str,
    progress: Callable[[str], None] = lambda _: None,
    *,
    seconds: float = TIMEOUT,
    sandbox: Sandbox | None = None,
) -> events.OwnCommandEnded:
    """Run a command of the operator's in the workspace, and give what it printed, as the model reads it.

    It stands in the conversation and is no call: nothing judges it. The model reads it with the next message.
    `progress` takes pieces of its output as they come. `sandbox`: for one that nobody watches. Cancellation ends it,
    and records nothing.
    """
    context = ToolContext(
        Workspace(Path(session.state.session.workspace)),
        session.folder / OUTPUT_FOLDER,
        f"own-{session.state.seq}",
        progress,
        session.recorder.new_mask,
        sandbox=sandbox or Sandbox(),
    )
    try:
        output = await Bash(timeout=seconds).run({"command": command}, context)
        printed, exit_code = output.content, output.exit_code
    except ToolError as error:
        printed, exit_code = error.message, error.exit_code
    return _record(session, command, printed, exit_code)


async def checked(session: Session, goal: Goal) -> Checked:
    """Run the check of a goal, in the sandbox, since nobody watches."""
    sandbox = await session.sandbox.ready()
    ended = await carried_out(session, goal.check, seconds=goal.seconds, sandbox=sandbox)
    return Checked(ended.exit_code, ended.printed)


def _record(
    session: Session, command: str, printed: str, exit_code: int | None = None
) -> events.OwnCommandEnded:
    ended = events.OwnCommandEnded(command=command, printed=printed, exit_code=exit_code)
    session.recorder.record(ended)
    return ended
