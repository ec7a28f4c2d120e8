"""The commands about the tabs: going to one, closing one, and everything that waits for the operator in any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.registry import shown_key
from tui_agent.frontend.lines.passages import Row

if TYPE_CHECKING:
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.console.tabs.session_app import SessionApp
    from tui_agent.console.tabs.tab import Tab
    from tui_agent.frontend.commands.session_commands import Answer


class TabCommands:
    """`own`: the commands by name."""

    def __init__(self, screen: DashboardScreen) -> None:
        self._screen = screen
        self.own: Mapping[str, Callable[[str], Answer]] = {
            "tabs": self._tabs,
            "tab": self._tab,
            "next-tab": self._next_tab,
            "close": self._close,
            "inbox": self._inbox,
        }

    @property
    def _app(self) -> SessionApp:
        return self._screen.app

    async def may_end(self, tabs: Sequence[Tab], what: str) -> bool:
        """Whether `what` is to be done, which ends the runs that are under way in these tabs."""
        from tui_agent.console.screens.ask import LeaveScreen

        runs = sum(tab.has_open_run for tab in tabs)
        question = LeaveScreen(runs, what, lambda: not any(tab.has_open_run for tab in tabs))
        return not runs or await self._screen.ask(question)

    async def _tabs(self, _: str) -> str:
        """Choose among the open sessions."""
        from tui_agent.console.screens.pick import PickScreen

        rows = []
        for number, tab in enumerate(self._app.tabs, 1):
            stands = tab.standing()
            waits = f" · {stands.waits} for you" if stands.waits else ""
            rows.append(Row(f"{number} {stands.glyph} {stands.title}", f"{tab.session_id}{waits}", tab))
        remark = f"{shown_key('new')} opens another one, /close closes this one."
        chosen = await self._screen.ask(PickScreen("Tabs", rows, remark))
        if chosen is not None:
            self._app.show_tab(chosen)
        return ""

    def _tab(self, number: str) -> str:
        """Go to a tab by its number."""
        tabs = self._app.tabs
        if number.isdecimal() and len(number) < 4 and 1 <= int(number) <= len(tabs):
            self._app.show_tab(tabs[int(number) - 1])
        elif len(tabs) > 1:
            raise ValueError(f"There is no tab {number}; there are 1 to {len(tabs)}.")
        else:
            return _one_tab()
        return ""

    def _next_tab(self, step: str) -> str:
        """Go to the next tab (`step` -1: to the one before), round and round."""
        tabs = self._app.tabs
        self._app.show_tab(tabs[(tabs.index(self._screen) + int(step or 1)) % len(tabs)])
        return _one_tab() if len(tabs) == 1 else ""

    async def _close(self, _: str) -> str:
        """Close this tab; ask first where its run is under way."""
        if await self.may_end([self._screen], "Closing this tab"):
            self._app.close_tab(self._screen)
        return ""

    async def _inbox(self, _: str) -> str:
        """Show everything that waits for the operator, and go to what is chosen."""
        from tui_agent.console.screens.inbox import InboxScreen
        from tui_agent.console.tabs.inbox import waiting

        item = await self._screen.ask(InboxScreen(lambda: waiting(self._app.tabs)))
        if item is not None and not item.question.future.done():
            self._app.show_tab(item.tab)
            item.tab.go_to_question(item.question)
        return ""


def _one_tab() -> str:
    return f"There is one tab; {shown_key('new')} opens another one."
