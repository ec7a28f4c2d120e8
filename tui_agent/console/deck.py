"""What the operator can do in a live session: the commands' deeds, said to the session and to the screen.

It holds no widget; before the session is open, what is asked for waits and is done in order as soon as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.console.screen_deck import ScreenDeck, Surface

if TYPE_CHECKING:
    from tui_agent.console.operator import ConsoleOperator
    from tui_agent.console.queued import Waiting
    from tui_agent.events import Event
    from tui_agent.sessions.session import Session
    from tui_agent.state import RunState


class FlightDeck(ScreenDeck):
    """Implements `commands.Deck` over a live session."""

    def __init__(self, surface: Surface, operator: ConsoleOperator) -> None:
        super().__init__(surface)
        self._operator = operator
        self._waiting: list[Callable[[], None]] = []
        self._early: list[str] = []
        self.session: Session | None = None

    @property
    def state(self) -> RunState | None:
        """The session's state; None while it is being opened."""
        return None if self.session is None else self.session.state

    async def attach(self, session: Session) -> None:
        """The session is open: do what was asked for meanwhile."""
        self.session = session
        self._operator.bind(self._surface.redraw, self._goes_by_itself)
        session.subscribe(self._heard)
        for act in self._waiting:
            act()
        self._waiting.clear()
        early, self._early = self._early, []
        for text in early:
            await session.submit(text)
        self._surface.redraw()

    # --- messages -------------------------------------------------------------------------------------------

    async def submit(self, text: str) -> None:
        """Start a run, or queue the message for the one that goes on."""
        if self.session is None:
            self._early.append(text)
        else:
            await self.session.submit(text)
        self._surface.redraw()

    @property
    def queue(self) -> list[Waiting]:
        """Messages that were not delivered yet, the oldest first."""
        from tui_agent.console.queued import Waiting

        if self.session is None:
            return [Waiting(f"early-{place}", text) for place, text in enumerate(self._early)]
        return [Waiting(message.id, message.text) for message in self.session.state.queue]

    def unqueue(self, message_id: str) -> None:
        """Drop a message that waits."""
        if self.session is None:
            del self._early[int(message_id.removeprefix("early-"))]
        else:
            self.session.unqueue(message_id)
        self._surface.redraw()

    def take_back(self) -> None:
        """The newest waiting message goes back into the prompt."""
        queue = self.queue
        if not queue:
            self._surface.say("No message is queued.")
            return
        self.unqueue(queue[-1].id)
        self._surface.put_in_prompt(queue[-1].text)

    # --- how the run goes on --------------------------------------------------------------------------------

    def set_auto(self) -> None:
        """Go on by itself; a request that waits goes out."""
        self._with_session(lambda session: self._go("AUTO", session))

    def step(self) -> None:
        """One iteration: the request that waits goes out, the next one waits."""
        self._with_session(lambda session: self._go("STEP", session))

    def pause(self) -> None:
        """Pause after this iteration."""
        self._with_session(lambda session: self._set_mode("PAUSED", session))

    async def interrupt(self) -> None:
        """Cut short what runs; the run pauses."""
        session = self.session
        if session is None or not session.running:
            return
        await session.interrupt()
        self._surface.say(
            "Interrupted: the run is paused. F5 goes on, F10 does one iteration, /stop ends it."
        )

    async def stop(self) -> None:
        """End the run with a partial answer."""
        session = self.session
        # A run that an earlier process left open is taken up to be ended, before it does anything.
        if session is None or not (session.running or session.go_on()):
            self._surface.say("No run goes on.")
            return
        await session.stop()

    def _go(self, mode: str, session: Session) -> None:
        self._set_mode(mode, session)
        if self._operator.open_gate():
            return
        if not session.running and session.go_on():
            self._surface.say("Going on with the run that was open.")

    def _set_mode(self, mode: str, session: Session) -> None:
        from tui_agent.events import Mode

        session.set_mode(Mode(mode))

    def _goes_by_itself(self) -> bool:
        state = self.state
        return state is None or str(state.session.mode) == "AUTO"

    def _heard(self, event: Event, state: RunState) -> None:
        if event.__class__.__name__ == "ModeChanged" and str(state.session.mode) == "AUTO":
            self._operator.open_gate()
        self._surface.redraw()

    def tool_names(self) -> Sequence[str]:
        """Tools of the newest run."""
        state = self.state
        return () if state is None else state.run.tools

    # --- settings -------------------------------------------------------------------------------------------

    def set_policy(self, name: str) -> None:
        """Judge by another policy from the next run on."""
        self._with_session(lambda session: self._try(lambda: session.set_policy(name)))

    def set_model(self, name: str) -> None:
        """Call another model from the next call on."""
        self._with_session(lambda session: session.set_model(name))

    def set_approve(self, mode: str) -> None:
        """Ask for more or for less."""

        def act(session: Session) -> None:
            from tui_agent.events import Approval

            self._try(lambda: session.set_approve(Approval(mode)), "The modes are ask, writes and all.")

        self._with_session(act)

    def set_title(self, title: str) -> None:
        """Name the session."""
        self._with_session(lambda session: session.set_title(title))

    def set_breaker(self, argument: str) -> None:
        """`TOOL open` or `TOOL close`."""
        tool, _, what = argument.rpartition(" ")
        if what not in {"open", "close"} or not tool:
            self._surface.say("Write /breaker TOOL open, or /breaker TOOL close.", "warning")
            return
        self._with_session(
            lambda session: self._try(lambda: session.set_breaker(tool.strip(), open=what == "open"))
        )

    def edit_note(self, text: str) -> None:
        """Open the pending note, replace it, or drop it."""
        state = self.state
        note = None if state is None else state.note
        gate = self._operator.waiting_gate
        if gate is not None:
            note = gate.note
        if not text:
            if gate is None:
                self._surface.say(
                    "The note can be edited while a request waits: F6 or F10 makes the next one wait."
                )
            else:
                self._surface.edit_note(note or "")
            return
        new = None if text == "drop" else text
        if not self._operator.rewrite_note(new):
            self._with_session(lambda session: session.edit_note(new))

    # --- the session ----------------------------------------------------------------------------------------

    async def fork(self) -> None:
        """A session of its own that shares everything up to now; the console goes over to it."""
        if self.session is not None:
            await self._fork(self.session.folder, self.session.state, None)

    async def rewind(self, argument: str) -> None:
        """Go back to an earlier point, or take the newest rewind back; nothing happens unseen."""
        session = self.session
        if session is None:
            self._surface.say("The session is still being opened.")
            return
        if argument not in {"", "undo"}:
            self._surface.say("Write /rewind, or /rewind undo.", "warning")
            return
        from tui_agent.sessions.errors import SessionError

        try:
            planned = await self._surface.choose_rewind(session, undo=argument == "undo")
            if planned is None:
                return
            await session.rewind(planned)
        except SessionError as error:
            self._surface.say(str(error), "warning")
            return
        from tui_agent.console.going_back import told

        self._surface.say(told(planned))
        self._surface.redraw()

    async def export(self, argument: str) -> None:
        """Write the session to a file."""
        if self.session is not None:
            await self._export(self.session.folder, argument)

    async def quit(self) -> None:
        """Leave; ask first where a run goes on."""
        session = self.session
        if session is not None and session.running and not await self._surface.confirm_leaving():
            return
        await self._surface.leave()

    # --- help for the above ---------------------------------------------------------------------------------

    def _with_session(self, act: Callable[[Session], None]) -> None:
        session = self.session
        if session is None:
            self._waiting.append(lambda: self._with_session(act))
        else:
            act(session)

    def _try(self, act: Callable[[], None], advice: str = "") -> None:
        try:
            act()
        except ValueError as error:
            self._surface.say(f"{error} {advice}".strip(), "warning")
