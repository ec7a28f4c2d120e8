"""The host of commands on a screen, whatever it shows: what they show and ask there.

Those of the panes and of the tabs are rooms of their own; what the commands do is in `frontend.commands`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.console.commands.panes import ScreenPanes
from tui_agent.console.commands.tabs import ScreenTabs
from tui_agent.console.panes.pane import StatePane
from tui_agent.frontend.commands.dispatch import Dispatcher
from tui_agent.frontend.commands.host import ChosenSession, ForkFrom, Report, Shown
from tui_agent.frontend.commands.showing import explain
from tui_agent.frontend.commands.shown import OPENING
from tui_agent.frontend.lines.diff import FileDiff
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.console.tabs.session_app import SessionApp
    from tui_agent.frontend.commands.custom import CustomCommand
    from tui_agent.session.fork import ForkChoice
    from tui_agent.store.session_store import SessionStore


class ConsoleHost(Dispatcher):
    """A screen as commands see it (`Host`, `ScreenHost`), which carries them out."""

    on_screen = True

    def __init__(self, screen: DashboardScreen, shown: Shown) -> None:
        in_background = partial(screen.run_worker, group="commands")
        super().__init__(self, self._tell, screen.warn, in_background)
        self.screen = screen
        self.shown = shown
        self.panes = ScreenPanes(screen, lambda: self.shown.settings)
        self.tabs = ScreenTabs(screen)

    @property
    def app(self) -> SessionApp:
        return self.screen.app

    @property
    def from_files(self) -> Sequence[CustomCommand]:
        return ()

    def when_open(self, act: Callable[[], None]) -> None:
        """A command for a recording that is not open yet is not done."""
        if self.shown.opened:
            act()
        else:
            self.say(OPENING)

    def explain(self, seq: int, call_id: str) -> None:
        """Show why an event came about."""
        self.carry_out(lambda: explain(self, seq, call_id))

    def _tell(self, answer: str) -> None:
        if answer:
            self.say(one_line(answer, 400))

    # --- what is shown --------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return self.screen.time_of(self.shown.state)

    @property
    def asked_about(self) -> tuple[int, str]:
        focused = self.screen.focused
        asked = focused.subject() if isinstance(focused, StatePane) else None
        return (0, "") if asked is None else (asked.seq, asked.call_id)

    def say(self, text: str) -> None:
        self.screen.say(text)

    def show_help(self) -> None:
        from tui_agent.console.screens.help import HelpScreen

        screen = self.screen
        focused = "" if screen.focused is None else screen.focused.id or ""
        self.app.push_screen(
            HelpScreen(focused, replay=screen.replays, board=screen.is_board), mode=screen.id
        )

    async def show_report(self, title: str, draw: Report, columns: int = 80, *, moves: bool = False) -> None:
        from tui_agent.console.screens.report import ReportScreen

        await self.screen.ask(ReportScreen(title, draw, columns, moves=moves))

    async def show_changes(self, files: Sequence[FileDiff], title: str) -> None:
        from tui_agent.console.screens.diff import DiffScreen

        await self.screen.ask(DiffScreen(files, title))

    def show_plan(self) -> None:
        dashboard = self.screen.dashboard
        if dashboard is not None and dashboard.plan is not None:
            dashboard.plan.toggle()

    async def copy(self, text: str, what: str) -> str:
        from tui_agent.frontend.clipboard import copy

        return await copy(text, what, self.app.copy_to_clipboard)

    async def choose_session(self, store: SessionStore) -> ChosenSession | None:
        from tui_agent.console.screens.sessions import SessionsScreen
        from tui_agent.frontend.commands.export import export

        here = frozenset(tab.session_id for tab in self.app.tabs)
        return await self.screen.ask(
            SessionsScreen(store, lambda folder: self.finish(export(folder, "")), here)
        )

    async def choose_fork(self, reading: ForkFrom) -> ForkChoice | None:
        """Keys that come meanwhile are meant for the screen that asks; a second key opens no second one."""
        from tui_agent.console.screens.fork import ForkScreen

        chosen: asyncio.Future[ForkChoice | None] = asyncio.Future()
        with self.app.input_waits():
            point, changed = await reading
            if self.screen.is_open(ForkScreen):
                return None
            screen = ForkScreen(point, changed)
            await self.app.push_screen(screen, chosen.set_result, mode=self.screen.id)
        return await chosen

    def open_session(self, chosen: ChosenSession, changed: frozenset[str] = frozenset()) -> None:
        """In a tab, or go to the one that has it open."""
        screen = self.screen
        there = next((tab for tab in self.app.tabs if tab.session_id == chosen.session_id), None)
        if there is not None and chosen.what == "resume":
            self.app.show_tab(there)
            there.show_event(chosen.at, chosen.words)
        else:
            arguments = screen.arguments.opening(chosen, changed | screen.own_options)
            self.app.open_tab(arguments, instead_of=screen if screen.unused else None)

    async def leave(self) -> None:
        if await self.tabs.may_end(self.app.tabs, "Leaving"):
            await self.app.leave()

    def suspend(self) -> None:
        self.app.action_suspend_process()
