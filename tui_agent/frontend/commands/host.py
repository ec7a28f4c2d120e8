"""The host of a command: what it shows and asks. Each console is one, and draws it in its own way; so is a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.config.settings import Settings
    from tui_agent.config.user_file import UserFile
    from tui_agent.core.events import BackgroundStarted
    from tui_agent.core.state import RunState
    from tui_agent.frontend.lines.diff import FileDiff
    from tui_agent.frontend.lines.passages import Row
    from tui_agent.frontend.lines.styled import Line
    from tui_agent.frontend.operator import ConsoleOperator
    from tui_agent.frontend.why import Why
    from tui_agent.session.fork import ForkChoice
    from tui_agent.session.fork_point import ForkPoint
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.rewind import RewindPlan, RewindPoint
    from tui_agent.session.session import Session
    from tui_agent.store.file_changes import FileChange
    from tui_agent.store.session_store import SessionStore


class Waiting(NamedTuple):
    """A message that was typed and not delivered yet."""

    id: str
    text: str


class ChosenSession(NamedTuple):
    """A session, what to do with it, and the event at which words were found (0: none were looked for)."""

    session_id: str
    what: Literal["resume", "replay"] = "resume"
    at: int = 0
    words: tuple[str, ...] = ()


class RewindChoice(NamedTuple):
    """A point to go back to, or (None) the newest rewind to take back; when that was (seconds since the epoch)."""

    point: RewindPoint | None
    label: str
    at: float


class ForkPlace(NamedTuple):
    """The point at which a session would be forked: its folder or file, and its state after event `seq`
    (None: the last).
    """

    parent: Path
    state: RunState
    seq: int | None = None


class Patch(NamedTuple):
    """The changes of a run, as git's patch. `whole`: with all changes up to the moment that is shown."""

    text: str
    whole: bool = True


class Confirmation(NamedTuple):
    """A question for leave to do something. `yes`, `no`: a key and its effect; once `over` holds by itself,
    it is agreed to.
    """

    title: str
    text: str
    yes: tuple[str, str]
    no: tuple[str, str]
    over: Callable[[], bool] | None = None


Report = Callable[[int], "Iterable[Line]"]
"""Lines, drawn for a width in columns."""
Written = Callable[[str], "Row | None"]
"""The row that a text makes, if it makes one."""
ForkFrom = Awaitable[tuple["ForkPoint", Sequence["FileChange"]]]
"""The point of a fork, and the files that were otherwise then, as they are being read."""


class Shown(Protocol):
    """A session that runs, or a recording. Until it is open, all but `opened` raises `ValueError`."""

    @property
    def opened(self) -> bool: ...

    @property
    def state(self) -> RunState: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def source(self) -> Path:
        """The folder or file that it comes from."""

    @property
    def coming(self) -> tuple[str, str]:
        """Model and policy of the next run; empty for a recording."""

    async def place(self) -> ForkPlace:
        """The point at which a fork would begin."""

    async def patch(self, since: str = "") -> Patch | None:
        """Changes of the newest run, by tools or commands; None: only its file tools can tell."""

    async def gather_why(self, seq: int, call_id: str) -> Why:
        """The journal's account of an event. Raises `JournalError`, `IndexError`."""


class Host(Protocol):
    """A console that shows a session or a recording."""

    @property
    def shown(self) -> Shown:
        """The subject of the commands."""

    @property
    def on_screen(self) -> bool:
        """It has panes and tabs (`ScreenHost`)."""

    def when_open(self, act: Callable[[], None]) -> None:
        """Do it now, or in its order as soon as what is shown is open."""

    @property
    def now(self) -> float:
        """When the state is shown: in seconds since the epoch."""

    @property
    def asked_about(self) -> tuple[int, str]:
        """The event, and its call, that the operator looks at; 0: none."""

    def say(self, text: str) -> None: ...

    def show_help(self) -> None: ...

    async def show_report(self, title: str, draw: Report, columns: int = 80, *, moves: bool = False) -> None:
        """Lines of so many columns, if there is room; `moves`: they change while they are shown."""

    async def show_changes(self, files: Sequence[FileDiff], title: str) -> None: ...

    def show_plan(self) -> None: ...

    async def copy(self, text: str, what: str) -> str:
        """To the clipboard; what became of it, in words. `what`: "the newest reply", …"""

    async def choose_session(self, store: SessionStore) -> ChosenSession | None:
        """One of the saved sessions, other than the one that is shown."""

    async def choose_fork(self, reading: ForkFrom) -> ForkChoice | None:
        """The change that a fork makes."""

    def open_session(self, chosen: ChosenSession, changed: frozenset[str] = frozenset()) -> None:
        """Show another session; options of this start in `changed` do not hold there."""

    async def leave(self) -> None:
        """End the console; ask first if a run is under way."""

    def suspend(self) -> None: ...


class SessionHost(Host, Protocol):
    """A console that shows a session that runs."""

    @property
    def session(self) -> Session:
        """Raises `ValueError` until it is open."""

    @property
    def operator(self) -> ConsoleOperator: ...

    @property
    def own_run(self) -> OwnRun | None:
        """The operator's own command that runs."""

    @property
    def user_file(self) -> UserFile: ...

    @property
    def history(self) -> Sequence[str]:
        """Earlier prompts, the oldest first."""

    @property
    def queue(self) -> Sequence[Waiting]:
        """Messages that wait, the oldest first."""

    def unqueue(self, message_id: str) -> bool:
        """Drop a message; False, with a word about it, if it does not wait any more."""

    def put_in_prompt(self, text: str, *, instead: bool = False, restored: bool = False) -> None:
        """Offer a text for editing, before what stands in the prompt, or `instead` of it. `restored`: it was
        sent before, and typing replaces it if that can be.
        """

    async def edit_prompt(self) -> None:
        """Write the prompt in the operator's editor. Raises `EditorError`."""

    def edit_note(self) -> bool:
        """Edit the note of the request that waits; False if it cannot be edited in its place."""

    def keep_note(self) -> None:
        """Take the note as it stands in an open editor."""

    async def submit(self, text: str, typed: str | None, model: str, line: str) -> None:
        """Send a message (see `running.submit`); `line` goes back into the prompt if it cannot be sent."""

    async def confirm(self, question: Confirmation) -> bool: ...

    async def may_end_run(self, what: str) -> bool:
        """Ask if `what`, which ends a run that is under way, is to be done."""

    async def choose(
        self, title: str, rows: Sequence[Row], notice: str = "", written: Written | None = None
    ) -> Any:
        """The value of one of the rows, or of what is `written`; None: none was chosen."""

    async def choose_rewind(self, choices: Sequence[RewindChoice]) -> RewindPlan | None:
        """The parts that are to go back, chosen after their changes were shown."""

    async def choose_background(self, running: Sequence[BackgroundStarted]) -> str:
        """Show the commands that run in the background; the id of one that is to end."""

    async def show_rules(self, file: UserFile) -> None: ...

    async def show_queue(self) -> None:
        """The messages that wait, to be edited, dropped or sent."""

    async def secret(self, title: str, about: str) -> str:
        """A value that is not shown as it is typed; empty: none was given."""

    async def open_new(self, task: str = "", *, in_place: bool = False) -> None:
        """Begin a session; `in_place` of the one that is shown, whose run may end."""


class PaneHost(Protocol):
    """The looks of a screen: colours, panes, density."""

    @property
    def themes(self) -> Sequence[str]: ...

    @property
    def places(self) -> Sequence[str]:
        """Panes, and what else can be gone to, by name."""

    def wear(self, theme: str) -> None:
        """Change the colours; with no theme, look at all of them."""

    def shape(self, form: str) -> str:
        """Show the recovery panes in this form, or in the next one."""

    def densify(self, density: str) -> str:
        """Draw the conversation so densely, or in the next density."""

    def next_pane(self) -> None: ...

    async def jump(self, place: str) -> None:
        """Go to a place; with no name, to one that is chosen."""

    def go_to_card(self) -> None: ...

    async def find(self, text: str) -> None:
        """Find a text in the conversation, and go to its place."""


class TabHost(Protocol):
    """The tabs of a screen."""

    async def choose(self) -> None: ...

    def go_to(self, number: str) -> str: ...

    def next(self, step: int) -> str:
        """Go so many tabs on, round and round."""

    async def close(self) -> None:
        """Close the tab that is shown; ask first if its run is under way."""

    async def open_inbox(self) -> None: ...


class ScreenHost(Host, Protocol):
    """A console with panes and tabs."""

    @property
    def panes(self) -> PaneHost: ...

    @property
    def tabs(self) -> TabHost: ...


class PromptHost(SessionHost, ScreenHost, Protocol):
    """A screen with a prompt."""

    async def show_settings(self) -> None: ...

    async def show_keys(self) -> None: ...

    def use_vim(self, on: bool | None) -> bool:
        """Give the prompt Vim's keys, or its own; None: the other ones. Gives whether they are Vim's now."""
