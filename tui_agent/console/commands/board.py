"""The hosts of commands over many runs, and over a run that was opened from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tui_agent.console.commands.host import ConsoleHost
from tui_agent.frontend.commands.host import ForkPlace, Patch
from tui_agent.frontend.commands.shown import OPENING

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.core.state import RunState
    from tui_agent.frontend.why import Why

NO_RUN = "A board shows many runs: Enter opens the panes of one."


class ManyRuns:
    """The subject of a board: it has nothing of a single run (`Shown`)."""

    opened = True
    coming = "", ""

    def __init__(self, settings: Callable[[], Settings | None]) -> None:
        self._settings = settings

    @property
    def settings(self) -> Settings:
        settings = self._settings()
        if settings is None:
            raise ValueError(OPENING)
        return settings

    @property
    def state(self) -> RunState:
        _no_run()

    @property
    def source(self) -> Path:
        _no_run()

    async def place(self) -> ForkPlace:
        _no_run()

    async def patch(self, since: str = "") -> Patch | None:
        _no_run()

    async def gather_why(self, seq: int, call_id: str) -> Why:
        _no_run()


def _no_run() -> NoReturn:
    raise ValueError(NO_RUN)


class BoardHost(ConsoleHost):
    """A board."""

    def __init__(self, screen: DashboardScreen) -> None:
        super().__init__(screen, ManyRuns(lambda: screen.settings))

    async def leave(self) -> None:
        """Open runs stay as they are."""
        from tui_agent.console.screens.ask import AskScreen

        text = "Open runs stay as they are, and the same command goes on with them."
        question = AskScreen("Leave the board?", text, ("q", "leave"), ("s", "stay"))
        if not self.screen.running or await self.screen.ask(question):
            await self.app.leave()


class FollowedHost(ConsoleHost):
    """A run of a board."""

    async def leave(self) -> None:
        """Leave as the board does, if there is one."""
        board = next((tab for tab in self.app.tabs if tab.is_board), None)
        if board is None:
            await self.app.leave()
        else:
            self.app.show_tab(board)
            board.commands.run("quit")
