"""The commands about a session as a whole: its name, the saved ones, a fork, a file of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import Host, SessionHost


class Title(Command["SessionHost"]):
    name = "title"
    help = "Name this session"
    argument = "TITLE"

    def do(self, host: SessionHost, argument: str) -> str:
        host.session.set_title(argument)
        return f"This session is now named {host.session.state.session.title or argument}."


class Sessions(Command["Host"]):
    name = "sessions"
    help = "Look through saved sessions"
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        """Show the saved sessions, and open the one that is chosen."""
        import asyncio

        from tui_agent.store.session_store import SessionStore

        store = await asyncio.to_thread(SessionStore, host.shown.settings.state_dir)
        chosen = await host.choose_session(store)
        if chosen is not None:
            host.open_session(chosen)
        return ""


class Fork(Command["Host"]):
    name = "fork"
    help = "Start a new session from here: what if the policy, model, answer or note were different"
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        """Fork the session at the event that is shown, and open the fork."""
        from tui_agent.frontend.commands.host import ChosenSession
        from tui_agent.session.fork import fork_session, read_point
        from tui_agent.store.journal import sessions_folder

        place, folder = await host.shown.place(), sessions_folder(host.shown.settings.state_dir)
        chosen = await host.choose_fork(read_point(*place, folder))
        if chosen is not None:
            made = await fork_session(place.parent, folder, chosen)
            host.open_session(ChosenSession(made.name), chosen.settings)
        return ""


class Export(Command["Host"]):
    name = "export"
    help = "Write the session to a file, in the form that is named (markdown, html, …)"
    argument = "[FORMAT] [FILE]"
    replay = True

    def choices(self, host: Host) -> Sequence[str]:
        from tui_agent.formats.exporters import FORMATS

        return FORMATS

    async def do(self, host: Host, argument: str) -> str:
        from tui_agent.frontend.commands.export import export

        return await export(host.shown.source, argument)
