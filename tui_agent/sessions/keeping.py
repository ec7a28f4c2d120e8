"""Checkpoints as a run goes on: before its first write, and after each iteration that changed files.

A checkpoint that cannot be made is told once and never stops a run.
"""

from __future__ import annotations

import asyncio

from tui_agent import events as e
from tui_agent.agent.recorder import Recorder
from tui_agent.sessions.checkpoints import Checkpoints
from tui_agent.sessions.errors import CheckpointError


class CheckpointKeeper:
    """Implements `agent.keeper.WorkspaceKeeper` over a session's checkpoints."""

    def __init__(self, recorder: Recorder, checkpoints: Checkpoints) -> None:
        self._recorder = recorder
        self._checkpoints = checkpoints
        self._kept_run = 0
        self._touched = False
        self._told = False
        self._saving: asyncio.Task[None] | None = None

    async def before_effect(self) -> None:
        """Keep the workspace as it was before this run touched it; wait for a state that is still being kept."""
        await self.settle()
        run = self._recorder.state.run.number
        if self._kept_run != run:
            self._kept_run = run
            iteration = self._recorder.state.run.iteration
            await self._save(f"before run {run}", iteration, changed_only=False)
        self._touched = True

    def after_iteration(self) -> None:
        """Keep what the iteration's calls left, while the model thinks about the next one."""
        if self._touched:
            self._touched = False
            iteration = self._recorder.state.run.iteration
            saving = self._save(f"after iteration {iteration}", iteration, changed_only=True)
            self._saving = asyncio.get_running_loop().create_task(saving, name="checkpoint")

    async def settle(self) -> None:
        """Wait until the state of the last iteration is kept; whoever waits may be cancelled, the keeping is not."""
        if self._saving is not None:
            await asyncio.shield(self._saving)

    async def _save(self, label: str, iteration: int, *, changed_only: bool) -> None:
        reason = self._checkpoints.unavailable
        if reason is not None:
            self._tell(f"No checkpoints are kept here: {reason}")
            return
        try:
            kept = await self._checkpoints.save(label)
        except CheckpointError as error:
            self._tell(str(error))
            return
        if kept.skipped:
            self._tell(f"Not everything is in the checkpoints: {'; '.join(kept.skipped)}")
        if kept.files or not changed_only:
            self._recorder.record(
                e.CheckpointSaved(ref=kept.ref, iteration=iteration, files=kept.files, before=label)
            )

    def _tell(self, text: str) -> None:
        if not self._told:
            self._told = True
            self._recorder.record(e.Notice(severity="warning", text=text))
