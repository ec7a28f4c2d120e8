"""What the live screen and the replay share: the outline of the first paint, the dashboard, the keys of commands.

A screen over this adds its clock and its own widgets; what its commands do is its `commands`' to know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from textual.binding import Binding, BindingType

from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.looks.splash import LOW_HEIGHT, TINY_HEIGHT, Splash
from tui_agent.console.tabs.tab import Tab
from tui_agent.console.terminal.redraw import Redraw
from tui_agent.frontend.commands.registry import BINDABLE, BY_NAME, Command, key_label, shown_key

if TYPE_CHECKING:
    from textual.geometry import Offset, Size
    from textual.screen import Screen
    from textual.widget import Widget

    from tui_agent.console.cards.card_host import CardHost
    from tui_agent.console.panes import ConversationPane, StatusLine
    from tui_agent.console.panes.dashboard import Dashboard
    from tui_agent.console.panes.density import Density
    from tui_agent.console.panes.pane import Asked
    from tui_agent.console.tabs.session_app import SessionApp
    from tui_agent.console.tabs.tab import Commands, Standing
    from tui_agent.console.tabs.tab_row import TabRow
    from tui_agent.core.projections.conversation import Conversation
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments

Result = TypeVar("Result")


def no_key(command: Command) -> str:
    """What stands for a key where a command has none: no terminal sends it."""
    return f"none_{command.name.replace('-', '_')}"


def command_bindings(*, replay: bool) -> list[BindingType]:
    """The registry's keys; Esc leaves the first word to whatever is open."""
    bindings: list[BindingType] = [
        Binding(
            command.key or no_key(command),
            # Esc closes what is open first.
            "interrupt" if command.name == "interrupt" else f"command('{command.name}')",
            command.help,
            show=False,
            priority=command.key != "escape",
            id=command.name,
        )
        for command in BINDABLE
        if command.slash and (command.replay or not replay)
    ]
    bindings += [
        Binding(f"alt+{number}", f"command('tab', '{number}')", "Tab", show=False, priority=True)
        for number in range(1, 10)
    ]
    return [
        *bindings,
        Binding("ctrl+pagedown", "command('next-tab')", "Next tab", show=False, priority=True),
        Binding("ctrl+pageup", "command('next-tab', '-1')", "The tab before", show=False, priority=True),
    ]


TAB_HINTS = (("next-tab", "next tab"), ("inbox", "inbox"))
"""Commands that the last line shows too where there are several tabs, and their words."""


def key_hints(*names: str) -> list[Hint]:
    """The hints of these commands, as far as they have a key."""
    pressed = [(name, BY_NAME[name].pressed) for name in names]
    return [Hint(key_label(key), name, key) for name, key in pressed if key]


class DashboardScreen(Tab):
    """A screen around a dashboard."""

    app: SessionApp
    replays: ClassVar[bool] = False
    """Only the commands that make sense over a saved session are offered."""
    goes_on: ClassVar[bool] = True
    """What is shown happens now: the operator is called for it."""
    own_options: ClassVar[frozenset[str]] = frozenset()
    """Options that hold for what is shown here, and for no other session."""

    DEFAULT_CSS = """
    DashboardScreen {
        layout: vertical; background: $background;
        &.-low KeyHints { display: none; }
        &.-tiny Prompt { border: none; min-height: 1; max-height: 2; padding: 0; }
        &.-tiny PromptOutline { border: none; height: 1; padding: 0; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, arguments: ConsoleArguments, mode: str) -> None:
        """`mode`: the app's name for the tab, and the screen's id."""
        super().__init__(arguments, mode)
        self.redrawing = Redraw(self, self._draw_shown, self.draw_failed)
        self._tab_row: TabRow | None = None
        self.splash = Splash()
        self.dashboard: Dashboard | None = None
        self.status: StatusLine | None = None

    @cached_property
    def commands(self) -> Commands:
        """Imported only now: the first paint goes without."""
        return self.app.commands_of(self)

    @property
    def state(self) -> RunState | None:
        """What is shown; None while it is being opened."""
        raise NotImplementedError

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
        """Show the keys that are in force."""
        usual = self.usual_hints()
        pressed = [(BY_NAME[name].pressed, word) for name, word in TAB_HINTS if len(self.app.tabs) > 1]
        hints = [*usual[:1], *(Hint(key_label(key), word, key) for key, word in pressed if key), *usual[1:]]
        for line in self.query(KeyHints):
            line.show(hints)

    def usual_hints(self) -> Sequence[Hint]:
        """The keys of the last line, where there is one tab."""
        raise NotImplementedError

    def came_to_front(self) -> None:
        self.redraw()

    def on_tab_row_picked(self, event: TabRow.Picked) -> None:
        self.app.show_tab(self.app.tabs[event.place])

    async def ask(self, screen: Screen[Result]) -> Result:
        """Show a screen over this one and wait for what it is dismissed with; over another tab it never stands.

        Raises `CancelledError` where such a screen is open: its key was pressed twice before it was there.
        """
        if self.is_open(type(screen)):
            raise asyncio.CancelledError
        return await self.app.push_screen_wait(screen, mode=self.id)

    def is_open(self, kind: type[Screen[Any]]) -> bool:
        """Whether such a screen stands over this one."""
        return self.app.current_mode == self.id and type(self.app.screen) is kind

    def fit(self, size: Size) -> None:
        """Give up what is least needed where there is little room."""
        self.set_class(size.height < LOW_HEIGHT, "-low")
        self.set_class(size.height < TINY_HEIGHT, "-tiny")
        if self.dashboard is not None:
            self.dashboard.fit(size)

    def on_resize(self) -> None:
        self.redraw()

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

    async def raise_dashboard(self, card_host: CardHost | None = None) -> None:
        """Replace the outline of the first paint by the panes."""
        from tui_agent.console.panes import StatusLine
        from tui_agent.console.panes.dashboard import Dashboard

        self.status = StatusLine()
        self.dashboard = dashboard = Dashboard(self.size)
        dashboard.display = False
        await self.mount(dashboard, after=self.splash)
        await dashboard.fill_conversation(card_host)
        with self.app.batch_update():
            dashboard.display = True
            await self.splash.remove()
        await dashboard.fill_column()
        await self.mount(self.status, before=self.query_one(KeyHints))

    def use(self, remembered: Mapping[str, str]) -> None:
        """Take up what was remembered of earlier starts."""
        from tui_agent.console.panes.dashboard import PaneForm
        from tui_agent.console.panes.density import Density
        from tui_agent.console.panes.pane_sizes import PaneSizes

        if self.dashboard is None:
            return
        for form in (remembered.get("panes_before", ""), remembered.get("panes", "")):
            if form in list(PaneForm):
                self.dashboard.choose(PaneForm(form))
        self.dashboard.use_sizes(PaneSizes.of(remembered))
        if (density := remembered.get("view", "")) in list(Density):
            self.use_density(Density(density))

    def use_density(self, density: Density) -> None:
        """Draw the conversation so densely."""
        if self.dashboard is not None and self.status is not None:
            self.dashboard.use_density(density)
            self.status.view = str(density)
            self.redraw()

    def action_command(self, name: str, argument: str = "") -> None:
        """A key of a command."""
        self.commands.run(name, argument)

    # --- what commands and cards need -----------------------------------------------------------------------

    def say(self, text: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """A short notification in the corner; from a tab that is not shown, with its title."""
        title = self.standing().title if self.hidden else ""
        from tui_agent.terminal_text import without_middle

        self.notify(without_middle(text), severity=severity, title=title, markup=False)

    def put_in_prompt(self, text: str) -> None:
        """Offer a text for editing, where there is a prompt."""

    def focus_pane(self, name: str) -> None:
        pane = None if self.dashboard is None else self.dashboard.pane(name)
        if pane is not None:
            # A pane that was folded away can take the focus once it has been laid out.
            self.call_after_refresh(pane.focus)

    def refocus(self) -> None:
        """Move the focus from a widget that cannot be seen any more to the default one."""
        home = self.home()
        if home is not None and (self.focused is None or not self.focused.region.area):
            home.focus()

    @property
    def conversation(self) -> Conversation | None:
        """What a text can be found in."""
        return None if self.state is None else self.state.conversation

    def on_conversation_pane_unmarked(self) -> None:
        if (home := self.home()) is not None:
            home.focus()

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
        """Keep the sizes for the next start."""
        if self.dashboard is not None:
            self.app.remember(**self.dashboard.sizes.words())

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """As in Textual, where a selection of text begins; an edge that the mouse moves begins none."""
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
