"""The commands of a screen: each is carried out by the layer without Textual, and shows and asks on the screen.

Commands about the screen alone (its panes, its tabs, its colours) are here as a whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported
from textual.binding import Binding

from tui_agent.console.looks.splash import PANE_NAMES
from tui_agent.console.panes.density import Density
from tui_agent.console.panes.pane import LinePane
from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.core.evolve import evolve
from tui_agent.frontend.commands import session_commands
from tui_agent.frontend.commands.registry import Command, shown_key
from tui_agent.frontend.commands.session_commands import AT_ANY_TIME, OF_A_SESSION, OF_WHAT_IS_SHOWN, Answer
from tui_agent.frontend.commands.view import (
    ChosenSession,
    Confirmation,
    ForkFrom,
    ForkPlace,
    LiveView,
    Patch,
    Report,
    View,
    Written,
)
from tui_agent.frontend.lines.passages import Row
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tui_agent.config.settings import Settings
    from tui_agent.config.user_file import UserFile
    from tui_agent.console.screens.live import LiveScreen
    from tui_agent.console.screens.player import Player
    from tui_agent.console.screens.replay import ReplayScreen
    from tui_agent.console.screens.watch import WatchScreen
    from tui_agent.console.tabs.session_app import SessionApp
    from tui_agent.console.tabs.tab import Tab
    from tui_agent.core.events import BackgroundStarted
    from tui_agent.core.state import RunState
    from tui_agent.frontend.commands.view import RewindChoice, Waiting
    from tui_agent.frontend.lines.diff import FileDiff
    from tui_agent.frontend.operator import ConsoleOperator
    from tui_agent.frontend.startup import Recorded
    from tui_agent.frontend.why import Why
    from tui_agent.session.fork import ForkChoice
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.recordings import OpenedRecording
    from tui_agent.session.rewind import RewindPlan
    from tui_agent.session.session import Session
    from tui_agent.store.session_store import SessionStore

JUMP_TARGETS = (*PANE_NAMES, "prompt")

OPENING = "The session is still being opened."


class DashboardCommands(View):
    """What the live screen and the replay share. `own`: the commands about the screen alone."""

    def __init__(self, screen: DashboardScreen) -> None:
        self._screen = screen
        self.own: Mapping[str, Callable[[str], Answer]] = {
            "theme": self._theme,
            "panes": self._panes,
            "view": self._view,
            "next-pane": self._next_pane,
            "jump": self._jump,
            "find": self._find,
            "tabs": self._tabs,
            "tab": self._tab,
            "next-tab": self._next_tab,
            "close": self._close,
            "inbox": self._inbox,
        }
        self._sought = ""
        """The text that was found last."""

    @property
    def _app(self) -> SessionApp:
        return self._screen.app

    @property
    def _live(self) -> Session | None:
        """The session that runs, once it is open."""
        return None

    def handler(self, name: str) -> Callable[[str], Answer]:
        """What the command does with the text behind its name."""
        return self.own[name] if name in self.own else partial(OF_WHAT_IS_SHOWN[name], self)

    def run(self, name: str, argument: str = "") -> None:
        if self._opened or name in self.own or name in AT_ANY_TIME:
            self.carry_out(partial(self.handler(name), argument))
        else:
            self._wait_for_session(name, argument)

    @property
    def _opened(self) -> bool:
        """There is something to show."""
        raise NotImplementedError

    def _wait_for_session(self, name: str, argument: str) -> None:
        self.say(OPENING)

    def carry_out(self, command: Callable[[], Answer]) -> None:
        """Do it and say what it answers, or why it cannot be done."""
        try:
            answer = command()
        except (ValueError, SessionError, OSError) as error:
            self._screen.say(str(error), "warning")
            return
        if isinstance(answer, str):
            self._tell(answer)
        else:
            self._screen.run_worker(self._awaited(answer), group="commands")

    async def _awaited(self, answer: Awaitable[str]) -> None:
        try:
            self._tell(await answer)
        except (ValueError, SessionError, OSError) as error:
            self._screen.say(str(error), "warning")

    def _tell(self, answer: str) -> None:
        if answer:
            self.say(one_line(answer, 400))

    def values_of(self, command: Command) -> Sequence[str]:
        match command.name:
            case "theme":
                return self._app.theme_names
            case "jump":
                return JUMP_TARGETS
        return session_commands.values_of(command, self._live)

    def explain(self, seq: int, call_id: str) -> None:
        self.carry_out(lambda: session_commands.explain(self, seq, call_id))

    # --- what is shown --------------------------------------------------------------------------------------

    @property
    def state(self) -> RunState:
        state = self._screen.state
        if state is None:
            raise ValueError(OPENING)
        return state

    @property
    def now(self) -> float:
        return self._screen.time_of(self.state)

    @property
    def settings(self) -> Settings:
        settings = self._screen.settings
        if settings is None:
            raise ValueError(OPENING)
        return settings

    @property
    def asked_about(self) -> tuple[int, str]:
        focused = self._screen.focused
        asked = focused.subject() if isinstance(focused, LinePane) else None
        return (0, "") if asked is None else (asked.seq, asked.call_id)

    def say(self, text: str) -> None:
        self._screen.say(text)

    def show_help(self) -> None:
        from tui_agent.console.screens.help import HelpScreen

        screen = self._screen
        focused = "" if screen.focused is None else screen.focused.id or ""
        self._app.push_screen(HelpScreen(focused, replay=screen.replays), mode=screen.id)

    async def show_report(self, title: str, draw: Report, columns: int = 80, *, moves: bool = False) -> None:
        from tui_agent.console.screens.report import ReportScreen

        await self._screen.ask(ReportScreen(title, draw, columns, moves=moves))

    async def show_changes(self, files: Sequence[FileDiff], title: str) -> None:
        from tui_agent.console.screens.diff import DiffScreen

        await self._screen.ask(DiffScreen(files, title))

    def show_plan(self) -> None:
        dashboard = self._screen.dashboard
        if dashboard is not None and dashboard.plan is not None:
            dashboard.plan.toggle()

    async def copy(self, text: str, what: str) -> str:
        from tui_agent.frontend.clipboard import copy

        return await copy(text, what, self._app.copy_to_clipboard)

    async def choose_session(self, store: SessionStore) -> ChosenSession | None:
        from tui_agent.console.screens.sessions import SessionsScreen
        from tui_agent.frontend.commands.export import export

        here = frozenset(tab.session_id for tab in self._app.tabs)
        return await self._screen.ask(
            SessionsScreen(store, lambda folder: self._awaited(export(folder, "")), here)
        )

    async def choose_fork(self, reading: ForkFrom) -> ForkChoice | None:
        """What is typed while it is read is meant for the screen that asks; a second key opens no second one."""
        from tui_agent.console.screens.fork import ForkScreen

        chosen: asyncio.Future[ForkChoice | None] = asyncio.Future()
        with self._app.input_waits():
            point, changed = await reading
            if self._screen.is_open(ForkScreen):
                return None
            screen = ForkScreen(point, changed)
            await self._app.push_screen(screen, chosen.set_result, mode=self._screen.id)
        return await chosen

    def open_session(self, chosen: ChosenSession, changed: frozenset[str] = frozenset()) -> None:
        """In a tab, or go to the one that has it open."""
        screen = self._screen
        there = next((tab for tab in self._app.tabs if tab.session_id == chosen.session_id), None)
        if there is not None and chosen.what == "resume":
            self._app.show_tab(there)
            there.show_event(chosen.at, chosen.words)
        else:
            arguments = screen.arguments.opening(chosen, changed | screen.own_options)
            self._app.open_tab(arguments, instead_of=screen if screen.unused else None)

    async def leave(self) -> None:
        if await self._may_end(self._app.tabs, "Leaving"):
            await self._app.leave()

    async def _may_end(self, tabs: Sequence[Tab], what: str) -> bool:
        """Whether `what` is to be done, which ends the runs that are under way in these tabs."""
        from tui_agent.console.screens.ask import LeaveScreen

        runs = sum(tab.running for tab in tabs)
        question = LeaveScreen(runs, what, lambda: not any(tab.running for tab in tabs))
        return not runs or await self._screen.ask(question)

    def suspend(self) -> None:
        self._app.action_suspend_process()

    # --- colours and panes ----------------------------------------------------------------------------------

    def _theme(self, name: str) -> str:
        """Change the colours; without a name, look at all themes."""
        if not name:
            from tui_agent.console.screens.theme_gallery import ThemeGallery

            self._app.push_screen(ThemeGallery(self._app.user_file(self.settings)), mode=self._screen.id)
        elif name in self._app.theme_names:
            self._app.theme = name
        else:
            raise ValueError(f"There is no theme {name}. There are {', '.join(self._app.theme_names)}.")
        return ""

    def _panes(self, form: str) -> str:
        """Show the recovery panes in this form or the next one; the focus never stays in what is hidden."""
        from tui_agent.console.panes.dashboard import PaneForm
        from tui_agent.console.panes.pane_sizes import NARROWEST, WIDEST, PaneSizes, share_of

        dashboard = self._screen.dashboard
        if dashboard is None:
            return ""
        if form == "reset" or share_of(form) is not None:
            sizes = dashboard.sizes
            dashboard.use_sizes(PaneSizes() if form == "reset" else evolve(sizes, share=share_of(form)))
            form = PaneForm.SIDE
        if form and form not in list(PaneForm):
            said = f"a share of the width from {NARROWEST}% to {WIDEST}%"
            raise ValueError(f"There is no form {form}. There are {', '.join(PaneForm)}, {said}, and reset.")
        dashboard.choose(PaneForm(form) if form else dashboard.next_form())
        self._app.remember(panes=str(dashboard.chosen), panes_before=str(dashboard.before))
        self._screen.redraw()
        self._screen.call_after_refresh(self._screen.refocus)
        covered = dashboard.asking and dashboard.chosen is PaneForm.FULL
        return "The panes are shown once the question is answered." if covered else ""

    def _view(self, density: str) -> str:
        """Draw the conversation so densely, in all tabs, or in the next density."""
        if self._screen.dashboard is None:
            return ""
        densities = list(Density)
        if density and density not in densities:
            raise ValueError(f"There is no view {density}. There are {', '.join(densities)}.")
        here = densities.index(self._screen.dashboard.density)
        chosen = Density(density) if density else densities[(here + 1) % len(densities)]
        for tab in self._app.tabs:
            if isinstance(tab, DashboardScreen):
                tab.use_density(chosen)
        self._app.remember(view=str(chosen))
        return f"The conversation is shown in the {chosen} view."

    def _next_pane(self, _: str) -> str:
        """Go to the recovery pane after the one that has the focus, round and round."""
        focused = self._screen.focused
        here = focused.id if focused is not None else None
        names = [name for name in PANE_NAMES if name != "conversation"]
        place = names.index(here) + 1 if here in names else 0
        self._screen.focus_pane(names[place % len(names)])
        return ""

    async def _jump_to(self) -> str:
        from tui_agent.console.screens.jump import JumpScreen, targets_of

        name = await self._screen.ask(JumpScreen(targets_of(self._screen)))
        if name is not None:
            self._screen.focus_pane(name)
        return ""

    def _jump(self, pane: str) -> Answer:
        """Go to a pane by name, or choose one by its letter."""
        if not pane:
            return self._jump_to()
        if pane not in JUMP_TARGETS:
            raise ValueError(f"There is no pane {pane}. There are {', '.join(JUMP_TARGETS)}.")
        self._screen.focus_pane(pane)
        return ""

    async def _find(self, text: str) -> str:
        """Find a text in the conversation, and go to where it stands."""
        from tui_agent.console.screens.find import FindScreen

        conversation = self._screen.conversation
        if conversation is None:
            return ""
        said = *conversation.entries, *conversation.unclosed
        chosen = await self._screen.ask(FindScreen(said, text or self._sought))
        if chosen is not None:
            seq, self._sought = chosen
            self._screen.show_event(seq, [self._sought])
            self._screen.focus_pane("conversation")
        return ""

    # --- tabs -----------------------------------------------------------------------------------------------

    async def _tabs(self, _: str) -> str:
        """Choose among the open sessions."""
        from tui_agent.console.screens.pick import PickScreen

        rows = []
        for number, tab in enumerate(self._app.tabs, 1):
            stands = tab.standing()
            waits = f" · {stands.waits} for you" if stands.waits else ""
            rows.append(Row(f"{number} {stands.glyph} {stands.title}", f"{tab.session_id}{waits}", tab))
        remark = f"{shown_key('new')} opens another one, /close closes this one."
        chosen = await self._screen.ask(PickScreen("Tabs", rows, remark))
        if chosen is not None:
            self._app.show_tab(chosen)
        return ""

    def _tab(self, number: str) -> str:
        """Go to a tab by its number."""
        tabs = self._app.tabs
        if number.isdecimal() and len(number) < 4 and 1 <= int(number) <= len(tabs):
            self._app.show_tab(tabs[int(number) - 1])
        elif len(tabs) > 1:
            raise ValueError(f"There is no tab {number}; there are 1 to {len(tabs)}.")
        else:
            return _one_tab()
        return ""

    def _next_tab(self, step: str) -> str:
        """Go to the next tab (`step` -1: to the one before), round and round."""
        tabs = self._app.tabs
        self._app.show_tab(tabs[(tabs.index(self._screen) + int(step or 1)) % len(tabs)])
        return _one_tab() if len(tabs) == 1 else ""

    async def _close(self, _: str) -> str:
        """Close this tab; ask first where its run is under way."""
        if await self._may_end([self._screen], "Closing this tab"):
            self._app.close_tab(self._screen)
        return ""

    async def _inbox(self, _: str) -> str:
        """Show everything that waits for the operator, and go to what is chosen."""
        from tui_agent.console.screens.inbox import InboxScreen
        from tui_agent.console.tabs.inbox import waiting

        item = await self._screen.ask(InboxScreen(lambda: waiting(self._app.tabs)))
        if item is not None and not item.question.future.done():
            self._app.show_tab(item.tab)
            item.tab.go_to_question(item.question)
        return ""


def _one_tab() -> str:
    return f"There is one tab; {shown_key('new')} opens another one."


class LiveCommands(LiveView, DashboardCommands):
    """The commands of a session that runs. What is asked for before it is open is done in order as soon as it is."""

    _screen: LiveScreen

    def __init__(self, screen: LiveScreen) -> None:
        super().__init__(screen)
        self.own = {**self.own, "settings": self._settings, "keys": self._keys, "vim": self._vim}

    @property
    def _live(self) -> Session | None:
        return self._screen.session

    def handler(self, name: str) -> Callable[[str], Answer]:
        return self.own[name] if name in self.own else partial(OF_A_SESSION[name], self)

    @property
    def _opened(self) -> bool:
        return self._screen.session is not None

    def _wait_for_session(self, name: str, argument: str) -> None:
        self._screen.when_open(lambda: self.run(name, argument))

    def send_custom(self, line: str, otherwise: str) -> None:
        self._screen.when_open(lambda: self.carry_out(lambda: self._sent_custom(line, otherwise)))

    async def _sent_custom(self, line: str, otherwise: str) -> str:
        from tui_agent.frontend.commands.custom import send_custom_command

        try:
            return await send_custom_command(self, line, otherwise)
        except ValueError:
            self.put_in_prompt(line)
            raise

    async def deliver(self, text: str, typed: str | None, model: str) -> None:
        message = await session_commands.with_servers(self.session, text) if typed is None else text
        await session_commands.submit(self, message, text if typed is None else typed, model)

    def send_now(self) -> None:
        if self._live is None:
            self.say("The session is still being opened: the message goes out as soon as it is.")
        else:
            self.carry_out(lambda: session_commands.send_now(self))

    def rewrite_note(self, note: str | None) -> None:
        session_commands.rewrite_note(self, note)

    # --- the session ----------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        if self._screen.session is None:
            raise ValueError(OPENING)
        return self._screen.session

    @property
    def operator(self) -> ConsoleOperator:
        return self._screen.operator

    @property
    def own_run(self) -> OwnRun | None:
        return self._screen.own_run

    @property
    def user_file(self) -> UserFile:
        return self._app.user_file(self.settings)

    @property
    def history(self) -> Sequence[str]:
        return self._screen.prompt.recall.entries

    @property
    def queue(self) -> Sequence[Waiting]:
        return self._screen.queue

    def unqueue(self, message_id: str) -> bool:
        return self._screen.unqueue(message_id)

    # --- the prompt and the note ----------------------------------------------------------------------------

    def put_in_prompt(self, text: str, *, instead: bool = False) -> None:
        self._screen.put_in_prompt(text, instead=instead)

    async def edit_prompt(self) -> None:
        """The terminal is the editor's while the run goes on."""
        from tui_agent.frontend.editor import EditorError, edit

        prompt = self._screen.prompt
        try:
            with self._app.suspend():
                text = await edit(prompt.whole_text)
        except SuspendNotSupported:
            raise EditorError("This terminal cannot be lent to an editor.") from None
        else:
            prompt.put(text)
        finally:
            prompt.focus()

    def edit_note(self) -> bool:
        return self._screen.edit_note()

    def keep_note(self) -> None:
        self._screen.keep_note()

    # --- what is asked --------------------------------------------------------------------------------------

    async def submit(self, text: str, typed: str | None, model: str, line: str) -> None:
        await self._screen.submit(text, typed, model=model, line=line)

    async def confirm(self, question: Confirmation) -> bool:
        from tui_agent.console.screens.ask import AskScreen

        title, text, yes, no, over = question
        ends = None if over is None else (over, True)
        return await self._screen.ask(AskScreen(title, text, yes, no, no_first=True, over=ends))

    async def may_end_run(self, what: str) -> bool:
        return await self._may_end([self._screen], what)

    async def choose(
        self, title: str, rows: Sequence[Row], notice: str = "", written: Written | None = None
    ) -> Any:
        from tui_agent.console.screens.pick import PickScreen

        return await self._screen.ask(PickScreen(title, rows, notice, written))

    async def choose_rewind(self, choices: Sequence[RewindChoice]) -> RewindPlan | None:
        from tui_agent.console.screens.rewind import RewindScreen

        return await self._screen.ask(RewindScreen(self.session, choices))

    async def choose_background(self, running: Sequence[BackgroundStarted]) -> str:
        from tui_agent.console.screens.background import BackgroundScreen

        return await self._screen.ask(BackgroundScreen(running, time.time))

    async def show_rules(self, file: UserFile) -> None:
        from tui_agent.console.screens.rules import RulesScreen

        await self._screen.ask(RulesScreen(self.session, file))

    async def show_queue(self) -> None:
        self._screen.focus_queue()

    async def secret(self, title: str, about: str) -> str:
        from tui_agent.console.screens.field import FieldScreen, Judged, Values

        given = ""

        def judge(values: Values) -> Judged:
            there = bool(values[0].strip())
            return Judged("" if there else "Paste or type the key.", there)

        async def take(values: Values) -> str:
            nonlocal given
            given = values[0]
            return ""

        await self._screen.ask(FieldScreen(title, about, "", (), judge, take, masked=True))
        return given

    async def open_new(self, task: str = "", *, in_place: bool = False) -> None:
        screen = self._screen
        arguments = screen.arguments.anew(task, screen.session)
        self._app.open_tab(arguments, instead_of=screen if in_place else None)

    # --- the screen's own -----------------------------------------------------------------------------------

    async def _settings(self, _: str) -> str:
        """Show every setting."""
        from tui_agent.console.screens.settings import SettingsScreen

        await self._screen.ask(SettingsScreen(self.user_file, self._apply, self.run))
        return ""

    def _apply(self, key: str, settings: Settings) -> str:
        """Take over a setting that was changed in the user's file; from when on it holds."""
        match key:
            case "model" if settings.model:
                self.run("model", settings.model)
                return "from the next call of the model on."
            case "approve":
                self.session.set_approve(settings.approve)
                return "from now on."
            case "policy":
                self.session.set_policy(settings.policy)
                return "from the next run on."
        if self._app.take_over(key, settings):
            return "from now on."
        return "from the next run on." if self.session.use(key, settings) else "from the next session on."

    async def _keys(self, _: str) -> str:
        """Show all actions with their keys."""
        from tui_agent.console.screens.keys import KeysScreen

        bindings = type(self._screen).BINDINGS
        taken = frozenset(each.key for each in bindings if isinstance(each, Binding) and not each.id)
        await self._screen.ask(KeysScreen(self.user_file, self._apply, taken))
        return ""

    def _vim(self, wanted: str) -> str:
        """Vim keys in the prompt, or none."""
        if wanted not in {"", "on", "off"}:
            raise ValueError("Write /vim on, or /vim off.")
        prompt = self._screen.prompt
        on = prompt.vim is None if not wanted else wanted == "on"
        prompt.use_vim(on)
        return (
            "Vim keys: Esc leaves insert mode, and does in normal mode what it does without Vim."
            if on
            else "The prompt's own keys."
        )


class ReplayCommands(DashboardCommands):
    """The commands that make sense over a saved session."""

    _screen: ReplayScreen
    coming = "", ""

    def __init__(self, screen: ReplayScreen) -> None:
        super().__init__(screen)

    @property
    def _opened(self) -> bool:
        return self._screen.player is not None

    @property
    def _player(self) -> Player:
        if self._screen.player is None:
            raise ValueError(OPENING)
        return self._screen.player

    @property
    def _recorded(self) -> Recorded:
        if self._screen.recorded is None:
            raise ValueError(OPENING)
        return self._screen.recorded

    @property
    def source(self) -> Path:
        return self._recorded.path

    async def place(self) -> ForkPlace:
        """After the event that is shown."""
        player = self._player
        if not self._recorded.recording.as_recorded:
            raise ValueError(_unforkable(self._recorded.recording))
        if not player.there:
            raise ValueError("The session is still being read up to here.")
        seq = max(1, player.position)
        return ForkPlace(self.source, player.replay.state_at(seq), seq)

    async def patch(self) -> Patch | None:
        """Up to the position, or the step before it; None where the session's checkpoints are not on this machine."""
        from tui_agent.session.rewind import kept_before_run
        from tui_agent.store.checkpoints import Checkpoints
        from tui_agent.store.journal import sessions_folder
        from tui_agent.store.provenance import is_foreign

        state, player, path = self.state, self._player, self.source
        before, after = kept_before_run(state), player.replay.kept_then(player.position)
        folder = path if path.is_dir() else path.parent
        if (
            after is None
            or before in {"", after.ref}
            or is_foreign(folder, sessions_folder(self.settings.state_dir))
        ):
            return None
        workspace = Path(state.session.workspace)
        checkpoints = Checkpoints(self.settings.state_dir, workspace, state.session.id)
        try:
            return Patch(await checkpoints.patch(before, after.ref), whole=after.exact)
        except SessionError:
            return None

    async def gather_why(self, seq: int, call_id: str) -> Why:
        from tui_agent.frontend.why import explain

        return explain(self._player.replay, seq, call_id)


class FollowedCommands(ReplayCommands):
    """The commands over a run of a board."""

    async def leave(self) -> None:
        """As the board does, where there is one."""
        board = next((tab for tab in self._app.tabs if tab.is_board), None)
        if board is None:
            await self._app.leave()
        else:
            self._app.show_tab(board)
            board.commands.run("quit")


class WatchCommands(FollowedCommands):
    """The commands over another agent's session while it runs."""

    _screen: WatchScreen

    async def place(self) -> ForkPlace:
        """After the event that is shown, in a session of ours that is made of what is known up to it."""
        player = self._player
        if not player.there or not player.position:
            raise ValueError("The session is still being read up to here.")
        seq = player.position
        kept = await asyncio.to_thread(self._screen.kept, seq)
        return ForkPlace(kept, player.replay.state_at(seq), seq)


NO_RUN = "A board shows many runs: Enter opens the panes of one."


class BoardCommands(DashboardCommands):
    """The commands over many runs."""

    coming = "", ""
    _opened = True

    @property
    def state(self) -> RunState:
        raise ValueError(NO_RUN)

    @property
    def source(self) -> Path:
        raise ValueError(NO_RUN)

    async def place(self) -> ForkPlace:
        raise ValueError(NO_RUN)

    async def patch(self) -> Patch | None:
        raise ValueError(NO_RUN)

    async def gather_why(self, seq: int, call_id: str) -> Why:
        raise ValueError(NO_RUN)

    async def leave(self) -> None:
        """Open runs stay as they are."""
        from tui_agent.console.screens.ask import AskScreen

        text = "Open runs stay as they are, and the same command goes on with them."
        question = AskScreen("Leave the board?", text, ("q", "leave"), ("s", "stay"))
        if not self._screen.running or await self._screen.ask(question):
            await self._app.leave()


def _unforkable(recording: OpenedRecording) -> str:
    if recording.judged_by and not recording.foreign:
        return (
            f"This is the session as {recording.judged_by} judges it, which is not what was recorded: "
            "replay it without --policy and fork it there."
        )
    return "This is no saved session: agent-tui sessions import makes it one, which can be forked."
