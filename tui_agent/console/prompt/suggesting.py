"""Completions of the text in the prompt: commands and their values, commands from files and of another agent, files of
the workspace, and offers of MCP servers. Files are read in the background; the list is drawn by `Completions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.frontend.commands import agent_commands, server_entries
from tui_agent.frontend.commands.command import Completion
from tui_agent.frontend.commands.registry import ValuesOf, suggestions
from tui_agent.frontend.file_index import FileIndex
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.console.tabs.live_session import LiveSession
    from tui_agent.frontend.commands.custom import CustomCommands
    from tui_agent.session.session import Session


class Suggesting:
    """`background` carries out what takes its time; `renewed` is called when more is known than before; `warn` tells
    the operator something.
    """

    def __init__(
        self,
        live: LiveSession,
        values_of: ValuesOf,
        background: Callable[[Coroutine[object, object, None]], object],
        renewed: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._live, self._values_of = live, values_of
        self._background, self._renewed, self._warn = background, renewed, warn
        self.from_files: CustomCommands | None = None
        """Commands of the operator's own and of the checkout, as they were last read; None: never."""
        self._files: FileIndex | None = None
        self._under_way: set[str] = set()
        """The task that reads."""

    def __call__(self, typed: str) -> Sequence[Completion]:
        found = suggestions(typed, self._values_of) if typed.startswith("/") else []
        if (session := self._live.session) is not None:
            if typed.startswith("/") and " " not in typed:
                found += self._commands_from_files(session, typed)
            if typed.startswith("/"):
                found += agent_commands.suggestions(typed, session.state.session.offered)
            mention = server_entries.mentioned(typed)
            if mention is not None:
                found += self._files_of(session, *mention)
        return found + server_entries.suggestions(typed, self._live.servers)

    def _read(self, what: str, reading: Callable[[], Coroutine[object, object, None]]) -> None:
        """Read in the background, unless it is being read already."""

        async def read() -> None:
            try:
                await reading()
            finally:
                self._under_way.discard(what)

        if what not in self._under_way:
            self._under_way.add(what)
            self._background(read())

    def _commands_from_files(self, session: Session, typed: str) -> list[Completion]:
        """Those that fit; read anew when a slash is typed."""

        async def reading() -> None:
            # With what a session takes, which is there by now.
            from tui_agent.frontend.commands.custom import read_custom_commands

            found, known = await read_custom_commands(session), self.from_files
            self.from_files = found
            if found != known:
                self._renewed()
            for place, reason in found.bad if known is None or found.bad != known.bad else ():
                self._warn(f"The command in {one_line(place)} is left out: {one_line(reason)}.")

        if typed == "/" or self.from_files is None:
            self._read("commands", reading)
        return [] if self.from_files is None else self.from_files.suggestions(typed)

    def _files_of(self, session: Session, before: str, typed: str) -> list[Completion]:
        """Files of the workspace that fit; read if they are not known yet, or were read long ago."""
        index = self._files = self._files or FileIndex(Path(session.state.session.workspace))

        async def reading() -> None:
            await asyncio.to_thread(index.read)
            self._renewed()

        if index.stale:
            self._read("files", reading)
        return [
            Completion(
                f'{before}@"{name}" ' if " " in name else f"{before}@{name} ", f"@{one_line(name, 100)}", ""
            )
            for name in index.search(typed)
        ]
