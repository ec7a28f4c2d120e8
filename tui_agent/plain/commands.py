"""The host of commands in lines: what they show is written, what they ask is a dialogue.

What each does is in `frontend.commands`; `/show` is only here.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tui_agent.config.user_file import UserFile
from tui_agent.core.events import BackgroundStarted
from tui_agent.core.projections.entries import CallEntry
from tui_agent.frontend.clipboard import copy
from tui_agent.frontend.commands.command import Command
from tui_agent.frontend.commands.dispatch import Dispatcher
from tui_agent.frontend.commands.host import (
    ChosenSession,
    Confirmation,
    ForkFrom,
    Report,
    RewindChoice,
    Waiting,
    Written,
)
from tui_agent.frontend.commands.registry import COMMANDS, AnyCommand
from tui_agent.frontend.commands.rule_words import USAGE
from tui_agent.frontend.commands.shown import ShownSession
from tui_agent.frontend.lines.diff import FileDiff, draw_unified
from tui_agent.frontend.lines.passages import Row
from tui_agent.frontend.lines.rewind import preview
from tui_agent.frontend.lines.styled import Line
from tui_agent.plain import dialogues
from tui_agent.quantities import age, seconds
from tui_agent.session.fork import ForkChoice
from tui_agent.session.rewind import RewindPlan, Scope
from tui_agent.session.rules import SessionRules
from tui_agent.session.session import Session
from tui_agent.store.session_store import SessionStore
from tui_agent.terminal_text import one_line, revealed_line, sanitize, without_middle
from tui_agent.tools.output import last_lines

if TYPE_CHECKING:
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.operator import ConsoleOperator
    from tui_agent.frontend.prompt_history import PromptHistory
    from tui_agent.plain.paper import Paper
    from tui_agent.session.own_run import OwnRun

Answer = TypeVar("Answer")

WIDE = 400
"""Columns for reports: the terminal wraps their lines by itself."""

SCOPES = (
    Row("conversation and files", "", "both"),
    Row("the conversation alone", "", "conversation"),
    Row("the files alone", "", "files"),
)

LISTED = 40
"""Rows that are offered by number."""

_BAR = re.compile("[█·┃ ]*[█┃][█·┃ ]*")
"""Of what a report draws, what says nothing in lines."""

HELP = """\
A line is a task; while a run is under way it is a message to the agent. A line that ends with a backslash goes on in \
the next one.
!COMMAND runs a command of your own; what it prints goes to the model with your next message. @FILE names a file.
Ctrl+C interrupts what runs; a second Ctrl+C leaves. Commands:"""


def text_of(lines: Iterable[Line]) -> list[str]:
    """A report without its styles and bars."""
    return ["".join(span.text for span in line if not _BAR.fullmatch(span.text)).rstrip() for line in lines]


class Console(Protocol):
    """The interface of the program that commands need."""

    paper: Paper
    operator: ConsoleOperator
    history: PromptHistory
    arguments: ConsoleArguments
    own_run: OwnRun | None

    async def ask(self, dialogue: dialogues.Dialogue[Answer]) -> Answer: ...

    async def submit(self, text: str, typed: str | None = None, model: str = "") -> None: ...

    async def may_leave(self) -> bool: ...

    def leave(self, following: ConsoleArguments | None = None) -> None: ...

    def put_in_prompt(self, text: str) -> None: ...

    async def edit(self) -> str: ...

    async def secret(self, prompt: str) -> str: ...

    def begin(self, work: Coroutine[Any, Any, None]) -> None: ...


class PlainHost(Dispatcher):
    """A session in lines as commands see it (`SessionHost`), which carries them out."""

    asked_about = 0, ""
    on_screen = False

    def __init__(self, console: Console, session: Session) -> None:
        super().__init__(self, self.say, lambda text: self.say(without_middle(text)), console.begin)
        self._console, self._session = console, session
        self.shown = ShownSession(lambda: session)

    def when_open(self, act: Callable[[], None]) -> None:
        act()

    @property
    def session(self) -> Session:
        return self._session

    @property
    def operator(self) -> ConsoleOperator:
        return self._console.operator

    def write(self, lines: Iterable[str], indent: str = "") -> None:
        self._console.paper.lines(lines, indent)

    # --- the session ----------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return time.time()

    @property
    def own_run(self) -> OwnRun | None:
        return self._console.own_run

    @property
    def user_file(self) -> UserFile:
        return UserFile(self.session.settings.user_file, self._console.arguments.overrides)

    @property
    def history(self) -> Sequence[str]:
        return self._console.history.entries

    @property
    def queue(self) -> Sequence[Waiting]:
        return [Waiting(message.id, message.text) for message in self.session.state.queue]

    def unqueue(self, message_id: str) -> bool:
        self.session.runs.drop(message_id)
        return True

    # --- what is shown --------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        if text:
            self._console.paper.line(sanitize(text))

    def show_help(self) -> None:
        self.write(HELP.split("\n"))
        self.write(f"  {command.usage}: {command.help}" for command in offered())

    async def show_report(self, title: str, draw: Report, columns: int = 80, *, moves: bool = False) -> None:
        self.write(text_of(draw(WIDE)))

    async def show_changes(self, files: Sequence[FileDiff], title: str) -> None:
        self.say(f"{title}:")
        for file in files:
            self.say(f"{one_line(file.name, 400)}: {file.added} added, {file.removed} removed")
            self.write(text_of(draw_unified(file, WIDE)))

    def show_plan(self) -> None:
        if (plan := self.session.state.conversation.plan) is not None:
            self.say(plan.as_text())

    async def show_rules(self, file: UserFile) -> None:
        listed = await asyncio.to_thread(SessionRules(self.session, file).listed)
        self.write(f"{number}. {revealed_line(str(each.rule))}" for number, each in enumerate(listed, 1))
        self.say(
            "Deny comes before ask, ask before allow; `agent-tui permissions explain COMMAND` says which rule applies."
            if listed
            else "There is no rule."
        )
        self.say(USAGE)

    async def show_queue(self) -> None:
        rows = [Row(message.text, "", message.id) for message in self.queue]
        chosen = await self._console.ask(dialogues.pick("Messages that wait; a number drops one", rows))
        if chosen is not None:
            self.unqueue(chosen)

    async def copy(self, text: str, what: str) -> str:
        return await copy(text, what)

    def suspend(self) -> None:
        os.killpg(0, signal.SIGTSTP)

    # --- the prompt -----------------------------------------------------------------------------------------

    def put_in_prompt(self, text: str, *, instead: bool = False, restored: bool = False) -> None:
        self._console.put_in_prompt(text)

    async def submit(self, text: str, typed: str | None, model: str, line: str) -> None:
        await self._console.submit(text, typed, model)

    async def edit_prompt(self) -> None:
        text = await self._console.edit()
        if text.strip():
            await self._console.submit(text)

    def edit_note(self) -> bool:
        return False

    def keep_note(self) -> None:
        """No note is ever open."""

    # --- what is asked --------------------------------------------------------------------------------------

    async def secret(self, title: str, about: str) -> str:
        self.say(about)
        return await self._console.secret(f"{title} (it is not shown): ")

    async def confirm(self, question: Confirmation) -> bool:
        lines = [f"{question.title}.", *dialogues.indented(question.text.split("\n"))]
        return await self._console.ask(dialogues.confirm(lines, question.yes[1]))

    async def may_end_run(self, what: str) -> bool:
        return await self._console.may_leave()

    async def choose(
        self, title: str, rows: Sequence[Row], notice: str = "", written: Written | None = None
    ) -> Any:
        self.say(notice)
        return await self._console.ask(dialogues.pick(title, rows[:LISTED], written or (lambda _: None)))

    async def choose_rewind(self, choices: Sequence[RewindChoice]) -> RewindPlan | None:
        rows = [Row(choice.label, "", choice) for choice in choices]
        if len(choices) == 1:
            choice = choices[0]
            self.say(f"Go back to: {one_line(choice.label, 200)}")
        elif (choice := await self._console.ask(dialogues.pick("Go back to", rows))) is None:
            return None
        if (point := choice.point) is None:
            plan = await self.session.rewinding.plan_undo()
        else:
            scope: Scope | None = "conversation"
            if point.ref:
                scope = await self._console.ask(dialogues.pick("What goes back", SCOPES))
            if scope is None:
                return None
            plan = await self.session.rewinding.plan(point, scope)
        lines = dialogues.shown(preview(plan, self.session.state.session.workspace))
        return plan if await self._console.ask(dialogues.confirm(lines, "does it")) else None

    async def choose_fork(self, reading: ForkFrom) -> ForkChoice | None:
        point, changed = await reading
        chosen = await self._console.ask(dialogues.fork(point, [change.path for change in changed]))
        return chosen if chosen is not None and await self._console.may_leave() else None

    async def choose_session(self, store: SessionStore) -> ChosenSession | None:
        others = [row for row in await asyncio.to_thread(store.rows) if row.id != self.session.id]
        if not others:
            self.say("There is no other session.")
            return None
        rows = [
            Row(
                row.title,
                f"{age(self.now - row.ended_at)} ago, {row.outcome_in_words}, {row.id}",
                row.id,
            )
            for row in others[:LISTED]
        ]
        chosen = await self._console.ask(dialogues.pick("Sessions, the newest first", rows))
        return None if chosen is None or not await self._console.may_leave() else ChosenSession(chosen)

    async def choose_background(self, running: Sequence[BackgroundStarted]) -> str:
        for one in running:
            self.say(f"{one.id}, {seconds(max(0.0, self.now - one.at))}: {revealed_line(one.command, 300)}")
            printed = await asyncio.to_thread(last_lines, Path(one.output_file), 5)
            self.write(printed or ["nothing printed yet"], "  | ")
        self.say("/background stop ID ends one.")
        return ""

    # --- other sessions -------------------------------------------------------------------------------------

    def open_session(self, chosen: ChosenSession, changed: frozenset[str] = frozenset()) -> None:
        self._console.leave(self._console.arguments.opening(chosen, changed))

    async def open_new(self, task: str = "", *, in_place: bool = False) -> None:
        if in_place or await self._console.may_leave():
            self._console.leave(self._console.arguments.anew(task, self.session))

    async def leave(self) -> None:
        if await self._console.may_leave():
            self._console.leave()


class Show(Command[PlainHost]):
    name = "show"
    help = "Write the whole result of the newest call"

    def do(self, host: PlainHost, argument: str) -> str:
        conversation = host.session.state.conversation
        entries = [*conversation.entries, *conversation.calls]
        called = (entry for entry in reversed(entries) if isinstance(entry, CallEntry) and entry.content)
        call = next(called, None)
        if call is None:
            return "No call has given a result yet."
        host.say(f"Result of {call.tool}:")
        host.write(sanitize(call.content).split("\n"), "  ")
        return ""


SHOW = Show()


def offered() -> Iterator[AnyCommand]:
    """Go through the commands that mean something in lines."""
    yield from (command for command in COMMANDS if not command.screen)
    yield SHOW
