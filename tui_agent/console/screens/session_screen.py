"""A live session on a screen: its messages and those that wait, the operator's own commands, MCP servers' prompts.

What is asked for before the session is open is done in order as soon as it is. Widgets are the live screen's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

from textual import work

from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.console.tabs.tab import Commands, Standing
from tui_agent.core.names import Mode
from tui_agent.frontend.commands.registry import shown_key
from tui_agent.store.errors import SessionError

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.core.events import Event
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.commands.custom import CustomCommands
    from tui_agent.frontend.commands.view import Waiting
    from tui_agent.frontend.operator import AnyQuestion, ConsoleOperator
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.session import Session
    from tui_agent.tools.mcp.servers import Row


PAINTED = 0.5
"""Longest time in seconds that reading a session waits for the first look at its end."""


class SessionCommands(Commands, Protocol):
    """The commands of a session that runs, and how its messages are sent."""

    def send_custom(self, line: str, otherwise: str) -> None:
        """Send the text of the operator's or the checkout's command; `otherwise` is said where there is none."""

    async def deliver(self, text: str, typed: str | None, model: str) -> None:
        """Send a message (see `SessionScreen.submit`). Raises `SessionError`, `ValueError`."""

    def send_now(self) -> None:
        """Cut short what runs, and go on with the messages that wait."""

    def rewrite_note(self, note: str | None) -> None:
        """Send this note with the next call, or none; the request that waits and the panes show it at once."""


@dataclass(frozen=True, eq=False)
class Order:
    """What was asked for before the session was open: a command, or a message."""

    act: Callable[[], Awaitable[None] | None]
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
        self.custom_commands: CustomCommands | None = None
        """As they were last read; None: never."""
        self.own_run: OwnRun | None = None
        """The operator's own command that runs."""

    @cached_property
    def commands(self) -> SessionCommands:
        return cast("SessionCommands", super().commands)

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
            under_way = order.act()
            if under_way is not None:
                await under_way
        self.redraw()

    def when_open(self, act: Callable[[], object]) -> None:
        """Do it now, or in its order as soon as the session is open."""

        def do() -> None:
            act()

        if self.session is None:
            self.pending.append(Order(do))
        else:
            do()

    def _recorded(self, event: Event, state: RunState) -> None:
        if self.interrupted and state.session.mode is not Mode.PAUSED and not self.hidden:
            # The notification on how to go on has been followed.
            self.app.clear_notifications()
        if self._goes_by_itself():
            self.operator.open_gate()
        self.redraw()

    @property
    def state(self) -> RunState | None:
        """The session's state; None while it is being opened."""
        return None if self.session is None else self.session.state

    @property
    def running(self) -> bool:
        """A run is under way."""
        return self.session is not None and self.session.running

    @property
    def interrupted(self) -> bool:
        """The operator interrupted the run: a message lets it go on at once."""
        return self.operator.interrupted_in is not None

    def _goes_by_itself(self) -> bool:
        return self.state is None or self.state.session.mode is Mode.AUTO

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

    @work(group="own-command")
    async def run_own_command(self, command: str) -> None:
        """Run the operator's own command; what it printed goes to the model with the next message."""
        from tui_agent.session.own_run import OwnRun

        if not command or self.session is None:
            self.say("Write !COMMAND to run a command of your own.")
            return
        if self.own_run is not None:
            self.put_in_prompt(f"!{command}")
            self.say(
                f"{shown_key('interrupt')} interrupts the command of yours that runs; then send this one."
            )
            return
        run = self.own_run = OwnRun(command, self.session)
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

        async def send() -> None:
            try:
                await self.commands.deliver(text, typed, model)
            except (SessionError, ValueError) as error:
                self.say(str(error), "warning")
                self.put_in_prompt(text if line is None else line)

        if self.session is None:
            self.pending.append(Order(send, text))
        else:
            await send()
        self.redraw()

    @property
    def queue(self) -> list[Waiting]:
        """Messages that were not delivered yet, the oldest first."""
        from tui_agent.frontend.commands.view import Waiting

        if self.session is None:
            return [Waiting(order.id, order.text) for order in self.pending if order.text is not None]
        return [Waiting(message.id, message.text) for message in self.session.state.queue]

    def take_back(self, message: Waiting) -> None:
        """A message that waits goes back into the prompt."""
        if self.unqueue(message.id):
            self.put_in_prompt(message.text)

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

    # --- MCP servers ----------------------------------------------------------------------------------------

    @property
    def server_rows(self) -> Sequence[Row]:
        """The MCP servers as they stand."""
        servers = None if self.session is None else self.session.servers
        return () if servers is None else servers.rows()

    def names_a_server(self, text: str) -> bool:
        """Whether the text asks for a prompt or a resource of a server."""
        if not self.server_rows:
            return False
        from tui_agent.frontend.commands.server_entries import names_a_server

        return names_a_server(text, self.server_rows)
