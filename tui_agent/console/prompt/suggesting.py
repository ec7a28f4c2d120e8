"""What could complete the text in the prompt: commands and their values, commands from files, files of the workspace,
and what MCP servers offer. Files are read in the background; the list is drawn by `Completions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.frontend.commands import server_entries
from tui_agent.frontend.commands.registry import Suggestion, ValuesOf, suggestions
from tui_agent.frontend.file_index import FileIndex
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.console.tabs.live_session import LiveSession
    from tui_agent.frontend.commands.custom import CustomCommands

Background = Callable[[Coroutine[object, object, None]], object]
"""What carries something out beside the screen."""


class Suggesting:
    """`renewed` is called when more is known than before; `warn` tells the operator something."""

    def __init__(
        self,
        live: LiveSession,
        values_of: ValuesOf,
        background: Background,
        renewed: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._values_of = values_of
        self._live = live
        self.own = OwnCommands(live, background, renewed, warn)
        self._files = MentionedFiles(live, background, renewed)

    def __call__(self, typed: str) -> Sequence[Suggestion]:
        found = suggestions(typed, self._values_of) if typed.startswith("/") else []
        if typed.startswith("/") and " " not in typed:
            found += self.own.suggestions(typed)
        mention = server_entries.mentioned(typed)
        if mention is not None:
            found += self._files.suggestions(*mention)
        return found + server_entries.suggestions(typed, self._live.servers)


class OwnCommands:
    """Commands of the operator's own and of the checkout; read anew when a slash is typed."""

    def __init__(
        self,
        live: LiveSession,
        background: Background,
        renewed: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._live = live
        self._background = background
        self._renewed = renewed
        self._warn = warn
        self._reading = False
        self.known: CustomCommands | None = None
        """As they were last read; None: never."""

    def suggestions(self, typed: str) -> list[Suggestion]:
        if (typed == "/" or self.known is None) and not self._reading and self._live.session is not None:
            self._reading = True
            self._background(self._read())
        return [] if self.known is None else self.known.suggestions(typed)

    async def _read(self) -> None:
        # With what a session takes, which is there by now.
        from tui_agent.frontend.commands.custom import read_custom_commands

        try:
            if self._live.session is None:
                return
            found, known = await read_custom_commands(self._live.session), self.known
        finally:
            self._reading = False
        self.known = found
        if found != known:
            self._renewed()
        for place, reason in found.bad if known is None or found.bad != known.bad else ():
            self._warn(f"The command in {one_line(place)} is left out: {one_line(reason)}.")


class MentionedFiles:
    """Files of the workspace, after an `@`; read when they are not known yet, or were read long ago."""

    def __init__(self, live: LiveSession, background: Background, renewed: Callable[[], None]) -> None:
        self._live = live
        self._background = background
        self._renewed = renewed
        self._index: FileIndex | None = None
        self._reading = False

    def suggestions(self, before: str, typed: str) -> list[Suggestion]:
        """What stands in the prompt before the `@` stays there."""
        if self._index is None and self._live.session is not None:
            self._index = FileIndex(Path(self._live.session.state.session.workspace))
        if self._index is None:
            return []
        if self._index.stale and not self._reading:
            self._reading = True
            self._background(self._read(self._index))
        return [
            Suggestion(
                f'{before}@"{name}" ' if " " in name else f"{before}@{name} ", f"@{one_line(name, 100)}", ""
            )
            for name in self._index.search(typed)
        ]

    async def _read(self, index: FileIndex) -> None:
        try:
            await asyncio.to_thread(index.read)
        finally:
            self._reading = False
        self._renewed()
