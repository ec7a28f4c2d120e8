"""The replay's screen: the same cockpit over a saved session, with a clock that the operator turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

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
        if recorded.foreign:
            self._surface.say(
                "This is another program's recording: agent-tui sessions import makes it a session first."
            )
            return
        seq = max(1, player.position)
        await self._fork(recorded.path, player.replay.state_at(seq), seq)

    async def export(self, argument: str) -> None:
        """Write the session to a file."""
        if self._screen.recorded is not None:
            await self._export(self._screen.recorded.path, argument)


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

    def told(self, part: float) -> None:
        """How far the session has been read; called from a thread."""
        self.app.call_from_thread(setattr, self, "sub_title", f"reading {part:.0%}")

    async def attach(self, recorded: Recorded, speed: float, position: int) -> None:
        """Show this recording."""
        from tui_agent.console.player import Player

        self.recorded = recorded
        self.player = Player(recorded.replay, position, speed)
        if recorded.replay.dropped_bytes:
            self.say(
                f"The last line was torn ({recorded.replay.dropped_bytes} bytes) and is left out; "
                "all before it is here.",
                "warning",
            )
        if position:
            self.redraw()
        else:
            self.action_play()

    # --- drawing --------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """The state at the position, at the session's own time."""
        player = self.player
        if player is None or self.cockpit is None or self.status is None or self._scrubber is None:
            return
        state, now = player.state, player.now
        with self.app.batch_update():
            self.cockpit.show(state, now)
            self.status.show(state, now)
            self._scrubber.show(player)

    def on_resize(self) -> None:
        """The scrubber is as wide as the screen."""
        self.redraw()

    # --- the clock ------------------------------------------------------------------------------------------

    def _plan(self, wait: float) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self.player is not None and self.player.playing:
            self._timer = self.set_timer(max(0.001, wait), self._advance)
        self.redraw()

    def _advance(self) -> None:
        if self.player is not None:
            self._plan(self.player.advance())

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

        if self.player is None:
            return
        if not self.player.jump(Stop(kind), back=back):
            if kind == "iteration":
                self.action_edge(0 if back else 1)
                return
            self.say(f"No {kind} {'before' if back else 'after'} this.")
        self._plan(0.0)

    def on_scrubber_sought(self, event: Scrubber.Sought) -> None:
        """A place on the line was clicked."""
        if self.player is not None:
            self.player.seek(event.position)
            self._plan(self.player.wait())
