"""The replay's screen: the same cockpit over a saved session, with a clock that the operator turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui_agent.console.commands import COMMANDS
from tui_agent.console.hints import Hint, KeyHints
from tui_agent.console.screen_deck import ScreenDeck
from tui_agent.console.screens.cockpit_screen import CockpitScreen, command_bindings

if TYPE_CHECKING:
    from textual.timer import Timer

    from tui_agent.config import Settings
    from tui_agent.console.boot import Recorded
    from tui_agent.console.panes import ConversationPane
    from tui_agent.console.player import Player
    from tui_agent.console.scrubber import Scrubber
    from tui_agent.sessions.errors import JournalError
    from tui_agent.sessions.recordings import Recording
    from tui_agent.sessions.replay import Stop

READ_WAIT = 0.05
"""Seconds after which a player that ran ahead of the reading looks again."""

HINTS = (
    Hint("Space", "play", "space"),
    Hint("←→", "event", "right"),
    Hint("⇧←→", "iteration", "shift+right"),
    Hint("e", "error", "e"),
    Hint("v", "verdict", "v"),
    Hint("x", "escalation", "x"),
    Hint("[ ]", "speed", "right_square_bracket"),
    Hint("f", "fork", "f"),
    Hint("F1", "help", "f1"),
    Hint("^Q", "quit", "ctrl+q"),
    Hint("F2", "panes", "f2"),
    Hint("^O", "jump", "ctrl+o"),
)


class _LeftError(Exception):
    """The screen was left while the session was being read."""


class ReplayDeck(ScreenDeck):
    """The replay's own commands."""

    def __init__(self, screen: ReplayScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    async def fork(self) -> None:
        """Go on from the event that is shown, in a session of its own."""
        recorded, player = self._screen.recorded, self._screen.player
        if recorded is None or player is None:
            return
        if not recorded.recording.as_recorded:
            self._surface.say(_unforkable(recorded.recording))
            return
        if not player.there:
            self._surface.say("The session is still being read up to here.")
            return
        seq = max(1, player.position)
        await self._fork(recorded.path, player.replay.state_at(seq), seq)

    async def export(self, argument: str) -> None:
        """Write the session to a file."""
        if self._screen.recorded is not None:
            await self._export(self._screen.recorded.path, argument)


def _unforkable(recording: Recording) -> str:
    if recording.judged_by and not recording.foreign:
        return (
            f"This is the session as {recording.judged_by} judges it, which is not what was recorded: "
            "replay it without --policy and fork it there."
        )
    return "This is no saved session: agent-tui sessions import makes it one, which can be forked."


class ReplayScreen(CockpitScreen):
    """A saved session."""

    command_names = frozenset(command.name for command in COMMANDS if command.replay)

    BINDINGS: ClassVar[list[BindingType]] = [
        *command_bindings(replay=True),
        Binding("space", "play", "Play, pause", priority=True),
        Binding("left", "step(-1)", "One event back", priority=True),
        Binding("right", "step(1)", "One event on", priority=True),
        Binding("shift+left", "jump('iteration', True)", "One iteration back", priority=True),
        Binding("shift+right", "jump('iteration')", "One iteration on", priority=True),
        Binding("home", "edge(0)", "Beginning", priority=True),
        Binding("end", "edge(1)", "End", priority=True),
        Binding("left_square_bracket", "speed(-1)", "Slower", priority=True),
        Binding("right_square_bracket", "speed(1)", "Faster", priority=True),
        Binding("e", "jump('error')", "Next error"),
        Binding("E,shift+e", "jump('error', True)", "Error before"),
        Binding("v", "jump('verdict')", "Next verdict"),
        Binding("V,shift+v", "jump('verdict', True)", "Verdict before"),
        Binding("x", "jump('escalation')", "Next escalation"),
        Binding("X,shift+x", "jump('escalation', True)", "Escalation before"),
        Binding("f", "command('fork')", "Fork from here"),
    ]

    def __init__(self) -> None:
        super().__init__("replay")
        self.player: Player | None = None
        self.recorded: Recorded | None = None
        self._scrubber: Scrubber | None = None
        self._timer: Timer | None = None
        self._waiting: tuple[Stop, bool] | None = None
        """A jump that can only be told when more was read."""

    @property
    def deck(self) -> ReplayDeck:
        """What the commands act on."""
        return ReplayDeck(self)

    @property
    def settings(self) -> Settings | None:
        """What holds here."""
        return None if self.recorded is None else self.recorded.settings

    def compose(self) -> ComposeResult:
        """What the first paint shows."""
        yield self.frame
        yield KeyHints(HINTS)

    def home(self) -> ConversationPane | None:
        """The conversation."""
        from tui_agent.console.panes import ConversationPane

        return next(iter(self.query(ConversationPane)), None)

    async def complete(self) -> None:
        """Mount what the first paint went without."""
        from tui_agent.console.scrubber import Scrubber

        self._scrubber = Scrubber()
        await self.raise_cockpit()
        await self.mount(self._scrubber, before=self.status)
        home = self.home()
        if home is not None:
            home.focus()

    def attach(self, recorded: Recorded, speed: float, position: int) -> None:
        """Show this recording. `read_through` is what makes its marks, and far seeks, come."""
        from tui_agent.console.player import Player
        from tui_agent.console.sanitize import one_line

        self.recorded = recorded
        self.player = Player(recorded.replay, position, speed)
        for notice in recorded.recording.notices:
            self.say(one_line(notice), "warning")
        if position:
            self.redraw()
        else:
            self.action_play()

    async def read_through(self) -> None:
        """Fold the whole session through in a thread, telling how far it is; the screen goes on meanwhile."""
        from tui_agent.console.boot import giving_way
        from tui_agent.sessions.errors import JournalError

        player = self.player
        if player is None:
            return
        loop = asyncio.get_running_loop()
        left = False

        def told(_: float) -> None:
            if left:
                raise _LeftError
            loop.call_soon_threadsafe(self._told)

        try:
            with giving_way():
                while not player.replay.ready:
                    try:
                        await asyncio.to_thread(player.replay.prepare, told)
                    except JournalError as damage:
                        self._cut(damage)
        finally:
            left = True
        self._told()

    def _told(self) -> None:
        """More was read."""
        player, waiting = self.player, self._waiting
        if player is None:
            return
        if waiting is not None and player.replay.can_tell(player.position, waiting[0], back=waiting[1]):
            self._jump(*waiting)
        self.redraw()

    def _cut(self, damage: JournalError) -> None:
        """The session ends before a damaged event; that is said once."""
        from tui_agent.console.sanitize import one_line

        player = self.player
        if player is not None:
            player.replay.end_before(damage)
            player.seek(player.position)
            self.say(one_line(f"{damage} What comes before it is shown."), "warning")

    # --- drawing --------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """The state at the position, at the session's own time; the one before where it is still being read."""
        player = self.player
        if player is None or self.cockpit is None or self.status is None or self._scrubber is None:
            return
        if not player.there:
            self._scrubber.show(player)
            return
        from tui_agent.sessions.errors import JournalError

        try:
            state, now = player.state, player.now
        except JournalError as damage:
            self._cut(damage)
            self.redraw()
            return
        with self.app.batch_update():
            self.cockpit.show(state, now)
            self.status.show(state, now)
            self._scrubber.show(player)

    def on_resize(self) -> None:
        """The scrubber is as wide as the screen."""
        self.redraw()

    # --- the clock ------------------------------------------------------------------------------------------

    def _plan(self, wait: float) -> None:
        self._waiting = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self.player is not None and self.player.playing:
            self._timer = self.set_timer(max(0.001, wait), self._advance)
        self.redraw()

    def _advance(self) -> None:
        if self.player is not None:
            self._plan(self.player.advance() if self.player.there else READ_WAIT)

    def action_play(self) -> None:
        """Play or pause."""
        if self.player is not None:
            self.player.toggle()
            self._plan(self.player.wait())

    def action_step(self, events: int) -> None:
        """One event back or on."""
        if self.player is not None:
            self.player.step(events)
            self._plan(0.0)

    def action_edge(self, last: int) -> None:
        """Beginning or end."""
        if self.player is not None:
            self.player.step(self.player.replay.length * (1 if last else -1))
            self._plan(0.0)

    def action_speed(self, step: int) -> None:
        """Slower or faster."""
        if self.player is not None:
            self.player.change_speed(step)
            self._plan(self.player.wait())

    def action_jump(self, kind: str, back: bool = False) -> None:
        """To the next place of a kind."""
        from tui_agent.sessions.replay import Stop

        player = self.player
        if player is None:
            return
        if player.replay.can_tell(player.position, Stop(kind), back=back):
            self._jump(Stop(kind), back)
            return
        player.step(0)
        self._plan(0.0)
        self._waiting = Stop(kind), back

    def _jump(self, stop: Stop, back: bool) -> None:
        if self.player is None:
            return
        if not self.player.jump(stop, back=back):
            if stop == "iteration":
                self.action_edge(0 if back else 1)
                return
            self.say(f"No {stop} {'before' if back else 'after'} this.")
        self._plan(0.0)

    async def go_over(
        self, session_id: str, what: Literal["resume", "replay"], changed: frozenset[str] = frozenset()
    ) -> None:
        """To another session; what was chosen for this recording does not hold there."""
        await super().go_over(session_id, what, changed | {"policy", "run"})

    def on_scrubber_sought(self, event: Scrubber.Sought) -> None:
        """A place on the line was clicked."""
        if self.player is not None:
            self.player.seek(event.position)
            self._plan(self.player.wait())
