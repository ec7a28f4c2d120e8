"""The console as a program: it paints first, loads the rest while the prompt can be used already, and leaves cleanly.

However it is left (by a key, a signal, a wrong configuration, a fault of its own), the terminal is restored
and the session closed. Its last words stand on the normal screen, without a traceback.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console
from textual.app import App, SuspendNotSupported
from textual.driver import Driver
from textual.filter import Monochrome, NoColor
from textual.theme import BUILTIN_THEMES, Theme

from tui_agent.console.looks.themes import (
    DEFAULT_THEME,
    ThemeError,
    read_theme,
    role_defaults,
    theme_folders,
    with_roles,
)
from tui_agent.console.tabs import toasts
from tui_agent.console.tabs.session_app import SessionApp
from tui_agent.console.terminal import garbage
from tui_agent.console.terminal.driver import has_shell, terminal_driver
from tui_agent.frontend.arguments import (
    LEFT_BY_SIGNAL,
    WRONG_USAGE,
    ConsoleArguments,
    in_browser,
    wanted_early,
)
from tui_agent.frontend.ascii_glyphs import ascii_glyphs
from tui_agent.frontend.loading import load_modules

if TYPE_CHECKING:
    from textual.command import Provider

    from tui_agent.console.commands.host import ConsoleHost
    from tui_agent.console.screens.fleet import FleetScreen
    from tui_agent.console.screens.followed import FollowedScreen
    from tui_agent.console.screens.live import LiveScreen
    from tui_agent.console.screens.replay import ReplayScreen
    from tui_agent.console.screens.watch import WatchScreen
    from tui_agent.console.tabs.tab import Tab

LATE_MODULES = ("markdown_it", "markdown_it.tree", "tui_agent.console.screens.sessions")
"""Modules that are needed some time after the session is open: imported then, so that the first reply does
not wait for them.
"""

LIVE_MODULES = (
    "tui_agent.frontend.commands.registry",
    "tui_agent.console.screens.live",
    "tui_agent.console.prompt.prompt",
)
"""Parts of the live screen that take the longest."""

SIXTEEN_COLOURS = "terminal"
"""Theme for a terminal that has no more."""


def _made_screen(arguments: ConsoleArguments, mode: str) -> Tab:
    """Make the screen that the arguments ask for; what another one needs is not imported for it."""
    if arguments.fleet is not None or arguments.watched_folder is not None:
        from tui_agent.console.screens.fleet import FleetScreen

        return FleetScreen(arguments, mode, _board_host)
    if arguments.follow:
        from tui_agent.console.screens.followed import FollowedScreen

        return FollowedScreen(arguments, mode, _followed_host)
    if arguments.watch:
        from tui_agent.console.screens.watch import WatchScreen

        return WatchScreen(arguments, mode, _watch_host)
    if arguments.replay is not None:
        from tui_agent.console.screens.replay import ReplayScreen

        return ReplayScreen(arguments, mode, _replay_host)
    from tui_agent.console.screens.live import LiveScreen

    return LiveScreen(arguments, mode, _live_host)


def _live_host(screen: LiveScreen) -> ConsoleHost:
    from tui_agent.console.commands.live import LiveHost

    return LiveHost(screen)


def _replay_host(screen: ReplayScreen) -> ConsoleHost:
    from tui_agent.console.commands.host import ConsoleHost
    from tui_agent.frontend.commands.shown import ShownRecording

    return ConsoleHost(screen, ShownRecording(screen.shown))


def _followed_host(screen: FollowedScreen) -> ConsoleHost:
    from tui_agent.console.commands.board import FollowedHost
    from tui_agent.frontend.commands.shown import ShownRecording

    return FollowedHost(screen, ShownRecording(screen.shown))


def _watch_host(screen: WatchScreen) -> ConsoleHost:
    from tui_agent.console.commands.board import FollowedHost
    from tui_agent.frontend.commands.shown import ShownWatched

    return FollowedHost(screen, ShownWatched(screen.shown, screen.kept))


def _board_host(screen: FleetScreen) -> ConsoleHost:
    from tui_agent.console.commands.board import BoardHost

    return BoardHost(screen)


def command_provider() -> type[Provider]:
    """The palette's entries, imported when the palette opens."""
    from tui_agent.console.screens.palette import CommandProvider

    return CommandProvider


class ConsoleApp(SessionApp):
    """One start of the console."""

    TITLE = "agent-tui"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {command_provider}
    CSS = (
        toasts.CSS
        + """
    LinePane:focus:nocolor, Prompt:focus:nocolor, PromptOutline:nocolor, ConversationFrame:focus-within:nocolor,
    Card:focus-within:nocolor { border: heavy $accent; }
    TextArea:light .text-area--cursor { background: $foreground 85%; }
    ConversationPane:focus:nocolor, FilePane:focus:nocolor, CardBody:nocolor { border: none; }
    """
    )

    def __init__(self, arguments: ConsoleArguments) -> None:
        self._first_theme = theme = first_theme(arguments, few_colours=_has_few_colours())
        # A theme that is set after the stylesheet was made has all of it parsed again.
        self.set_reactive(App.theme, theme.name)
        super().__init__(arguments, _made_screen)
        self._adapt(arguments)
        self.register_theme(theme)
        self.theme_names = (theme.name,)
        self._lent = False

    def _adapt(self, arguments: ConsoleArguments) -> None:
        """Do without what this terminal, or this operator, does without: glyphs, motion, colours."""
        self._glyphs = glyphs = ascii_glyphs(wanted_early("glyphs", arguments))
        if glyphs is not None:
            self.driver_class = terminal_driver(super().get_driver_class(), glyphs)
        if wanted_early("motion", arguments) == "reduced" or os.environ.get("NO_MOTION"):
            self.animation_level = "none"
        if self.no_color:
            from tui_agent.console.terminal.uncoloured import Uncoloured

            coloured = [one for one in self._filters if not isinstance(one, Monochrome | NoColor)]
            self._filters[:] = [*coloured, Uncoloured()]

    def get_driver_class(self) -> type[Driver]:
        if in_browser():
            from tui_agent.console.terminal.browser_driver import BrowserDriver

            return BrowserDriver
        return terminal_driver(super().get_driver_class())

    def in_glyphs(self, text: str) -> str:
        """A text for the normal screen, in the characters that the terminal is to get."""
        return text if self._glyphs is None else self._glyphs.text(text)

    def get_theme(self, theme_name: str) -> Theme | None:
        """Also the first theme, which is asked for before it can be registered."""
        first = self._first_theme
        return first if theme_name == first.name else super().get_theme(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our roles for themes that do not define them."""
        standing_out = "reverse" if self.no_color else "none"
        return {"cursor-background-text-style": standing_out, **role_defaults(self.current_theme)}

    def on_mount(self) -> None:
        """Listen to signals."""
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._signalled, number)
        self.app_resume_signal.subscribe(self, self._resumed)

    def on_ready(self) -> None:
        """Load the rest once the first frame is out."""
        self.run_worker(self.open_first_session(), group="startup")

    def _resumed(self, _: object) -> None:
        """Back from the shell: the terminal shows what the shell left."""
        self.refresh(layout=True)

    async def open_first_session(self) -> None:
        """Open it, and get ready what all sessions share."""
        if self.arguments.is_live:
            self.begin_host()
            await load_modules(LIVE_MODULES)
        from tui_agent.console.looks.hints import name_keys

        name_keys(wanted=self._glyphs is not None)
        first = await self.open_first_tab()
        self.take_input()
        if not await self.start_tab(first):
            self.exit(return_code=WRONG_USAGE)
            return
        await asyncio.gather(self.learn_themes(), load_modules(LATE_MODULES))
        garbage.begin()

    def _refresh_notifications(self) -> None:
        """Textual's, for each notification that comes or goes and each screen that comes to the top."""
        super()._refresh_notifications()
        if self._screen_stack:
            *below, screen = self._screen_stack
            self.call_later(toasts.hide, below)
            screen.call_after_refresh(toasts.place, screen)

    def action_suspend_process(self) -> None:
        """Stop the job; refused if nothing would continue it."""
        if has_shell():
            super().action_suspend_process()
        else:
            self.notify(
                "There is no shell to go back to, so nothing could bring the console back.", markup=False
            )

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Lend the terminal to another program. Textual's does not take it back if the block raises (issue
        6692 there), and holds `sys.stdout` meanwhile.
        """
        driver = self._driver
        if driver is None or not driver.can_suspend:
            raise SuspendNotSupported("Another program cannot use this terminal.")
        driver.suspend_application_mode()
        self._lent = True
        try:
            with driver.no_automatic_restart():
                try:
                    yield
                finally:
                    if not self._exit:
                        driver.resume_application_mode()
        finally:
            self._lent = False
            self.refresh(layout=True)

    def action_command_palette(self) -> None:
        """Show the palette, unless it is open."""
        from tui_agent.console.screens.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    # --- leaving --------------------------------------------------------------------------------------------

    async def action_quit(self) -> None:
        """Leave by the screen's own command: the live one asks while a run is under way."""
        self.shown.commands.run("quit")

    def action_help_quit(self) -> None:
        """Ctrl+C interrupts what runs; it never ends the program."""
        screen = self.shown
        if screen.running:
            screen.commands.run("interrupt")
        else:
            from tui_agent.frontend.commands.registry import shown_key

            self.notify(f"{shown_key('quit')} leaves the console.", markup=False)

    def _signalled(self, number: int) -> None:
        # A Ctrl+C in the program that has the terminal reaches this one too.
        if not (self._lent and number == signal.SIGINT):
            self.call_later(self.leave, LEFT_BY_SIGNAL)

    def _fatal_error(self) -> None:
        """Write the traceback of a crash to a file and its name to the screen."""
        from tui_agent.console.terminal.crash import crash_text

        self.exit_text = crash_text(sys.exc_info()[1])
        self._close_messages_no_wait()


def _has_few_colours() -> bool:
    """True if the terminal says that it has sixteen colours and no more."""
    stream = sys.__stderr__
    if stream is None or not stream.isatty():
        return False
    return Console(file=stream).color_system == "standard"


def first_theme(arguments: ConsoleArguments, *, few_colours: bool = False) -> Theme:
    """The theme of the first paint: found without the whole configuration, and no other file read.

    `few_colours`: the terminal has its own sixteen, and another theme's would be guessed from them.
    """
    wanted = wanted_early("theme", arguments) or (SIXTEEN_COLOURS if few_colours else None)
    for name in (wanted, DEFAULT_THEME):
        for folder in reversed(theme_folders()):
            with suppress(ThemeError):
                return read_theme(folder / f"{name}.toml")
        if name in BUILTIN_THEMES:
            return with_roles(BUILTIN_THEMES[str(name)])
    raise FileNotFoundError(
        f"The theme {DEFAULT_THEME} is missing: the installation is incomplete. Install again."
    )
