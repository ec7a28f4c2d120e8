"""The console as a program: it paints first, loads the rest while the prompt can be used already, and leaves cleanly.

However it is left - by a key, a signal, a wrong configuration, a fault of its own - the terminal is restored,
the session is closed, and what has to be said stands on the normal screen, without a traceback.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from textual.app import App, SuspendNotSupported
from textual.driver import Driver
from textual.filter import Monochrome, NoColor
from textual.theme import BUILTIN_THEMES, Theme

from tui_agent.config.errors import ConfigError, MissingModelError
from tui_agent.console.looks.command_keys import no_key
from tui_agent.console.looks.hints import name_keys
from tui_agent.console.looks.themes import (
    DEFAULT_THEME,
    ThemeError,
    read_theme,
    read_themes,
    role_defaults,
    theme_folders,
    user_theme_folder,
)
from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.tabs import toasts
from tui_agent.console.tabs.session_app import SessionApp
from tui_agent.console.tabs.tab import Tab
from tui_agent.console.terminal import garbage
from tui_agent.console.terminal.driver import has_shell, terminal_driver
from tui_agent.frontend.arguments import ConsoleArguments, in_browser, wanted_early
from tui_agent.frontend.ascii_glyphs import ascii_glyphs
from tui_agent.frontend.commands.registry import BACKWARDS, BINDABLE, shown_key, use_keys, with_shift
from tui_agent.frontend.opening import HISTORY_FILE, LEFT_BY_SIGNAL, WRONG_USAGE, grants_on, notifications_on
from tui_agent.store.errors import SessionError

if TYPE_CHECKING:
    from textual.command import Provider

    from tui_agent.config.settings import Settings
    from tui_agent.console.looks.welcome import Welcome
    from tui_agent.console.terminal.attention import Attention

DASHBOARD_MODULES = (
    "tui_agent.terminal_text",
    "tui_agent.console.panes.strips",
    "tui_agent.console.panes.pane",
    "tui_agent.console.panes",
    "tui_agent.console.cards.card_host",
    "tui_agent.console.commands.live",
    "tui_agent.console.prompt.queued",
)
"""What the screen lacks after its first paint."""

LATE_MODULES = ("markdown_it", "markdown_it.tree", "tui_agent.console.screens.sessions")
"""What is needed some time after the session is open: imported then, so that the first reply does not wait for it."""

SIXTEEN_COLOURS = "terminal"
"""Theme for a terminal that has no more."""


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
    ConversationPane:focus:nocolor, FilePane:focus:nocolor, CardBody:nocolor { border: none; }
    CommandPalette {
        & > Vertical {
            width: 100; max-width: 96%; height: auto; max-height: 90%; margin-top: 1; padding: 0 1;
            visibility: visible; background: $surface; border: round $accent;
        }
        & > .command-palette--help-text { color: $text-muted; text-style: not bold; }
        & #--input, & #--input.--list-visible { border: none; height: 2; }
        & SearchIcon, & LoadingIndicator { display: none; }
        & CommandInput, & CommandInput:focus { border: none; padding: 0; height: 1; }
        & CommandInput > .input--placeholder { color: $text-muted; }
        & #--results { overlay: none; height: auto; max-height: 1fr; }
        & CommandList, & CommandList:focus { border: none; max-height: 100%; }
        & CommandList > .option-list--option { padding: 0; }
        & CommandList > .option-list--option-disabled { color: $text-muted; }
        & CommandList > .option-list--option-highlighted {
            color: $foreground; background: $cursor-background; text-style: $cursor-background-text-style;
        }
        & CommandList:nocolor > .option-list--option-highlighted { background: $primary; text-style: reverse; }
    }
    """
    )

    def __init__(self, arguments: ConsoleArguments) -> None:
        self._first_theme = theme = first_theme(arguments, few_colours=_has_few_colours())
        # A theme that is set after the stylesheet was made has all of it parsed again.
        self.set_reactive(App.theme, theme.name)
        super().__init__(arguments)
        self._adapt(arguments)
        self.register_theme(theme)
        self.theme_names = (theme.name,)
        self._attention: Attention | None = None
        self._lent = False

    def _adapt(self, arguments: ConsoleArguments) -> None:
        """Do without what this terminal, or this operator, does without: glyphs, motion, colours."""
        self._glyphs = glyphs = ascii_glyphs(wanted_early("glyphs", arguments))
        name_keys(wanted=glyphs is not None)
        if glyphs is not None:
            self.driver_class = terminal_driver(super().get_driver_class(), glyphs)
        if wanted_early("motion", arguments) == "reduced" or os.environ.get("NO_MOTION"):
            self.animation_level = "none"
        if self.no_color:
            from tui_agent.console.terminal.uncoloured import Uncoloured

            coloured = [one for one in self._filters if not isinstance(one, Monochrome | NoColor)]
            self._filters[:] = [*coloured, Uncoloured()]

    def make_screen(self, arguments: ConsoleArguments, mode: str) -> Tab:
        """The live screen, or the replay's."""
        if arguments.fleet is not None or arguments.watched_folder is not None:
            from tui_agent.console.screens.fleet import FleetScreen

            return FleetScreen(arguments, mode)
        if arguments.follow:
            from tui_agent.console.screens.followed import FollowedScreen

            return FollowedScreen(arguments, mode)
        if arguments.watch:
            from tui_agent.console.screens.watch import WatchScreen

            return WatchScreen(arguments, mode)
        if arguments.replay is not None:
            from tui_agent.console.screens.replay import ReplayScreen

            return ReplayScreen(arguments, mode)
        return LiveScreen(arguments, mode)

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
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if (
                number is not None
                and sys.platform != "win32"
                and threading.current_thread() is threading.main_thread()
            ):
                loop.add_signal_handler(number, self._signalled, number)
        self.app_resume_signal.subscribe(self, self._resumed)

    def on_ready(self) -> None:
        """Load the rest once the first frame is out."""
        self.run_worker(self._start(), group="startup")

    def _resumed(self, _: object) -> None:
        """Back from the shell: the terminal shows what the shell left."""
        self.refresh(layout=True)

    async def _start(self) -> None:
        """Open the first session, and get ready what all share."""
        await self.shown.raise_prompt()
        self.take_input()
        if not await self.start_tab(self.shown):
            self.exit(return_code=WRONG_USAGE)
            return
        from tui_agent.frontend.startup import load_modules

        await asyncio.gather(self._learn_themes(), load_modules(LATE_MODULES))
        garbage.begin()

    async def start_tab(self, screen: Tab) -> bool:
        from tui_agent.models.scenario_checks import ScenarioError

        try:
            await self._open(screen)
        except (ConfigError, ScenarioError, SessionError) as error:
            if len(self.tabs) == 1:
                self.exit_text = str(error)
            else:
                self.notify(str(error), severity="error", markup=False)
            return False
        return True

    async def _open(self, screen: Tab) -> None:
        from tui_agent.console.screens.fleet import FleetScreen

        if isinstance(screen, LiveScreen):
            await self._open_live(screen)
        elif isinstance(screen, FleetScreen):
            self.use_keys(await screen.begin())
        elif screen.arguments.watch:
            await self._open_watch(screen)
        else:
            await self._open_replay(screen)

    async def _open_live(self, screen: LiveScreen) -> None:
        from tui_agent.console.terminal.attention import Attention
        from tui_agent.frontend import preferences
        from tui_agent.frontend.startup import load_modules, open_live

        await load_modules(DASHBOARD_MODULES)
        await screen.complete()
        try:
            opened = await open_live(screen.arguments, screen.live.operator, screen.show_end, self.host_for)
        except MissingModelError:
            chosen = await self._choose_model(screen)
            if chosen is None:
                raise
            screen.arguments = chosen
            opened = await open_live(chosen, screen.live.operator, screen.show_end, self.host_for)
            if chosen.demo is None:
                from tui_agent.frontend.commands.model_offers import remember_model

                await asyncio.to_thread(remember_model, opened.settings)
        screen.opened = opened
        settings = opened.settings
        if settings.theme in self.theme_names and len(self.tabs) == 1:
            self.theme = settings.theme
        self.use_keys(settings)
        if screen.arguments.demo is None:
            opened.session.connect_servers()
        await screen.attach(opened.session)
        await screen.explain_with(opened.captions)
        if opened.task:
            await screen.commands.submit(opened.task)
        notifications = notifications_on(opened.session.state)
        if screen.arguments.resume is not None:
            notifications += grants_on(opened.session)
        for notification in notifications:
            screen.say(notification, "warning")
        if self._attention is None:
            self._attention = Attention(self.write_terminal, lambda: self.app_focus, settings.notify)
        self.tabs_changed()
        if settings.vim:
            screen.prompt.use_vim(True)
        screen.use(await asyncio.to_thread(preferences.load, settings.state_dir))
        if screen.dashboard is not None:
            screen.dashboard.greet(await asyncio.to_thread(_welcome, settings))
        screen.show_event(screen.arguments.at_event, screen.arguments.at_words)
        await asyncio.to_thread(screen.prompt.recall.load, settings.state_dir / HISTORY_FILE)

    async def _choose_model(self, screen: LiveScreen) -> ConsoleArguments | None:
        """A first start: offer what was found, the demo, and the themes. None: the operator chose nothing."""
        from tui_agent.config.settings import load_settings
        from tui_agent.console.screens.pick import PickScreen
        from tui_agent.console.screens.theme_gallery import ThemeGallery
        from tui_agent.frontend.commands.model_offers import DEMO, THEME, Offer, as_written, offers, used_last
        from tui_agent.frontend.lines.passages import Row
        from tui_agent.models.discovery import discover

        arguments = screen.arguments
        settings = await asyncio.to_thread(load_settings, arguments.overrides, arguments.config)
        found = list(offers(await discover(settings, os.environ)))
        last = await asyncio.to_thread(used_last, settings)
        if last is not None:
            found = [last, *(row for row in found if row.value != last.value)]
        found_any = bool(found)
        found.append(Row("demo", "a scripted model, real tools: no key, no network", DEMO))
        found.append(Row("theme", "choose the colours first", THEME))
        notification = 'No model is chosen yet. Keep one with `model = "…"` in config.toml, or --model NAME.'
        if not found_any:
            notification = (
                "No model is chosen, and none was found: no provider's key is set and no server answers on this "
                "machine.\nSet a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) or start a server (ollama serve), and "
                "start again; look at the demo; or write a model and its server: openai/qwen3 http://127.0.0.1:8080/v1"
            )
        without = "leave" if len(self.tabs) == 1 else "close"
        while (
            chosen := await screen.ask(PickScreen("Which model?", found, notification, as_written, without))
        ) == THEME:
            await self._learn_themes()
            await screen.ask(ThemeGallery(self.user_file(settings)))
        if chosen == DEMO:
            return replace(arguments, demo="recovery", task=None)
        if not isinstance(chosen, Offer):
            return None
        overrides = {**arguments.overrides, "model": chosen.model}
        if chosen.api_base:
            overrides["api_base"] = chosen.api_base
        return replace(arguments, overrides=overrides)

    async def _open_replay(self, screen: Tab) -> None:
        from tui_agent.console.screens.replay import ReplayScreen
        from tui_agent.frontend import preferences
        from tui_agent.frontend.startup import load_modules, open_replay

        await load_modules(DASHBOARD_MODULES)
        if isinstance(screen, ReplayScreen):
            await screen.complete()
            arguments = screen.arguments
            recorded = await open_replay(arguments)
            self.use_keys(recorded.settings)
            screen.use(await asyncio.to_thread(preferences.load, recorded.settings.state_dir))
            screen.attach(recorded, arguments.replay_speed, arguments.at_event)
            screen.run_worker(screen.read_through(), group="reading")

    async def _open_watch(self, screen: Tab) -> None:
        from tui_agent.console.screens.watch import WatchScreen
        from tui_agent.console.terminal.attention import Attention
        from tui_agent.frontend import preferences
        from tui_agent.frontend.startup import REPLAY_MODULES, load_modules

        await load_modules((*DASHBOARD_MODULES, *REPLAY_MODULES, "tui_agent.frontend.watching"))
        from tui_agent.frontend.watching import open_watch

        if isinstance(screen, WatchScreen):
            await screen.complete()
            watching = await open_watch(screen.arguments)
            settings = watching.settings
            self.use_keys(settings)
            screen.use(await asyncio.to_thread(preferences.load, settings.state_dir))
            if self._attention is None:
                self._attention = Attention(self.write_terminal, lambda: self.app_focus, settings.notify)
            screen.follow(watching)
            first, *others = screen.arguments.watch
            screen.arguments = replace(screen.arguments, watch=(first,))
            for path in others:
                self.open_tab(replace(screen.arguments, watch=(path,)))

    async def _learn_themes(self) -> None:
        """Read all other themes; a file that is wrong is named and left out."""
        themes, problems = await asyncio.to_thread(lambda: read_themes(theme_folders()))
        for theme in themes.values():
            self.register_theme(theme)
        own = {theme.stem for theme in user_theme_folder().glob("*.toml")}
        self.theme_sources = {name: "yours" if name in own else "agent-tui" for name in themes}
        self.theme_names = (*themes, *(name for name in self.available_themes if name not in themes))
        for problem in problems:
            self.notify(problem.message, severity="warning", markup=False)

    def call_operator(self) -> None:
        going_on = [tab for tab in self.tabs if isinstance(tab, DashboardScreen) and tab.goes_on]
        states = [tab.state for tab in going_on if tab.state is not None]
        if self._attention is not None and states:
            shown = next((tab.state for tab in going_on if tab is self.shown), None)
            self._attention.show(states, shown)

    async def leave(self, code: int = 0) -> None:
        """Close the sessions, then the screen; the terminal gets its title back."""
        if self._attention is not None:
            self._attention.end()
        await super().leave(code)

    def take_over(self, key: str, settings: Settings) -> bool:
        if key == "notify" and self._attention is not None:
            self._attention.ways = settings.notify
        if key.partition(".")[0] == "keys":
            self.use_keys(settings)
        return key.partition(".")[0] in {"notify", "keys"}

    def use_keys(self, settings: Settings) -> None:
        """Let the keys do what these settings say."""
        for notification in use_keys(settings.keys):
            self.notify(notification, severity="warning", markup=False)
        # Textual goes through the whole map at each key: only what is otherwise than by default stands in it.
        changed = [command for command in BINDABLE if command.pressed != command.key]
        keys = {command.name: command.pressed or no_key(command) for command in changed}
        backwards = {f"{name}-back": with_shift(key) or "none" for name, key in keys.items()}
        self.set_keymap({**keys, **{name: key for name, key in backwards.items() if name in BACKWARDS}})
        for tab in self.tabs:
            tab.show_hints()

    def _refresh_notifications(self) -> None:
        """Textual's, for each notification that comes or goes and each screen that comes to the top."""
        super()._refresh_notifications()
        if self._screen_stack:
            *below, screen = self._screen_stack
            self.call_later(toasts.hide, below)
            screen.call_after_refresh(toasts.place, screen)

    def action_suspend_process(self) -> None:
        """Stop the job; refused where nothing would continue it."""
        if has_shell():
            super().action_suspend_process()
        else:
            self.notify(
                "There is no shell to go back to, and nothing would continue the console.", markup=False
            )

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Lend the terminal to another program. Textual's does not take it back where the block raises (issue 6692
        there), and holds `sys.stdout` meanwhile.
        """
        driver = self._driver
        if driver is None or not driver.can_suspend:
            raise SuspendNotSupported("This terminal cannot be lent.")
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

    def write_terminal(self, sequence: str) -> None:
        """Write a control sequence to the terminal, in order with what is drawn."""
        if self._driver is not None:
            self._driver.write(sequence)

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


def _welcome(settings: Settings) -> Welcome:
    """What stands at the beginning of a new session. Reads the list of sessions."""
    from tui_agent.console.looks.welcome import welcome
    from tui_agent.store.session_store import SessionStore

    with suppress(SessionError):
        rows = SessionStore(settings.state_dir).rows(settings.workspace)
        return welcome(settings, [row for row in rows if row.runs and not row.problem])
    return welcome(settings, [])


def _has_few_colours() -> bool:
    """Whether the terminal says that it has sixteen colours and no more."""
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
            return BUILTIN_THEMES[str(name)]
    raise FileNotFoundError(
        f"The theme {DEFAULT_THEME} is missing: the installation is incomplete. Install again."
    )
