"""The common part of the live screen and the replay: the outline of the first paint, the dashboard, the keys
of commands.

A screen over this adds its clock and its own widgets; what its commands do is its `commands`' to know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.binding import BindingType
from textual.geometry import Offset, Size
from textual.screen import Screen
from textual.widget import Widget

from tui_agent.console.looks.command_keys import with_tabs
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.looks.splash import LOW_HEIGHT, TINY_HEIGHT, Splash
from tui_agent.console.tabs.tab import HostOf, Standing, Tab
from tui_agent.console.terminal.redraw import Redraw
from tui_agent.frontend.loading import load_modules

if TYPE_CHECKING:
    from tui_agent.console.cards.card_host import CardHost
    from tui_agent.console.panes import ConversationPane, StatusLine
    from tui_agent.console.panes.dashboard import Dashboard
    from tui_agent.console.panes.density import Density
    from tui_agent.console.panes.pane import Asked
    from tui_agent.console.tabs.session_app import SessionApp
    from tui_agent.console.tabs.tab_row import TabRow
    from tui_agent.core.projections.conversation import Conversation
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.operator import AnyQuestion

DASHBOARD_MODULES = (
    "tui_agent.terminal_text",
    "tui_agent.console.panes.strips",
    "tui_agent.console.panes.pane",
    "tui_agent.console.panes",
    "tui_agent.console.cards.card_host",
    "tui_agent.console.commands.host",
    "tui_agent.console.prompt.queued",
)
"""Parts that the screen lacks after its first paint."""

Result = TypeVar("Result")


class DashboardScreen(Tab):
    """A screen around a dashboard."""

    app: SessionApp
    own_options: ClassVar[frozenset[str]] = frozenset()
    """Options that hold for what is shown here, and for no other session."""

    DEFAULT_CSS = """
    DashboardScreen {
        layout: vertical; background: $background;
        &.-low KeyHints { display: none; }
        &.-tiny Prompt { border: none; min-height: 1; max-height: 2; padding: 0; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, arguments: ConsoleArguments, mode: str, host: HostOf) -> None:
        super().__init__(arguments, mode, host)
        self.redrawing = Redraw(self, self._draw_shown, self.draw_failed)
        self._tab_row: TabRow | None = None
        self.splash = Splash()
        self.dashboard: Dashboard | None = None
        self.status: StatusLine | None = None
        self.card_host: CardHost | None = None
        """The host of cards for questions; None: questions only stand in the conversation."""

    def draw(self) -> None:
        """Draw the state; called at most so often a second."""
        raise NotImplementedError

    def home(self) -> Widget | None:
        """The widget that has the focus by default."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw soon; a tab that is not shown only says that it stands otherwise."""
        if self.hidden:
            self.app.tabs_changed()
        else:
            self.redrawing.request()

    def _draw_shown(self) -> None:
        if self.hidden:
            self.redrawing.tick(None)
        else:
            self.draw()
        self.app.tabs_changed()

    # --- tabs -----------------------------------------------------------------------------------------------

    @property
    def can_draw(self) -> bool:
        return self.status is not None

    def show_tabs(self, standings: Sequence[Standing], shown: int) -> None:
        several = len(standings) > 1
        if several and self._tab_row is None:
            from tui_agent.console.tabs.tab_row import TabRow

            self._tab_row = TabRow()
            self.mount(self._tab_row, before=0)
        if self._tab_row is not None:
            self._tab_row.display = several
            self._tab_row.show(standings, shown)
        self.show_hints()
        if self.status is not None:
            self.status.elsewhere = sum(each.waits for each in standings) - standings[shown].waits
            self.redraw()

    def show_hints(self) -> None:
        hints = self.usual_hints()
        if len(self.app.tabs) > 1:
            hints = with_tabs(hints)
        for line in self.query(KeyHints):
            line.show(hints)

    def usual_hints(self) -> Sequence[Hint]:
        """The keys of the last line, if there is one tab."""
        raise NotImplementedError

    def came_to_front(self) -> None:
        self.redraw()
        if self.card_host is not None:
            self.card_host.came_back()

    def go_to_question(self, question: AnyQuestion) -> None:
        if self.card_host is not None:
            self.card_host.bring(question)
            self.redraw()

    def on_card_host_settled(self, _: CardHost.Settled) -> None:
        self.redraw()

    def on_card_host_left(self) -> None:
        self.go_home()

    def on_card_host_failed(self, event: CardHost.Failed) -> None:
        self.draw_failed(event.error)

    def on_tab_row_picked(self, event: TabRow.Picked) -> None:
        self.app.show_tab(self.app.tabs[event.place])

    async def ask(self, screen: Screen[Result]) -> Result:
        """Show a screen over this one and wait for what it is dismissed with; over another tab it never stands.

        Raises `CancelledError` if such a screen is open: its key was pressed twice before it was there.
        """
        if self.is_open(type(screen)):
            raise asyncio.CancelledError
        return await self.app.push_screen_wait(screen, mode=self.id)

    def is_open(self, kind: type[Screen[Any]]) -> bool:
        """True if such a screen stands over this one."""
        return self.app.current_mode == self.id and type(self.app.screen) is kind

    def fit(self, size: Size) -> None:
        """Give up the parts that are least needed if there is little room."""
        self.set_class(size.height < LOW_HEIGHT, "-low")
        self.set_class(size.height < TINY_HEIGHT, "-tiny")
        if self.dashboard is not None:
            self.dashboard.fit(size)

    def on_resize(self) -> None:
        self.redraw()

    def writes(self) -> bool:
        """Say whether the operator is writing."""
        return False

    async def load(self) -> None:
        """Import what it takes to draw; keys are answered meanwhile."""
        await load_modules(DASHBOARD_MODULES)

    async def raise_dashboard(self) -> None:
        """Replace the outline of the first paint by the panes."""
        from tui_agent.console.panes import StatusLine
        from tui_agent.console.panes.dashboard import Dashboard

        self.status = StatusLine()
        self.dashboard = dashboard = Dashboard(self.size)
        dashboard.display = False
        dashboard.types = self.writes
        await self.mount(dashboard, after=self.splash)
        await dashboard.fill_conversation(self.card_host)
        with self.app.batch_update():
            dashboard.display = True
            await self.splash.remove()
        await dashboard.fill_column()
        await self.mount(self.status, before=self.query_one(KeyHints))

    def use(self, remembered: Mapping[str, str]) -> None:
        if self.dashboard is not None:
            before = self.dashboard.density
            self.dashboard.use(remembered)
            if self.dashboard.density is not before:
                self.use_density(self.dashboard.density)

    def use_density(self, density: Density) -> None:
        """Draw the conversation so densely."""
        if self.dashboard is not None and self.status is not None:
            self.dashboard.use_density(density)
            self.status.view = str(density)
            self.redraw()

    # --- what commands and cards need -----------------------------------------------------------------------

    def focus_pane(self, name: str) -> None:
        pane = None if self.dashboard is None else self.dashboard.pane(name)
        if pane is not None:
            # A pane that was folded away can take the focus once it has been laid out.
            self.call_after_refresh(pane.focus)

    def go_to_card(self) -> None:
        """Go to the card that waits."""
        if self.card_host is not None:
            self.card_host.enter()

    def go_home(self) -> None:
        """Give the focus to the widget that has it by default."""
        if (home := self.home()) is not None:
            home.focus()

    def refocus(self) -> None:
        """Move the focus from a widget that cannot be seen any more to the default one."""
        if self.focused is None or not self.focused.region.area:
            self.go_home()

    @property
    def conversation(self) -> Conversation | None:
        """Entries in which a text can be found."""
        return None if self.state is None else self.state.conversation

    def on_conversation_pane_unmarked(self) -> None:
        self.go_home()

    def show_event(self, seq: int, words: Sequence[str]) -> None:
        if seq and self.dashboard is not None:
            self.draw()
            self.dashboard.go_to(seq, words)

    def action_widen_side(self, by: int) -> None:
        """Move the edge between the conversation and the panes at its side."""
        if self.dashboard is not None:
            self.dashboard.widen_side(by)

    def action_heighten(self, by: int) -> None:
        """Give the focused pane more rows, or fewer."""
        if self.dashboard is not None and self.focused is not None:
            self.dashboard.heighten(self.focused.id or "", by)

    def on_dashboard_sized(self) -> None:
        """Keep the sizes for the next start, and the form that they were given for."""
        if self.dashboard is not None:
            self.app.remember(panes=str(self.dashboard.chosen), **self.dashboard.sizes.words())

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Begin a selection of text as Textual does; an edge that the mouse moves begins none."""
        if self.dashboard is not None and self.dashboard.edge_at(x, y) is not None:
            return None, None
        return super().get_widget_and_offset_at(x, y)

    def on_asked(self, event: Asked) -> None:
        """A pane asks why."""
        event.stop()
        self.commands.explain(event.seq, event.call_id)

    def time_of(self, state: RunState) -> float:
        """When the panes show this state: in seconds since the epoch."""
        raise NotImplementedError

    def on_conversation_pane_copied(self, event: ConversationPane.Copied) -> None:
        """Copy the block under the cursor."""
        self.app.copy(event.text, "the block")
