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
        self._told: set[str] = set()
        self._saving: asyncio.Task[None] | None = None

    async def before_effect(self) -> None:
        """Keep the workspace as it was before this run touched it; wait for a state that is still being kept."""
        await self.settle()
        run = self._recorder.state.run
        if self._kept_run != run.number:
            self._kept_run = run.number
            await self._save(run.iteration, before=f"run {run.number}")
        self._touched = True

    def after_iteration(self) -> None:
        """Keep what the iteration's calls left, while the model thinks about the next one."""
        if self._touched:
            self._touched = False
            saving = self._save(self._recorder.state.run.iteration)
            self._saving = asyncio.get_running_loop().create_task(saving, name="checkpoint")

    async def settle(self) -> None:
        """Wait until the state of the last iteration is kept; whoever waits may be cancelled, the keeping is not."""
        if self._saving is not None:
            await asyncio.shield(self._saving)

    async def _save(self, iteration: int, before: str = "") -> None:
        """Keep the workspace; `before` names the run that it precedes, empty where it follows an iteration."""
        try:
            kept = await self._checkpoints.save(before or f"iteration {iteration}")
        except CheckpointError as error:
            self._tell(f"{error} Rewinding will not bring files back.")
            return
        if kept.skipped:
            shown = "; ".join(kept.skipped[:3]) + ("; …" if len(kept.skipped) > 3 else "")
            self._tell(f"Not in the checkpoints of the workspace: {shown}.")
        if before or kept.files:
            # What an earlier run's checkpoint lacks was changed by others, and is not this run's doing.
            files = () if before else kept.files
            self._recorder.record(
                e.CheckpointSaved(ref=kept.ref, iteration=iteration, files=files, before=before)
            )

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._recorder.record(e.Notice(severity="warning", text=text))
