"""The replay's screen: the dashboard over a saved session, at a position that the operator moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui_agent.config.keys import REPLAY
from tui_agent.console.looks.command_keys import bindings, command_bindings, key_hints
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.console.tabs.tab import HostOf, Standing
from tui_agent.console.terminal.timers import once
from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.registry import BACKWARDS, REPLAY_ACTIONS, with_shift
from tui_agent.frontend.loading import yielding_threads
from tui_agent.session.player import Player
from tui_agent.store.errors import JournalError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.console.panes import ConversationPane
    from tui_agent.console.panes.scrubber import Scrubber
    from tui_agent.core.projections.conversation import Conversation
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.operator import AnyQuestion
    from tui_agent.frontend.startup import Recorded
    from tui_agent.session.replay import StopAt

READ_WAIT = 0.05
"""Seconds after which a player that ran ahead of the reading looks again."""


STOP_WORDS = {"error": "error", "verdict": "verdict", "escalation": "question"}
"""Kinds of places with a key of their own, and their names."""


def own_hints() -> list[Hint]:
    """The replay's own keys, those that are in force."""
    keys = {action.name.removeprefix(REPLAY): action.pressed for action in REPLAY_ACTIONS}
    speed = " ".join(key_label(keys[name]) for name in ("slower", "faster") if keys[name])
    hints = [
        Hint(key_label(keys["play"]), "play", keys["play"]),
        Hint("←→", "event", "right"),
        Hint("⇧←→", "step", "shift+right"),
        *(Hint(key_label(keys[name]), word, keys[name]) for name, word in STOP_WORDS.items()),
        Hint(speed, "speed", keys["faster"] or keys["slower"]),
        Hint(key_label(keys["fork"]), "fork", keys["fork"]),
        *key_hints("find"),
    ]
    return [hint for hint in hints if hint.key]


def _stop_bindings() -> list[BindingType]:
    """The next place of a kind by its key, the one before with Shift."""
    made: list[BindingType] = []
    for action in REPLAY_ACTIONS:
        kind = action.name.removeprefix(REPLAY)
        if f"{action.name}-back" in BACKWARDS:
            made.append(Binding(action.key, f"stop_at('{kind}')", action.help, id=action.name))
            back = with_shift(action.key)
            made.append(Binding(back, f"stop_at('{kind}', True)", action.help, id=f"{action.name}-back"))
    return made


def _shows(state: RunState, seq: int) -> bool:
    """Tell if the block of an event is complete."""
    return any(entry.seq == seq for entry in reversed(state.conversation.entries))


class _LeftError(Exception):
    """The screen was left while the session was being read."""


class ReplayScreen(DashboardScreen):
    """A saved session."""

    replays = True
    goes_on = False
    own_options = frozenset({"policy", "run"})

    BINDINGS: ClassVar[list[BindingType]] = [
        *command_bindings(replay=True),
        *bindings("replay"),
        Binding("space", "play", "Play, pause", priority=True, id="replay-play"),
        Binding("left_square_bracket", "speed(-1)", "Slower", priority=True, id="replay-slower"),
        Binding("right_square_bracket", "speed(1)", "Faster", priority=True, id="replay-faster"),
        *_stop_bindings(),
        Binding("f", "command('fork')", "Fork from here", id="replay-fork"),
    ]

    def __init__(self, arguments: ConsoleArguments, mode: str, host: HostOf) -> None:
        super().__init__(arguments, mode, host)
        self.player: Player | None = None
        self.recorded: Recorded | None = None
        self._scrubber: Scrubber | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: tuple[StopAt, bool] | None = None
        """A jump that waits until more of the session was read."""

    def shown(self) -> tuple[Recorded, Player] | None:
        """The player, with its position; None as long as the session is being opened."""
        return None if self.recorded is None or self.player is None else (self.recorded, self.player)

    @property
    def settings(self) -> Settings | None:
        return None if self.recorded is None else self.recorded.settings

    @property
    def state(self) -> RunState | None:
        """The state at the position; None while the session is read up to there."""
        return self.player.state if self.player is not None and self.player.there else None

    @property
    def asked(self) -> Sequence[AnyQuestion]:
        """The question that can be answered here."""
        return ()

    @property
    def conversation(self) -> Conversation | None:
        """As it is at the end, as far as the session was read."""
        return (
            None
            if self.player is None
            else self.player.replay.state_at(self.player.replay.reached).conversation
        )

    def show_event(self, seq: int, words: Sequence[str]) -> None:
        """Go there; if the block is not complete yet, on to the event that completes it."""
        player = self.player
        if player is None or not seq:
            return
        while not player.at_end and not _shows(player.state, seq):
            player.step(max(1, seq - player.position))
        self._plan(0.0)
        super().show_event(seq, words)

    def time_of(self, state: RunState) -> float:
        return state.at if self.player is None else self.player.now

    def compose(self) -> ComposeResult:
        yield self.splash
        yield KeyHints(self.usual_hints())

    def home(self) -> ConversationPane | None:
        return None if self.dashboard is None else self.dashboard.conversation

    async def open(self) -> None:
        await self.complete()
        from tui_agent.frontend.startup import open_replay

        recorded = await open_replay(self.arguments)
        self.app.use_keys(recorded.settings)
        self.use(await self.app.remembered(recorded.settings))
        self.attach(recorded, self.arguments.replay_speed, self.arguments.at_event)
        self.run_worker(self.read_through(), group="reading")

    async def complete(self) -> None:
        """Mount what the first paint went without."""
        await self.load()
        from tui_agent.console.panes.scrubber import Scrubber

        self._scrubber = Scrubber()
        await self.raise_dashboard()
        await self.mount(self._scrubber, before=self.status)
        self.go_home()

    def attach(self, recorded: Recorded, speed: float, position: int) -> None:
        """Show this recording. Its marks, and far positions, are there once `read_through` has got to them."""
        self.recorded = recorded
        self.player = Player(recorded.replay, position, speed)
        for notice in recorded.recording.notices:
            self.say(one_line(notice), "warning")
        if position:
            self.redraw()
        else:
            self.action_play()

    async def read_through(self) -> None:
        """Fold the whole session in a thread and report how far it is; the screen stays usable meanwhile."""
        player = self.player
        if player is None:
            return
        loop = asyncio.get_running_loop()
        left = False

        def progress(_: float) -> None:
            if left:
                raise _LeftError
            loop.call_soon_threadsafe(self._more_read)

        try:
            with yielding_threads():
                while not player.replay.ready:
                    try:
                        await asyncio.to_thread(player.replay.prepare, progress)
                    except JournalError as damage:
                        self._cut(damage)
                self._more_read()
                from tui_agent.session.side_by_side import SideBySide

                player.presets = SideBySide()
                await asyncio.to_thread(player.presets.judge, player.replay, lambda: not left)
        finally:
            left = True
        self._more_read()

    def _more_read(self) -> None:
        player, waiting = self.player, self._waiting
        if player is None:
            return
        if waiting is not None and player.replay.can_tell(player.position, waiting[0], back=waiting[1]):
            self._jump(*waiting)
        self.redraw()

    def _cut(self, damage: JournalError) -> None:
        """End the session before a damaged event, and say so once."""
        player = self.player
        if player is not None:
            player.replay.end_before(damage)
            player.seek(player.position)
            self.say(one_line(f"{damage} What comes before it is shown."), "warning")

    # --- drawing --------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """The state at the position, at the session's own time; the one before if it is still being read."""
        player = self.player
        if player is None or self.dashboard is None or self.status is None or self._scrubber is None:
            return
        if not player.there:
            self._scrubber.show(player)
            return
        try:
            state = player.state
        except JournalError as damage:
            self._cut(damage)
            self.redraw()
            return
        self.show_state(state)

    def show_state(self, state: RunState) -> None:
        """Draw this state, and the position."""
        player = self.player
        if player is None or self.dashboard is None or self.status is None or self._scrubber is None:
            return
        now = self.time_of(state)
        self.status.still = still = self.stands_still(state)
        with self.app.batch_update():
            self.dashboard.show(state, now, still=still, questions=not self.asked)
            self.status.show(state, now)
            self._scrubber.show(player)

    def stands_still(self, state: RunState) -> bool:
        """Tell if time does not go on."""
        return self.player is None or not self.player.playing

    # --- the clock ------------------------------------------------------------------------------------------

    def _plan(self, wait: float) -> None:
        self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.player is not None and self.player.playing:
            self._timer = once(self, wait, self._advance)
        self.redraw()

    def _advance(self) -> None:
        if self.player is not None:
            self._plan(self.player.advance() if self.player.there else READ_WAIT)

    def action_play(self) -> None:
        if self.player is not None:
            self.player.toggle()
            self._plan(self.player.wait())

    def action_event(self, events: int) -> None:
        """One event back or on."""
        if self.player is not None:
            self.player.step(events)
            self._plan(0.0)

    def action_edge(self, last: int) -> None:
        if self.player is not None:
            self.player.step(self.player.replay.length * (1 if last else -1))
            self._plan(0.0)

    def action_speed(self, step: int) -> None:
        """Slower or faster."""
        if self.player is not None:
            self.player.change_speed(step)
            self._plan(self.player.wait())

    def action_stop_at(self, kind: str, back: bool = False) -> None:
        """Go to the next place of a kind, or the one before."""
        from tui_agent.session.replay import StopAt

        player = self.player
        if player is None:
            return
        if player.replay.can_tell(player.position, StopAt(kind), back=back):
            self._jump(StopAt(kind), back)
            return
        player.step(0)
        self._plan(0.0)
        self._waiting = StopAt(kind), back

    def _jump(self, stop: StopAt, back: bool) -> None:
        if self.player is None:
            return
        if not self.player.jump(stop, back=back):
            if stop == "iteration":
                self.action_edge(0 if back else 1)
                return
            self.say(f"No {STOP_WORDS.get(stop, stop)} {'before' if back else 'after'} this.")
        self._plan(0.0)

    def usual_hints(self) -> Sequence[Hint]:
        own = own_hints()
        return [*own[:2], *key_hints("help", "quit"), *own[2:], *key_hints("panes", "jump")]

    def standing(self) -> Standing:
        # What has not been read yet is not waited for.
        state = self.state
        title = "" if state is None else one_line(state.session.title or state.run.task, 80)
        return Standing(f"replay {title}".rstrip(), "«", "muted")

    def on_scrubber_sought(self, event: Scrubber.Sought) -> None:
        """Go to the place that was clicked."""
        if self.player is not None:
            self.player.seek(event.position)
            self._plan(self.player.wait())
