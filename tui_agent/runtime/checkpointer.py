"""Saves the workspace's earlier states, so that a run's changes are known and can be taken back."""

from __future__ import annotations

from typing import Protocol


class Checkpointer(Protocol):
    """The driver says when files may change and when they did. Never fails a run."""

    async def before_effect(self) -> None:
        """A call that may change files is about to run: the state before the run's first one is saved now."""

    def after_iteration(self) -> None:
        """An iteration ended; save the state in the background if it may have changed."""

    async def look(self) -> None:
        """Say now which files have changed, before something is judged by it. Waits for a moment at most."""

    async def settle(self) -> None:
        """Wait for a save that still goes on. Never raises its error."""

    async def bring_back(self, ref: str) -> tuple[str, ...] | None:
        """Bring the workspace back to this checkpoint; the files that differed, None if that is not possible."""
