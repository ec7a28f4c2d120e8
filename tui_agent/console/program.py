"""The console as a program: paints first, loads the rest while it can be typed in already, leaves cleanly.

However it is left - by a key, a signal, a wrong configuration, a fault of its own - the terminal is restored,
the session is closed, and what has to be said stands on the normal screen, without a traceback.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.console.hangup import surviving
from tui_agent.console.screens.flight import FlightScreen
from tui_agent.console.themes import (
    DEFAULT_THEME,
    ThemeError,
    read_theme,
    read_themes,
    role_defaults,
    theme_folders,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.command import Provider
    from textual.driver import Driver
    from textual.screen import Screen
    from textual.theme import Theme

    from tui_agent.console.arguments import ConsoleArguments
    from tui_agent.console.boot import Opened
    from tui_agent.state import RunState

LEFT_BY_SIGNAL = 130
HISTORY_FILE = "prompt-history.jsonl"


def command_provider() -> type[Provider]:
    """The palette's entries, imported when the palette opens."""
    from tui_agent.console.palette import CommandProvider

    return CommandProvider


class ConsoleApp(App[None]):
    """One start of the console. `exit_text` is what is said on the normal screen afterwards."""

    TITLE = "agent-tui"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {command_provider}
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, arguments: ConsoleArguments) -> None:
        super().__init__()
        self.arguments = arguments
        self.exit_text = ""
        self.opened: Opened | None = None
        self.next: ConsoleArguments | None = None
        self._leaving = False
        self._left_session: Opened | None = None
        theme = first_theme(arguments)
        self.register_theme(theme)
        self.theme = theme.name
        self.theme_names: tuple[str, ...] = (theme.name,)

    def get_default_screen(self) -> Screen[None]:
        """The live screen, or the replay's."""
        if self.arguments.replay is not None:
            from tui_agent.console.screens.replay import ReplayScreen

            return ReplayScreen()
        return FlightScreen()

    def get_driver_class(self) -> type[Driver]:
        """The platform's driver, which outlives its terminal."""
        return surviving(super().get_driver_class())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our roles, for themes that know nothing of them."""
        return role_defaults(self.current_theme)

    def on_mount(self) -> None:
        """Listen to signals; load the rest once the first paint is out."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if (
                number is not None
                and sys.platform != "win32"
                and threading.current_thread() is threading.main_thread()
            ):
                loop.add_signal_handler(number, self._signalled)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(self._boot(), group="boot")

    async def _boot(self) -> None:
        from tui_agent.console.boot import BootError

        try:
            await self._open()
        except BootError as error:
            self.exit_text = error.message
            self.exit(return_code=error.code)

    async def _open(self) -> None:
        screen = self.screen_stack[0]
        if not isinstance(screen, FlightScreen):
            await self._open_replay()
            return
        from tui_agent.console.boot import LOOKS, boot, load_modules

        await load_modules(LOOKS)
        await screen.complete()
        self.opened = opened = await boot(self.arguments, screen.operator)
        if opened.settings.theme in self.theme_names:
            self.theme = opened.settings.theme
        await screen.attach(opened.session)
        if opened.task:
            await screen.deck.submit(opened.task)
        for remark in remarks_on(opened.session.state):
            screen.say(remark, "warning")
        await asyncio.to_thread(screen.load_history, opened.settings.state_dir / HISTORY_FILE)
        await self._learn_themes()
        _collect_garbage_again()

    async def _open_replay(self) -> None:
        from tui_agent.console.boot import LOOKS, load_modules, open_replay
        from tui_agent.console.screens.replay import ReplayScreen

        await load_modules(LOOKS)
        screen = self.screen_stack[0]
        if isinstance(screen, ReplayScreen):
            await screen.complete()
            recorded = await open_replay(self.arguments)
            screen.attach(recorded, self.arguments.replay_speed, self.arguments.replay_at)
            await asyncio.gather(screen.read_through(), self._learn_themes())
        _collect_garbage_again()

    async def _learn_themes(self) -> None:
        """All other themes; a file that is wrong is told and left out."""
        themes, problems = await asyncio.to_thread(lambda: read_themes(theme_folders()))
        for theme in themes.values():
            self.register_theme(theme)
        self.theme_names = tuple(themes)
        for problem in problems:
            self.notify(problem.message, severity="warning", markup=False)

    # --- leaving --------------------------------------------------------------------------------------------

    async def action_quit(self) -> None:
        """Leave, as the screen has it: the live one asks while a run goes on."""
        await self.screen_stack[0].run_action("command('quit')")

    def action_help_quit(self) -> None:
        """Ctrl+C interrupts what runs; it never ends the program by itself."""
        screen = self.screen_stack[0]
        if (
            isinstance(screen, FlightScreen)
            and screen.deck.session is not None
            and screen.deck.session.running
        ):
            self.run_worker(screen.deck.interrupt())
        else:
            self.notify("Ctrl+Q leaves the console.", markup=False)

    def _signalled(self) -> None:
        self.call_later(self.leave, LEFT_BY_SIGNAL)

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
        from tui_agent.sessions.upkeep import put_away

        settings = closed.settings
        await put_away(settings.state_dir, closed.session.id, settings.retention_days, time.time())

    def _fatal_error(self) -> None:
        """A fault of our own: the traceback goes to a file, its name to the screen."""
        from tui_agent.console.crash import crash_text

        self.exit_text = crash_text(sys.exc_info()[1])
        self._close_messages_no_wait()


def remarks_on(state: RunState) -> list[str]:
    """What the operator should know of a session that was opened again."""
    from tui_agent.console.sanitize import one_line

    remarks = []
    if state.running and state.run.iteration:
        remarks.append(
            "A run is open in this session: F5 goes on with it, F10 does one iteration, /stop ends it."
        )
    if not Path(state.session.workspace).is_dir():
        remarks.append(
            f"The workspace {one_line(state.session.workspace)} is gone: tools will fail. "
            "Bring it back, or start anew with --workspace DIR."
        )
    return remarks


def _collect_garbage_again() -> None:
    """The modules that start-up brought stay for good: they are not looked through again."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def first_theme(arguments: ConsoleArguments) -> Theme:
    """The theme of the first paint: found without the whole configuration, and no other file read."""
    wanted = (
        arguments.overrides.get("theme")
        or os.environ.get("AGENT_TUI_THEME")
        or _theme_in_file(arguments.config)
    )
    for name in (wanted, DEFAULT_THEME):
        for folder in reversed(theme_folders()):
            with suppress(ThemeError):
                return read_theme(folder / f"{name}.toml")
    raise FileNotFoundError(
        f"The theme {DEFAULT_THEME} is missing: the installation is incomplete. Install again."
    )


def _theme_in_file(config: Path | None) -> object:
    from platformdirs import user_config_path

    path = config or user_config_path("agent-tui", appauthor=False) / "config.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")).get("theme")
    except (OSError, ValueError):
        return None
