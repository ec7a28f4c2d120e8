"""The commands over many runs: what is about one run is said to be for its panes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.console.commands.shown import ShownCommands
from tui_agent.frontend.commands.view import ForkPlace, Patch

if TYPE_CHECKING:
    from tui_agent.core.state import RunState
    from tui_agent.frontend.why import Why

NO_RUN = "A board shows many runs: Enter opens the panes of one."


class BoardCommands(ShownCommands):
    """The commands over many runs."""

    coming = "", ""
    _opened = True

    @property
    def state(self) -> RunState:
        raise ValueError(NO_RUN)

    @property
    def source(self) -> Path:
        raise ValueError(NO_RUN)

    async def place(self) -> ForkPlace:
        raise ValueError(NO_RUN)

    async def patch(self) -> Patch | None:
        raise ValueError(NO_RUN)

    async def gather_why(self, seq: int, call_id: str) -> Why:
        raise ValueError(NO_RUN)

    async def leave(self) -> None:
        """Open runs stay as they are."""
        from tui_agent.console.screens.ask import AskScreen

        text = "Open runs stay as they are, and the same command goes on with them."
        question = AskScreen("Leave the board?", text, ("q", "leave"), ("s", "stay"))
        if not self.screen.running or await self.screen.ask(question):
            await self.app.leave()
