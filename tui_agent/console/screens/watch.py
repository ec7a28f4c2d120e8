"""The screen over another agent's session while it runs: the replay's panes at the end of a recording that grows.

Earlier events are shown as in a replay; at the end the screen follows. What is read comes from a thread, in order.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from tui_agent.console.looks.command_keys import bindings, key_hints
from tui_agent.console.looks.hints import Hint
from tui_agent.console.screens.followed import FollowedScreen
from tui_agent.console.screens.replay import own_hints
from tui_agent.console.tabs.tab import HostOf, Standing
from tui_agent.console.terminal.timers import once
from tui_agent.frontend.loading import load_modules
from tui_agent.quantities import counted
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.console.cards.card_host import CardHost
    from tui_agent.core import events
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.operator import AnyQuestion, WatchedQuestion
    from tui_agent.frontend.watching import WatchedSession

TICK = 1.0
"""Seconds between two drawings while a call runs, for the times that go on."""
MANY = 500
"""Events from which on they are folded in a thread."""


class WatchScreen(FollowedScreen):
    """A session of another agent, or one of ours in another process."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("watched")

    goes_on = True
    own_options = frozenset({"policy"})

    def __init__(self, arguments: ConsoleArguments, mode: str, host: HostOf) -> None:
        super().__init__(arguments, mode, host)
        self._watching: WatchedSession | None = None
        self._over = threading.Event()
        self._tick: asyncio.TimerHandle | None = None
        self._folding = False
        self._end: RunState | None = None
        """What is shown of a long session until it was read through."""
        self._said_why = ""
        """Why nothing can be shown yet, as it was said last."""
        self._question: WatchedQuestion | None = None
        self._ended: list[str] = []
        """Other sessions that were written lately, and have ended."""

    async def open(self) -> None:
        """The first of the sessions here, each other one that goes on in a tab of its own."""
        await self.complete()
        from tui_agent.frontend.startup import REPLAY_MODULES

        await load_modules((*REPLAY_MODULES, "tui_agent.frontend.watching"))
        from tui_agent.frontend.watching import open_watch

        watching = await open_watch(self.arguments)
        self.app.use_keys(watching.settings)
        self.use(await self.app.remembered(watching.settings))
        self.app.attend(watching.settings)
        self.follow(watching)
        first, *others = self.arguments.watch
        self.arguments = self.arguments._replace(watch=(first,))
        if others:
            self.run_worker(partial(self._look_at_others, others), group="others", thread=True)

    def _look_at_others(self, paths: Sequence[str]) -> None:
        """Tell those that go on from those that have ended."""
        from tui_agent.watch.following import has_ended

        here, *others = (has_ended(Path(path)) for path in (self.arguments.watch[0], *paths))
        self._ended = list(itertools.compress(paths, others))
        go_on = [path for path in paths if path not in self._ended]
        if not self._over.is_set():
            self.app.call_from_thread(self._open_others, go_on, show=here and bool(go_on))

    def _open_others(self, paths: Sequence[str], *, show: bool) -> None:
        """`show`: the session here has ended, and one of the others goes on."""
        several = [self.arguments._replace(watch=(path,)) for path in paths]
        if show:
            self.app.open_tab(several.pop(0))
        self.app.open_tabs_behind(several)
        if self._ended:
            self.say(f"{counted(len(self._ended), 'session')} of the last minutes ended. Press m to open.")

    def action_open_ended(self) -> None:
        """Open those that have ended."""
        ended, self._ended = self._ended, []
        self.app.open_tabs_behind([self.arguments._replace(watch=(path,)) for path in ended])
        if not ended:
            self.say("There are no other sessions that ended in the last minutes.")

    # --- what comes -----------------------------------------------------------------------------------------

    def follow(self, watching: WatchedSession) -> None:
        """Show this session, from now on as it grows."""
        self._watching = watching
        self.attach(watching.recorded, 1.0, 0)

    def begin_to_read(self) -> None:
        self.run_worker(self._read_lines, group="reading", thread=True)

    def on_unmount(self) -> None:
        """Let the thread end."""
        self._over.set()

    def _read_lines(self) -> None:
        watching = self._watching
        if watching is None:
            return
        watched = watching.watched
        watched.on_facts = self._show_end_of
        try:
            for stand in watching.follow(self._over.wait):
                if self._over.is_set():
                    return
                if stand is not None:
                    self.app.call_from_thread(self._grown, stand, watched.events[stand:])
                elif watched.fault is not None and not watched.events:
                    self.app.call_from_thread(self._waits, str(watched.fault))
        except SessionError as fault:
            self.app.call_from_thread(self.say, str(fault), "error")

    def _show_end_of(self, told: Sequence[events.Event]) -> None:
        from tui_agent.frontend.watching import end_of

        if (end := end_of(told)) is not None:
            self.app.call_from_thread(self._show_end, end)

    def _show_end(self, end: RunState) -> None:
        self._end = end
        self.say("The end of a long session. Verdicts and sums follow when all of it was read.")
        self.redraw()

    def _waits(self, why: str) -> None:
        if self._said_why != why:
            self._said_why = why
            self.say(f"Waiting for the session: {why}")

    def _grown(self, stand: int, new: Sequence[events.Event]) -> None:
        """More of the session is known. At the end the screen goes along."""
        player, watching = self.player, self._watching
        if player is None or watching is None:
            return
        along = player.at_end
        player.replay.follow(watching.source, stand, new)
        player.seek(player.replay.length if along else player.position)
        if player.replay.length - player.replay.reached <= MANY:
            player.replay.prepare()
        elif not self._folding:
            self._folding = True
            self.run_worker(self._fold(), group="folding")
        self._look_at_end()
        self.redraw()

    async def _fold(self) -> None:
        await self.read_through()
        self._folding = False
        self._look_at_end()

    # --- drawing --------------------------------------------------------------------------------------------

    def _time_goes_on(self, state: RunState) -> bool:
        """At the end of a run that is under way; one that has said nothing for long may be dead."""
        at_end = self.player is not None and self.player.at_end
        return at_end and self._watching is not None and self._watching.may_run(state)

    def time_of(self, state: RunState) -> float:
        return max(state.at, time.time()) if self._time_goes_on(state) else state.at

    def stands_still(self, state: RunState) -> bool:
        return super().stands_still(state) and not self._time_goes_on(state)

    def draw(self) -> None:
        if self._end is not None and self.player is not None:
            if not (self.player.there and self.player.replay.length):
                self.show_state(self._end)
                return
            self._end = None
        self._look_at_end()
        state = self.state
        if self._tick is None and state is not None and self._time_goes_on(state):
            self._tick = once(self, TICK, self._ticked)
        super().draw()

    def _ticked(self) -> None:
        self._tick = None
        self.redraw()

    # --- the card -------------------------------------------------------------------------------------------

    @property
    def questions(self) -> Sequence[AnyQuestion]:
        return () if self._question is None or self._question.future.done() else (self._question,)

    @property
    def asked(self) -> Sequence[AnyQuestion]:
        return self.questions

    def _look_at_end(self) -> None:
        """The question at the end; further back there is none. Also in a tab that is not shown."""
        player = self.player
        if player is not None and player.there:
            self._ask(player.state.asked if player.at_end else None)

    def _ask(self, asked: events.EscalationRaised | events.ApprovalAsked | None) -> None:
        """Have a card for what the policy would ask now; once it was put away it does not come again."""
        known = self._question
        if asked is None or asked.type != "escalation_raised":
            if known is not None:
                known.future.cancel()
            self._question = None
        elif known is None or (known.asked.question, known.asked.tool) != (asked.question, asked.tool):
            self._question = None if self._watching is None else self._watching.question(asked)

    def on_card_host_settled(self, event: CardHost.Settled) -> None:
        if self._watching is not None and event.answer.text:
            try:
                self._watching.answer(event.answer.text)
            except OSError as error:
                self.say(f"The answer could not be handed to the agent: {error.strerror or error}", "error")
            else:
                self.say("The agent reads the answer with its next step.")

    def on_card_typed_on(self) -> None:
        """There is no prompt."""

    # --- how it stands --------------------------------------------------------------------------------------

    def standing(self) -> Standing:
        state = self.state
        agent = "" if self._watching is None else self._watching.watched.agent
        if state is None:
            return Standing(f"watch {agent}".rstrip(), "◌", "muted")
        title = one_line(f"{agent}: {state.session.title or state.run.task}", 80)
        if self.questions:
            return Standing(title, "●", "operator", len(self.questions))
        return Standing(title, "▶" if state.running else "■", "muted")

    def usual_hints(self) -> Sequence[Hint]:
        return [*key_hints("help", "quit"), *own_hints()[1:3], *key_hints("panes", "jump", "find")]

    def kept(self, seq: int) -> Path:
        """A saved session of the events up to one. Raises `SessionError` if it cannot be written."""
        if self._watching is None:
            raise ValueError("The session is still being read.")
        return self._watching.kept(seq)
