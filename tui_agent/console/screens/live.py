"""The live screen: the dashboard, cards, the queue, the prompt, status and keys, over a session.

It draws the session's state at most so often a second, and says what keys do; its parts are in rooms of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

from tui_agent.config.errors import MissingModelError
from tui_agent.console.looks.command_keys import bindings, command_bindings, live_hints
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.console.tabs.tab import Commands, HostOf, Standing
from tui_agent.console.terminal.keys_in_order import is_text
from tui_agent.console.terminal.redraw import CLOCK
from tui_agent.core.names import Phase
from tui_agent.frontend.commands.registry import shown_key
from tui_agent.frontend.opening import HISTORY_FILE, notifications_on

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.console.cards.card import Card
    from tui_agent.console.cards.escalation import EscalationCard
    from tui_agent.console.cards.gate import GateCard
    from tui_agent.console.looks.captions import Captions
    from tui_agent.console.panes import ConversationPane
    from tui_agent.console.prompt.image_warning import ImageWarning
    from tui_agent.console.prompt.message_queue import MessageQueue
    from tui_agent.console.prompt.prompt import Prompt
    from tui_agent.console.prompt.queued import QueuedMessages
    from tui_agent.console.screens.live_parts import LiveParts
    from tui_agent.console.tabs.live_session import LiveSession
    from tui_agent.core.events import Event
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.operator import AnyQuestion
    from tui_agent.frontend.startup import Opened
    from tui_agent.models.scenario import Caption
    from tui_agent.session.session import Session


SKIP_KEY = "s"
WAIT_KEYS = {SKIP_KEY: "skips the wait", "c": "cancels it"}
"""In an empty prompt, while a failed call of the model waits for its next try."""

PAINTED = 0.5
"""Longest time in seconds that reading a session waits for the first look at its end."""

CALLED = 0.3
"""Longest time in seconds that the dashboard waits for the first call of the model."""


class LiveCommands(Commands, Protocol):
    """The commands of a session that runs."""

    def take(self, text: str) -> None:
        """Carry out what was sent from the prompt."""

    def run_line(self, line: str) -> None:
        """Carry out a line that begins with a slash."""

    async def submit(self, text: str) -> None:
        """Send a message."""

    def send_now(self) -> None:
        """Send the messages that wait, instead of what runs."""

    def rewrite_note(self, note: str | None) -> None:
        """Send this note with the next request, or none."""


class LiveScreen(DashboardScreen):
    """A session that runs."""

    BINDINGS: ClassVar[list[BindingType]] = [*command_bindings(replay=False), *bindings("live")]

    def __init__(self, arguments: ConsoleArguments, mode: str, host: HostOf) -> None:
        super().__init__(arguments, mode, host)
        self._made: LiveParts | None = None
        self._captions: Captions | None = None
        self._hinted: object = None
        """The values for which the keys of the last line were chosen."""

    # --- its parts ------------------------------------------------------------------------------------------

    @property
    def parts(self) -> LiveParts:
        if self._made is None:
            from tui_agent.console.screens.live_parts import LiveParts

            self._made = LiveParts.of(self, lambda: self.commands)
        return self._made

    @property
    def live(self) -> LiveSession:
        return self.parts.live

    @property
    def queue(self) -> MessageQueue:
        return self.parts.queue

    @property
    def prompt(self) -> Prompt:
        return self.parts.prompt

    @cached_property
    def commands(self) -> LiveCommands:
        made: LiveCommands = self._commands_of(self)
        return made

    @cached_property
    def _images(self) -> ImageWarning:
        """Imported with a session."""
        from tui_agent.console.prompt.image_warning import ImageWarning

        return ImageWarning(self.live, partial(self.run_worker, group="images", exclusive=True), self.warn)

    def compose(self) -> ComposeResult:
        """The outline of the dashboard, the prompt, and the keys."""
        yield self.splash
        yield self.prompt
        yield KeyHints(live_hints())

    def on_mount(self) -> None:
        """The prompt has the first focus."""
        self.prompt.focus()

    def writes(self) -> bool:
        card = None if self.card_host is None else self.card_host.card
        return bool(self.prompt.text) or (card is not None and card.has_focus_within)

    async def complete(self) -> None:
        """Mount what the first paint went without."""
        await self.load()
        from tui_agent.console.cards.card_host import CardHost

        parts = self.parts
        self.card_host = CardHost(self._works_elsewhere, lambda: bool(parts.prompt.text), self.app.clock)
        await self.raise_dashboard()
        await self.mount(parts.own_output, parts.queued, parts.completions, before=parts.prompt)

    def _works_elsewhere(self) -> bool:
        """True if the operator is in a pane or on a screen above."""
        return self.app.screen is not self or self.focused not in (None, self.prompt)

    async def explain_with(self, captions: Sequence[Caption]) -> None:
        """Show these captions of a demo, and hold its requests while one is read."""
        if not captions:
            return
        from tui_agent.console.looks.captions import Captions

        self._captions = Captions(captions)
        await self.mount(self._captions, before=self.prompt)
        self.live.operator.before_request = self._captions.wait_until_read
        if self.live.session is not None:
            self.live.session.subscribe(self._captions.take)

    # --- the session ----------------------------------------------------------------------------------------

    async def open(self) -> None:
        if self.arguments.task is None or not self.app.calls_first:
            await self.complete()
        opened = self.opened = await self._opened()
        session, settings = opened.session, opened.settings
        self.live.operator.ask_away = None if opened.away is None else opened.away.ask
        self.app.wear(settings)
        self.app.use_keys(settings)
        if self.arguments.demo is None:
            session.mcp.connect()
        await self.attach(session)
        await self.explain_with(opened.captions)
        if opened.task:
            await self._submit_first(session, opened.task)
        if self.dashboard is None:
            await self.complete()
            self.redraw()
        for notification in notifications_on(session, resumed=self.arguments.resume is not None):
            self.warn(notification)
        from tui_agent.console.looks.welcome import welcome_now

        self.app.attend(settings)
        self.app.tabs_changed()
        if settings.vim:
            self.prompt.use_vim(True)
        self.use(await self.app.remembered(settings))
        if self.dashboard is not None:
            self.dashboard.greet(await asyncio.to_thread(welcome_now, settings))
        self.show_event(self.arguments.at_event, self.arguments.at_words)
        await asyncio.to_thread(self.prompt.recall.load, settings.state_dir / HISTORY_FILE)

    async def _submit_first(self, session: Session, task: str) -> None:
        """Send the task that the console was started with, and leave the processor to its first call of the model."""
        called = asyncio.Event()

        def heard(_: Event, state: RunState) -> None:
            if state.phase is Phase.MODEL:
                called.set()

        unsubscribe = session.subscribe(heard)
        try:
            await self.commands.submit(task)
            if self.dashboard is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(called.wait(), CALLED)
        finally:
            unsubscribe()

    async def _opened(self) -> Opened:
        """The session; at a first start once a model was chosen."""
        from tui_agent.frontend.startup import open_live

        services = self.live.operator, self.show_end, self.app.host_for
        try:
            return await open_live(self.arguments, *services)
        except MissingModelError:
            if self.dashboard is None:
                await self.complete()
            from tui_agent.console.screens.first_start import choose_model
            from tui_agent.frontend.commands.model_offers import remember_model

            chosen = await choose_model(self)
            if chosen is None:
                raise
            self.arguments = chosen
            opened = await open_live(chosen, *services)
            if chosen.demo is None:
                await asyncio.to_thread(remember_model, opened.settings)
            return opened

    async def show_end(self, state: RunState) -> None:
        """Show the conversation of the newest runs until the session is open; done when it is painted."""
        self.live.end_seen = state
        self.redraw()
        await self.redrawing.on_screen(PAINTED)

    async def attach(self, session: Session) -> None:
        """Show this session from now on, and do what was asked for before it was open."""
        self.live.open(session)
        await self.queue.opened()

    @property
    def state(self) -> RunState | None:
        return self.live.state

    @property
    def running(self) -> bool:
        return self.live.running

    @property
    def has_open_run(self) -> bool:
        return self.live.has_open_run

    @property
    def settings(self) -> Settings | None:
        return None if self.opened is None else self.opened.settings

    @property
    def session_id(self) -> str:
        return "" if self.live.session is None else self.live.session.id

    @property
    def questions(self) -> Sequence[AnyQuestion]:
        return self.live.questions

    @property
    def unused(self) -> bool:
        state = self.state
        return not (
            self.running or self.queue.waiting or state is None or state.run.number or self.prompt.text
        )

    def standing(self) -> Standing:
        return self.live.standing()

    # --- the keyboard stays with the prompt -----------------------------------------------------------------

    def home(self) -> Widget:
        return self.prompt

    def set_focus(
        self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False
    ) -> None:
        """Give the keys to a widget; to the prompt if Textual would give them to none, as after a report of
        the mouse from outside the screen.
        """
        if widget is None and self.app.app_focus and self.prompt.is_attached:
            widget = self.prompt
        super().set_focus(widget, scroll_visible, from_app_focus)
        self._say_keys()

    def get_focusable_widget_at(self, x: int, y: int) -> Widget | None:
        """The widget that takes the keys when it is clicked: a card or a field. A click in a pane acts there
        and takes none.
        """
        widget = super().get_focusable_widget_at(x, y)
        return None if self._is_pane(widget) else widget

    def _is_pane(self, widget: Widget | None) -> bool:
        return self.dashboard is not None and self.dashboard.has_pane(widget)

    @property
    def _focus_takes_no_text(self) -> bool:
        return self.focused in (None, self.parts.queued) or self._is_pane(self.focused)

    def on_key(self, event: events.Key) -> None:
        """A character that means nothing to the focused widget begins a message.

        One that still came to the pane that had the focus belongs to the message too, whatever it means
        there.
        """
        begins = self._focus_takes_no_text and event.key not in self.active_bindings
        late = self.focused is self.prompt and not self.prompt.commanded
        if is_text(event) and (begins or late):
            event.stop()
            self.set_focus(self.prompt)
            self.prompt.write(event.character or "")

    def on_paste(self, event: events.Paste) -> None:
        """A paste goes into the prompt if the focused widget takes no text."""
        if self._focus_takes_no_text:
            event.stop()
            self.prompt.focus()
            self.prompt.write(event.text)

    def put_in_prompt(self, text: str) -> None:
        self.prompt.offer(text)

    def focus_pane(self, name: str) -> None:
        """Go to a pane, the card, the prompt, or the messages that wait."""
        match name:
            case "prompt":
                self.prompt.focus()
            case "card":
                super().go_to_card()
            case "queued":
                self.parts.queued.show(self.queue.waiting)  # with a message that was sent just now
                self.parts.queued.focus()
            case _:
                super().focus_pane(name)

    # --- drawing --------------------------------------------------------------------------------------------

    def time_of(self, state: RunState) -> float:
        # A run that an earlier process left open stands still.
        return time.time() if self.running else max(state.at, state.metrics.ended_at or 0.0)

    def draw(self) -> None:
        """The session's state, the queue and the cards."""
        if self._made is None:
            return
        parts, live = self.parts, self.live
        if parts.queued.is_attached:
            parts.queued.show(parts.queue.waiting)
            parts.prompt.take_alone(WAIT_KEYS if live.waits_for_model else {})
            parts.prompt.say_what_is_next(running=live.running, interrupted=live.interrupted)
        state = live.state
        if self.dashboard is not None and live.end_seen is not None:
            self.dashboard.show_end(live.end_seen)
        if live.session is None or state is None or self.status is None or self.dashboard is None:
            return
        settings = live.session.settings
        self.status.next_model, self.status.next_policy = settings.model or "", str(settings.policy)
        self.status.next_approve = str(settings.approve)
        parts.prompt.say_approval(str(state.session.approve or settings.approve))
        now = self.time_of(state)
        self.status.still = self.status.left_open = still = state.running and not live.running
        self.status.held = bool(live.operator.questions) or self._caption_waits
        with self.app.batch_update():
            self.dashboard.show(state, now, still=still)
            self.status.show(state, now)
        self._say_keys()
        if parts.own_output.is_attached:
            conversation = self.dashboard.conversation
            parts.own_output.show(parts.own_command.run, conversation.empty_rows if conversation else 0)
        self.redrawing.tick(*self._moving(state))
        if self.card_host is not None:
            self.card_host.request(self.questions, state)

    def _moving(self, state: RunState) -> tuple[Callable[[], None] | None, int]:
        """Parts that move by themselves, and their ticks: while a run waits for the operator the clock alone."""
        if state.compacting is not None or self.parts.own_command.run is not None:
            return self.redrawing.request, 1
        if not self.running:
            return None, 1
        waits = self.live.waits_for_operator or self._caption_waits
        return (self._move_clock, CLOCK) if waits else (self.redrawing.request, 1)

    @property
    def _caption_waits(self) -> bool:
        return self._captions is not None and self._captions.waits

    def _move_clock(self) -> None:
        if self.status is not None and self.state is not None:
            self.status.show(self.state, self.time_of(self.state))

    @property
    def rows_for_notifications(self) -> int:
        asking = self.card_host is not None and self.card_host.card is not None
        below = self.card_host if asking and self.card_host is not None else self.prompt
        return below.region.y

    # --- the keys of the last line --------------------------------------------------------------------------

    def usual_hints(self) -> Sequence[Hint]:
        state = self.state
        if self.prompt.has_focus and self.prompt.takes_escape:
            word = "normal mode"
        else:
            word = "" if self.parts.queued.has_focus else next((word for word, _ in self._ways_out()), "")
        by_itself = self.live.goes_by_itself and self.running
        return live_hints(word, under_way=state is not None and state.running, by_itself=by_itself)

    def _say_keys(self) -> None:
        """Show the keys that matter now, if they are others than before."""
        if self._made is None or self.state is None:
            return
        hinted = self.usual_hints()
        if hinted != self._hinted:
            self._hinted = hinted
            self.show_hints()

    def on_prompt_mode_shown(self) -> None:
        self._say_keys()

    def on_completions_toggled(self) -> None:
        self._say_keys()

    def _ways_out(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Effects of Esc, of which the first possible one counts: its word for the last line ("": none), and
        its function.
        """
        if self.parts.completions.choice is not None:
            yield "close list", partial(self.parts.completions.offer, "")
        if self.dashboard is not None and self.dashboard.covers_conversation:
            yield "back", self._go_back
        if self._captions is not None and self._captions.shown is not None:
            yield "", self._skip_captions
        if (own := self.parts.own_command.run) is not None:
            yield "interrupt", own.interrupt
        if self.questions:
            yield (
                "",
                partial(
                    self.say,
                    f"A question waits: {shown_key('card')} or Enter goes to it, Ctrl+C interrupts the run.",
                ),
            )
        if self.running:
            waits = self.live.operator.waiting_gate is not None
            under_way = self.state is not None and self.state.running and not waits
            yield "interrupt" if under_way else "", partial(self.commands.run, "interrupt")

    def _go_back(self) -> None:
        if self.dashboard is not None:
            self.dashboard.show_conversation()
            self.prompt.focus()

    def _skip_captions(self) -> None:
        if self._captions is not None:
            self._captions.skip()
            self.say("No more captions. `agent-tui demo --no-captions` begins without them.")

    def action_interrupt(self) -> None:
        """Esc: close what is open, else interrupt the call or tool that runs; a question is never withdrawn by it."""
        for _, do in self._ways_out():
            do()
            return

    def action_copy_or_interrupt(self) -> None:
        """Ctrl+C copies what is selected, interrupts what runs, or empties the prompt; it never ends the program."""
        focused = self.focused
        chosen = getattr(focused, "selected_text", "") or self.get_selected_text()
        if chosen:
            self.app.copy(chosen, "the selection")
        elif self.parts.own_command.run is not None:
            self.parts.own_command.run.interrupt()
        elif self.running:
            self.commands.run("interrupt")
        elif focused is self.prompt and self.prompt.text.strip():
            self.prompt.take()
            self.say("The prompt is empty: Up brings back what was written.")
        else:
            self.say(f"{shown_key('quit')} leaves the console.")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In Vim's normal mode Ctrl+R does again what was undone."""
        if (
            (action, *parameters) == ("command", "history")
            and self.prompt.commanded
            and self.focused is self.prompt
        ):
            return False
        return super().check_action(action, parameters)

    # --- the prompt and the messages that wait --------------------------------------------------------------

    def on_prompt_typed(self) -> None:
        """Keep cards from taking the focus while somebody types."""
        self.redrawing.hold()
        if self.card_host is not None:
            self.card_host.typed()

    def on_prompt_rested(self) -> None:
        """Look at what was typed; panes that kept still for it may move."""
        self.look_for_images(self.prompt.whole_text)
        self.redrawing.request()

    def on_prompt_confirmed(self, event: Prompt.Confirmed) -> None:
        """Enter behind a letter that ends a wait; the wait may have ended by itself."""
        if self.live.waits_for_model:
            self._end_wait(skip=event.letter == SKIP_KEY)

    def look_for_images(self, text: str, *, sent: bool = False) -> None:
        """Say once which model would see none of the images that a text names."""
        if self.live.session is not None:
            self._images.look_at(text, sent=sent)

    def on_conversation_pane_wait_ended(self, event: ConversationPane.WaitEnded) -> None:
        """A key of the block that waits."""
        self._end_wait(skip=event.skip)

    def _end_wait(self, *, skip: bool) -> None:
        """Call the model again now, or pause the run."""
        self.commands.run("skip-wait" if skip else "interrupt")

    def on_prompt_paged(self, event: Prompt.Paged) -> None:
        if self.dashboard is not None:
            self.dashboard.page_conversation(event.step)

    def on_prompt_empty(self) -> None:
        """Enter without a text goes to the card, if one waits; else on from a demo's caption."""
        if self.card_host is not None and self.card_host.card is not None:
            self.card_host.enter(at_once=False)
        elif self._captions is not None:
            self._captions.go_on()
            self.redraw()

    def on_queued_messages_chosen(self, event: QueuedMessages.Chosen) -> None:
        """Edit, drop or send a message that waits."""
        match event.what:
            case "edit":
                if self.queue.drop(event.message.id):
                    self.prompt.offer(event.message.text, restored=True)
            case "drop":
                self.queue.drop(event.message.id)
            case "send":
                self.commands.send_now()
                self.prompt.focus()

    def on_queued_messages_left(self) -> None:
        self.prompt.focus()

    # --- cards ----------------------------------------------------------------------------------------------

    def go_to_card(self) -> None:
        """Go to the card; if another tab has one, to the inbox; without any, skip the wait of a failed call."""
        card = None if self.card_host is None else self.card_host.card
        if card is None and self.state is not None and self.state.phase is Phase.BACKOFF:
            self.commands.run("skip-wait")
        elif card is None and any(tab.questions for tab in self.app.tabs):
            self.commands.run("inbox")
        elif card is None:
            self.prompt.focus()
        elif not card.has_focus_within:
            super().go_to_card()

    def on_card_typed_on(self, event: Card.TypedOn) -> None:
        """Text that was typed or pasted at a card was meant for the prompt."""
        self.prompt.focus()
        self.prompt.write(event.text)
        if self.card_host is not None:
            self.card_host.typed()

    def on_escalation_card_commanded(self, event: EscalationCard.Commanded) -> None:
        self.commands.run_line(event.line)

    def on_gate_card_go(self, event: GateCard.Go) -> None:
        """Send the request that waits."""
        self.commands.run(event.command)

    def on_gate_card_note_changed(self, event: GateCard.NoteChanged) -> None:
        """The note was edited or dropped in its card."""
        self.commands.rewrite_note(event.note)
