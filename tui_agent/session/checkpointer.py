"""Checkpoints during a run: before its first write, after each iteration that changed files, and before a
judgement that needs the changed files.

A checkpoint that cannot be made is reported once and never stops a run; a slow one is not waited for.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Literal

from tui_agent.core import events
from tui_agent.runtime.recorder import Recorder
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import CheckpointError

logger = logging.getLogger(__name__)


LOOK_PATIENCE = 1.0
"""Seconds that a judgement waits for a look at the workspace; a later one is still recorded when it ends."""


class SessionCheckpointer:
    """Implements `runtime.checkpointer.Checkpointer` over a session's checkpoints."""

    def __init__(self, recorder: Recorder, checkpoints: Checkpoints) -> None:
        self._recorder = recorder
        self._checkpoints = checkpoints
        self._saved_run = 0
        self._touched = False
        self._reported: set[str] = set()
        self._saving: asyncio.Task[None] | None = None

    async def before_effect(self) -> None:
        """Save the workspace as it was before this run touched it; wait for a save that still goes on."""
        await self.settle()
        run = self._recorder.state.run
        if self._saved_run != run.number:
            self._saved_run = run.number
            await self._save(run.iteration, before=f"run {run.number}")
        self._touched = True

    def after_iteration(self) -> None:
        """Save what the iteration's calls left, while the model thinks about the next one.

        A command in the background may write in any iteration.
        """
        if self._touched or (self._recorder.state.background.running and self._saved_run):
            self._touched = False
            self._start()

    async def look(self) -> None:
        """Save the workspace now. In a run that has not touched it, this is what later looks compare with."""
        if self._saving is not None and not self._saving.done():
            await asyncio.wait([self._saving], timeout=LOOK_PATIENCE)
            if not self._saving.done():
                return
        run = self._recorder.state.run
        before = "" if self._saved_run == run.number else f"run {run.number}"
        if not before:
            self._touched = False
        self._saved_run = run.number
        self._start(before)
        if self._saving is not None:
            await asyncio.wait([self._saving], timeout=LOOK_PATIENCE)

    async def bring_back(self, ref: str) -> tuple[str, ...] | None:
        """Bring the workspace back to this checkpoint; what it was before is kept."""
        await self.settle()
        try:
            restored = await self._checkpoints.restore(ref)
        except CheckpointError as error:
            self._report(f"{error} The files stay as they are.")
            return None
        self._touched = True
        return tuple(change.path for change in restored.changes)

    def _start(self, before: str = "") -> None:
        saving = self._save(self._recorder.state.run.iteration, before)
        self._saving = asyncio.get_running_loop().create_task(saving, name="checkpoint")

    async def settle(self) -> None:
        """Wait until the last save has ended, well or badly; never raises its error.

        The save goes on if the waiting is cancelled.
        """
        if self._saving is not None:
            await asyncio.wait([self._saving])

    async def _save(self, iteration: int, before: str = "") -> None:
        """Save the workspace; `before` names the run that it precedes, empty if it follows an iteration."""
        try:
            saved = await self._checkpoints.save(before or f"step {iteration}", ignored=bool(before))
        except CheckpointError as error:
            self._report(f"{error} Rewinding will not bring files back.", "checkpoint")
            return
        except Exception as error:
            logger.debug("a checkpoint broke", exc_info=True)
            said = f"The workspace could not be kept ({type(error).__name__}: {error})."
            self._report(f"{said} Rewinding will not bring files back.")
            return
        if saved.skipped:
            shown = "; ".join(saved.skipped[:3]) + ("; …" if len(saved.skipped) > 3 else "")
            self._report(f"Not in the checkpoints of the workspace: {shown}.")
        if before or saved.files:
            # What changed since an earlier run was changed by others, not by this run.
            files = () if before else saved.files
            self._recorder.record(
                events.CheckpointSaved(ref=saved.ref, iteration=iteration, files=files, before=before)
            )

    def _report(self, text: str, origin: Literal["", "checkpoint"] = "") -> None:
        if text not in self._reported:
            self._reported.add(text)
            self._recorder.record(events.Notice(severity="warning", text=text, origin=origin))
