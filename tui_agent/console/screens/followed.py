"""The panes of a session that another process writes, as it grows: the replay's screen, which stays at the end.

If the session is a run of a fleet, its questions are answered here, on the cards that every session has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import BindingType

from tui_agent.console.looks.command_keys import bindings, key_hints
from tui_agent.console.looks.hints import Hint
from tui_agent.console.screens.replay import ReplayScreen, own_hints
from tui_agent.console.tabs.tab import Standing
from tui_agent.frontend.lines.glyphs import MODES, OUTCOMES
from tui_agent.frontend.lines.mode import mode_of
from tui_agent.session.player import Player
from tui_agent.store.errors import JournalError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.console.cards.escalation import EscalationCard
    from tui_agent.frontend.operator import AnyQuestion
    from tui_agent.frontend.startup import Recorded

LOOK = 0.25
"""Seconds between two looks at whether the session has grown."""
OF_THE_REPLAY = frozenset({"play", "event", "stop_at", "edge", "speed"})
"""Actions whose keys belong to a card that has the focus."""


class FollowedScreen(ReplayScreen):
    """A session that grows."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("followed")

    _reading = False

    @property
    def session_id(self) -> str:
        return "" if self.recorded is None else self.recorded.path.name

    async def complete(self) -> None:
        await self.load()
        from tui_agent.console.cards.card_host import CardHost

        self.card_host = CardHost(self._works_elsewhere, lambda: False, self.app.clock)
        await super().complete()

    def attach(self, recorded: Recorded, speed: float, position: int) -> None:
        """Show its end. A last line that is being written is no fault."""
        recording = replace(recorded.recording, notices=())
        super().attach(replace(recorded, recording=recording), speed, position or recorded.replay.length)
        self.begin_to_read()

    def begin_to_read(self) -> None:
        """Look again and again whether the session has grown."""
        self.set_interval(LOOK, self._read_on)

    @work(group="following")
    async def _read_on(self) -> None:
        player = self.player
        if player is None or not player.replay.ready or self._reading:
            return
        self._reading = True
        try:
            await self._take_up(player)
        finally:
            self._reading = False

    async def _take_up(self, player: Player) -> None:
        at_end, grew = player.at_end, False
        try:
            if grew := await asyncio.to_thread(player.replay.read_on):
                await asyncio.to_thread(player.replay.prepare)
        except JournalError as damage:
            self.say(str(damage), "warning")
        if grew and at_end and not player.playing:
            player.seek(player.replay.length)
        has_card = self.card_host is not None and self.card_host.card is not None
        if grew or has_card != bool(self.asked):
            self.redraw()

    # --- questions --------------------------------------------------------------------------------------------

    @property
    def asked(self) -> Sequence[AnyQuestion]:
        """The question of this run; the board counts it."""
        return [question for tab in self.app.tabs for question in tab.questions_of(self.session_id)]

    def draw(self) -> None:
        """The state at the position, and the card of what is asked now."""
        super().draw()
        if self.card_host is not None and self.state is not None:
            self.card_host.request(self.asked, self.state)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A card that has the focus has its keys."""
        card = None if self.card_host is None else self.card_host.card
        of_the_replay = action in OF_THE_REPLAY or (action, *parameters) == ("command", "fork")
        if of_the_replay and card is not None and card.has_focus_within:
            return False
        return super().check_action(action, parameters)

    def on_escalation_card_commanded(self, event: EscalationCard.Commanded) -> None:
        self.say("Commands are for the sessions of this console; resume the run to use them.")

    def _works_elsewhere(self) -> bool:
        return self.app.screen is not self

    # --- the tab ----------------------------------------------------------------------------------------------

    def action_board(self) -> None:
        """Show the board, if there is one."""
        board = next((tab for tab in self.app.tabs if tab.is_board), None)
        if board is not None:
            self.app.show_tab(board)

    def usual_hints(self) -> Sequence[Hint]:
        return [Hint("Esc", "board", "escape"), *key_hints("help", "quit"), *own_hints()[1:]]

    def standing(self) -> Standing:
        state = self.state
        if state is None:
            return Standing("opening…", "…", "muted")
        sign = MODES[mode_of(state)]
        if state.run.outcome is not None:
            sign = OUTCOMES[str(state.run.outcome)]
        return Standing(one_line(state.session.title or state.run.task, 80), sign.glyph, sign.role)
