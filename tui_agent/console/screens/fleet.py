"""The board of many runs: the state of each, one inbox for all their questions, and the way into each of
them.

It draws what a fleet, or a folder of growing sessions, says of its runs, and holds none of their states.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.console.looks.command_keys import bindings, command_bindings, key_hints
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.panes.board import BoardList, BoardRun, board_head
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.ask import AskScreen
from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.console.screens.followed import FollowedScreen
from tui_agent.console.tabs.tab import HostOf, Standing
from tui_agent.console.terminal.timers import once
from tui_agent.frontend.lines.glyphs import FULL, OUTCOMES
from tui_agent.frontend.operator import AnyQuestion, ConsoleOperator
from tui_agent.quantities import counted, dollars, seconds
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.fleet.fleet import Fleet, FleetRun
    from tui_agent.fleet.opening import FleetArguments
    from tui_agent.fleet.tasks import BadLine, FleetTask
    from tui_agent.frontend.arguments import ConsoleArguments

GATHERED = 0.2
"""Seconds for which changes of runs are gathered: keys go before them."""


class FleetScreen(DashboardScreen):
    """The board, in a tab of its own; runs that are opened have theirs."""

    is_board = True
    replays = True

    DEFAULT_CSS = """
    FleetScreen {
        & > Static { height: 1; padding: 0 1; background: $panel; }
        & > #board-head { background: $background; color: $text-muted; }
        & > #board-foot { background: $background; color: $text-muted; }
        & > #board-head, & > #board-foot { text-wrap: nowrap; text-overflow: ellipsis; }
        & > BoardList { height: 1fr; padding: 0 1; scrollbar-gutter: auto; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*command_bindings(replay=True), *bindings("board")]

    def __init__(self, arguments: ConsoleArguments, mode: str, host: HostOf) -> None:
        super().__init__(arguments, mode, host)
        self.fleet: Fleet | None = None
        self.runs: Sequence[BoardRun] = ()
        self._settings: Settings | None = None
        self._list = BoardList()
        self._work: asyncio.Task[None] | None = None
        self._began = time.time()
        self._left = False
        self._drawing: asyncio.TimerHandle | None = None
        self._bad: Sequence[BadLine] = ()
        self._said: dict[str, str] = {}
        """By the place of a line: what stands there."""

    @property
    def settings(self) -> Settings | None:
        return self._settings

    @property
    def can_draw(self) -> bool:
        return self._settings is not None

    def home(self) -> Widget | None:
        return None

    def compose(self) -> ComposeResult:
        yield Static("", id="board-summary", markup=False)
        yield Static("", id="board-head", markup=False)
        yield self._list
        yield Static("", id="board-foot", markup=False)
        yield KeyHints(self.usual_hints())

    async def open(self) -> None:
        """Carry the runs out, or watch the folder, from now on."""
        from tui_agent.config.settings import load_settings

        arguments = self.arguments
        self._settings = await asyncio.to_thread(load_settings, arguments.overrides, arguments.config)
        self._work = asyncio.get_running_loop().create_task(self._carry_out(), name="fleet")
        self.redraw()
        self.app.use_keys(self._settings)

    async def _carry_out(self) -> None:
        """Its end is told."""
        from tui_agent.cluster import ClusterError

        try:
            if self.arguments.fleet is not None:
                await self._run_fleet(self.arguments.fleet)
            elif self.arguments.watched_folder is not None:
                await self._watch(self.arguments.watched_folder)
        except (OSError, SessionError, ClusterError) as error:
            self.say(one_line(f"The runs cannot go on: {error}", 500), "error")

    async def _run_fleet(self, arguments: FleetArguments) -> None:
        from tui_agent.fleet.opening import open_fleet
        from tui_agent.frontend.startup import whoever_is_away

        away = None if self._settings is None else whoever_is_away(self._settings)

        def operator(_: FleetTask) -> ConsoleOperator:
            made = ConsoleOperator(self._run_changed)
            made.ask_away = None if away is None else away.ask
            return made

        async with open_fleet(arguments, operator) as opened:
            self.fleet, self.runs, self._bad = opened.fleet, opened.fleet.runs, opened.bad
            for line in opened.bad[:3]:
                self.say(one_line(f"{arguments.tasks.name}:{line.line}: {line.why}", 300), "warning")
            self.fleet.changed = lambda _: self._run_changed()
            await self.fleet.run(opened.start)
            if not self._left:
                await opened.tell()
            if away is not None:
                await away.close()
            if self.fleet.halted and not self._left:
                self.say(f"{self.fleet.halted} The same command goes on.", "warning")
        self.redraw()

    async def _watch(self, folder: Path) -> None:
        from tui_agent.fleet.folder import FolderOfRuns

        found = FolderOfRuns(folder, self._run_changed)
        self.runs = found.runs
        await found.run()

    async def settle(self) -> None:
        if self._work is None or self._work.done():
            return
        if self.fleet is not None and not self.fleet.finished:
            self._left = True
            self.fleet.halt("The board was left.")
            self.app.exit_text = f"{self._counts()}. The same command goes on with the others."
        elif self.fleet is None:
            self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)

    # --- drawing ----------------------------------------------------------------------------------------------

    def _run_changed(self) -> None:
        """Draw soon, with what changes meanwhile."""
        if self._drawing is None and not self._left:
            self._drawing = once(self, GATHERED, self._draw_changed)

    def _draw_changed(self) -> None:
        self._drawing = None
        self.redraw()

    def draw(self) -> None:
        """The runs as they stand, and what is to be said of the chosen one."""
        width = self._list.content_size.width
        self._say("#board-summary", self._summary())
        self._list.show_runs(list(self.runs))
        self._say("#board-head", board_head(width, self._list.name_width))
        self._say_of_chosen()
        self.redrawing.tick(self.redrawing.request if self.running else None)

    def _counts(self) -> str:
        outcomes = Counter(run.outcome for run in self.runs)
        return ", ".join(f"{number} {outcome.replace('_', ' ')}" for outcome, number in outcomes.items())

    def _summary(self) -> str:
        parts = [self._counts() or "no runs yet"]
        cost = sum(run.row.cost or 0.0 for run in self.runs)
        if cost:
            parts.append(dollars(cost))
        if asks := sum(run.row.asks for run in self.runs):
            parts.append(f"{asks} for you")
        if self._bad:
            parts.append(f"no tasks: {counted(len(self._bad), 'line')}")
        return " · ".join([*parts, seconds(float(int(time.time() - self._began)))])

    def _say_of_chosen(self) -> None:
        run = self._list.chosen
        text = ""
        if run is not None:
            said = run.why or (run.row.answer if run.over else run.row.failing) or run.row.task
            text = one_line(f"{run.name}: {said}")
        self._say("#board-foot", text)

    def _say(self, place: str, text: str) -> None:
        """Write it there, if another text stands there."""
        if self._said.get(place) != text:
            self._said[place] = text
            self.query_one(place, Static).update(Content(text), layout=False)

    def usual_hints(self) -> Sequence[Hint]:
        stops = [Hint("s", "stop", "s"), Hint("S", "stop all", "S")] if self.arguments.fleet else []
        return [Hint("Enter", "open", "enter"), *key_hints("inbox", "quit"), *stops, *key_hints("help")]

    # --- the tab ----------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self.fleet is not None and not (self.fleet.finished or self.fleet.halted)

    def standing(self) -> Standing:
        ended = sum(run.over for run in self.runs)
        waits = len(self.questions)
        sign = OUTCOMES["answered"]
        role = "operator" if waits else sign.role if ended == len(self.runs) else "accent"
        glyph = FULL if waits else sign.glyph if ended == len(self.runs) else "▶"
        return Standing(f"fleet {ended}/{len(self.runs)}", glyph, role, waits)

    @property
    def questions(self) -> Sequence[AnyQuestion]:
        return [question for run in self._own_runs for question in _questions(run)]

    @property
    def _own_runs(self) -> Sequence[FleetRun]:
        return () if self.fleet is None else self.fleet.runs

    def questions_of(self, session_id: str) -> Sequence[AnyQuestion]:
        """The question of this session's run."""
        return [
            question
            for run in self._own_runs
            if session_id and run.session == session_id
            for question in _questions(run)
        ]

    def _asker(self, question: AnyQuestion) -> FleetRun | None:
        return next((run for run in self._own_runs if question in _questions(run)), None)

    def title_of(self, question: AnyQuestion) -> str:
        run = self._asker(question)
        return "" if run is None else one_line(f"{run.name} {run.row.task}", 80)

    def go_to_question(self, question: AnyQuestion) -> None:
        run = self._asker(question)
        if run is not None:
            self._open(run)
            for tab in self.app.tabs:
                if isinstance(tab, FollowedScreen) and tab.session_id == run.session:
                    tab.go_to_question(question)

    # --- keys -------------------------------------------------------------------------------------------------

    def action_move(self, step: int) -> None:
        """Go to another run."""
        self.redrawing.hold()
        self._list.move(step)
        self._say_of_chosen()

    def on_cursor_list_clicked(self, event: CursorList.Clicked) -> None:
        """A second click opens the run."""
        if event.again:
            self.action_open_run()
        self._say_of_chosen()

    def action_open_run(self) -> None:
        """Open the panes of the chosen run, or go to its tab."""
        if (run := self._list.chosen) is not None:
            self._open(run)

    def _open(self, run: BoardRun) -> None:
        if run.folder is None:
            self.say(f"{one_line(run.name, 40)} has not begun yet.")
            return
        path = str(run.folder)
        there = next(
            (tab for tab in self.app.tabs if path in (tab.arguments.replay, *tab.arguments.watch)), None
        )
        if there is not None:
            self.app.show_tab(there)
            return
        arguments = self.arguments._replace(fleet=None, watched_folder=None)
        own = self.fleet is not None
        self.app.open_tab(
            arguments._replace(replay=path, follow=True) if own else arguments._replace(watch=(path,))
        )

    @work(group="commands")
    async def action_stop_run(self) -> None:
        """Stop the chosen run, once that is confirmed."""
        run = self._list.chosen
        chosen = next((one for one in self._own_runs if one is run and not one.over), None)
        if self.fleet is None or chosen is None:
            self.say("This run has ended.")
        elif await self._confirmed(f"Stop {one_line(chosen.name, 40)}?", "It ends as interrupted."):
            self.fleet.stop(chosen)

    @work(group="commands")
    async def action_stop_all(self) -> None:
        """Stop every run, once that is confirmed."""
        if self.fleet is None or not self.running:
            self.say("All runs have ended.")
        elif await self._confirmed(
            "Stop all runs?", "They end as interrupted; those that wait do not begin."
        ):
            self.fleet.stop_all()

    async def _confirmed(self, title: str, text: str) -> bool:
        return await self.ask(AskScreen(title, text, ("y", "stop"), ("n", "go on"), no_first=True))


def _questions(run: FleetRun) -> Sequence[AnyQuestion]:
    return run.operator.questions if isinstance(run.operator, ConsoleOperator) else ()
