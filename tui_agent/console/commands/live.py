"""The commands over a session that runs. What is asked for before it is open is done in its order as soon as it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported
from textual.binding import Binding

from tui_agent.console.commands.shown import OPENING, ShownCommands
from tui_agent.frontend.commands import session_commands
from tui_agent.frontend.commands.registry import UnknownCommandError, parse, shown_key
from tui_agent.frontend.commands.session_commands import OF_A_SESSION, Answer
from tui_agent.frontend.commands.view import Confirmation, LiveView, RewindChoice, Waiting, Written
from tui_agent.frontend.lines.passages import Row
from tui_agent.store.errors import SessionError

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.config.user_file import UserFile
    from tui_agent.console.cards.gate import GateCard
    from tui_agent.console.prompt.message_queue import MessageQueue
    from tui_agent.console.prompt.own_run import OwnCommand
    from tui_agent.console.prompt.prompt import Prompt
    from tui_agent.console.prompt.suggesting import Suggesting
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.console.tabs.live_session import LiveSession
    from tui_agent.core.events import BackgroundStarted
    from tui_agent.frontend.commands.custom import CustomCommand
    from tui_agent.frontend.operator import ConsoleOperator
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.rewind import RewindPlan
    from tui_agent.session.session import Session


class LiveCommands(LiveView, ShownCommands):
    """What a screen has beside its dashboard comes in by name."""

    def __init__(
        self,
        screen: DashboardScreen,
        live: LiveSession,
        queue: MessageQueue,
        prompt: Prompt,
        own_command: OwnCommand,
        suggesting: Suggesting,
    ) -> None:
        super().__init__(screen)
        self._of_tab = live
        self._queue = queue
        self._prompt = prompt
        self._own_command = own_command
        self._suggesting = suggesting
        self.own = {**self.own, "settings": self._settings, "keys": self._keys, "vim": self._vim}

    @property
    def _live(self) -> Session | None:
        return self._of_tab.session

    @property
    def from_files(self) -> Sequence[CustomCommand]:
        known = self._suggesting.from_files
        return () if known is None else known.commands

    def handler(self, name: str) -> Callable[[str], Answer]:
        return self.own[name] if name in self.own else partial(OF_A_SESSION[name], self)

    @property
    def _opened(self) -> bool:
        return self._live is not None

    def _wait_for_session(self, name: str, argument: str) -> None:
        self._queue.when_open(lambda: self.run(name, argument))

    def run_line(self, line: str) -> None:
        """Carry out a line that begins with a slash; one that names no command of ours may name one from a file."""
        try:
            invocation = parse(line)
        except UnknownCommandError as error:
            otherwise = str(error)
            self._queue.when_open(lambda: self.carry_out(lambda: self._sent_custom(line, otherwise)))
        else:
            self.run(invocation.command.name, invocation.argument)

    async def _sent_custom(self, line: str, otherwise: str) -> str:
        from tui_agent.frontend.commands.custom import send_custom_command

        try:
            return await send_custom_command(self, line, otherwise)
        except ValueError:
            self.put_in_prompt(line)
            raise

    def run_own_command(self, command: str) -> None:
        """Run a command of the operator's own beside the run; what it printed goes along with the next message."""
        session = self._live
        if not command or session is None:
            self.say("Write !COMMAND to run a command of your own.")
        elif self.own_run is not None:
            self.put_in_prompt(f"!{command}")
            self.say(
                f"{shown_key('interrupt')} interrupts the command of yours that runs; then send this one."
            )
        else:
            self.screen.run_worker(self._own_command.carry_out(command, session), group="own-command")

    def send_now(self) -> None:
        if self._live is None:
            self.say("The session is still being opened: the message goes out as soon as it is.")
        else:
            self.carry_out(lambda: session_commands.send_now(self))

    def rewrite_note(self, note: str | None) -> None:
        session_commands.rewrite_note(self, note)

    # --- the session ----------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        if self._live is None:
            raise ValueError(OPENING)
        return self._live

    @property
    def operator(self) -> ConsoleOperator:
        return self._of_tab.operator

    @property
    def own_run(self) -> OwnRun | None:
        return self._own_command.run

    @property
    def user_file(self) -> UserFile:
        return self.app.user_file(self.settings)

    @property
    def history(self) -> Sequence[str]:
        return self._prompt.recall.entries

    @property
    def queue(self) -> Sequence[Waiting]:
        return self._queue.waiting

    def unqueue(self, message_id: str) -> bool:
        return self._queue.drop(message_id)

    # --- the prompt and the note ----------------------------------------------------------------------------

    def put_in_prompt(self, text: str, *, instead: bool = False, restored: bool = False) -> None:
        self._prompt.offer(text, instead=instead, restored=restored)

    async def edit_prompt(self) -> None:
        """The terminal is the editor's while the run goes on."""
        from tui_agent.frontend.editor import EditorError, edit

        prompt = self._prompt
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
        """The card of the request that waits, where it is the one shown."""
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
                message = (
                    text if typed is not None else await session_commands.with_servers(self.session, text)
                )
                await session_commands.submit(self, message, text if typed is None else typed, model)
            except (SessionError, ValueError) as error:
                self.screen.warn(str(error))
                self.put_in_prompt(text if line is None else line)

        await self._queue.send(text, deliver)

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
            there = bool(values[0].strip())
            return Judged("" if there else "Paste or type the key.", there)

        async def take(values: Values) -> str:
            nonlocal given
            given = values[0]
            return ""

        await self.screen.ask(FieldScreen(title, about, "", (), judge, take, masked=True))
        return given

    async def open_new(self, task: str = "", *, in_place: bool = False) -> None:
        screen = self.screen
        arguments = screen.arguments.anew(task, self._live)
        self.app.open_tab(arguments, instead_of=screen if in_place else None)

    # --- the screen's own -----------------------------------------------------------------------------------

    async def _settings(self, _: str) -> str:
        """Show every setting."""
        from tui_agent.console.screens.settings import SettingsScreen

        await self.screen.ask(SettingsScreen(self.user_file, self._apply, self.run))
        return ""

    def _apply(self, key: str, settings: Settings) -> str:
        """Take over a setting that was changed in the user's file; from when on it holds."""
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

    async def _keys(self, _: str) -> str:
        """Show all actions with their keys."""
        from tui_agent.console.screens.keys import KeysScreen

        bindings = type(self.screen).BINDINGS
        taken = frozenset(each.key for each in bindings if isinstance(each, Binding) and not each.id)
        await self.screen.ask(KeysScreen(self.user_file, self._apply, taken))
        return ""

    def _vim(self, wanted: str) -> str:
        """Vim keys in the prompt, or none."""
        if wanted not in {"", "on", "off"}:
            raise ValueError("Write /vim on, or /vim off.")
        prompt = self._prompt
        on = prompt.vim is None if not wanted else wanted == "on"
        prompt.use_vim(on)
        return (
            "Vim keys: Esc leaves insert mode, and does in normal mode what it does without Vim."
            if on
            else "The prompt's own keys."
        )
