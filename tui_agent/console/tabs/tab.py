"""A tab as the app and the inbox know it: a screen around one session, and how it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from tui_agent.console.terminal.compositor import SparingScreen
from tui_agent.frontend.commands.registry import AnyCommand, shown_key

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.console.panes.density import Density
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.commands.custom import CustomCommand
    from tui_agent.frontend.operator import AnyQuestion
    from tui_agent.frontend.startup import Opened


class Standing(NamedTuple):
    """How a tab stands: its title, the sign of its mode with its role, and how many questions wait for the operator."""

    title: str
    glyph: str
    role: str
    waits: int = 0


class Commands(Protocol):
    """The commands of a tab."""

    def run(self, name: str, argument: str = "") -> None:
        """Do what the command of this name does; long ones go on in the background."""

    def values_of(self, command: AnyCommand) -> Sequence[str]:
        """Values of the command's argument."""

    @property
    def from_files(self) -> Sequence[CustomCommand]:
        """Those of the operator's own and of the checkout, as far as they are known."""

    def explain(self, seq: int, call_id: str) -> None:
        """Show why an event came about."""


HostOf = Callable[[Any], Any]
"""Makes the commands of a screen, each console screen its own, once they are asked for."""


class Tab(SparingScreen):
    """The screen at the bottom of a mode; its id is the mode's name."""

    is_board: ClassVar[bool] = False
    """It shows many runs, which are opened from it."""
    replays: ClassVar[bool] = False
    """Only the commands that make sense over a saved session are offered."""

    goes_on: ClassVar[bool] = True
    """The shown events happen now: the operator is called for them."""

    def __init__(self, arguments: ConsoleArguments, mode: str, host: HostOf) -> None:
        """`mode`: the app's name for the tab. `host` makes the commands of this screen, imported with its dashboard."""
        super().__init__(id=mode)
        self.arguments = arguments
        self._commands_of = host
        self.opened: Opened | None = None
        """The live session of this tab, from when it is open until it is closed."""

    @cached_property
    def commands(self) -> Commands:
        made: Commands = self._commands_of(self)
        return made

    @property
    def settings(self) -> Settings | None:
        """The settings, once they have been read."""
        raise NotImplementedError

    def standing(self) -> Standing:
        """How the tab stands, for the row of tabs."""
        raise NotImplementedError

    @property
    def can_draw(self) -> bool:
        """All that it takes to draw has been imported and mounted."""
        raise NotImplementedError

    async def open(self) -> None:
        """Open what the arguments ask for. Raises `ConfigError`, `ScenarioError`, `SessionError`."""
        raise NotImplementedError

    @property
    def state(self) -> RunState | None:
        """The shown state of a session; None: nothing, or not yet."""
        return None

    @property
    def session_id(self) -> str:
        """The session that is open; empty: none."""
        return ""

    @property
    def hidden(self) -> bool:
        """Another tab is shown."""
        return self.app.current_mode != self.id

    @property
    def questions(self) -> Sequence[AnyQuestion]:
        """The question that waits for the operator here."""
        return ()

    @property
    def running(self) -> bool:
        """A run is under way."""
        return False

    @property
    def has_open_run(self) -> bool:
        """A run is under way whose end is not recorded: closing the tab would cut it short."""
        return self.running

    @property
    def unused(self) -> bool:
        """Nothing was said here yet, and nothing is about to be: another session may take the place."""
        return False

    @property
    def rows_for_notifications(self) -> int:
        """Rows at the top that notifications may cover."""
        return self.size.height // 2

    def put_in_prompt(self, text: str) -> None:
        """Offer a text for editing, if there is a prompt."""

    def questions_of(self, session_id: str) -> Sequence[AnyQuestion]:
        """The question of a board's run with this session."""
        return ()

    def title_of(self, question: AnyQuestion) -> str:
        """The inbox's name for the one who asks this."""
        return self.standing().title

    async def settle(self) -> None:
        """End what runs here beside a session, before the console is left."""

    def show_tabs(self, standings: Sequence[Standing], shown: int) -> None:
        """Show how all tabs stand."""

    def use(self, remembered: Mapping[str, str]) -> None:
        """Take up what was remembered of earlier starts, or is wanted from now on."""

    def use_density(self, density: Density) -> None:
        """Draw the conversation so densely."""

    def show_hints(self) -> None:
        """Show the keys that are in force."""

    def came_to_front(self) -> None:
        """The tab is shown from now on."""

    def show_event(self, seq: int, words: Sequence[str]) -> None:
        """Go to the line of an event's text that has the most of these words; 0: stay."""

    def go_to_question(self, question: AnyQuestion) -> None:
        """Give the keys to the card of this question, after the grace in which it takes none."""

    def action_command(self, name: str, argument: str = "") -> None:
        """A key of a command."""
        self.commands.run(name, argument)

    def say(self, text: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """A short notification in the corner; from a tab that is not shown, with its title."""
        from tui_agent.terminal_text import without_middle

        title = self.standing().title if self.hidden else ""
        self.notify(without_middle(text), severity=severity, title=title, markup=False)

    def warn(self, text: str) -> None:
        self.say(text, "warning")

    def draw_failed(self, error: Exception) -> None:
        """Say that something could not be drawn; what is drawn stays, and the session is not affected."""
        from tui_agent.terminal_text import one_line

        fault = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        place = one_line(" ".join(getattr(fault, "__notes__", [])), 60)
        self.say(
            f"The screen could not be drawn {place} ({type(fault).__name__}: {one_line(str(fault), 200)}). "
            f"The session goes on. If this stays, leave with {shown_key('quit')} and open it again with "
            "agent-tui resume.",
            "error",
        )
