"""The session of a tab, None until it is open, and how it stands; what is drawn of it is the screen's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.console.tabs.tab import Standing
from tui_agent.core.names import Mode, Phase
from tui_agent.frontend.commands.server_entries import names_a_server
from tui_agent.frontend.lines.glyphs import FULL, MODES, OUTCOMES
from tui_agent.frontend.lines.mode import mode_of, waits_for_operator
from tui_agent.frontend.operator import ConsoleOperator
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.events import Event
    from tui_agent.core.state import RunState
    from tui_agent.frontend.operator import AnyQuestion
    from tui_agent.session.session import Session
    from tui_agent.tools.mcp.servers import ServerRow


class LiveSession:
    """`changed` is called when what is shown of it changes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.session: Session | None = None
        self.end_seen: RunState | None = None
        """The end of a long session, to be looked at while all of it is read."""
        self.operator = ConsoleOperator(changed, lambda: self.goes_by_itself)
        """The operator as the runtime asks it."""
        self._changed = changed

    def open(self, session: Session) -> None:
        """Follow this session from now on."""
        self.session, self.end_seen = session, None
        session.subscribe(self._recorded)

    def _recorded(self, _: Event, state: RunState) -> None:
        if self.goes_by_itself:
            self.operator.open_gate()
        self._changed()

    @property
    def state(self) -> RunState | None:
        return None if self.session is None else self.session.state

    @property
    def running(self) -> bool:
        """A run is under way."""
        return self.session is not None and self.session.running

    @property
    def has_open_run(self) -> bool:
        """Not if the end is recorded, and only the work after it is under way."""
        state = self.state
        return self.running and not (state is not None and state.phase is Phase.DONE and not state.queue)

    @property
    def interrupted(self) -> bool:
        """The operator interrupted the run: a message lets it go on at once."""
        return self.operator.interrupted_in is not None

    @property
    def questions(self) -> Sequence[AnyQuestion]:
        """Those that a card asks: after an interruption the prompt alone asks how the run goes on."""
        operator = self.operator
        gate = operator.waiting_gate if self.interrupted else None
        return [question for question in operator.questions if question is not gate]

    @property
    def goes_by_itself(self) -> bool:
        """Requests go out without a key."""
        return self.state is None or self.state.session.mode is Mode.AUTO

    @property
    def waits_for_model(self) -> bool:
        """A failed call of the model waits for its next try."""
        return self.running and self.state is not None and self.state.phase is Phase.BACKOFF

    @property
    def waits_for_operator(self) -> bool:
        return self.state is not None and waits_for_operator(self.state)

    def asks_a_server(self, text: str) -> bool:
        """True if the text asks for a prompt or a resource of an MCP server."""
        return names_a_server(text, self.servers)

    @property
    def servers(self) -> Sequence[ServerRow]:
        """The MCP servers as they stand."""
        servers = None if self.session is None else self.session.mcp.servers
        return () if servers is None else servers.rows()

    def standing(self) -> Standing:
        """How the tab stands, for the row of tabs."""
        state = self.state
        if state is None:
            return Standing("opening…", "…", "muted")
        sign = MODES["PAUSED" if state.running and not self.running else mode_of(state)]
        if state.run.outcome is not None:
            sign = OUTCOMES[str(state.run.outcome)]
        title = one_line(state.session.title or state.run.task, 80) or "new session"
        if state.session.parent is not None:
            title = f"fork @{state.session.parent.seq} {title}"
        waits = len(self.operator.questions)
        return Standing(title, FULL if waits else sign.glyph, "operator" if waits else sign.role, waits)
