"""The tabs of a screen, for commands: going to one, closing one, and everything that waits for the operator in any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.registry import shown_key
from tui_agent.frontend.lines.passages import Row

if TYPE_CHECKING:
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.console.tabs.session_app import SessionApp
    from tui_agent.console.tabs.tab import Tab


class ScreenTabs:
    """The tabs, seen from one of them (`TabHost`)."""

    def __init__(self, screen: DashboardScreen) -> None:
        self._screen = screen

    @property
    def _app(self) -> SessionApp:
        return self._screen.app

    async def may_end(self, tabs: Sequence[Tab], what: str) -> bool:
        """Ask for leave to do `what`, which ends the runs that are under way in these tabs; without any it is given."""
        from tui_agent.console.screens.ask import LeaveScreen

        runs = sum(tab.has_open_run for tab in tabs)
        question = LeaveScreen(runs, what, lambda: not any(tab.has_open_run for tab in tabs))
        return not runs or await self._screen.ask(question)

    async def choose(self) -> None:
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

    def go_to(self, number: str) -> str:
        """Go to a tab by its number."""
        tabs = self._app.tabs
        if number.isdecimal() and len(number) < 4 and 1 <= int(number) <= len(tabs):
            self._app.show_tab(tabs[int(number) - 1])
        elif len(tabs) > 1:
            raise ValueError(f"There is no tab {number}; there are 1 to {len(tabs)}.")
        else:
            return _one_tab()
        return ""

    def next(self, step: int) -> str:
        """Go so many tabs on, round and round."""
        tabs = self._app.tabs
        self._app.show_tab(tabs[(tabs.index(self._screen) + step) % len(tabs)])
        return _one_tab() if len(tabs) == 1 else ""

    async def close(self) -> None:
        """Close this tab; ask first if its run is under way."""
        if await self.may_end([self._screen], "Closing this tab"):
            self._app.close_tab(self._screen)

    async def open_inbox(self) -> None:
        """Show everything that waits for the operator, and go to what is chosen."""
        from tui_agent.console.screens.inbox import InboxScreen
        from tui_agent.console.tabs.inbox import waiting

        item = await self._screen.ask(InboxScreen(lambda: waiting(self._app.tabs)))
        if item is not None and not item.question.future.done():
            self._app.show_tab(item.tab)
            item.tab.go_to_question(item.question)


def _one_tab() -> str:
    return f"There is one tab; {shown_key('new')} opens another one."
