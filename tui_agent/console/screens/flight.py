"""The live screen: the cockpit, cards, the queue, the prompt, status and keys.

It draws the session's state at most so often a second and turns keys into commands; what commands do is the
deck's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui_agent.console import commands
from tui_agent.console.completion import Completions, Suggestion
from tui_agent.console.hints import Hint, KeyHints
from tui_agent.console.prompt import Prompt
from tui_agent.console.screens.cockpit_screen import CockpitScreen, command_bindings, key_hints

if TYPE_CHECKING:
    from pathlib import Path

    from textual.widget import Widget

    from tui_agent.config import Settings
    from tui_agent.console.cards.card import Card
    from tui_agent.console.cards.gate import GateCard
    from tui_agent.console.cards.tray import CardTray
    from tui_agent.console.deck import FlightDeck
    from tui_agent.console.operator import ConsoleOperator
    from tui_agent.console.queued import QueuedMessages
    from tui_agent.sessions.session import Session
    from tui_agent.state import RunState


def flight_hints() -> list[Hint]:
    """The keys of the last line."""
    hints = key_hints(replay=False)
    hints.insert(-3, Hint("^P", "palette", "ctrl+p"))
    return hints


class FlightScreen(CockpitScreen):
    """Live."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *command_bindings(replay=False),
        Binding("f8", "card", "Answer the card", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__("flight")
        self._deck: FlightDeck | None = None
        self._cards_drawn = True
        self._completions = Completions(self._suggest)
        self.prompt = Prompt(self._completions)
        self.tray: CardTray | None = None
        self._queued: QueuedMessages | None = None

    @cached_property
    def operator(self) -> ConsoleOperator:
        """Whom the loop asks."""
        from tui_agent.console.operator import ConsoleOperator

        return ConsoleOperator()

    @property
    def deck(self) -> FlightDeck:
        """What the commands act on."""
        if self._deck is None:
            from tui_agent.console.deck import FlightDeck

            self._deck = FlightDeck(self, self.operator)
        return self._deck

    def compose(self) -> ComposeResult:
        """What the first paint shows: the frame, the prompt, the keys."""
        yield self.frame
        yield self.prompt
        yield KeyHints(flight_hints())

    def on_mount(self) -> None:
        """The prompt has the first focus."""
        self.prompt.focus()

    async def complete(self) -> None:
        """Mount what the first paint went without."""
        from tui_agent.console.cards.tray import CardTray
        from tui_agent.console.queued import QueuedMessages

        self.tray = CardTray(self._prompt_busy, self.app.clock)
        self._queued = QueuedMessages()
        await self.raise_cockpit(self.tray)
        await self.mount(self._queued, self._completions, before=self.prompt)

    async def attach(self, session: Session) -> None:
        """Show this session from now on."""
        await self.deck.attach(session)

    def load_history(self, path: Path) -> None:
        """Earlier prompts from their file."""
        self.prompt.recall.load(path)

    def home(self) -> Widget:
        """The prompt."""
        return self.prompt

    @property
    def settings(self) -> Settings | None:
        """What holds here."""
        return None if self.app.opened is None else self.app.opened.settings

    @property
    def session_id(self) -> str:
        """The live session's."""
        return "" if self.deck.session is None else self.deck.session.id

    async def go_over(
        self, session_id: str, what: Literal["resume", "replay"], changed: frozenset[str] = frozenset()
    ) -> None:
        """Ask first where a run goes on."""
        session = self.deck.session
        if session is None or not session.running or await self.confirm_leaving():
            await super().go_over(session_id, what, changed)

    # --- drawing --------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """The session's state, the queue and the cards."""
        if self._queued is not None:
            self._queued.show(self.deck.queue)
        state = self.deck.state
        if state is None or self.status is None or self.cockpit is None:
            return
        with self.app.batch_update():
            now = time.time()
            self.cockpit.show(state, now)
            self.status.show(state, now)
        self.redrawing.tick(str(state.phase) in {"model", "backoff", "tools"})
        self._draw_cards(state)

    def _draw_cards(self, state: RunState) -> None:
        tray = self.tray
        if tray is None or (tray.card is None and not self.operator.questions):
            return
        if self._cards_drawn:
            self._cards_drawn = False
            self.call_next(self._show_cards, tray, state)
        else:
            self.redraw()

    async def _show_cards(self, tray: CardTray, state: RunState) -> None:
        try:
            await tray.show(self.operator.questions, state)
        finally:
            self._cards_drawn = True

    # --- keys and messages ----------------------------------------------------------------------------------

    async def run_command(self, name: str, argument: str = "") -> None:
        """Esc closes what is open before it interrupts anything."""
        if name != "interrupt" or not self._close_small_things():
            await super().run_command(name, argument)

    def _close_small_things(self) -> bool:
        if self._completions.choice is not None:
            self._completions.offer("")
            return True
        if self.cockpit is not None and self.cockpit.folded and self.cockpit.panes_shown:
            self.cockpit.show_panes(False)
            self.prompt.focus()
            return True
        return False

    def action_card(self) -> None:
        """Go to the card, or back to the prompt."""
        card = None if self.tray is None else self.tray.card
        if card is None or card.has_focus_within:
            self.prompt.focus()
        else:
            self._enter_card()

    def _enter_card(self) -> None:
        if self.cockpit is not None and self.cockpit.folded:
            self.cockpit.show_panes(False)
        if self.tray is not None:
            self.tray.enter()

    async def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """A command, or a message to the agent."""
        if not event.text.startswith("/"):
            await self.deck.submit(event.text.strip())
            return
        try:
            invocation = commands.parse(event.text)
        except commands.UnknownCommandError as error:
            self.say(str(error), "warning")
            self.put_in_prompt(event.text)
        else:
            await self.run_command(invocation.command.name, invocation.argument)

    def on_prompt_typed(self, event: Prompt.Typed) -> None:
        """Somebody writes: no card takes the focus now."""
        self.redrawing.hold()
        if self.tray is not None:
            self.tray.typed()

    def on_prompt_take_back(self, event: Prompt.TakeBack) -> None:
        """The newest queued message, back into the prompt."""
        self.deck.take_back()

    def on_queued_messages_taken_back(self, event: QueuedMessages.TakenBack) -> None:
        """A click on a queued message drops it."""
        self.deck.unqueue(event.id)

    def on_card_settled(self, event: Card.Settled) -> None:
        """The answer goes to the loop."""
        event.question.settle(event.answer)
        self.redraw()

    def on_card_typed_on(self, event: Card.TypedOn) -> None:
        """A character that was meant for the prompt."""
        self.prompt.focus()
        self.prompt.insert(event.character)
        if self.tray is not None:
            self.tray.typed()

    def on_card_tray_emptied(self, event: CardTray.Emptied) -> None:
        """Back to the prompt."""
        self.prompt.focus()

    async def on_gate_card_go(self, event: GateCard.Go) -> None:
        """Send the request that waits."""
        await self.run_command(event.command)

    def on_gate_card_note_changed(self, event: GateCard.NoteChanged) -> None:
        """The note was edited or dropped in its card."""
        self.operator.rewrite_note(event.note)

    def _prompt_busy(self) -> bool:
        """Somebody is at work elsewhere: in the prompt, in a pane, on a screen above."""
        elsewhere = self.focused is not self.prompt and self.focused is not None
        return bool(self.prompt.text) or self.app.screen is not self or elsewhere

    def _suggest(self, typed: str) -> Sequence[Suggestion]:
        return commands.suggestions(self.deck, typed)

    # --- what the deck asks for -----------------------------------------------------------------------------

    def put_in_prompt(self, text: str) -> None:
        """Offer a text for editing, before what stands in the prompt already."""
        self.prompt.put(f"{text}\n{self.prompt.text}" if self.prompt.text else text)
        self.prompt.focus()

    def edit_note(self, note: str) -> None:
        """Open the note of the waiting request."""
        from tui_agent.console.cards.gate import GateCard

        card = None if self.tray is None else self.tray.card
        if isinstance(card, GateCard):
            card.arm()
            card.edit()

    def focus_pane(self, name: str) -> None:
        """Go to a pane, the card or the prompt."""
        if name == "prompt":
            self.prompt.focus()
        elif name == "card":
            self._enter_card()
        else:
            super().focus_pane(name)
