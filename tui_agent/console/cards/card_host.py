"""The place of the cards: one at a time, in the order of the questions, each armed after a short delay.

A card never takes a keystroke that was meant for the prompt. So it takes the focus only when nobody has typed for that
long and the prompt holds no draft: somebody may be in the middle of a word. Until then its keys are dim, and it says
how to get to it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from textual.content import Content
from textual.message import Message

from tui_agent.console.cards.card import WAY_BACK, Card
from tui_agent.console.looks.hints import key_line
from tui_agent.console.panes.foot import LOW, Foot
from tui_agent.console.terminal.timers import Quiet
from tui_agent.frontend.commands.registry import shown_key

if TYPE_CHECKING:
    from tui_agent.core.state import RunState
    from tui_agent.frontend.operator import AnyQuestion

GRACE = 0.4
"""Seconds without a key, since the card appeared and since the last key in the prompt."""

QUIET = 1.0
"""The same for a card whose yes and no act at once."""

KEPT = 2
"""Rows of the conversation that stay in view above a card, if the frame has more than `LOW`."""


def enter_hint() -> Content:
    """Say which key leads to the card."""
    return key_line((shown_key("card"), "answer"))


class CardHost(Foot):
    """At most one card. `elsewhere`: the operator is at work in a pane or on another screen; `drafting`: the prompt
    holds a text.
    """

    DEFAULT_CSS = """
    CardHost { height: auto; display: none; }
    CardHost.-open { display: block; }
    """

    @dataclass
    class Settled(Message):
        """A question was answered."""

        answer: Any

    class Left(Message):
        """The keys are no card's any more: it is gone, or the operator left it and it stays open."""

    @dataclass
    class Failed(Message):
        """A card could not be drawn."""

        error: Exception

    class Changed(Message):
        """A card has come, gone, or shows another subject."""

    class Resized(Message):
        """The card takes more rows, or fewer."""

    def __init__(
        self,
        elsewhere: Callable[[], bool],
        drafting: Callable[[], bool],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(id="card-host")
        self._elsewhere = elsewhere
        self._drafting = drafting
        self._clock = clock
        self._shown_at = 0.0
        self._typed_at = float("-inf")
        self._timer: Quiet | None = None
        self._left: Card | None = None
        self._wanted: AnyQuestion | None = None
        self._card: Card | None = None
        self._wish: tuple[Sequence[AnyQuestion], RunState] | None = None
        self._showing = False

    @property
    def card(self) -> Card | None:
        """The card that is shown; not while it is composed, nor when the program ends and takes it apart."""
        return self._card if self._card is not None and self._card.children else None

    @property
    def asking(self) -> bool:
        return self.card is not None

    def request(self, questions: Sequence[AnyQuestion], state: RunState) -> None:
        """Show these soon, in the turn of the screen: its keys wait until a card is there, or gone."""
        if self._card is None and not questions:
            return
        self._wish = questions, state
        if not self._showing:
            self._showing = True
            self.screen.call_next(self._show_wish)

    async def _show_wish(self) -> None:
        try:
            while self._wish is not None:
                (questions, state), self._wish = self._wish, None
                await self.show(questions, state)
        except Exception as error:
            logging.getLogger(__name__).exception("A card could not be drawn")
            self.post_message(self.Failed(error))
        finally:
            self._showing = False

    async def show(self, questions: Sequence[AnyQuestion], state: RunState) -> None:
        """Keep the card whose question is still open; otherwise show the first question."""
        open_questions = [question for question in questions if not question.future.done()]
        wanted, self._wanted = self._wanted, None
        if wanted not in open_questions:
            wanted = None
        if self._card is not None and (
            self._card.question not in open_questions or wanted not in (None, self._card.question)
        ):
            await self._take_away(self._card)
        if self._card is None and open_questions:
            from tui_agent.console.cards.make_card import make_card

            await self._put(make_card(wanted or open_questions[0], state))
        if wanted is not None:
            self.enter(at_once=False)
        if self.card is not None:
            if self.card.update_subject():
                self.post_message(self.Changed())
            self.card.place(open_questions.index(self.card.question) + 1, len(open_questions))

    def bring(self, question: AnyQuestion) -> None:
        """Show the card of this question, because the operator asked for it, and give it the focus."""
        self._wanted = question

    def came_back(self) -> None:
        """The tab is shown again: keys that were typed for another one answer nothing here."""
        if self.card is not None:
            self._shown_at = self._clock()
            self.card.disarm()
            self._settle_later()

    def typed(self) -> None:
        """A key went into the prompt."""
        self._typed_at = self._clock()
        if self.card is not None and not self.card.has_focus_within:
            self.card.hint(enter_hint())
            self._settle_later()

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def enter(self, *, at_once: bool = True) -> None:
        """Give the card the focus, because the operator asked for it; not `at_once`: armed after the grace."""
        card = self.card
        if card is None:
            return
        self._left = None
        if at_once:
            card.arm()
        else:
            card.disarm()
            self._typed_at = self._clock()
            self._settle_later()
        card.hint(WAY_BACK)
        card.entrance().focus()

    def on_card_left(self, event: Card.Left) -> None:
        """The operator went away from the card, which does not take the focus again by itself."""
        event.stop()
        if self.card is not None:
            self._left = self.card
            self.card.hint(enter_hint())
        self.post_message(self.Left())

    def on_card_settled(self, event: Card.Settled) -> None:
        """Settle the question with the answer of its card."""
        event.stop()
        if event.question.settle(event.answer):
            self.post_message(self.Settled(event.answer))

    def settle(self) -> None:
        """Arm the card once the grace is over; take the focus if nobody is writing."""
        self._timer = None
        card = self.card
        if card is None:
            return
        if self._wait() > 0:
            self._settle_later()
            return
        card.arm()
        if not card.wants_focus or card.has_focus_within:
            return
        if card is self._left or self._elsewhere() or self._drafting():
            card.hint(enter_hint())
        else:
            self.enter()

    async def _put(self, card: Card) -> None:
        self._card = card
        card.stood_quiet = self.stood_quiet
        self._shown_at = self._clock()
        if card.wants_focus:
            card.hint(enter_hint())
        await self.mount(card)
        self.post_message(self.Changed())
        self._settle_later()

    async def _take_away(self, card: Card) -> None:
        had_focus = card.has_focus_within
        self._card = self._left = None
        await card.remove()
        self.remove_class("-open")
        self.post_message(self.Changed())
        if had_focus:
            self.post_message(self.Left())

    def fit(self, rows: int, width: int) -> int:
        """Fit the card into `rows`, which it shares with the conversation, and show it. Gives the rows it takes."""
        if self.card is None:
            return 0
        taken = self.card.fit(rows - KEPT if rows > LOW else rows, width)
        self.add_class("-open")
        return taken

    def stood_quiet(self) -> bool:
        """True if nothing was typed for a while in which the card was there, and no draft waits to be typed
        on.
        """
        return not self._drafting() and self._wait(QUIET) <= 0

    def _settle_later(self) -> None:
        if self._timer is None:
            self._timer = Quiet(self, max(0.01, self._wait()), self.settle)

    def _wait(self, quiet: float = GRACE) -> float:
        """Seconds until the card may have the keys, or has been quiet for so long."""
        return max(self._shown_at, self._typed_at) + quiet - self._clock()
