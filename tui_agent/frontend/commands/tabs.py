"""The commands about the sessions that are open: a new one, going to one, closing one, and leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import Host, ScreenHost, SessionHost


class New(Command["SessionHost"]):
    name = "new"
    help = "Start a session in a tab of its own; with a task: at once"
    argument = "[TASK]"
    key = "ctrl+t"
    early = True

    async def do(self, host: SessionHost, argument: str) -> str:
        await host.open_new(argument)
        return ""


class Clear(Command["SessionHost"]):
    name = "clear"
    help = "Start a new session in this one's place; this one is kept"

    async def do(self, host: SessionHost, argument: str) -> str:
        if await host.may_end_run("Closing this session"):
            await host.open_new(in_place=True)
        return ""


class Tabs(Command["ScreenHost"]):
    name = "tabs"
    help = "The sessions that are open: choose one"
    replay = screen = early = True

    async def do(self, host: ScreenHost, argument: str) -> str:
        await host.tabs.choose()
        return ""


class Tab(Command["ScreenHost"]):
    name = "tab"
    help = "Go to a tab by its number"
    argument = "N"
    replay = screen = early = True

    def do(self, host: ScreenHost, argument: str) -> str:
        return host.tabs.go_to(argument)


class NextTab(Command["ScreenHost"]):
    name = "next-tab"
    help = "Go to the next tab"
    key = "ctrl+n"
    replay = screen = early = True

    def do(self, host: ScreenHost, argument: str) -> str:
        """Go to the next tab; -1, which a key alone says: to the one before."""
        return host.tabs.next(int(argument or 1))


class Close(Command["ScreenHost"]):
    name = "close"
    help = "Close this tab; its session is kept"
    replay = screen = early = True

    async def do(self, host: ScreenHost, argument: str) -> str:
        await host.tabs.close()
        return ""


class Inbox(Command["ScreenHost"]):
    name = "inbox"
    help = "Everything that waits for you, in all tabs"
    key = "ctrl+l"
    replay = screen = early = True

    async def do(self, host: ScreenHost, argument: str) -> str:
        await host.tabs.open_inbox()
        return ""


class Quit(Command["Host"]):
    name = "quit"
    help = "Leave; the session is kept"
    key = "ctrl+q"
    replay = early = True

    async def do(self, host: Host, argument: str) -> str:
        await host.leave()
        return ""
