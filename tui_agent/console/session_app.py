"""What a screen knows of its app: how it was started, the session that is open, and how it is left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.app import App

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.config.settings import Settings
    from tui_agent.config.user_file import UserFile
    from tui_agent.console.arguments import ConsoleArguments
    from tui_agent.console.startup import Opened


class SessionApp(App[None]):
    """An app that holds an open session. `exit_text` is what is said on the normal screen afterwards."""

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, arguments: ConsoleArguments) -> None:
        super().__init__()
        self.arguments = arguments
        self.exit_text = ""
        self.opened: Opened | None = None
        self.next: ConsoleArguments | None = None
        """What to start with in the same terminal, once this is left."""
        self.theme_names: tuple[str, ...] = ()
        self.theme_sources: dict[str, str] = {}
        """Where the themes come from: `agent-tui` or `yours`; the others are Textual's own."""
        self._leaving = False
        self._left_session: Opened | None = None

    def remember(self, **values: str) -> None:
        """Keep values for the next start, in the background."""
        from tui_agent.console import preferences

        settings = None if self.opened is None else self.opened.settings
        if settings is not None:
            state_dir = settings.state_dir
            self.run_worker(lambda: preferences.save(state_dir, **values), group="remember", thread=True)

    def user_file(self, settings: Settings) -> UserFile:
        """The user's configuration file, as this start reads it."""
        from tui_agent.config.user_file import UserFile

        return UserFile(settings.user_file, self.arguments.overrides)

    def take_over(self, key: str, settings: Settings) -> bool:
        """Follow a setting of the console's own at once; False where it is none."""
        return False

    def copy(self, text: str, what: str) -> None:
        """Copy a text, made safe, and say what was copied and how. `what`: "the block", …"""
        self.run_worker(self._copy(text, what), group="copy")

    async def _copy(self, text: str, what: str) -> None:
        from tui_agent.console.clipboard import TERMINAL_LIMIT, copied, copy_by_tool
        from tui_agent.terminal_text import sanitize_between_tabs

        text = sanitize_between_tabs(text)
        if not text:
            self.notify("There is nothing to copy.", markup=False)
            return
        if len(text.encode()) <= TERMINAL_LIMIT:
            self.copy_to_clipboard(text)
        self.notify(copied(text, what, await copy_by_tool(text)), timeout=4, markup=False)

    async def leave(self, code: int = 0) -> None:
        """Close the session, then the screen."""
        if self._leaving:
            return
        self._leaving = True
        if not await self.close_session():
            code = 1
        self.exit(return_code=code)

    async def leave_for(self, arguments: ConsoleArguments) -> None:
        """Leave, and start again with these arguments in the same terminal."""
        self.next = arguments
        await self.leave()

    async def close_session(self) -> bool:
        """End the run and the journal in good order. False where the disk refused; `exit_text` says so."""
        opened, self.opened = self.opened, None
        if opened is None:
            return True
        try:
            await opened.session.close()
        except Exception as error:  # noqa: BLE001 - leaving must go on, and say what went wrong
            self.exit_text = f"{self.exit_text}\n{error}".strip()
            return False
        finally:
            self._left_session = opened
            if self.next is None:  # a fork of a demo goes on in the same workspace
                opened.clean_up()
        return True

    async def put_away(self) -> None:
        """Once the terminal is restored: bring the list of sessions up to date, let old ones go."""
        closed, self._left_session = self._left_session, None
        if closed is None:
            return
        from tui_agent.store.retention import put_away

        settings = closed.settings
        await put_away(settings.state_dir, closed.session.id, settings.retention_days, time.time())
