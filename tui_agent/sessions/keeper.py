"""When checkpoints are taken: before a run first changes something, and after each iteration that did.

Stands between the loop and `checkpoints`: the loop says when, this records the event, and says once why there are no
checkpoints where there can be none. A failing checkpoint never stops a run.
"""

from __future__ import annotations

from collections.abc import Callable

from tui_agent import events as e
from tui_agent.sessions.checkpoints import Checkpoint, Checkpoints
from tui_agent.sessions.errors import CheckpointError


class CheckpointKeeper:
    """Takes the checkpoints of one session. `record` takes the events."""

    def __init__(self, checkpoints: Checkpoints, record: Callable[[e.Event], object]) -> None:
        self._checkpoints = checkpoints
        self._record = record
        self._kept_run = 0
        self._told: set[str] = set()

    @property
    def checkpoints(self) -> Checkpoints:
        """What it keeps them in, for rewinding."""
        return self._checkpoints

    async def before_change(self, run: int, iteration: int) -> None:
        """Before a call that may change the workspace; does something once a run only."""
        if run != self._kept_run:
            self._kept_run = run
            await self._keep(iteration, f"run {run}", always=True)

    async def after_iteration(self, run: int, iteration: int) -> None:
        """After an iteration in which a call ran that may have changed the workspace."""
        if run == self._kept_run:
            await self._keep(iteration, "", always=False)

    async def _keep(self, iteration: int, before: str, *, always: bool) -> None:
        try:
            kept = await self._checkpoints.save(before or f"iteration {iteration}")
        except CheckpointError as error:
            self._tell(f"{error} Rewinding will not bring files back.")
            return
        self._tell_skipped(kept)
        if always or kept.files:
            files = () if before else kept.files
            self._record(e.CheckpointSaved(ref=kept.ref, iteration=iteration, files=files, before=before))

    def _tell_skipped(self, kept: Checkpoint) -> None:
        if kept.skipped:
            shown = "; ".join(kept.skipped[:3]) + ("; …" if len(kept.skipped) > 3 else "")
            self._tell(f"Not in the checkpoints of the workspace: {shown}.")

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._record(e.Notice(severity="warning", text=text))
