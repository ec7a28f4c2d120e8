"""The live screen: the dashboard, cards, the queue, the prompt, status and keys, over a session.

It draws the session's state at most so often a second; what the operator can ask of the session is in its `commands`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.looks.splash import PLACEHOLDER, PromptOutline
from tui_agent.console.prompt.completion import Completions
from tui_agent.console.screens.dashboard_screen import command_bindings, key_hints
from tui_agent.console.screens.session_screen import SessionScreen
from tui_agent.console.terminal.timers import once
from tui_agent.core.names import Phase
from tui_agent.frontend.commands import registry as commands
from tui_agent.frontend.commands.registry import Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.widget import Widget

    from tui_agent.console.cards.card import Card
    from tui_agent.console.cards.card_host import CardHost
    from tui_agent.console.cards.escalation import EscalationCard
    from tui_agent.console.cards.gate import GateCard
    from tui_agent.console.looks.captions import Captions
    from tui_agent.console.panes import ConversationPane
    from tui_agent.console.prompt.own_run import OwnOutput
    from tui_agent.console.prompt.prompt import Prompt
    from tui_agent.console.prompt.queued import QueuedMessages
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.file_index import FileIndex
    from tui_agent.frontend.operator import AnyQuestion
    from tui_agent.models.scenario import Caption
    from tui_agent.session.session import Session


SKIP_KEY = "s"
WAIT_KEYS = frozenset({SKIP_KEY, "c"})
"""In an empty prompt, while a failed call of the model waits for its next try."""

ALONE = 0.6
"""Seconds that such a letter stands alone before it is a key and no text; and a draft before it is looked at."""


def mentioned(typed: str) -> tuple[str, str] | None:
    """What stands before the `@` of the last word, and what is typed after it; None where it has none."""
    before, at, word = typed.rpartition("@")
    if not at or (before and not before[-1].isspace()) or any(char.isspace() for char in word):
        return None
    return before, word


class LiveScreen(SessionScreen):
    """The widgets of a live session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f8", "card", "Answer the card, or skip the wait", show=False, priority=True),
        *command_bindings(replay=False),
        Binding("ctrl+c", "copy_or_interrupt", "Copy, or interrupt", show=False, priority=True),
    ]

    def __init__(self, arguments: ConsoleArguments, mode: str) -> None:
        super().__init__(arguments, mode)
        self._cards_drawn = True
        self._completions = Completions(self._suggest)
        self.card_host: CardHost | None = None
        self._queued: QueuedMessages | None = None
        self._own_output: OwnOutput | None = None
        self._captions: Captions | None = None
        self._files: FileIndex | None = None
        self._reading_files = False
        self._hinted: object = None
        """What the keys of the last line were chosen for."""
        self._lone_letter: asyncio.TimerHandle | None = None
        self._draft_rests: asyncio.TimerHandle | None = None
        self._blind = ""
        """The model of which was said that it sees none of the images in the prompt."""

    @cached_property
    def prompt(self) -> Prompt:
        """Imported only now: it takes a good part of the time to the first paint."""
        from tui_agent.console.prompt.prompt import Prompt

        return Prompt(self._completions)

    def compose(self) -> ComposeResult:
        """What the first paint shows: outlines and the keys; another tab has the prompt at once."""
        yield self.splash
        yield self.prompt if self.app.takes_input else PromptOutline()
        yield KeyHints(self.usual_hints())

    def on_mount(self) -> None:
        """The prompt has the first focus."""
        if self.app.takes_input:
            self.prompt.focus()

    async def raise_prompt(self) -> None:
        outline = self.query_one(PromptOutline)
        with self.app.batch_update():
            await self.mount(self.prompt, after=outline)
            self.set_focus(self.prompt)
            await outline.remove()

    async def complete(self) -> None:
        """Mount what the first paint went without."""
        from tui_agent.console.cards.card_host import CardHost
        from tui_agent.console.prompt.own_run import OwnOutput
        from tui_agent.console.prompt.queued import QueuedMessages

        self.card_host = CardHost(self._works_elsewhere, lambda: bool(self.prompt.text), self.app.clock)
        self._queued = QueuedMessages()
        self._own_output = OwnOutput()
        await self.raise_dashboard(self.card_host)
        await self.mount(self._own_output, self._queued, self._completions, before=self.prompt)

    async def explain_with(self, captions: Sequence[Caption]) -> None:
        """Show these captions of a demo, and hold its requests while one is read."""
        if not captions:
            return
        from tui_agent.console.looks.captions import Captions

        self._captions = Captions(captions)
        await self.mount(self._captions, before=self.prompt)
        self.operator.before_request = self._captions.wait_until_read
        if self.session is not None:
            self.session.subscribe(self._captions.take)

    def load_history(self, path: Path) -> None:
        """Load earlier prompts from their file."""
        self.prompt.recall.load(path)

    def home(self) -> Widget:
        return self.prompt

    # --- tabs -----------------------------------------------------------------------------------------------

    @property
    def unused(self) -> bool:
        return super().unused and not self.prompt.text

    def usual_hints(self) -> Sequence[Hint]:
        """What can be done with the run, or how one is begun; then what can always be done."""
        leads_out = self._leads_out
        if self.state is None or not self.state.running:
            now = [*leads_out, Hint("/", "commands", "/"), Hint("@", "files", "@")]
        elif self._goes_by_itself() and self.running:
            now = [*leads_out, *key_hints("pause", "step")]
        else:
            now = [*key_hints("auto", "step"), *leads_out]
        palette = Hint("^P", "palette", "ctrl+p")
        return [*key_hints("help"), *now, *key_hints("panes", "quit"), palette, *key_hints("jump", "find")]

    @property
    def _leads_out(self) -> list[Hint]:
        """What Esc does now: the first of all that it would do; none where the focus has an Esc of its own, or there
        is nothing to leave.
        """
        # A prompt that is not there yet is not made for this.
        in_prompt = "prompt" in vars(self) and self.prompt.has_focus
        if in_prompt and self.prompt.takes_escape:
            return [Hint("Esc", "normal mode", "escape")]
        under_way = self.running and self.state is not None and self.state.running
        interruptible = (under_way and not self.operator.questions) or self.own_run is not None
        captioned = self._captions is not None and self._captions.shown is not None
        if captioned or (self._queued is not None and self._queued.has_focus):
            word = ""
        elif self._completions.choice is not None:
            word = "close list"
        elif self.dashboard is not None and self.dashboard.covers_conversation:
            word = "back"
        else:
            word = "interrupt" if interruptible else ""
        return [hint._replace(word=word) for hint in key_hints("interrupt") if word]

    def came_to_front(self) -> None:
        super().came_to_front()
        if self.card_host is not None:
            self.card_host.came_back()

    def go_to_question(self, question: AnyQuestion) -> None:
        if self.card_host is not None:
            self.card_host.bring(question)
            self.redraw()

    @property
    def rows_for_notifications(self) -> int:
        asking = self.card_host is not None and self.card_host.card is not None
        below = self.card_host if asking and self.card_host is not None else self.prompt
        return below.region.y

    # --- the keyboard stays with the prompt -----------------------------------------------------------------

    def set_focus(
        self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False
    ) -> None:
        """Give the keys to a widget; to the prompt where Textual would give them to none, as after a report of the
        mouse from outside the screen.
        """
        if widget is None and self.app.app_focus and self.prompt.is_attached:
            widget = self.prompt
        super().set_focus(widget, scroll_visible, from_app_focus)
        self._say_keys()

    def get_focusable_widget_at(self, x: int, y: int) -> Widget | None:
        """What takes the keys when it is clicked: a card or a field. A click in a pane acts there and takes none."""
        from tui_agent.console.panes.pane import LinePane

        widget = super().get_focusable_widget_at(x, y)
        return None if isinstance(widget, LinePane) else widget

    @property
    def _focus_takes_no_text(self) -> bool:
        from tui_agent.console.panes.pane import LinePane
        from tui_agent.console.prompt.queued import QueuedMessages

        return self.focused is None or isinstance(self.focused, LinePane | QueuedMessages)

    def on_key(self, event: events.Key) -> None:
        """A character that means nothing where the focus is begins a message.

        One that still came to the pane where the focus was belongs to the message too, whatever it means there.
        """
        begins = self._focus_takes_no_text and event.key not in self.active_bindings
        late = self.focused is self.prompt and not self.prompt.commanded
        if event.is_printable and (begins or late):
            event.stop()
            self.set_focus(self.prompt)
            self.prompt.insert(event.character or "")

    def on_paste(self, event: events.Paste) -> None:
        """A paste where the focus takes no text goes into the prompt."""
        if self._focus_takes_no_text:
            event.stop()
            self.prompt.focus()
            self.prompt.take_paste(event.text)

    # --- drawing --------------------------------------------------------------------------------------------

    def time_of(self, state: RunState) -> float:
        # A run that an earlier process left open stands still.
        return time.time() if self.running else max(state.at, state.metrics.ended_at or 0.0)

    def draw(self) -> None:
        """The session's state, the queue and the cards."""
        if self._queued is not None:
            self._queued.show(self.queue)
            self.prompt.queue_above = bool(self._queued.waiting)
            self.prompt.typed_always = WAIT_KEYS if self._waits_for_model else frozenset()
            self.prompt.placeholder = self._placeholder
        state = self.state
        if self.dashboard is not None and self.end_seen is not None:
            self.dashboard.show_end(self.end_seen)
        if state is None or self.status is None or self.dashboard is None:
            return
        if self.session is not None:
            settings = self.session.settings
            self.status.next_model, self.status.next_policy = settings.model or "", str(settings.policy)
            self.status.next_approve = str(settings.approve)
        now = self.time_of(state)
        self.status.still = self.status.left_open = still = state.running and not self.running
        self.status.held = bool(self.operator.questions) or self._caption_waits
        with self.app.batch_update():
            self.dashboard.show(state, now, still=still)
            self.status.show(state, now)
        self._say_keys()
        if self._own_output is not None:
            self._own_output.show(self.own_run)
        self.redrawing.tick(self._moving(state))
        self._draw_cards(state)

    def _moving(self, state: RunState) -> Callable[[], None] | None:
        """What moves by itself: while a run waits for the operator the clock alone."""
        from tui_agent.frontend.lines.mode import waits_for_operator

        if state.compacting is not None or self.own_run is not None:
            return self.redrawing.request
        if not self.running:
            return None
        waits = waits_for_operator(state) or self._caption_waits
        return self._move_clock if waits else self.redrawing.request

    @property
    def _caption_waits(self) -> bool:
        return self._captions is not None and self._captions.waits

    def _move_clock(self) -> None:
        if self.status is not None and self.state is not None:
            self.status.show(self.state, self.time_of(self.state))

    @property
    def _placeholder(self) -> str:
        """What a text in the prompt would do now."""
        from tui_agent.console.prompt.prompt import AFTER_INTERRUPT, IN_A_RUN

        if not self.running:
            return PLACEHOLDER
        return AFTER_INTERRUPT if self.interrupted else IN_A_RUN

    def _say_keys(self) -> None:
        """Show the keys that matter now, where they are others than before."""
        state = self.state
        if state is None:
            return
        hinted = state.running, self.running, self._leads_out, state.session.mode
        if hinted != self._hinted:
            self._hinted = hinted
            self.show_hints()

    def _draw_cards(self, state: RunState) -> None:
        card_host = self.card_host
        if card_host is None or (card_host.card is None and not self.operator.questions):
            return
        if self._cards_drawn:
            self._cards_drawn = False
            self.call_next(self._show_cards, card_host, state)
        else:
            self.redraw()

    async def _show_cards(self, card_host: CardHost, state: RunState) -> None:
        try:
            await card_host.show(self.operator.questions, state)
        except Exception as error:
            logging.getLogger(__name__).exception("A card could not be drawn")
            self.draw_failed(error)
        finally:
            self._cards_drawn = True

    # --- keys and messages ----------------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        """Esc: close what is open, else interrupt the call or tool that runs; a question is never withdrawn by it."""
        if self._close_small_things():
            return
        if self.own_run is not None:
            self.own_run.interrupt()
        elif self.operator.questions:
            self.say("A question waits: F8 or Enter goes to it, Ctrl+C interrupts the run.")
        elif self.running:
            self.commands.run("interrupt")

    def action_copy_or_interrupt(self) -> None:
        """Ctrl+C copies what is selected, interrupts what runs, or empties the prompt; it never ends the program."""
        focused = self.focused
        chosen = getattr(focused, "selected_text", "") or self.get_selected_text()
        if chosen:
            self.app.copy(chosen, "the selection")
        elif self.own_run is not None:
            self.own_run.interrupt()
        elif self.running:
            self.commands.run("interrupt")
        elif focused is self.prompt and self.prompt.text.strip():
            self.prompt.take()
            self.say("The prompt is empty: Up brings back what was written.")
        else:
            self.say(f"{commands.shown_key('quit')} leaves the console.")

    @property
    def _gate_card(self) -> GateCard | None:
        """The card of the request that waits, where it is the one shown."""
        from tui_agent.console.cards.gate import GateCard

        card = None if self.card_host is None else self.card_host.card
        return card if isinstance(card, GateCard) else None

    def edit_note(self) -> bool:
        """Open the note in the card of the request that waits; False where no such card is shown."""
        if (card := self._gate_card) is not None:
            card.arm()
            card.edit()
        return card is not None

    def keep_note(self) -> None:
        """Take the note as it stands in the card's open editor."""
        card = self._gate_card
        if card is not None and card.edited != card.question.note:
            self.commands.rewrite_note(card.edited)

    def _close_small_things(self) -> bool:
        if self._completions.choice is not None:
            self._completions.offer("")
            return True
        if self.dashboard is not None and self.dashboard.covers_conversation:
            self.dashboard.show_conversation()
            self.prompt.focus()
            return True
        if self._captions is not None and self._captions.shown is not None:
            self._captions.skip()
            self.say("No more captions. `agent-tui demo --no-captions` begins without them.")
            return True
        return False

    def action_card(self) -> None:
        """Go to the card; where another tab has one, to the inbox; without any, skip the wait of a failed call."""
        card = None if self.card_host is None else self.card_host.card
        if card is None and self.state is not None and self.state.phase is Phase.BACKOFF:
            self.commands.run("skip-wait")
        elif card is None and any(tab.questions for tab in self.app.tabs):
            self.commands.run("inbox")
        elif card is None:
            self.prompt.focus()
        elif not card.has_focus_within:
            self._enter_card()

    def _enter_card(self, *, at_once: bool = True) -> None:
        if self.card_host is not None:
            self.card_host.enter(at_once=at_once)

    async def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """A command, or a message to the agent; either may name what MCP servers offer."""
        if self.dashboard is not None and not commands.names_command(event.text):
            self.dashboard.page_conversation(0)
        if self.names_a_server(event.text):
            # A server may take its time.
            self.run_worker(self.submit(event.text.strip()), group="commands")
            return
        if event.text.startswith("!"):
            own = event.text[1:].strip()
            self.when_open(lambda: self.run_own_command(own))
            return
        if not commands.names_command(event.text):
            self._look_for_images(event.text, sent=True)
            await self.submit(event.text.strip())
            return
        self._run_line(event.text)

    def on_escalation_card_commanded(self, event: EscalationCard.Commanded) -> None:
        self._run_line(event.line)

    def _run_line(self, line: str) -> None:
        """Carry out a line that begins with a slash."""
        try:
            invocation = commands.parse(line)
        except commands.UnknownCommandError as error:
            self.commands.send_custom(line, str(error))
        else:
            self.commands.run(invocation.command.name, invocation.argument)

    def on_prompt_mode_shown(self) -> None:
        self._say_keys()

    def on_completions_toggled(self) -> None:
        self._say_keys()

    def on_prompt_typed(self, event: Prompt.Typed) -> None:
        """Keep cards from taking the focus while somebody types; look at a letter that stays alone."""
        self.redrawing.hold()
        if self.card_host is not None:
            self.card_host.typed()
        if self._lone_letter is not None:
            self._lone_letter.cancel()
            self._lone_letter = None
        if self._draft_rests is not None:
            self._draft_rests.cancel()
        self._draft_rests = once(self, ALONE, self._look_at_draft)
        if self._waits_for_model:
            self._lone_letter = once(self, ALONE, self._take_lone_letter)

    def _look_at_draft(self) -> None:
        self._look_for_images(self.prompt.whole_text)

    def _look_for_images(self, text: str, *, sent: bool = False) -> None:
        """Say which model sees none of the images that a text names; of a draft once, at the latest when it is sent."""
        from tui_agent.store.images import may_name_images

        if self.session is not None and may_name_images(text):
            self._warn_of_images(self.session, text, sent=sent)
        else:
            self._blind = ""

    @work(group="images", exclusive=True)
    async def _warn_of_images(self, session: Session, text: str, *, sent: bool) -> None:
        from tui_agent.runtime.model_call import without_images

        blind = await session.blind_model(text)
        if blind and blind != self._blind:
            self.say(without_images(blind, "gets"), "warning")
        self._blind = "" if sent else blind

    @property
    def _waits_for_model(self) -> bool:
        """A failed call of the model waits for its next try."""
        return self.running and self.state is not None and self.state.phase is Phase.BACKOFF

    def _take_lone_letter(self) -> None:
        letter = self.prompt.text
        if self._waits_for_model and letter in WAIT_KEYS and self.focused is self.prompt:
            self.prompt.put("")
            self._end_wait(skip=letter == SKIP_KEY)

    def on_conversation_pane_wait_ended(self, event: ConversationPane.WaitEnded) -> None:
        """A key of the block that waits."""
        self._end_wait(skip=event.skip)

    def _end_wait(self, *, skip: bool) -> None:
        """Call the model again now, or pause the run."""
        if skip:
            self.commands.run("skip-wait")
        else:
            self.commands.run("interrupt")

    def on_prompt_paged(self, event: Prompt.Paged) -> None:
        if self.dashboard is not None:
            self.dashboard.page_conversation(event.step)

    def focus_queue(self) -> None:
        """Go to the messages that wait, the newest first."""
        if self._queued is not None:
            self._queued.show(self.queue)  # with a message that was sent just now
            self._queued.focus()

    def on_queued_messages_chosen(self, event: QueuedMessages.Chosen) -> None:
        """Edit, drop or send a message that waits."""
        match event.what:
            case "edit":
                self.take_back(event.message)
            case "drop":
                self.unqueue(event.message.id)
            case "send":
                self.commands.send_now()
                self.prompt.focus()

    def on_queued_messages_left(self) -> None:
        self.prompt.focus()

    def on_card_settled(self, event: Card.Settled) -> None:
        """Settle the question with the answer of its card."""
        event.question.settle(event.answer)
        self.redraw()

    def on_card_typed_on(self, event: Card.TypedOn) -> None:
        """A character was typed that was meant for the prompt."""
        self.prompt.focus()
        self.prompt.insert(event.character)
        if self.card_host is not None:
            self.card_host.typed()

    def on_card_left(self, event: Card.Left) -> None:
        """Back to the prompt; the question stays open."""
        self.prompt.focus()
        if self.card_host is not None:
            self.card_host.leave()

    def on_prompt_empty(self, event: Prompt.Empty) -> None:
        """Enter without a text goes to the card, where one waits; else on from a demo's caption."""
        if self.card_host is not None and self.card_host.card is not None:
            self._enter_card(at_once=False)
        elif self._captions is not None:
            self._captions.go_on()
            self.redraw()

    def on_card_host_emptied(self, event: CardHost.Emptied) -> None:
        self.prompt.focus()

    def on_gate_card_go(self, event: GateCard.Go) -> None:
        """Send the request that waits."""
        self.commands.run(event.command)

    def on_gate_card_note_changed(self, event: GateCard.NoteChanged) -> None:
        """The note was edited or dropped in its card."""
        self.commands.rewrite_note(event.note)

    def _works_elsewhere(self) -> bool:
        """Whether the operator is in a pane or on a screen above."""
        return self.app.screen is not self or self.focused not in (None, self.prompt)

    def _suggest(self, typed: str) -> Sequence[Suggestion]:
        found = commands.suggestions(typed, self.commands.values_of) if typed.startswith("/") else []
        if typed.startswith("/") and " " not in typed:
            found += self._own_suggestions(typed)
        mention = mentioned(typed)
        if mention is not None:
            found += self._file_suggestions(*mention)
        if self.server_rows:
            from tui_agent.frontend.commands.server_entries import suggestions

            found += suggestions(typed, self.server_rows)
        return found

    def _own_suggestions(self, typed: str) -> list[Suggestion]:
        """Commands of the operator's own and of the checkout; read anew in the background when a slash is typed."""
        if typed == "/" or self.custom_commands is None:
            self._read_custom_commands()
        return [] if self.custom_commands is None else self.custom_commands.suggestions(typed)

    @work(group="own-commands", exclusive=True)
    async def _read_custom_commands(self) -> None:
        from tui_agent.frontend.commands.custom import read_custom_commands
        from tui_agent.terminal_text import one_line

        known = self.custom_commands
        if self.session is None:
            return
        found = self.custom_commands = await read_custom_commands(self.session)
        # A list that was closed stays closed.
        offered = known is None or self._completions.choice is not None
        if found != known and offered and self.prompt.text.startswith("/"):
            self._completions.offer(self.prompt.text)
        for place, reason in found.bad if known is None or found.bad != known.bad else ():
            self.say(f"The command in {one_line(place)} is left out: {one_line(reason)}.", "warning")

    def _file_suggestions(self, before: str, typed: str) -> list[Suggestion]:
        """Files of the workspace whose names fit; read in the background where they are not known yet."""
        from tui_agent.frontend.file_index import FileIndex
        from tui_agent.terminal_text import one_line

        if self._files is None and self.session is not None:
            self._files = FileIndex(Path(self.session.state.session.workspace))
        if self._files is None:
            return []
        if self._files.stale and not self._reading_files:
            self._reading_files = True
            self._read_files(self._files)
        return [
            Suggestion(
                f'{before}@"{name}" ' if " " in name else f"{before}@{name} ", f"@{one_line(name, 100)}", ""
            )
            for name in self._files.search(typed)
        ]

    @work(group="files")
    async def _read_files(self, files: FileIndex) -> None:
        try:
            await asyncio.to_thread(files.read)
        finally:
            self._reading_files = False
        if mentioned(self.prompt.text) is not None:
            self._completions.offer(self.prompt.text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In Vim's normal mode Ctrl+R does again what was undone."""
        if (
            (action, *parameters) == ("command", "history")
            and self.prompt.commanded
            and self.focused is self.prompt
        ):
            return False
        return super().check_action(action, parameters)

    def put_in_prompt(self, text: str, *, instead: bool = False) -> None:
        """Offer a text for editing, before what stands in the prompt already, or instead of it."""
        draft = "" if instead else self.prompt.whole_text
        self.prompt.put(f"{text}\n{draft}" if draft else text)
        self.prompt.focus()

    def focus_pane(self, name: str) -> None:
        """Go to a pane, the card or the prompt."""
        if name == "prompt":
            self.prompt.focus()
        elif name == "card":
            self._enter_card()
        else:
            super().focus_pane(name)
