"""The app as a screen knows it: the tabs, each a session on a screen of its own, and the ways to leave them.

A tab is a mode of Textual's: a stack of screens of its own, of which only the shown one is drawn. Its session, model
host, journal and run go on whether it is shown or not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from textual import events
from textual.screen import ModalScreen

from tui_agent.console.looks.splash import FirstFrame
from tui_agent.console.looks.themed_app import ThemedApp
from tui_agent.console.terminal.garbage import PatientCollection
from tui_agent.console.terminal.keys_in_order import KeysInOrder
from tui_agent.console.terminal.timers import once
from tui_agent.frontend.arguments import model_early

if TYPE_CHECKING:
    from textual.notifications import Notify

    from tui_agent.config.settings import Settings
    from tui_agent.config.user_file import UserFile
    from tui_agent.console.tabs.tab import Standing, Tab
    from tui_agent.console.terminal.attention import Attention
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.startup import Opened
    from tui_agent.models.host_start import Begun
    from tui_agent.models.hosted import KeptHost

LOOK = 0.1
"""Seconds after a change in a tab until the row of tabs shows it: changes that come together count once."""


class SessionApp(ThemedApp):
    """An app of open sessions. `exit_text` is what is said on the normal screen afterwards."""

    DEFAULT_MODE = "first-frame"

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self, arguments: ConsoleArguments, made_screen: Callable[[ConsoleArguments, str], Tab]
    ) -> None:
        """`made_screen` makes the screen of a tab, yet without its session, from its arguments and its id."""
        super().__init__()
        self._made_screen = made_screen
        self._attention: Attention | None = None
        self.arguments = arguments
        self.exit_text = ""
        self.resume_text = ""
        """How to go on with what was open, once it is closed."""
        self.tabs: list[Tab] = []
        self._early: list[events.Event] | None = []
        """Input that came before `take_input`; None since then."""
        self._garbage = PatientCollection(self)
        self._numbered = 0
        self._leaving = False
        self._settling: list[asyncio.Task[bool]] = []
        self._ended: list[Opened] = []
        self._scratch: list[Opened] = []
        """With a throwaway folder, in which a fork may still be at work."""
        self._model_host: KeptHost | None = None
        self._begun: Begun | None = None
        """The model host that begins already."""
        self.calls_first = False
        """A first task is sent before the panes are made: importing litellm would compete with them for a second."""
        self._look: asyncio.TimerHandle | None = None
        self._standings: list[Standing | int] = []

    def begin_host(self) -> None:
        """Begin the model host if this start names a model, since importing its client takes longer than all else."""
        arguments = self.arguments
        if self.is_headless or arguments.demo is not None or arguments.resume is not None:
            return
        from tui_agent.models.host_start import begin_early, first_client

        model, api_base, client = model_early(arguments)
        self._begun = begin_early(model, api_base, client)
        self.calls_first = first_client(str(model or ""), api_base, client) == "openai"

    def host_for(self, settings: Settings) -> KeptHost:
        """The model host that all tabs share, as the settings of the first want it."""
        if self._model_host is None:
            from tui_agent.models.choose import command_for
            from tui_agent.models.hosted import KeptHost

            begun, self._begun = self._begun, None
            self._model_host = KeptHost(command=command_for(settings), begun=begun)
        return self._model_host

    def get_default_screen(self) -> FirstFrame:
        """The first frame. Textual waits for the widgets of a mode that it knows before it paints."""
        screen = FirstFrame(with_prompt=self.arguments.is_live)
        self.add_mode(self.DEFAULT_MODE, lambda: screen)
        return screen

    async def open_first_tab(self) -> Tab:
        """Show the first tab, yet without its session, in place of the first frame."""
        screen = self._made_tab(self.arguments, 0)
        first = screen.id or ""
        self.add_mode(first, lambda: screen)
        await self.switch_mode(first)
        await self.remove_mode(self.DEFAULT_MODE)
        return screen

    # --- input ----------------------------------------------------------------------------------------------

    @property
    def takes_input(self) -> bool:
        """There is somewhere for keys to go."""
        return self._early is None

    @contextmanager
    def input_waits(self) -> Iterator[None]:
        """While a screen is made ready here: what is typed meanwhile is meant for it."""
        if self._early is None:
            self._early = []
        try:
            yield
        finally:
            self.take_input()

    def take_input(self) -> None:
        """Act on the input that waits, in order, and from then on on all that comes."""
        self.call_next(self._take_input)

    async def _take_input(self) -> None:
        early, self._early = self._early, None
        for event in early or ():
            await self.on_event(event)

    async def on_event(self, event: events.Event) -> None:
        """Let input wait until there is somewhere for it to go, and garbage until nobody types."""
        if isinstance(event, events.Key):
            self._garbage.key_came()
            if self.tabs:
                self.shown.key_came()
            if not event.is_printable and not event.is_forwarded and isinstance(self.screen, ModalScreen):
                await self._after_typing()
        if self._early is not None and isinstance(event, events.InputEvent | events.Paste):
            self._early.append(event)
        else:
            await super().on_event(event)

    async def _after_typing(self) -> None:
        """A key that a screen takes for itself, or that goes to another field, comes after the text before it."""
        if isinstance(self.focused, KeysInOrder):
            await self.focused.settled()

    # --- tabs -----------------------------------------------------------------------------------------------

    async def start_tab(self, screen: Tab) -> bool:
        """Open the session of a tab. False if that cannot be done, which has been said."""
        from tui_agent.config.errors import ConfigError
        from tui_agent.models.scenario_checks import ScenarioError
        from tui_agent.store.errors import SessionError

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
        await screen.open()

    @property
    def shown(self) -> Tab:
        """The screen of the tab that is shown, below what covers it."""
        return next(tab for tab in self.tabs if tab.id == self.current_mode)

    @property
    def opened(self) -> Opened | None:
        """The session of the tab that is shown."""
        return self.shown.opened

    def open_tab(self, arguments: ConsoleArguments, *, instead_of: Tab | None = None) -> None:
        """Open a session in a tab of its own and show it; then close `instead_of`."""
        self.run_worker(self._open_tab(arguments, instead_of), group="tabs")

    def open_tabs_behind(self, several: Sequence[ConsoleArguments]) -> None:
        """Open sessions in tabs of their own, and go on showing this one."""
        self.run_worker(self._open_tabs_behind(several, self.shown), group="tabs")

    async def _open_tabs_behind(self, several: Sequence[ConsoleArguments], front: Tab) -> None:
        for arguments in several:
            await self._open_tab(arguments, None)
        self.show_tab(front)

    async def _open_tab(self, arguments: ConsoleArguments, instead_of: Tab | None) -> None:
        before = self.shown
        screen = self._made_tab(arguments, self.tabs.index(before) + 1)
        mode = screen.id or ""
        self.add_mode(mode, lambda: screen)
        await self.switch_mode(mode)
        self.tabs_changed()
        if not await self.start_tab(screen):
            if self.shown is screen:
                self.show_tab(before)
            await self._drop_tab(screen)
        elif instead_of is not None:
            await self._drop_tab(instead_of)

    def _made_tab(self, arguments: ConsoleArguments, place: int) -> Tab:
        self._numbered += 1
        screen = self._made_screen(arguments, f"tab-{self._numbered}")
        self.tabs.insert(place, screen)
        return screen

    def show_tab(self, screen: Tab) -> None:
        """Show this tab; what runs in the others goes on."""
        if screen in self.tabs and screen is not self.shown:
            self.switch_mode(screen.id or "")
            self._look_at_tabs()
            screen.came_to_front()

    def close_tab(self, screen: Tab) -> None:
        """Close a tab and its session; without another one, leave."""
        if len(self.tabs) == 1:
            self.run_worker(self.leave(), group="tabs")
        else:
            self.run_worker(self._drop_tab(screen), group="tabs")

    async def _drop_tab(self, screen: Tab) -> None:
        if screen not in self.tabs:
            return
        if screen is self.shown:
            place = self.tabs.index(screen)
            self.show_tab(self.tabs[place - 1 if place else 1])
        self.tabs.remove(screen)
        self.tabs_changed()
        if not await asyncio.shield(self._close(screen)):
            self.notify(self.exit_text, severity="error", markup=False)
        await self.remove_mode(screen.id or "")
        await self.put_away()

    def tabs_changed(self) -> None:
        """Show soon how the tabs stand."""
        if self._look is None and self.is_running:
            self._look = once(self, LOOK, self._look_at_tabs)

    def _look_at_tabs(self) -> None:
        self._look = None
        # What it takes is imported, in another thread, before a tab can be drawn.
        if not self.shown.can_draw:
            return
        try:
            standings = [tab.standing() for tab in self.tabs]
            shown = self.tabs.index(self.shown)
            if [*standings, shown] != self._standings:
                self._standings = [*standings, shown]
                self.shown.show_tabs(standings, shown)
            self._call_operator()
        except Exception as error:
            logging.getLogger(__name__).exception("The row of tabs could not be drawn")
            self.shown.draw_failed(error)

    # --- the operator who looks elsewhere ---------------------------------------------------------------------

    def attend(self, settings: Settings) -> None:
        """From now on say how the tabs stand also to an operator who looks elsewhere."""
        if self._attention is None:
            from tui_agent.console.terminal.attention import Attention

            self._attention = Attention(self.write_terminal, lambda: self.app_focus, settings.notify.console)

    def _call_operator(self) -> None:
        going_on = [tab for tab in self.tabs if tab.goes_on]
        states = [tab.state for tab in going_on if tab.state is not None]
        if self._attention is not None and states:
            shown = next((tab.state for tab in going_on if tab is self.shown), None)
            self._attention.show(states, shown)

    def write_terminal(self, sequence: str) -> None:
        """Write a control sequence to the terminal, in order with what is drawn."""
        if self._driver is not None:
            self._driver.write(sequence)

    # --- remembering and copying ----------------------------------------------------------------------------

    def on_notify(self, event: Notify) -> None:
        """A notification that is repeated stands there once, as the newest."""
        said = event.notification.message
        for shown in [notification for notification in self._notifications if notification.message == said]:
            self._unnotify(shown, refresh=False)

    async def remembered(self, settings: Settings) -> Mapping[str, str]:
        """Read the values that were kept; the form of the panes that the settings name outweighs them."""
        from tui_agent.frontend import preferences

        kept = await asyncio.to_thread(preferences.load, settings.state_dir)
        return {**kept, "panes": settings.console.panes} if settings.console.panes != "auto" else kept

    def remember(self, **values: str) -> None:
        """Keep values for the next start, in the background."""
        from tui_agent.frontend import preferences

        settings = self.shown.settings
        if settings is not None:
            state_dir = settings.state_dir
            self.run_worker(lambda: preferences.save(state_dir, **values), group="remember", thread=True)

    def user_file(self, settings: Settings) -> UserFile:
        """The user's configuration file, as this start reads it."""
        from tui_agent.config.user_file import UserFile

        return UserFile(settings.user_file, self.arguments.overrides)

    def wear(self, settings: Settings) -> None:
        """The colours that the settings of the first session want, if they are known already."""
        if settings.theme in self.theme_names and len(self.tabs) == 1:
            self.theme = settings.theme

    def use_keys(self, settings: Settings) -> None:
        """Let the keys do what these settings say."""
        from tui_agent.console.looks.command_keys import no_key
        from tui_agent.frontend.commands.registry import BACKWARDS, BINDABLE, use_keys, with_shift

        for notification in use_keys(settings.keys):
            self.notify(notification, severity="warning", markup=False)
        # Textual goes through the whole map at each key: only what is otherwise than by default stands in it.
        changed = [command for command in BINDABLE if command.pressed != command.key]
        keys = {command.name: command.pressed or no_key(command) for command in changed}
        backwards = {f"{name}-back": with_shift(key) or "none" for name, key in keys.items()}
        self.set_keymap({**keys, **{name: key for name, key in backwards.items() if name in BACKWARDS}})
        for tab in self.tabs:
            tab.show_hints()

    def take_over(self, key: str, settings: Settings) -> bool:
        """Follow a setting of the console's own at once; False: it is none."""
        if key == "notify.console" and self._attention is not None:
            self._attention.ways = settings.notify.console
        if key.partition(".")[0] == "keys":
            self.use_keys(settings)
        if key == "console.panes":
            for tab in self.tabs:
                tab.use({"panes": settings.console.panes})
        return key.partition(".")[0] in {"notify", "keys", "console"}

    def copy(self, text: str, what: str) -> None:
        """Copy a text, made safe, and say what was copied and how. `what`: "the block", …"""
        self.run_worker(self._copy(text, what), group="copy")

    async def _copy(self, text: str, what: str) -> None:
        from tui_agent.frontend.clipboard import copy

        self.notify(await copy(text, what, self.copy_to_clipboard), timeout=4, markup=False)

    # --- leaving --------------------------------------------------------------------------------------------

    async def leave(self, code: int = 0) -> None:
        """Close all sessions, then the screen."""
        if self._leaving:
            return
        self._leaving = True
        if self._attention is not None:
            self._attention.end()
        if not await self.close_sessions():
            code = 1
        self.exit(return_code=code)

    async def close_sessions(self) -> bool:
        """End all runs and journals in good order. False if the disk refused; `exit_text` says so."""
        await asyncio.gather(*(tab.settle() for tab in self.tabs))
        opened = [(tab.opened, tab.arguments) for tab in self.tabs if tab.opened is not None]
        for tab in self.tabs:
            self._close(tab)
        closed = all(await asyncio.gather(*self._settling))
        if self._model_host is not None:
            await self._model_host.end()
        if self._begun is not None:
            from tui_agent.models import host_start

            await host_start.end(self._begun)
        for each in self._scratch:
            each.clean_up()
        if opened:
            from tui_agent.frontend.resume_text import resume_text

            self.resume_text = resume_text(opened)
        return closed

    def _close(self, screen: Tab) -> asyncio.Task[bool]:
        """Close a tab's session; whoever leaves meanwhile waits for it."""
        opened, screen.opened = screen.opened, None
        task = asyncio.get_running_loop().create_task(self._settle(opened), name=f"close-{screen.id}")
        self._settling.append(task)
        return task

    async def _settle(self, opened: Opened | None) -> bool:
        if opened is None:
            return True
        # Whatever goes wrong is said, and keeps none of the others from being left.
        (fault,) = await asyncio.gather(opened.session.close(), return_exceptions=True)
        if opened.away is not None:
            await opened.away.close()
        self._ended.append(opened)
        if opened.scratch is not None:
            self._scratch.append(opened)
        if fault is not None:
            self.exit_text = f"{self.exit_text}\n{fault}".strip()
        return fault is None

    async def put_away(self) -> None:
        """Bring the list of sessions up to date with those that were closed, let old ones go."""
        closed, self._ended = self._ended, []
        if not closed:
            return
        from tui_agent.store.retention import put_away

        for each in closed:
            settings = each.settings
            await put_away(settings.state_dir, each.session.id, settings.retention_days, time.time())
