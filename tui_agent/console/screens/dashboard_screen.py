"""What the live screen and the replay share: the outline of the first paint, the dashboard, the commands of both.

A command is a method `action_NAME`, called by its key, its slash command and the palette. A screen over this adds its
clock, its own widgets and its own commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from textual import work
from textual.binding import Binding, BindingType

from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.looks.splash import LOW_HEIGHT, PANE_NAMES, TINY_HEIGHT, Splash
from tui_agent.console.tabs.tab import Tab
from tui_agent.console.terminal.redraw import Redraw
from tui_agent.core.evolve import evolve
from tui_agent.frontend.commands import session_commands
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
    from tui_agent.console.tabs.tab import Standing
    from tui_agent.console.tabs.tab_row import TabRow
    from tui_agent.core.projections.conversation import Conversation
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.lines.styled import Line
    from tui_agent.frontend.why import Why
    from tui_agent.session.fork import ForkChoice

Result = TypeVar("Result")

LEAVING = "Leaving"
"""What closes every tab."""
JUMP_TARGETS = (*PANE_NAMES, "prompt")


def no_key(command: Command) -> str:
    """What stands for a key where a command has none: no terminal sends it."""
    return f"none_{command.action}"


def command_bindings(*, replay: bool) -> list[BindingType]:
    """The registry's keys; Esc leaves the first word to whatever is open."""
    bindings: list[BindingType] = [
        Binding(
            command.key or no_key(command),
            f"on_session('{command.name}')" if command.name in session_commands.NAMES else command.action,
            command.help,
            show=False,
            priority=command.key != "escape",
            id=command.name,
        )
        for command in BINDABLE
        if command.slash and (command.replay or not replay)
    ]
    bindings += [
        Binding(f"alt+{number}", f"tab('{number}')", "Tab", show=False, priority=True)
        for number in range(1, 10)
    ]
    return [
        *bindings,
        Binding("ctrl+pagedown", "next_tab", "Next tab", show=False, priority=True),
        Binding("ctrl+pageup", "next_tab(-1)", "The tab before", show=False, priority=True),
    ]


TAB_HINTS = (("next-tab", "next tab"), ("inbox", "inbox"))
"""Commands that the last line shows too where there are several tabs, and their words."""


def key_hints(*names: str) -> list[Hint]:
    """The hints of these commands, as far as they have a key."""
    pressed = [(name, BY_NAME[name].pressed) for name in names]
    return [Hint(key_label(key), name, key) for name, key in pressed if key]


class Patch(NamedTuple):
    """What a run changed, as git's patch. `whole`: with all that was done up to the moment that is shown."""

    text: str
    whole: bool = True


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
        self._sought = ""
        """The text that was found last."""

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
        if self._is_open(type(screen)):
            raise asyncio.CancelledError
        return await self.app.push_screen_wait(screen, mode=self.id)

    def _is_open(self, kind: type[Screen[Any]]) -> bool:
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
        from tui_agent.console.panes.dashboard import Form
        from tui_agent.console.panes.density import Density
        from tui_agent.console.panes.pane_sizes import PaneSizes

        if self.dashboard is None:
            return
        for form in (remembered.get("panes_before", ""), remembered.get("panes", "")):
            if form in list(Form):
                self.dashboard.choose(Form(form))
        self.dashboard.use_sizes(PaneSizes.of(remembered))
        if (density := remembered.get("view", "")) in list(Density):
            self.use_density(Density(density))

    def use_density(self, density: Density) -> None:
        """Draw the conversation so densely."""
        if self.dashboard is not None and self.status is not None:
            self.dashboard.use_density(density)
            self.status.view = str(density)
            self.redraw()

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

    def open_session(
        self,
        session_id: str,
        what: Literal["resume", "replay"],
        changed: frozenset[str] = frozenset(),
        at: int = 0,
        words: tuple[str, ...] = (),
    ) -> None:
        """Open another session in a tab, or go to the one that has it open; options in `changed` do not hold there.

        `at`: the event that is shown first, and `words` what of it; 0: the newest (a replay: the first).
        """
        there = next((tab for tab in self.app.tabs if tab.session_id == session_id), None)
        if there is not None and what == "resume":
            self.app.show_tab(there)
            there.show_event(at, words)
            return
        overrides = self.arguments.overrides
        dropped = changed | self.own_options
        arguments = replace(
            self.arguments,
            overrides={name: value for name, value in overrides.items() if name not in dropped},
            task=None,
            demo=None,
            step=False,
            at_event=at,
            at_words=words,
            resume=session_id if what == "resume" else None,
            replay=session_id if what == "replay" else None,
        )
        self.app.open_tab(arguments, instead_of=self if self.unused else None)

    async def fork_after(self, parent: Path, state: RunState, seq: int | None) -> None:
        """Ask what is to go differently after event `seq` (None: the last), fork there, and open the fork."""
        from tui_agent.console.screens.fork import ForkScreen
        from tui_agent.session.fork import changed_since, fork_session
        from tui_agent.session.fork_point import fork_point
        from tui_agent.store.errors import SessionError
        from tui_agent.store.journal import sessions_folder

        if self.settings is None:
            return
        sessions_dir = sessions_folder(self.settings.state_dir)
        try:
            choice: asyncio.Future[ForkChoice | None] = asyncio.Future()
            with self.app.input_waits():
                point = await asyncio.to_thread(fork_point, parent, state, seq)
                changed = await changed_since(parent, sessions_dir, point.seq)
                if self._is_open(ForkScreen):
                    return
                await self.app.push_screen(ForkScreen(point, changed), choice.set_result, mode=self.id)
            chosen = await choice
            if chosen is None:
                return
            folder = await fork_session(parent, sessions_dir, chosen)
        except SessionError as error:
            self.say(str(error), "error")
            return
        self.open_session(folder.name, "resume", chosen.settings)

    async def export_to_file(self, source: Path, argument: str) -> None:
        """Write the session to the file that `[FORMAT] [FILE]` asks for; an existing file is left alone."""
        from tui_agent.frontend.commands.export import export_file
        from tui_agent.store.errors import SessionError

        try:
            file = await asyncio.to_thread(export_file, source, argument)
        except (SessionError, ValueError, OSError) as error:
            self.say(f"The session was not exported: {error}", "error")
        else:
            self.say(f"The session was written to {file}")

    # --- commands -------------------------------------------------------------------------------------------

    def run_command(self, name: str, argument: str = "") -> None:
        """Run a command by its name, as its key would; long ones run in the background."""
        if name in session_commands.NAMES:
            self.action_on_session(name, argument)
            return
        action = getattr(self, f"action_{BY_NAME[name].action}")
        action(*([argument] if argument else []))

    def action_on_session(self, name: str, argument: str = "") -> None:
        """A command that is wholly a session's; a replay has none."""

    def values_of(self, command: Command) -> Sequence[str]:
        """What the command's argument can be."""
        match command.name:
            case "theme":
                return self.app.theme_names
            case "jump":
                return JUMP_TARGETS
            case "export":
                from tui_agent.formats.exporters import FORMATS

                return FORMATS
            case _:
                return command.values

    def action_help(self) -> None:
        """Keys, commands, panes."""
        from tui_agent.console.screens.help import HelpScreen

        focused = "" if self.focused is None else self.focused.id or ""
        self.app.push_screen(HelpScreen(focused, replay=self.replays), mode=self.id)

    @property
    def conversation(self) -> Conversation | None:
        """What a text can be found in."""
        return None if self.state is None else self.state.conversation

    @work(group="commands")
    async def action_find(self, text: str = "") -> None:
        """Find a text in the conversation, and go to where it stands."""
        from tui_agent.console.screens.find import FindScreen

        if self.conversation is not None:
            said = *self.conversation.entries, *self.conversation.unclosed
            chosen = await self.ask(FindScreen(said, text or self._sought))
            if chosen is not None:
                seq, self._sought = chosen
                self.show_event(seq, [self._sought])
                self.focus_pane("conversation")

    def on_conversation_pane_unmarked(self) -> None:
        if (home := self.home()) is not None:
            home.focus()

    def show_event(self, seq: int, words: Sequence[str]) -> None:
        if seq and self.dashboard is not None:
            self.draw()
            self.dashboard.go_to(seq, words)

    def action_context(self) -> None:
        """What fills the model's window now."""
        from tui_agent.console.screens.report import ReportScreen
        from tui_agent.core.request.context import context_use
        from tui_agent.frontend.lines.context import context_lines

        if self.state is not None:
            use = context_use(self.state)
            self.app.push_screen(
                ReportScreen("Context", lambda width: context_lines(use, width)), mode=self.id
            )

    def action_theme(self, name: str = "") -> None:
        """Change the colours; without a name, look at all themes."""
        if not name and self.settings is not None:
            from tui_agent.console.screens.theme_gallery import ThemeGallery

            self.app.push_screen(ThemeGallery(self.app.user_file(self.settings)), mode=self.id)
        elif name in self.app.theme_names:
            self.app.theme = name
        else:
            self.say(f"There is no theme {name}. There are {', '.join(self.app.theme_names)}.", "warning")

    def action_panes(self, form: str = "") -> None:
        """Show the recovery panes in this form or the next one; the focus never stays in what is hidden."""
        from tui_agent.console.panes.dashboard import Form
        from tui_agent.console.panes.pane_sizes import NARROWEST, WIDEST, PaneSizes, share_of

        if self.dashboard is None:
            return
        if form == "reset" or share_of(form) is not None:
            sizes = self.dashboard.sizes
            self.dashboard.use_sizes(PaneSizes() if form == "reset" else evolve(sizes, share=share_of(form)))
            form = Form.SIDE
        if form and form not in list(Form):
            said = f"a share of the width from {NARROWEST}% to {WIDEST}%"
            self.say(f"There is no form {form}. There are {', '.join(Form)}, {said}, and reset.", "warning")
            return
        self.dashboard.choose(Form(form) if form else self.dashboard.next_form())
        if self.dashboard.asking and self.dashboard.chosen is Form.FULL:
            self.say("The panes are shown once the question is answered.")
        self.app.remember(panes=str(self.dashboard.chosen), panes_before=str(self.dashboard.before))
        self.redraw()
        self.call_after_refresh(self.refocus)

    def action_view(self, density: str = "") -> None:
        """Draw the conversation so densely, in all tabs, or in the next density."""
        from tui_agent.console.panes.density import Density

        if self.dashboard is None:
            return
        densities = list(Density)
        if density and density not in densities:
            self.say(f"There is no view {density}. There are {', '.join(densities)}.", "warning")
            return
        here = densities.index(self.dashboard.density)
        chosen = Density(density) if density else densities[(here + 1) % len(densities)]
        for tab in self.app.tabs:
            if isinstance(tab, DashboardScreen):
                tab.use_density(chosen)
        self.app.remember(view=str(chosen))
        self.say(f"The conversation is shown in the {chosen} view.")

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

    def action_why(self) -> None:
        """Explain what the focused pane shows, else what is wrong now."""
        from tui_agent.console.panes.pane import LinePane

        focused = self.focused
        asked = focused.subject() if isinstance(focused, LinePane) else None
        self.explain(*(0, "") if asked is None else (asked.seq, asked.call_id))

    def on_asked(self, event: Asked) -> None:
        """A pane asks why."""
        event.stop()
        self.explain(event.seq, event.call_id)

    def explain(self, seq: int, call_id: str = "") -> None:
        """Show why; 0: about what is wrong now, else about the last verdict or the run's end."""
        from tui_agent.frontend.why import newest_trouble

        state = self.state
        seq = seq or (0 if state is None else newest_trouble(state))
        if not seq:
            self.say("Nothing has failed, and no verdict was given yet.")
        else:
            self.show_why(seq, call_id)

    @work(group="why", exclusive=True)
    async def show_why(self, seq: int, call_id: str) -> None:
        """Gather what the journal says, and show it."""
        from tui_agent.console.screens.why import WhyScreen
        from tui_agent.store.errors import JournalError

        try:
            why = await self.gather_why(seq, call_id)
        except (JournalError, IndexError) as error:
            self.say(f"The journal does not tell: {error}", "warning")
        else:
            await self.ask(WhyScreen(why))

    async def gather_why(self, seq: int, call_id: str) -> Why:
        """What is known about an event of the session that is shown. Raises `JournalError`."""
        raise NotImplementedError

    def time_of(self, state: RunState) -> float:
        """When the panes show this state: in seconds since the epoch."""
        raise NotImplementedError

    def action_status(self) -> None:
        """How the session stands."""
        from tui_agent.frontend.lines.reports import status_lines

        coming = ("", "") if self.status is None else (self.status.next_model, self.status.next_policy)
        self._report("Status", lambda state, width: status_lines(state, width, *coming))

    def action_cost(self) -> None:
        """What the run and the session used."""
        from tui_agent.frontend.lines.reports import cost_lines

        self._report("Cost", lambda state, width: cost_lines(state, self.time_of(state), width))

    @work(group="changes", exclusive=True)
    async def action_diff(self) -> None:
        """What the run changed, file by file."""
        from tui_agent.console.screens.diff import DiffScreen
        from tui_agent.frontend.lines.diff import files_of
        from tui_agent.frontend.lines.reports import BY_TOOLS, changed_files

        patch, state = await self.patch(), self.state
        if patch is not None:
            files = await asyncio.to_thread(files_of, patch.text)
            title = "Changes of this run" if patch.whole else "Changes of this run, before the step under way"
        else:
            files = [] if state is None else changed_files(state)
            title = BY_TOOLS
        if files:
            await self.ask(DiffScreen(files, title))
        else:
            self.say("This run has changed no file.")

    async def patch(self) -> Patch | None:
        """What the run that is shown changed, by tools or commands; None: only its file tools can tell."""
        raise NotImplementedError

    def _report(self, title: str, draw: Callable[[RunState, int], list[Line]]) -> None:
        from tui_agent.console.screens.report import ReportScreen

        state = self.state
        if state is None:
            self.say("The session is still being opened.")
        else:
            self.app.push_screen(ReportScreen(title, lambda width: draw(state, width)), mode=self.id)

    def action_plan(self) -> None:
        """Open the model's plan, or close it."""
        line = None if self.dashboard is None else self.dashboard.plan
        if line is not None and not line.toggle():
            self.say("The model keeps no plan.")

    def action_next_pane(self) -> None:
        """Go to the recovery pane after the one that has the focus, round and round."""
        here = self.focused.id if self.focused is not None else None
        names = [name for name in PANE_NAMES if name != "conversation"]
        place = names.index(here) + 1 if here in names else 0
        self.focus_pane(names[place % len(names)])

    def action_jump(self, pane: str = "") -> None:
        """Go to a pane by name, or choose one by its letter."""
        if not pane:
            from tui_agent.console.screens.jump import JumpScreen, targets_of

            self.app.push_screen(JumpScreen(targets_of(self)), self._jumped, mode=self.id)
        elif pane in JUMP_TARGETS:
            self.focus_pane(pane)
        else:
            self.say(f"There is no pane {pane}. There are {', '.join(JUMP_TARGETS)}.", "warning")

    def _jumped(self, name: str | None) -> None:
        if name is not None:
            self.focus_pane(name)

    @work(group="commands")
    async def action_sessions(self) -> None:
        """Show the saved sessions, and open the one that is chosen."""
        if self.settings is None:
            return
        from tui_agent.console.screens.sessions import SessionsScreen
        from tui_agent.store.session_store import SessionStore

        store = await asyncio.to_thread(SessionStore, self.settings.state_dir)
        here = frozenset(tab.session_id for tab in self.app.tabs)
        chosen = await self.ask(SessionsScreen(store, lambda folder: self.export_to_file(folder, ""), here))
        if chosen is not None:
            self.open_session(chosen.session_id, chosen.what, at=chosen.at, words=chosen.words)

    def action_tab(self, number: str) -> None:
        """Go to a tab by its number."""
        tabs = self.app.tabs
        if number.isdecimal() and 1 <= int(number) <= len(tabs):
            self.app.show_tab(tabs[int(number) - 1])
        elif len(tabs) > 1:
            self.say(f"There is no tab {number}; there are 1 to {len(tabs)}.", "warning")
        else:
            self._say_one_tab()

    def action_next_tab(self, step: int = 1) -> None:
        """Go to the next tab, round and round."""
        tabs = self.app.tabs
        if len(tabs) == 1:
            self._say_one_tab()
        self.app.show_tab(tabs[(tabs.index(self) + step) % len(tabs)])

    def _say_one_tab(self) -> None:
        self.say(f"There is one tab; {shown_key('new')} opens another one.")

    @work(group="commands")
    async def action_tabs(self) -> None:
        """Choose among the open sessions."""
        from tui_agent.console.screens.pick import PickScreen
        from tui_agent.frontend.lines.passages import Row

        rows = []
        for number, tab in enumerate(self.app.tabs, 1):
            stands = tab.standing()
            waits = f" · {stands.waits} for you" if stands.waits else ""
            rows.append(Row(f"{number} {stands.glyph} {stands.title}", f"{tab.session_id}{waits}", tab))
        remark = f"{shown_key('new')} opens another one, /close closes this one."
        chosen = await self.ask(PickScreen("Tabs", rows, remark))
        if chosen is not None:
            self.app.show_tab(chosen)

    @work(group="commands")
    async def action_close(self) -> None:
        """Close this tab; ask first where its run is under way."""
        if not self.running or await self._confirm(1, "Closing this tab"):
            self.app.close_tab(self)

    @work(group="commands")
    async def action_inbox(self) -> None:
        """Show everything that waits for the operator, and go to what is chosen."""
        from tui_agent.console.screens.inbox import InboxScreen
        from tui_agent.console.tabs.inbox import waiting

        item = await self.ask(InboxScreen(lambda: waiting(self.app.tabs)))
        if item is not None and not item.question.future.done():
            self.app.show_tab(item.tab)
            item.tab.go_to_question(item.question)

    async def _confirm(self, runs: int, what: str = LEAVING) -> bool:
        from tui_agent.console.screens.ask import LeaveScreen

        tabs = self.app.tabs if what == LEAVING else (self,)
        leaving: bool = await self.ask(LeaveScreen(runs, what, lambda: not any(tab.running for tab in tabs)))
        return leaving

    def on_conversation_pane_copied(self, event: ConversationPane.Copied) -> None:
        """Copy the block under the cursor."""
        self.app.copy(event.text, "the block")

    def action_copy(self) -> None:
        """Copy the newest reply, whole and as the model wrote it."""
        if self.state is None:
            return
        try:
            self.app.copy(session_commands.newest_reply(self.state), "the newest reply")
        except ValueError as error:
            self.say(str(error))

    def action_suspend(self) -> None:
        """Stop the process, as a shell's job; a run stands still until it is continued."""
        self.app.action_suspend_process()

    @work(group="commands")
    async def action_quit(self) -> None:
        """Leave; ask first where runs are under way, in any tab."""
        runs = sum(tab.running for tab in self.app.tabs)
        if not runs or await self._confirm(runs):
            await self.app.leave()
