"""What the live screen and the replay share: the frame of the first paint, the cockpit, the commands of both.

A screen over this adds its clock and its own widgets; it says which commands make sense over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from textual.binding import Binding, BindingType
from textual.screen import Screen

from tui_agent.console import commands
from tui_agent.console.frame import PANE_NAMES, Frame
from tui_agent.console.hints import Hint, KeyHints
from tui_agent.console.redraw import Redraw

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui_agent.config import Settings
    from tui_agent.console.cards.tray import CardTray
    from tui_agent.console.cockpit import Cockpit
    from tui_agent.console.panes import StatusLine
    from tui_agent.console.program import ConsoleApp
    from tui_agent.console.screen_deck import ScreenDeck, Severity
    from tui_agent.console.screens.fork import ForkChoice
    from tui_agent.sessions.fork_point import ForkPoint
    from tui_agent.sessions.rewind import RewindPlan
    from tui_agent.sessions.session import Session


def command_bindings(*, replay: bool) -> list[BindingType]:
    """The registry's keys; Esc leaves the first word to whatever is open."""
    return [
        Binding(
            command.key,
            f"command('{command.name}')",
            command.help,
            show=False,
            priority=command.key != "escape",
        )
        for command in commands.COMMANDS
        if command.key and (command.replay or not replay)
    ]


def key_hints(*, replay: bool) -> list[Hint]:
    """The registry's hints, by their weight."""
    return [
        Hint(commands.key_label(command.key), command.hint, command.key)
        for command in commands.COMMANDS
        if command.hint and (command.replay or not replay)
    ]


class CockpitScreen(Screen[None]):
    """A screen around a cockpit. Implements `deck.Surface`."""

    app: ConsoleApp

    DEFAULT_CSS = """
    CockpitScreen { layout: vertical; background: $background; }
    """

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.redrawing = Redraw(self, self.draw)
        self.frame = Frame()
        self.cockpit: Cockpit | None = None
        self.status: StatusLine | None = None

    @property
    def deck(self) -> ScreenDeck:
        """What the commands act on."""
        raise NotImplementedError

    def draw(self) -> None:
        """Draw the state; called at most so often a second."""
        raise NotImplementedError

    def home(self) -> Widget | None:
        """Where the focus is when it is nowhere else."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw soon."""
        self.redrawing.request()

    async def raise_cockpit(self, tray: CardTray | None = None) -> None:
        """Put the panes in the place of the frame of the first paint."""
        from tui_agent.console.cockpit import Cockpit
        from tui_agent.console.panes import StatusLine

        self.status = StatusLine()
        self.cockpit = cockpit = Cockpit(self.size)
        cockpit.display = False
        await self.mount(cockpit, after=self.frame)
        await cockpit.fill_talk(tray)
        with self.app.batch_update():
            cockpit.display = True
            await self.frame.remove()
        await cockpit.fill_column()
        await self.mount(self.status, before=self.query_one(KeyHints))

    # --- commands -------------------------------------------------------------------------------------------

    async def action_command(self, name: str) -> None:
        """A key of the registry."""
        await self.run_command(name)

    async def run_command(self, name: str, argument: str = "") -> None:
        """Do a command by its name; long ones go on in the background."""
        # Each screen binds and offers only the commands that its deck has.
        result = commands.BY_NAME[name].run(cast("commands.Deck", self.deck), argument)
        if result is not None:
            self.run_worker(_awaited(result), group="commands")

    async def on_key_hints_pressed(self, event: KeyHints.Pressed) -> None:
        """A click on a hint is its key."""
        self.app.simulate_key(event.key)

    # --- what the deck asks for -----------------------------------------------------------------------------

    def say(self, text: str, severity: Severity = "information") -> None:
        """A short remark in the corner."""
        self.notify(text, severity=severity, markup=False)

    def put_in_prompt(self, text: str) -> None:
        """Offer a text for editing, where there is a prompt."""

    def edit_note(self, note: str) -> None:
        """Open the note of the waiting request, where one can wait."""

    def themes(self) -> Sequence[str]:
        """Names of our themes and the operator's own."""
        return self.app.theme_names

    def use_theme(self, name: str) -> None:
        """Change the colours."""
        self.app.theme = name

    def focus_pane(self, name: str) -> None:
        """Go to a pane."""
        pane = None if self.cockpit is None else self.cockpit.pane(name)
        if pane is not None:
            # A pane that was folded away can take the focus once it has been laid out.
            self.call_after_refresh(pane.focus)

    def open_jump(self) -> None:
        """Letters over the panes."""
        from tui_agent.console.screens.jump import JumpScreen, targets_of

        self.app.push_screen(JumpScreen(targets_of(self)), self._jumped)

    def _jumped(self, name: str | None) -> None:
        if name is not None:
            self.focus_pane(name)

    def toggle_panes(self) -> None:
        """Show or hide the recovery panes; the focus never stays in what is hidden."""
        if self.cockpit is not None:
            self.cockpit.show_panes(not self.cockpit.panes_shown)
            self.call_after_refresh(self.refocus)

    def refocus(self) -> None:
        """Bring the focus home from what cannot be seen any more."""
        home = self.home()
        if home is not None and (self.focused is None or not self.focused.region.area):
            home.focus()

    def next_pane(self) -> None:
        """The pane after the one that has the focus, round and round."""
        here = self.focused.id if self.focused is not None else None
        names = [name for name in PANE_NAMES if name != "conversation"]
        place = names.index(here) + 1 if here in names else 0
        self.focus_pane(names[place % len(names)])

    def open_help(self) -> None:
        """Keys, commands, panes."""
        from tui_agent.console.screens.help import HelpScreen

        self.app.push_screen(HelpScreen())

    @property
    def settings(self) -> Settings | None:
        """What holds here, once it has been read."""
        raise NotImplementedError

    @property
    def session_id(self) -> str:
        """The session that is open; empty: none."""
        return ""

    async def open_sessions(self) -> None:
        """The saved sessions; one of them may be gone over to."""
        settings = self.settings
        if settings is None:
            return
        from tui_agent.console.screens.sessions import Chosen, SessionsScreen
        from tui_agent.sessions.store import SessionStore

        store = await asyncio.to_thread(SessionStore, settings.state_dir)
        chosen: Chosen | None = await self.app.push_screen_wait(SessionsScreen(store, self.session_id))
        if chosen is not None:
            await self.go_over(chosen.session_id, chosen.what)

    async def choose_fork(self, point: ForkPoint) -> ForkChoice | None:
        """Show the point, and ask what is to go differently from there."""
        from tui_agent.console.screens.fork import ForkScreen

        chosen: ForkChoice | None = await self.app.push_screen_wait(ForkScreen(point))
        return chosen

    async def choose_rewind(self, session: Session, *, undo: bool) -> RewindPlan | None:
        """Offer the points to go back to, with what would change. Raises `SessionError` where there is none."""
        from tui_agent.console.going_back import cursor_of, ways_of
        from tui_agent.console.screens.rewind import RewindScreen

        ways = ways_of(session)
        plan: RewindPlan | None = await self.app.push_screen_wait(
            RewindScreen(session, ways, cursor_of(ways, undo=undo))
        )
        return plan

    async def go_over(
        self, session_id: str, what: Literal["resume", "replay"], changed: frozenset[str] = frozenset()
    ) -> None:
        """Leave this session for another one, in the same terminal; options in `changed` do not hold there."""
        arguments = self.app.arguments
        await self.app.leave_for(
            replace(
                arguments,
                overrides={name: value for name, value in arguments.overrides.items() if name not in changed},
                task=None,
                demo=None,
                step=False,
                replay_at=0,
                resume=session_id if what == "resume" else None,
                replay=session_id if what == "replay" else None,
            )
        )

    async def confirm_leaving(self) -> bool:
        """Ask whether the run that goes on may be closed."""
        from tui_agent.console.screens.leave import LeaveScreen

        leaving: bool | None = await self.app.push_screen_wait(LeaveScreen())
        return bool(leaving)

    async def leave(self) -> None:
        """Close what is open and go."""
        await self.app.leave()


async def _awaited(result: Awaitable[None]) -> None:
    await result
