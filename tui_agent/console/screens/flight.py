"""The live screen: the cockpit, cards, the queue, the prompt, status and keys.

It draws the session's state at most so often a second and turns keys into commands; what commands do is the
deck's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tui_agent.console import commands
from tui_agent.console.completion import Completions, Suggestion
from tui_agent.console.frame import Frame
from tui_agent.console.hints import Hint, KeyHints
from tui_agent.console.prompt import Prompt
from tui_agent.console.redraw import Redraw

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.console.app import ConsoleApp
    from tui_agent.console.cards.card import Card
    from tui_agent.console.cards.gate import GateCard
    from tui_agent.console.cards.tray import CardTray
    from tui_agent.console.cockpit import Cockpit
    from tui_agent.console.deck import FlightDeck, Severity
    from tui_agent.console.operator import ConsoleOperator
    from tui_agent.console.panes import StatusLine
    from tui_agent.console.queued import QueuedMessages
    from tui_agent.sessions.session import Session
    from tui_agent.state import RunState


def _bindings() -> list[BindingType]:
    keys: list[BindingType] = [
        Binding(
            command.key,
            f"command('{command.name}')",
            command.help,
            show=False,
            priority=command.key != "escape",
        )
        for command in commands.COMMANDS
        if command.key
    ]
    return [*keys, Binding("f8", "card", "Answer the card", show=False, priority=True)]


def key_hints() -> list[Hint]:
    """The keys of the last line, by their weight."""
    hints = [
        Hint(commands.key_label(command.key), command.hint, command.key)
        for command in commands.COMMANDS
        if command.hint
    ]
    hints.insert(-3, Hint("^P", "palette", "ctrl+p"))
    return hints


class FlightScreen(Screen[None]):
    """Live. Implements `deck.Surface`."""

    app: ConsoleApp

    DEFAULT_CSS = """
    FlightScreen {
        layout: vertical;
        background: $background;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = _bindings()

    def __init__(self) -> None:
        super().__init__(id="flight")
        self._redraw = Redraw(self, self._draw)
        self._drawing_cards = False
        self._frame = Frame()
        self._completions = Completions(self._suggest)
        self._prompt = Prompt(self._completions)
        self._cockpit: Cockpit | None = None
        self._tray: CardTray | None = None
        self._queued: QueuedMessages | None = None
        self._status: StatusLine | None = None

    def compose(self) -> ComposeResult:
        """What the first paint shows: the frame, the prompt, the keys."""
        yield self._frame
        yield self._prompt
        yield KeyHints(key_hints())

    def on_mount(self) -> None:
        """The prompt has the first focus."""
        self._prompt.focus()

    async def complete(self) -> None:
        """Mount what the first paint went without."""
        from tui_agent.console.cards.tray import CardTray
        from tui_agent.console.cockpit import Cockpit
        from tui_agent.console.panes import StatusLine
        from tui_agent.console.queued import QueuedMessages

        self._tray = CardTray(self._prompt_busy, self.app.clock)
        self._queued = QueuedMessages()
        self._status = StatusLine()
        self._cockpit = cockpit = Cockpit(self.size)
        cockpit.display = False
        await self.mount(cockpit, self._queued, self._completions, after=self._frame)
        await cockpit.fill(self._tray)
        with self.app.batch_update():
            cockpit.display = True
            await self._frame.remove()
            await self.mount(self._status, after=self._prompt)

    async def attach(self, session: Session) -> None:
        """Show this session from now on."""
        await self.deck.attach(session)

    def load_history(self, path: Path) -> None:
        """Earlier prompts from their file."""
        self._prompt.recall.load(path)

    @cached_property
    def operator(self) -> ConsoleOperator:
        """Whom the loop asks."""
        from tui_agent.console.operator import ConsoleOperator

        return ConsoleOperator()

    @cached_property
    def deck(self) -> FlightDeck:
        """What the commands act on."""
        from tui_agent.console.deck import FlightDeck

        return FlightDeck(self, self.operator)

    # --- drawing --------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draw soon."""
        self._redraw.request()

    def _draw(self) -> None:
        if not self.is_attached:
            return
        if self._queued is not None:
            self._queued.show(self.deck.queue)
        state = self.deck.state
        if state is None or self._status is None or self._cockpit is None:
            return
        with self.app.batch_update():
            now = time.time()
            self._cockpit.show(state, now)
            self._status.show(state, now)
        self._redraw.tick(str(state.phase) in {"model", "backoff", "tools"})
        self._show_cards(state)

    def _show_cards(self, state: RunState) -> None:
        tray = self._tray
        if tray is None or self._drawing_cards or (tray.card is None and not self.operator.questions):
            return
        self._drawing_cards = True
        self.call_next(self._show_cards_now, tray, state)

    async def _show_cards_now(self, tray: CardTray, state: RunState) -> None:
        try:
            await tray.show(self.operator.questions, state)
            from tui_agent.console.cards.gate import GateCard

            if isinstance(tray.card, GateCard):
                await tray.card.refresh_note()
        finally:
            self._drawing_cards = False

    # --- keys and messages ----------------------------------------------------------------------------------

    async def action_command(self, name: str) -> None:
        """A key of the registry."""
        await self.run_command(name)

    async def run_command(self, name: str, argument: str = "") -> None:
        """Do a command by its name; long ones go on in the background."""
        if name == "escape" or (name == "interrupt" and self._close_small_things()):
            return
        result = commands.BY_NAME[name].run(self.deck, argument)
        if result is not None:
            self.run_worker(_awaited(result), group="commands", exit_on_error=True)

    def _close_small_things(self) -> bool:
        """Esc closes what is open in the prompt before it interrupts anything."""
        if self._completions.choice is not None:
            self._completions.offer("")
            return True
        if self._cockpit is not None and self._cockpit.folded and self._cockpit.panes_shown:
            self._cockpit.show_panes(False)
            self._prompt.focus()
            return True
        return False

    def action_card(self) -> None:
        """Go to the card, or back to the prompt."""
        card = None if self._tray is None else self._tray.card
        if card is None or card.has_focus_within:
            self._prompt.focus()
        else:
            self._enter_card()

    def _enter_card(self) -> None:
        if self._cockpit is not None and self._cockpit.folded:
            self._cockpit.show_panes(False)
        if self._tray is not None:
            self._tray.enter()

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
        if self._tray is not None:
            self._tray.typed()

    def on_prompt_take_back(self, event: Prompt.TakeBack) -> None:
        """The newest queued message, back into the prompt."""
        self.deck.take_back()

    def on_queued_messages_taken_back(self, event: QueuedMessages.TakenBack) -> None:
        """A click on a queued message drops it."""
        self.deck.unqueue(event.id)

    async def on_key_hints_pressed(self, event: KeyHints.Pressed) -> None:
        """A click on a hint is its key."""
        self.app.simulate_key(event.key)

    def on_card_settled(self, event: Card.Settled) -> None:
        """The answer goes to the loop."""
        event.question.settle(event.answer)
        self.redraw()

    def on_card_typed_on(self, event: Card.TypedOn) -> None:
        """A character that was meant for the prompt."""
        prompt = self._prompt
        prompt.focus()
        prompt.insert(event.character)
        if self._tray is not None:
            self._tray.typed()

    def on_card_tray_emptied(self, event: CardTray.Emptied) -> None:
        """Back to the prompt."""
        self._prompt.focus()

    async def on_gate_card_go(self, event: GateCard.Go) -> None:
        """Send the request that waits."""
        await self.run_command(event.command)

    def on_gate_card_note_changed(self, event: GateCard.NoteChanged) -> None:
        """The note was edited or dropped in its card."""
        self.operator.rewrite_note(event.note)

    def _prompt_busy(self) -> bool:
        prompt = self._prompt
        return (
            bool(prompt.text)
            or self.app.screen is not self
            or (self.focused is not prompt and self.focused is not None)
        )

    def _suggest(self, typed: str) -> Sequence[Suggestion]:
        return commands.suggestions(self.deck, typed)

    # --- what the deck asks for -----------------------------------------------------------------------------

    def say(self, text: str, severity: Severity = "information") -> None:
        """A short remark in the corner."""
        self.notify(text, severity=severity, markup=False)

    def put_in_prompt(self, text: str) -> None:
        """Offer a text for editing, before what stands in the prompt already."""
        prompt = self._prompt
        prompt.put(f"{text}\n{prompt.text}" if prompt.text else text)
        prompt.focus()

    def edit_note(self, note: str) -> None:
        """Open the note of the waiting request."""
        from tui_agent.console.cards.gate import GateCard

        card = None if self._tray is None else self._tray.card
        if isinstance(card, GateCard):
            card.arm()
            card.edit()

    def themes(self) -> Sequence[str]:
        """Names of our themes and the operator's own."""
        return self.app.theme_names

    def use_theme(self, name: str) -> None:
        """Change the colours."""
        self.app.theme = name

    def focus_pane(self, name: str) -> None:
        """Go to a pane, the card or the prompt."""
        if name == "prompt":
            self._prompt.focus()
        elif name == "card":
            self._enter_card()
        else:
            pane = None if self._cockpit is None else self._cockpit.pane(name)
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
        if self._cockpit is not None:
            self._cockpit.show_panes(not self._cockpit.panes_shown)
            self.call_after_refresh(self._refocus)

    def _refocus(self) -> None:
        if self.focused is None or not self.focused.display or self.focused.region.area == 0:
            self._prompt.focus()

    def next_pane(self) -> None:
        """The pane after the one that has the focus, round and round."""
        here = self.focused.id if self.focused is not None else None
        from tui_agent.console.cockpit import PANE_NAMES

        names = [name for name in PANE_NAMES if name != "conversation"]
        place = names.index(here) + 1 if here in names else 0
        self.focus_pane(names[place % len(names)])

    def open_help(self) -> None:
        """Keys, commands, panes."""
        from tui_agent.console.screens.help import HelpScreen

        self.app.push_screen(HelpScreen())

    async def open_sessions(self) -> None:
        """The saved sessions."""
        await self.app.open_sessions()

    async def confirm_leaving(self) -> bool:
        """Ask whether the run that goes on may be closed."""
        from tui_agent.console.screens.leave import LeaveScreen

        return bool(await self.app.push_screen_wait(LeaveScreen()))

    async def leave(self) -> None:
        """Close the session and go."""
        await self.app.leave()


async def _awaited(result: object) -> None:
    await result  # type: ignore[misc]
