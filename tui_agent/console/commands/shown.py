"""What the commands of a screen show and ask on it, whatever it shows: a session that runs, a recording, many runs.

Those about the panes and the tabs alone are in rooms of their own; all others are carried out by `frontend.commands`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.console.commands.panes import PaneCommands, jump_targets
from tui_agent.console.commands.tabs import TabCommands
from tui_agent.console.panes.pane import StatePane
from tui_agent.frontend.commands import session_commands
from tui_agent.frontend.commands.registry import Command
from tui_agent.frontend.commands.session_commands import AT_ANY_TIME, OF_WHAT_IS_SHOWN, Answer
from tui_agent.frontend.commands.view import ChosenSession, ForkFrom, Report, View
from tui_agent.frontend.lines.diff import FileDiff
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.console.tabs.session_app import SessionApp
    from tui_agent.core.state import RunState
    from tui_agent.frontend.commands.custom import CustomCommand
    from tui_agent.session.fork import ForkChoice
    from tui_agent.session.session import Session
    from tui_agent.store.session_store import SessionStore

OPENING = "The session is still being opened."


class ShownCommands(View):
    """What the live screen and the replay share. `own`: the commands about the screen alone."""

    def __init__(self, screen: DashboardScreen) -> None:
        self.screen = screen
        self.tabs = TabCommands(screen)
        self.own: Mapping[str, Callable[[str], Answer]] = {
            **PaneCommands(screen, lambda: self.settings).own,
            **self.tabs.own,
        }

    @property
    def app(self) -> SessionApp:
        return self.screen.app

    @property
    def from_files(self) -> Sequence[CustomCommand]:
        return ()

    @property
    def _live(self) -> Session | None:
        """The session that runs, once it is open."""
        return None

    def handler(self, name: str) -> Callable[[str], Answer]:
        """What the command does with the text behind its name."""
        return self.own[name] if name in self.own else partial(OF_WHAT_IS_SHOWN[name], self)

    def run(self, name: str, argument: str = "") -> None:
        if self._opened or name in self.own or name in AT_ANY_TIME:
            self.carry_out(partial(self.handler(name), argument))
        else:
            self._wait_for_session(name, argument)

    @property
    def _opened(self) -> bool:
        """There is something to show."""
        raise NotImplementedError

    def _wait_for_session(self, name: str, argument: str) -> None:
        self.say(OPENING)

    def carry_out(self, command: Callable[[], Answer]) -> None:
        """Do it and say what it answers, or why it cannot be done."""
        try:
            answer = command()
        except (ValueError, SessionError, OSError) as error:
            self.screen.say(str(error), "warning")
            return
        if isinstance(answer, str):
            self._tell(answer)
        else:
            self.screen.run_worker(self._awaited(answer), group="commands")

    async def _awaited(self, answer: Awaitable[str]) -> None:
        try:
            self._tell(await answer)
        except (ValueError, SessionError, OSError) as error:
            self.screen.say(str(error), "warning")

    def _tell(self, answer: str) -> None:
        if answer:
            self.say(one_line(answer, 400))

    def values_of(self, command: Command) -> Sequence[str]:
        match command.name:
            case "theme":
                return self.app.theme_names
            case "jump":
                return jump_targets()
        return session_commands.values_of(command, self._live)

    def explain(self, seq: int, call_id: str) -> None:
        self.carry_out(lambda: session_commands.explain(self, seq, call_id))

    # --- what is shown --------------------------------------------------------------------------------------

    @property
    def state(self) -> RunState:
        state = self.screen.state
        if state is None:
            raise ValueError(OPENING)
        return state

    @property
    def now(self) -> float:
        return self.screen.time_of(self.state)

    @property
    def settings(self) -> Settings:
        settings = self.screen.settings
        if settings is None:
            raise ValueError(OPENING)
        return settings

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
            SessionsScreen(store, lambda folder: self._awaited(export(folder, "")), here)
        )

    async def choose_fork(self, reading: ForkFrom) -> ForkChoice | None:
        """What is typed while it is read is meant for the screen that asks; a second key opens no second one."""
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
