"""A live session on a screen: its messages, how its run goes on, going back in it; by key, slash command or palette.

Each command calls the session. What is asked for before the session is open is done in order as soon as it is. Widgets
are the live screen's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from textual import work

from tui_agent.console.screens.dashboard_screen import DashboardScreen, Patch
from tui_agent.frontend.commands import session_commands
from tui_agent.frontend.commands.registry import shown_key
from tui_agent.quantities import counted

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.console.prompt.queued import Waiting
    from tui_agent.console.tabs.tab import Standing
    from tui_agent.core.events import Event
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.commands.custom import CustomCommand, CustomCommands
    from tui_agent.frontend.commands.registry import Command
    from tui_agent.frontend.commands.rewind_text import RewindChoice
    from tui_agent.frontend.operator import AnyQuestion, ConsoleOperator
    from tui_agent.frontend.why import Why
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.session import Session
    from tui_agent.tools.mcp.servers import Row


PAINTED = 0.5
"""Longest time in seconds that reading a session waits for the first look at its end."""


_NEXT_TASK = {
    "AUTO": "The next task goes on by itself.",
    "STEP": "In the next task every request waits for you.",
    "PAUSED": "The next task waits before its first request.",
}
"""What a mode means while no run is under way."""

Self = TypeVar("Self", bound="SessionScreen")
Given = ParamSpec("Given")


def on_session(
    act: Callable[Concatenate[Self, Session, Given], object],
) -> Callable[Concatenate[Self, Given], None]:
    """A command that gets the session: done now, or as soon as it is open; what the session refuses is said."""

    @wraps(act)
    def command(screen: Self, /, *given: Given.args, **named: Given.kwargs) -> None:
        def attempt(session: Session) -> None:
            try:
                act(screen, session, *given, **named)
            except ValueError as error:
                screen.say(str(error), "warning")

        if screen.session is None:
            screen.pending.append(Order(attempt))
        else:
            attempt(screen.session)

    return command


@dataclass(frozen=True, eq=False)
class Order:
    """What was asked for before the session was open: a command, or a message."""

    act: Callable[[Session], Awaitable[None] | None]
    text: str | None = None
    """That of a message."""

    @property
    def id(self) -> str:
        """Its own, whatever goes before it."""
        return f"unsent-{id(self)}"


class SessionScreen(DashboardScreen):
    """A session that runs. `session` is None until it is open."""

    def __init__(self, arguments: ConsoleArguments, mode: str) -> None:
        super().__init__(arguments, mode)
        self.session: Session | None = None
        self.end_seen: RunState | None = None
        """The end of a long session, to be looked at while all of it is read."""
        self.pending: list[Order] = []
        """What was asked for before the session was open, in its order."""
        self._interrupted_in = ""
        """The mode that an interrupt of the operator's ended; empty: there was none since."""
        self.custom_commands: CustomCommands | None = None
        """As they were last read; None: never."""
        self.own_run: OwnRun | None = None
        """The operator's own command that runs."""
        """What the operator's own commands printed since the last message."""

    @cached_property
    def operator(self) -> ConsoleOperator:
        """The operator as the runtime asks it."""
        from tui_agent.frontend.operator import ConsoleOperator

        return ConsoleOperator()

    async def show_end(self, state: RunState) -> None:
        """Show the conversation of the newest runs until the session is open; done when it is painted."""
        self.end_seen = state
        self.redraw()
        await self.redrawing.on_screen(PAINTED)

    async def attach(self, session: Session) -> None:
        """Show this session from now on, and do what was asked for before it was open."""
        self.session, self.end_seen = session, None
        self.operator.bind(self.redraw, self._goes_by_itself)
        session.subscribe(self._recorded)
        pending, self.pending = self.pending, []
        for order in pending:
            under_way = order.act(session)
            if under_way is not None:
                await under_way
        self.redraw()

    def _recorded(self, event: Event, state: RunState) -> None:
        if self._goes_by_itself():
            self.operator.open_gate()
        self.redraw()

    @property
    def state(self) -> RunState | None:
        """The session's state; None while it is being opened."""
        return None if self.session is None else self.session.state

    async def gather_why(self, seq: int, call_id: str) -> Why:
        from tui_agent.frontend.why import explain_live

        if self.session is None:
            raise IndexError("the session is still being opened")
        return await explain_live(self.session, seq, call_id)

    @property
    def running(self) -> bool:
        """A run is under way."""
        return self.session is not None and self.session.running

    @property
    def interrupted(self) -> bool:
        """The operator interrupted the run: a message lets it go on at once."""
        return bool(self._interrupted_in)

    def _goes_by_itself(self) -> bool:
        return self.state is None or str(self.state.session.mode) == "AUTO"

    @property
    def settings(self) -> Settings | None:
        return None if self.opened is None else self.opened.settings

    @property
    def session_id(self) -> str:
        """Id of the live session."""
        return "" if self.session is None else self.session.id

    @property
    def questions(self) -> Sequence[AnyQuestion]:
        return self.operator.questions

    @property
    def unused(self) -> bool:
        return not (self.running or self.queue or self.state is None or self.state.run.number)

    def standing(self) -> Standing:
        from tui_agent.console.tabs.tab import Standing
        from tui_agent.frontend.lines.glyphs import FULL, MODES, OUTCOMES
        from tui_agent.frontend.lines.mode import mode_of
        from tui_agent.terminal_text import one_line

        state = self.state
        if state is None:
            return Standing("opening…", "…", "muted")
        sign = MODES["PAUSED" if state.running and not self.running else mode_of(state)]
        if state.run.outcome is not None:
            sign = OUTCOMES[str(state.run.outcome)]
        title = one_line(state.session.title or state.run.task, 80) or "new session"
        if state.session.parent is not None:
            title = f"fork @{state.session.parent.seq} {title}"
        waits = len(self.questions)
        return Standing(title, FULL if waits else sign.glyph, "operator" if waits else sign.role, waits)

    # --- messages -------------------------------------------------------------------------------------------

    @on_session
    @work(group="own-command")
    async def run_own_command(self, session: Session, command: str) -> None:
        """Run the operator's own command; what it printed goes to the model with the next message."""
        from tui_agent.session.own_run import OwnRun

        if not command:
            self.say("Write !COMMAND to run a command of your own.")
            return
        if self.own_run is not None:
            self.put_in_prompt(f"!{command}")
            self.say(
                f"{shown_key('interrupt')} interrupts the command of yours that runs; then send this one."
            )
            return
        run = self.own_run = OwnRun(command, session)
        self.redraw()
        try:
            await run.finish()
        finally:
            self.own_run = None
            self.redraw()

    async def submit(
        self, text: str, typed: str | None = None, *, model: str = "", line: str | None = None
    ) -> None:
        """Start a run, or queue the message for the one under way.

        Images that `typed` names go along: what the operator wrote of the text (None: all). `model` is for this run
        alone. `line` goes back into the prompt where the message cannot be sent (None: its text).
        """
        typed = text if typed is None else typed

        async def send(session: Session) -> None:
            if not await self._submit(session, text, typed, model):
                self.put_in_prompt(text if line is None else line)
            elif self.interrupted and self.running:
                # What was cut short was cut short to say this.
                self._go(self._interrupted_in, session)

        if self.session is None:
            self.pending.append(Order(send, text))
        else:
            await send(self.session)
        self.redraw()

    async def _submit(self, session: Session, text: str, typed: str, model: str = "") -> bool:
        """Submit it; False, with the reason said, for a message that cannot be sent."""
        from tui_agent.store.errors import SessionError

        try:
            await session.submit(text, typed, model)
        except SessionError as error:
            self.say(str(error), "warning")
            return False
        return True

    @work(group="commands")
    async def send_now(self) -> None:
        """Cut short what runs, and go on with the messages that wait."""
        session = self.session
        if session is None:
            self.say("The session is still being opened: the message goes out as soon as it is.")
            return
        mode = str(session.state.session.mode)
        if self.operator.waiting_gate is None:
            await session.interrupt()
        self._go("AUTO" if mode == "PAUSED" else mode, session)

    @on_session
    @work(group="commands")
    async def send_own_command(self, session: Session, line: str, otherwise: str) -> None:
        """Send the text of a command of the operator's or the checkout's; `otherwise` is said where there is none."""
        found = (await self.read_custom_commands(session)).named(line)
        if found is None:
            self.say(otherwise, "warning")
            self.put_in_prompt(line)
            return
        command, arguments = found
        if not await self._agreed(command, session):
            self.put_in_prompt(line)
            return
        if command.model:
            self.say(f"/{command.name} goes to {command.model}, for this run alone.")
        check = await command.check_model(session)
        if check.message:
            self.say(check.message, "warning")
        if check.usable:
            # What a checkout wrote names no images.
            typed = None if command.personal else arguments
            await self.submit(command.expanded(arguments), typed, model=command.model, line=line)
        else:
            self.put_in_prompt(line)

    async def read_custom_commands(self, session: Session) -> CustomCommands:
        """The commands that there are now."""
        from tui_agent.config.settings import user_config_file
        from tui_agent.frontend.commands.custom import find_custom_commands

        workspace = Path(session.state.session.workspace)
        self.custom_commands = await asyncio.to_thread(
            find_custom_commands, workspace, user_config_file().parent
        )
        return self.custom_commands

    async def _agreed(self, command: CustomCommand, session: Session) -> bool:
        """Whether the operator has agreed to a command of the checkout as it stands now; asked once for each text."""
        from tui_agent.console.screens.ask import AskScreen
        from tui_agent.terminal_text import one_line, reveal

        if await command.agreed_to(session):
            return True
        question = AskScreen(
            f"/{command.name} comes with this checkout",
            f"Not you but whoever wrote this repository wrote {one_line(command.place)}. It would send this text as "
            f"your message{command.to_model}, and run nothing by itself:\n\n{reveal(command.body)}",
            ("y", "send it, now and from now on"),
            ("n", "do not send it"),
            no_first=True,
        )
        if not await self.ask(question):
            return False
        await command.agree(session)
        return True

    @property
    def queue(self) -> list[Waiting]:
        """Messages that were not delivered yet, the oldest first."""
        from tui_agent.console.prompt.queued import Waiting

        if self.session is None:
            return [Waiting(order.id, order.text) for order in self.pending if order.text is not None]
        return [Waiting(message.id, message.text) for message in self.session.state.queue]

    def unqueue(self, message_id: str) -> bool:
        """Drop a message; False where it does not wait any more."""
        waits = any(message.id == message_id for message in self.queue)
        if not waits:
            self.say("That message has gone out already.")
        self.pending = [order for order in self.pending if order.id != message_id]
        if self.session is not None:
            self.session.unqueue(message_id)
        self.redraw()
        return waits

    # --- commands: how the run goes on ----------------------------------------------------------------------

    async def answer(self, command: Awaitable[str]) -> None:
        """Say what a command answers, or why it cannot be done."""
        try:
            self.tell(await command)
        except ValueError as error:
            self.say(str(error), "warning")

    def tell(self, answer: str) -> None:
        """Say what a command answers, where it says something."""
        if answer:
            from tui_agent.terminal_text import one_line

            self.say(one_line(answer, 400))

    @on_session
    def action_on_session(self, session: Session, name: str, argument: str = "") -> None:
        """A command that is wholly the session's (`session_commands`)."""
        if name in session_commands.AT_ONCE:
            self.tell(session_commands.AT_ONCE[name](session, argument))
        else:
            self._await_answer(session_commands.AWAITED[name](session, argument))

    @work(group="commands")
    async def _await_answer(self, command: Awaitable[str]) -> None:
        await self.answer(command)

    @on_session
    def action_auto(self, session: Session) -> None:
        """Go on by itself; a request that waits goes out."""
        self._go("AUTO", session)

    @on_session
    def action_step(self, session: Session) -> None:
        """One iteration: the request that waits goes out, the next one waits."""
        self._go("STEP", session)

    @on_session
    def action_pause(self, session: Session) -> None:
        """Pause after this iteration."""
        self._set_mode("PAUSED", session)
        if not session.running:
            self.say(_NEXT_TASK["PAUSED"])

    def _go(self, mode: str, session: Session) -> None:
        self.keep_note()
        self._set_mode(mode, session)
        if self.operator.open_gate() or session.running:
            return
        if session.go_on():
            self.say("Going on with the run that was open.")
        else:
            self.say("Sending the message that waits." if session.send_waiting() else _NEXT_TASK[mode])

    def _set_mode(self, mode: str, session: Session) -> None:
        from tui_agent.core.events import Mode

        if self.interrupted and not self.hidden:
            # The notification on how to go on has been followed.
            self.app.clear_notifications()
        self._interrupted_in = ""
        session.set_mode(Mode(mode))

    @work(group="commands")
    async def interrupt(self) -> None:
        """Interrupt the call or tool that runs; the run pauses."""
        if self.session is not None and self.session.running:
            mode = str(self.session.state.session.mode)
            self._interrupted_in = "AUTO" if mode == "PAUSED" else mode
            await self.session.interrupt()
            waiting = f" with {counted(len(self.queue), 'queued message')}" if self.queue else ""
            self.say(
                f"Interrupted: a message goes at once, {shown_key('auto')} goes on{waiting}, "
                f"{shown_key('step')} does one step, /stop ends the run."
            )

    @on_session
    @work(group="commands")
    async def action_background(self, session: Session, argument: str = "") -> None:
        """Show what runs in the background; `stop ID` ends one of them."""
        running = tuple(session.state.background.running.values())
        if not (running or argument):
            self.say("Nothing runs in the background.")
            return
        if argument:
            await self.answer(session_commands.background(session, argument))
            return
        import time

        from tui_agent.console.screens.background import BackgroundScreen

        name = await self.ask(BackgroundScreen(running, time.time))
        if name:
            await self.answer(session_commands.background(session, f"stop {name}"))

    @on_session
    def action_skills(self, session: Session, name: str = "") -> None:
        """Show the skills; with a name, begin a message that asks for one."""
        from tui_agent.console.screens.report import ReportScreen
        from tui_agent.frontend.lines.skills import skill_lines

        if name:
            self.put_in_prompt(f"{session_commands.skill_request(session, name)}: ")
            return
        found = session.find_skills()
        self.app.push_screen(ReportScreen("Skills", lambda width: skill_lines(found, width)), mode=self.id)

    def action_note(self, text: str = "") -> None:
        """Open the note of the request that waits, replace it, or drop it."""
        if text:
            self.rewrite_note(None if text == "drop" else text)
            return
        if self.operator.waiting_gate is None:
            keys = f"{shown_key('pause')} or {shown_key('step')}"
            self.say(f"The note can be edited while a request waits: {keys} makes the next one wait.")
        else:
            self.edit_note()

    @on_session
    def rewrite_note(self, session: Session, note: str | None) -> None:
        """Send this note with the next call, or none; the request that waits and the panes show it at once."""
        self.operator.rewrite_note(note)
        session.edit_note(note)

    def edit_note(self) -> None:
        """Open the note of the request that waits."""
        raise NotImplementedError

    def keep_note(self) -> None:
        """Take the note of the request that waits as it stands in an open editor."""
        raise NotImplementedError

    def action_unqueue(self) -> None:
        """The newest queued message goes back into the prompt."""
        queue = self.queue
        if queue:
            self.take_back(queue[-1])
        else:
            self.say("No message is queued.")

    def take_back(self, message: Waiting) -> None:
        """A message that waits goes back into the prompt."""
        if self.unqueue(message.id):
            self.put_in_prompt(message.text)

    # --- commands: MCP servers ------------------------------------------------------------------------------

    @property
    def server_rows(self) -> Sequence[Row]:
        """The MCP servers as they stand."""
        servers = None if self.session is None else self.session.servers
        return () if servers is None else servers.rows()

    @on_session
    @work(group="commands")
    async def action_mcp(self, session: Session, argument: str = "") -> None:
        """Show the servers; trust one that came with the workspace; connect to one again."""
        if argument:
            await self.answer(session_commands.mcp(session, argument))
        else:
            from tui_agent.console.screens.servers import ServersScreen

            await self.ask(ServersScreen(lambda: self.server_rows))

    @on_session
    @work(group="commands")
    async def action_playbook(self, session: Session, argument: str = "") -> None:
        """Show what helped against failures; forget a part of it, or put other words."""
        if argument:
            await self.answer(session_commands.playbook(session, argument))
            return
        import time

        from tui_agent.console.screens.report import ReportScreen
        from tui_agent.frontend.lines.playbook import known, playbook_lines

        try:
            found = await asyncio.to_thread(known, session.playbook, time.time())
        except OSError as error:
            self.say(str(error), "warning")
            return
        await self.ask(ReportScreen("Playbook", lambda width: playbook_lines(found, width)))

    @work(group="commands")
    async def ask_servers(self, text: str) -> None:
        """Send a message with what it names of MCP servers: a prompt of theirs, or resources."""
        from tui_agent.frontend.commands.server_entries import PromptError, expanded
        from tui_agent.tools.errors import ToolError

        servers = None if self.session is None else self.session.servers
        if servers is None:
            return
        try:
            message = await expanded(text, servers)
        except (PromptError, ToolError) as error:
            self.say(str(error), "warning")
            self.put_in_prompt(text)
        else:
            # What a server wrote names no images.
            await self.submit(message, text)

    def names_a_server(self, text: str) -> bool:
        """Whether the text asks for a prompt or a resource of a server."""
        if not self.server_rows:
            return False
        from tui_agent.frontend.commands.server_entries import names_a_server

        return names_a_server(text, self.server_rows)

    # --- commands: the session ------------------------------------------------------------------------------

    @on_session
    @work(group="commands")
    async def action_fork(self, session: Session) -> None:
        """Fork the session as it is now, and open the fork."""
        await self.fork_after(session.folder, session.state, None)

    @on_session
    @work(group="commands")
    async def action_rewind(self, session: Session, argument: str = "") -> None:
        """Go back to an earlier point, or take the newest rewind back; what changes is shown first."""
        from tui_agent.frontend.commands.rewind_text import choices_of, first_choice
        from tui_agent.store.errors import SessionError

        if argument not in {"", "undo"}:
            self.say("Write /rewind, or /rewind undo.", "warning")
            return
        try:
            choices = choices_of(session)
            cursor = first_choice(choices, undo=argument == "undo")
        except SessionError as error:
            self.say(str(error), "warning")
        else:
            await self._rewind(session, choices, cursor)

    async def patch(self) -> Patch | None:
        text = None if self.session is None else await self.session.changes()
        return None if text is None else Patch(text)

    @on_session
    @work(group="commands")
    async def action_undo(self, session: Session) -> None:
        """Take back what the last message led to, once it was shown; the message goes back into the prompt."""
        from tui_agent.frontend.commands.rewind_text import RewindChoice

        if session.running and not await self._end_run_first(session):
            return
        point = next((point for point in session.rewind_points() if point.text), None)
        if point is None:
            self.say("There is no message to take back.")
        elif await self._rewind(session, [RewindChoice(point, point.label, point.at)], 0):
            self.put_in_prompt(point.text)

    async def _end_run_first(self, session: Session) -> bool:
        from tui_agent.console.screens.ask import AskScreen

        question = AskScreen(
            "A run is under way",
            "It has to end before what it did can be taken back. What /undo would change is shown next.",
            ("e", "end it"),
            ("g", "let it go on"),
            no_first=True,
            over=(lambda: not session.running, True),
        )
        if not await self.ask(question):
            return False
        if session.running:
            await session.stop()
        return True

    def action_redo(self) -> None:
        """Take the newest undo or rewind back."""
        self.action_rewind("undo")

    async def _rewind(self, session: Session, choices: Sequence[RewindChoice], cursor: int) -> bool:
        """Show what would change, and do it where the operator agrees."""
        from tui_agent.console.screens.rewind import RewindScreen
        from tui_agent.frontend.commands.rewind_text import rewound
        from tui_agent.store.errors import SessionError

        try:
            plan = await self.ask(RewindScreen(session, choices, cursor))
            if plan is None:
                return False
            await session.rewind(plan)
        except SessionError as error:
            self.say(str(error), "warning")
            return False
        self.say(rewound(plan))
        self.redraw()
        return True

    @on_session
    @work(group="commands")
    async def action_export(self, session: Session, argument: str = "") -> None:
        await self.export_to_file(session.folder, argument)

    def values_of(self, command: Command) -> Sequence[str]:
        """What the command's argument can be; the breakers are those of the newest run's tools."""
        settings = None if self.session is None else self.session.settings
        if settings is not None and command.name in {"model", "profile"}:
            others = settings.aliases if command.name == "model" else ()
            return [*settings.profiles, *others]
        if command.name == "background":
            return [f"stop {name}" for name in (self.state.background.running if self.state else ())]
        if command.name == "mcp":
            waiting = [f"trust {row.name}" for row in self.server_rows if str(row.status) == "not trusted"]
            return [*waiting, *(f"reconnect {row.name}" for row in self.server_rows if row.server or row.why)]
        if command.name != "breaker":
            return super().values_of(command)
        tools = () if self.state is None else self.state.run.tools
        return [f"{tool} {what}" for tool in tools for what in ("open", "close")]
