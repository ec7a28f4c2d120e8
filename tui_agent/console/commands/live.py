"""The host of commands over a session that runs: what they show and ask on its screen, and what was typed for them.

What is asked for before the session is open is done in its order as soon as it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported
from textual.binding import Binding

from tui_agent.console.commands.host import ConsoleHost
from tui_agent.frontend.commands.dispatch import command_behind, names_command, said_of_command_behind
from tui_agent.frontend.commands.host import Confirmation, RewindChoice, Waiting, Written
from tui_agent.frontend.commands.registry import BY_NAME, shown_key
from tui_agent.frontend.commands.running import rewrite_note, send_now, submit, with_servers
from tui_agent.frontend.commands.shown import ShownSession
from tui_agent.frontend.lines.passages import Row
from tui_agent.quantities import counted
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import invisible

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.config.user_file import UserFile
    from tui_agent.console.cards.gate import GateCard
    from tui_agent.console.screens.live import LiveScreen
    from tui_agent.core.events import BackgroundStarted
    from tui_agent.frontend.commands.custom import CustomCommand
    from tui_agent.frontend.operator import ConsoleOperator
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.rewind import RewindPlan
    from tui_agent.session.session import Session


class LiveHost(ConsoleHost):
    """A screen with a session and a prompt (`PromptHost`)."""

    screen: LiveScreen

    def __init__(self, screen: LiveScreen) -> None:
        live = screen.live
        self._shown_session = ShownSession(lambda: live.session)
        super().__init__(screen, self._shown_session)
        self._held = ""
        """A text that was given back because a command stands behind it."""

    # --- what was typed -------------------------------------------------------------------------------------

    def take(self, text: str) -> None:
        """Carry out what was sent from the prompt: a command, a command of the operator's own, or a message."""
        self.screen.call_later(self._take, text)

    async def _take(self, text: str) -> None:
        screen, commanded = self.screen, names_command(text)
        if self._holds_back(text):
            return
        if screen.dashboard is not None and not commanded:
            screen.dashboard.page_conversation(0)
        if screen.live.asks_a_server(text):
            # A server may take its time.
            screen.run_worker(self.submit(text.strip()), group="commands")
        elif text.startswith("!"):
            screen.queue.when_open(partial(self._run_own_command, text[1:].strip()))
        elif commanded:
            self.run_line(text)
        else:
            screen.look_for_images(text, sent=True)
            await self.submit(text.strip())

    def _holds_back(self, text: str) -> bool:
        """Give a text back once behind which a command stands, and say so: sent with it, it would be words."""
        command = command_behind(text, self.screen.prompt.restored)
        held, self._held = self._held, text if command else ""
        if not command or held == text:
            return False
        self.put_in_prompt(text, instead=True)
        self.screen.warn(said_of_command_behind(command))
        return True

    def _run_own_command(self, command: str) -> None:
        """Run a command of the operator's own beside the run; what it printed goes along with the next message."""
        session = self.screen.live.session
        if not command or session is None:
            self.say("Write !COMMAND to run a command of your own.")
        elif self.own_run is not None:
            self.put_in_prompt(f"!{command}")
            self.say(
                f"{shown_key('interrupt')} interrupts the command of yours that runs; then send this one."
            )
        else:
            own_command = self.screen.parts.own_command
            self.screen.run_worker(own_command.carry_out(command, session), group="own-command")

    def send_now(self) -> None:
        """Send the messages that wait, instead of what runs."""
        if self.screen.live.session is None:
            self.say("The session is still being opened: the message goes out as soon as it is.")
        else:
            self.carry_out(lambda: send_now(self))

    def rewrite_note(self, note: str | None) -> None:
        """Send this note with the next request, or none."""
        rewrite_note(self, note)

    def when_open(self, act: Callable[[], None]) -> None:
        self.screen.queue.when_open(act)

    # --- the session ----------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        return self._shown_session.session

    @property
    def from_files(self) -> Sequence[CustomCommand]:
        known = self.screen.parts.suggesting.from_files
        return () if known is None else known.commands

    @property
    def operator(self) -> ConsoleOperator:
        return self.screen.live.operator

    @property
    def own_run(self) -> OwnRun | None:
        return self.screen.parts.own_command.run

    @property
    def user_file(self) -> UserFile:
        return self.app.user_file(self.shown.settings)

    @property
    def history(self) -> Sequence[str]:
        return self.screen.prompt.recall.entries

    @property
    def queue(self) -> Sequence[Waiting]:
        return self.screen.queue.waiting

    def unqueue(self, message_id: str) -> bool:
        return self.screen.queue.drop(message_id)

    # --- the prompt and the note ----------------------------------------------------------------------------

    def put_in_prompt(self, text: str, *, instead: bool = False, restored: bool = False) -> None:
        self.screen.prompt.offer(text, instead=instead, restored=restored)

    async def edit_prompt(self) -> None:
        """The terminal is the editor's while the run goes on."""
        from tui_agent.frontend.editor import EditorError, edit

        prompt = self.screen.prompt
        typed = asyncio.Event()
        prompt.call_later(typed.set)
        await typed.wait()  # the key runs ahead of characters that wait in the prompt's queue
        try:
            with self.app.suspend():
                text = await edit(prompt.whole_text)
        except SuspendNotSupported:
            raise EditorError("An editor cannot be opened in this terminal.") from None
        else:
            prompt.put(text)
        finally:
            prompt.focus()

    @property
    def _gate_card(self) -> GateCard | None:
        """The card of the request that waits, if it is the one shown."""
        from tui_agent.console.cards.gate import GateCard

        card = None if self.screen.card_host is None else self.screen.card_host.card
        return card if isinstance(card, GateCard) else None

    def edit_note(self) -> bool:
        if (card := self._gate_card) is not None:
            card.arm()
            card.edit()
        return card is not None

    def keep_note(self) -> None:
        card = self._gate_card
        if card is not None and card.edited != card.question.note:
            self.rewrite_note(card.edited)

    # --- what is asked --------------------------------------------------------------------------------------

    async def submit(
        self, text: str, typed: str | None = None, model: str = "", line: str | None = None
    ) -> None:
        """`typed` None: all of the text, which may name what MCP servers offer. `line` None: the text."""

        async def deliver() -> None:
            try:
                message = text if typed is not None else await with_servers(self.session, text)
                await submit(self, message, text if typed is None else typed, model)
            except (SessionError, ValueError) as error:
                self.screen.warn(str(error))
                self.put_in_prompt(text if line is None else line)

        await self.screen.queue.send(text, deliver)

    async def confirm(self, question: Confirmation) -> bool:
        from tui_agent.console.screens.ask import AskScreen

        title, text, yes, no, over = question
        ends = None if over is None else (over, True)
        return await self.screen.ask(AskScreen(title, text, yes, no, no_first=True, over=ends))

    async def may_end_run(self, what: str) -> bool:
        return await self.tabs.may_end([self.screen], what)

    async def choose(
        self, title: str, rows: Sequence[Row], notice: str = "", written: Written | None = None
    ) -> Any:
        from tui_agent.console.screens.pick import PickScreen

        return await self.screen.ask(PickScreen(title, rows, notice, written))

    async def choose_rewind(self, choices: Sequence[RewindChoice]) -> RewindPlan | None:
        from tui_agent.console.screens.rewind import RewindScreen

        return await self.screen.ask(RewindScreen(self.session, choices))

    async def choose_background(self, running: Sequence[BackgroundStarted]) -> str:
        from tui_agent.console.screens.background import BackgroundScreen

        return await self.screen.ask(BackgroundScreen(running, time.time))

    async def show_rules(self, file: UserFile) -> None:
        from tui_agent.console.screens.rules import RulesScreen

        await self.screen.ask(RulesScreen(self.session, file))

    async def show_queue(self) -> None:
        self.screen.focus_pane("queued")

    async def secret(self, title: str, about: str) -> str:
        from tui_agent.console.screens.field import FieldScreen, Judged, Values

        given = ""

        def judge(values: Values) -> Judged:
            there, unseen = bool(values[0].strip()), invisible(values[0])
            said = f"It has {counted(unseen, 'invisible character')}." if unseen else ""
            return Judged(said if there else "Paste or type the key.", there)

        async def take(values: Values) -> str:
            nonlocal given
            given = values[0]
            return ""

        await self.screen.ask(FieldScreen(title, about, "", (), judge, take, masked=True))
        return given

    async def open_new(self, task: str = "", *, in_place: bool = False) -> None:
        screen = self.screen
        arguments = screen.arguments.anew(task, screen.live.session)
        self.app.open_tab(arguments, instead_of=screen if in_place else None)

    # --- the screen's own -----------------------------------------------------------------------------------

    async def show_settings(self) -> None:
        from tui_agent.console.screens.settings import SettingsScreen

        await self.screen.ask(SettingsScreen(self.user_file, self._apply, self.run))

    def _apply(self, key: str, settings: Settings) -> str:
        """Take over a setting that was changed in the user's file; say from when on it holds."""
        match key:
            case "model" if settings.model:
                self.run("model", settings.model)
                return "from the next call of the model on."
            case "approve":
                self.session.set_approve(settings.approve)
                return "from now on."
            case "policy":
                self.session.set_policy(settings.policy)
                return "from the next run on."
        if self.app.take_over(key, settings):
            return "from now on."
        return "from the next run on." if self.session.use(key, settings) else "from the next session on."

    async def show_keys(self) -> None:
        from tui_agent.console.screens.keys import KeysScreen

        bindings = type(self.screen).BINDINGS
        fixed = (each for each in bindings if isinstance(each, Binding) and each.id not in BY_NAME)
        taken = frozenset(key for each in fixed for key in each.key.split(","))
        await self.screen.ask(KeysScreen(self.user_file, self._apply, taken))

    def use_vim(self, on: bool | None) -> bool:
        prompt = self.screen.prompt
        wanted = prompt.vim is None if on is None else on
        prompt.use_vim(wanted)
        return wanted
