"""The plain console from start to exit code: lines in, lines out, around the same session as the console's."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from getpass import getpass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tui_agent.config.errors import ConfigError, MissingModelError
from tui_agent.config.settings import load_settings
from tui_agent.core.events import Event
from tui_agent.core.names import Mode
from tui_agent.core.state import RunState
from tui_agent.frontend.arguments import LEFT_BY_SIGNAL, WRONG_USAGE, ConsoleArguments, wanted_early
from tui_agent.frontend.ascii_glyphs import ascii_glyphs
from tui_agent.frontend.commands import agent_commands
from tui_agent.frontend.commands import registry as slash
from tui_agent.frontend.commands.dispatch import command_behind, names_command, said_of_command_behind
from tui_agent.frontend.commands.model_offers import Offer, found_now
from tui_agent.frontend.commands.running import submit, with_servers
from tui_agent.frontend.commands.server_entries import names_a_server
from tui_agent.frontend.commands.showing import explain
from tui_agent.frontend.editor import edit
from tui_agent.frontend.file_index import FileIndex
from tui_agent.frontend.lines.escalation import attempts_before
from tui_agent.frontend.lines.outline import outline_line
from tui_agent.frontend.opening import HISTORY_FILE, notifications_on
from tui_agent.frontend.operator import (
    AFTER_INTERRUPT,
    AnyQuestion,
    ApprovalQuestion,
    ConsoleOperator,
    EscalationQuestion,
    GateQuestion,
    ServerQuestion,
)
from tui_agent.frontend.prompt_history import PromptHistory
from tui_agent.frontend.resume_text import resume_command
from tui_agent.frontend.startup import Opened, open_live
from tui_agent.headless import HeadlessOperator
from tui_agent.headless_output import Outlet
from tui_agent.models.scenario_checks import ScenarioError
from tui_agent.plain import dialogues
from tui_agent.plain.commands import LISTED, SHOW, PlainHost, offered
from tui_agent.plain.line_input import Keyboard, LineInput, Pipe
from tui_agent.plain.narration import Narration
from tui_agent.plain.paper import PROMPT, Paper
from tui_agent.runtime.model_call import without_images
from tui_agent.session.own_run import OwnRun
from tui_agent.store.errors import SessionError
from tui_agent.store.retention import put_away
from tui_agent.terminal_text import one_line, sanitize

Answer = TypeVar("Answer")

GRACE = 0.4
"""Seconds after a question within which a typed line cannot have been meant for it."""

DRAFT_GRACE = 3.0
"""The same if somebody was in the middle of a line when the question came."""

GREETING = "Type a task, or /help. Ctrl+C interrupts what runs; a second Ctrl+C leaves."


def run_plain(arguments: ConsoleArguments) -> int:
    """The plain console from start to end: 0 left, 1 a fault of its own, 2 wrong usage, 130 ended by a signal."""
    slash.use_keys({command.name: "" for command in slash.BINDABLE})
    while True:
        console = PlainConsole(arguments)
        code = asyncio.run(console.run())
        if console.next is None or code:
            return code
        arguments = console.next


class PlainConsole:
    """One start of the plain console."""

    def __init__(self, arguments: ConsoleArguments) -> None:
        self.arguments = arguments
        self.next: ConsoleArguments | None = None
        """Arguments to start with once this is left."""
        outlet = Outlet(sys.stdout)
        outlet.on_fault = self.leave
        self.paper = Paper(outlet, ascii_glyphs(wanted_early("glyphs", arguments)))
        self.operator = ConsoleOperator(self._wake, self._goes_by_itself)
        self.history = PromptHistory()
        self._narration = Narration(self.paper)
        self._input: LineInput = self._lines_from()
        self._opened: Opened | None = None
        self._commands: PlainHost | None = None
        self._files: FileIndex | None = None
        self._woken = asyncio.Event()
        self._lines: deque[_Line] = deque()
        self._unfinished = ""
        self._draft = self._offered = ""
        """Stands in the next line; the last one that did."""
        self._held = ""
        """A text that was given back because a command stands behind it."""
        self.own_run: OwnRun | None = None
        self._conversations: list[_Open] = []
        """Dialogues that are open; the last one takes the next line."""
        self._gate: GateQuestion | None = None
        self._interrupts = 0
        self._left: int | None = None
        self._ended = False
        self._work: asyncio.Task[None] | None = None
        self._aside: set[asyncio.Task[None]] = set()
        self._watched = False
        """The end of what runs is waited for."""
        self._editing = False
        """The operator's editor has the terminal: nothing is asked or taken."""

    # --- from start to end ----------------------------------------------------------------------------------

    async def run(self) -> int:
        """Open the session, converse, close it."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, lambda: self.leave(code=LEFT_BY_SIGNAL))
        self._input.start(self)
        closed, code = True, 0
        try:
            self.begin(self._open())
            await self._converse()
        except (ConfigError, ScenarioError, SessionError) as error:
            self.paper.end()
            sys.stderr.write(f"{error}\n")
            code = WRONG_USAGE
        finally:
            closed = await self._close()
        return code or self._left or (0 if closed else 1)

    async def _open(self) -> None:
        self.paper.line("agent-tui in lines. The session is being opened.")
        try:
            opened = await open_live(self.arguments, self.operator)
        except MissingModelError:
            if not await self._take_first_model():
                raise
            opened = await open_live(self.arguments, self.operator)
        self._opened = opened
        session, settings = opened.session, opened.settings
        self.operator.ask_away = None if opened.away is None else opened.away.ask
        self._commands = PlainHost(self, session)
        self._files = FileIndex(Path(session.state.session.workspace))
        session.subscribe(self._recorded)
        if self.arguments.demo is None:
            session.mcp.connect()
        self.history.load(settings.state_dir / HISTORY_FILE)
        self._input.remember(self.history.entries)
        self._greet(opened)
        if opened.task:
            await session.submit(opened.task)

    def _greet(self, opened: Opened) -> None:
        session, settings = opened.session.state.session, opened.settings
        facts = {
            "Session": opened.session.id,
            "Workspace": session.workspace,
            "Model": session.model or settings.model or "none chosen",
            "Policy": session.policy or settings.policy,
            "Approvals": session.approve or settings.approve,
        }
        self.paper.lines(f"{label}: {one_line(str(text), 400)}" for label, text in facts.items())
        resumed = self.arguments.resume is not None
        self.paper.lines(notifications_on(opened.session, resumed=resumed))
        self.paper.line(GREETING)

    async def _close(self) -> bool:
        """End the session in good order, and say how to go on with it. False if the disk refused."""
        under_way = [task for task in (self._work, *self._aside) if task is not None]
        for task in under_way:
            task.cancel()
        ended = await asyncio.gather(*under_way, return_exceptions=True)
        self._input.close()
        self.paper.end()
        opened, closed = self._opened, True
        for fault in ended:
            if isinstance(fault, Exception):
                sys.stderr.write(f"{sanitize(str(fault))}\n")
                closed = False
        if opened is not None:
            try:
                await opened.session.close()
            except SessionError as error:
                sys.stderr.write(f"{sanitize(str(error))}\n")
                closed = False
        if opened is not None:
            settings = opened.settings
            if opened.away is not None:
                await opened.away.close()
            await put_away(settings.state_dir, opened.session.id, settings.retention_days, time.time())
            if self.next is None:
                opened.clean_up()
            if opened.session.state.run.number:
                lines = "" if opened.scratch else " --plain"
                self.paper.line(f"Kept. To go on: {resume_command(opened, self.arguments)}{lines}")
        return closed

    def leave(self, following: ConsoleArguments | None = None, *, code: int = 0) -> None:
        """End the conversation; then start again with `following`, if that is given."""
        self.next = following
        self._left = code
        self._wake()

    async def may_leave(self) -> bool:
        """Decide about leaving; ask first if a run is under way."""
        if self._opened is None or not self._opened.session.running or not self._input.interactive:
            return True
        lines = ["A run is under way. Leaving ends it with a partial answer; the session is kept."]
        return await self.ask(dialogues.confirm(lines, "leaves"))

    def _lines_from(self) -> LineInput:
        if sys.stdin is None or not sys.stdin.isatty():
            return Pipe()
        editing = sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "emacs", ""}
        return Keyboard(self.paper, editing=editing, complete=self._completions)

    @property
    def interactive(self) -> bool:
        """Somebody sits at a terminal."""
        return self._input.interactive

    # --- the conversation -----------------------------------------------------------------------------------

    async def _converse(self) -> None:
        while self._left is None:
            self._woken.clear()
            self._end_work()
            if self._editing:
                await self._woken.wait()
                continue
            self._next_question()
            if self._lines and (self._conversations or self._work is None):
                self._take(self._lines.popleft())
                continue
            asking = self._conversations[-1] if self._conversations else None
            idle = self._work is None
            if asking is not None:
                waits = not asking.speaking and (idle or asking.question is None)
            else:
                waits = idle and (self._gate is not None or not self._busy)
            if waits and self._ended:
                if not self.operator.questions:
                    return
            elif waits:
                if asking is not None:
                    self._input.want(asking.ask.draft)
                else:
                    draft, self._draft = self._draft, ""
                    self._input.want(draft)
            await self._woken.wait()

    def _end_work(self) -> None:
        """A task that has ended is forgotten; one that broke breaks the conversation."""
        ended = {task for task in (self._work, *self._aside) if task is not None and task.done()}
        self._work = None if self._work in ended else self._work
        self._aside -= ended
        for task in ended:
            if not task.cancelled():
                task.result()

    @property
    def _busy(self) -> bool:
        """A command or a run is under way."""
        return self._work is not None or (self._opened is not None and self._opened.session.running)

    def begin(self, work: Coroutine[object, object, None]) -> None:
        """Do the work of a line; lines after it wait until it is done, unless it asks something."""
        if self._work is not None:
            self._begin_aside(work)
            return
        self._work = asyncio.get_running_loop().create_task(work)
        self._work.add_done_callback(lambda _: self._wake())

    def _begin_aside(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._aside.add(task)
        task.add_done_callback(lambda _: self._wake())

    def _wake(self) -> None:
        self._woken.set()

    def _recorded(self, event: Event, state: RunState) -> None:
        self._narration.take(event, state)
        if self._goes_by_itself():
            self.operator.open_gate()
        if not self._watched:
            self._watched = True
            self._begin_aside(self._watch_run())
        self._wake()

    async def _watch_run(self) -> None:
        """Wake when what runs has ended: its last event comes a little before."""
        try:
            if self._opened is not None:
                await self._opened.session.wait()
        finally:
            self._watched = False

    def _goes_by_itself(self) -> bool:
        return self._opened is None or self._opened.session.state.session.mode is Mode.AUTO

    def _interrupted(self) -> None:
        """Ctrl+C: the first one interrupts, the second one leaves."""
        if self._editing:
            return
        self._interrupts += 1
        session = None if self._opened is None else self._opened.session
        if self._interrupts > 1 or session is None:
            self.leave(code=LEFT_BY_SIGNAL)
        elif self.own_run is not None:
            self.own_run.interrupt()
        elif self._work is not None:
            self._work.cancel()
            self.paper.line("Cancelled. Ctrl+C again leaves.")
        elif session.running and self._gate is None and self._commands is not None:
            self.paper.line(AFTER_INTERRUPT)
            self._commands.run("interrupt")
        else:
            self.paper.line("Ctrl+C again leaves; the session is kept.")
        self._wake()

    # --- lines ----------------------------------------------------------------------------------------------

    def line(self, text: str, *, echoed: bool) -> None:
        """A line came (see `Receiver`)."""
        if not echoed:
            self.paper.line(PROMPT + sanitize(text))
        self._lines.append(_Line(text, time.monotonic()))
        self._wake()

    def ended(self, *, for_good: bool) -> None:
        """The end of the input came (see `Receiver`)."""
        if for_good:
            self._ended = True
        elif self._conversations or self._busy:
            self.paper.line("Something is under way: /quit leaves, /stop ends the run.")
        else:
            self.leave()
        self._wake()

    def _take(self, line: _Line) -> None:
        """A line is an answer if a dialogue waits for one, else a command or a message."""
        self._interrupts = 0
        asking = self._conversations[-1] if self._conversations else None
        if asking is not None and asking.ask.literal:
            self._answer(asking, line.text)
            return
        if line.text.endswith("\\"):
            self._unfinished += line.text[:-1] + "\n"
            return
        text, self._unfinished = self._unfinished + line.text, ""
        typed = text.strip()
        if names_command(typed) and not self._names_a_server(typed):
            self._command(typed)
        elif asking is not None and not asking.missed_by(line):
            self._answer(asking, text)
        elif not typed:
            if self._gate is not None and self._commands is not None:
                self._commands.run("step")
        elif asking is not None and asking.kept and line.at >= asking.since:
            self.put_in_prompt(asking.kept + text)
            asking.kept = ""
            self.paper.line("That was still text that you were typing; it is kept. The question waits.")
        elif typed.startswith("!"):
            self.begin(self._own_command(typed[1:].strip()))
        elif not self._holds_back(typed):
            self.history.add(typed)
            self._input.remember([typed])
            self.begin(self.submit(typed))

    def _command(self, text: str) -> None:
        commands = self._commands
        if commands is None:
            return
        if text.removeprefix("/").partition(" ")[0] == SHOW.name:
            commands.carry_out(lambda: SHOW.do(commands, ""))
        else:
            commands.run_line(text)

    def _names_a_server(self, text: str) -> bool:
        servers = None if self._opened is None else self._opened.session.mcp.servers
        return servers is not None and names_a_server(text, servers.rows())

    async def submit(self, text: str, typed: str | None = None, model: str = "") -> None:
        """Send a message (see `running.submit`); say so if it cannot be sent.

        Images are sent if `typed`, the operator's own part of it (None: all), names them.
        """
        if self._commands is None:
            return
        session, written = self._commands.session, text if typed is None else typed
        try:
            message = await with_servers(session, text) if typed is None else text
            blind = await session.models.blind(written)
            if blind:
                self.paper.line(sanitize(without_images(blind, "gets")))
            self._narration.typed.add(message)
            await submit(self._commands, message, written, model)
        except (SessionError, ValueError) as error:
            self.paper.line(sanitize(str(error)))

    async def _own_command(self, command: str) -> None:
        if self._opened is None or not command:
            self.paper.line("Write !COMMAND to run a command of your own.")
            return
        unfinished, shown = "", {""}

        def show(piece: str) -> None:
            nonlocal unfinished
            whole, _, unfinished = (unfinished + piece).rpartition("\n")
            lines = sanitize(whole).split("\n")
            self.paper.lines(lines if whole else (), "  ")
            shown.update(lines)

        run = self.own_run = OwnRun(command, self._opened.session, show)
        try:
            printed = await run.finish()
        finally:
            self.own_run = None
        # How it ended, and what it did not end with a line feed.
        self.paper.lines((line for line in sanitize(printed).split("\n") if line not in shown), "  ")

    async def edit(self) -> str:
        """A text from the operator's editor, while what runs goes on. Raises `EditorError`, `ValueError`."""
        with self._lent("There is no terminal for an editor."):
            return await edit("")

    async def secret(self, prompt: str) -> str:
        """A line that is not shown as it is typed. Raises `ValueError` if nobody types."""
        with self._lent("A key is typed at a terminal alone. Set its environment variable instead."):
            with suppress(EOFError):
                return await asyncio.to_thread(getpass, prompt)
            return ""

    @contextmanager
    def _lent(self, otherwise: str) -> Iterator[None]:
        """Another program has the terminal inside. Raises `ValueError`: `otherwise` if there is none."""
        if not self.interactive:
            raise ValueError(otherwise)
        self._editing = True
        try:
            with self._input.lent(), self.paper.lent():
                yield
        finally:
            self._editing = False
            self._wake()

    def put_in_prompt(self, text: str) -> None:
        """Offer a text for editing in the next line."""
        self._draft = self._offered = text

    def _holds_back(self, text: str) -> bool:
        """Offer a text once more behind which a command stands, and say so: sent with it, it would be words."""
        command = command_behind(text, self._offered)
        held, self._held = self._held, text if command else ""
        if not command or held == text or not self._input.interactive:
            return False
        self.put_in_prompt(text)
        self.paper.line(sanitize(said_of_command_behind(command)))
        return True

    def _completions(self, typed: str) -> list[str]:
        """Completions of the last word of a line; called by the line editor, in its thread."""
        word = typed.rpartition(" ")[2]
        if typed.startswith("/"):
            values_of = (
                (lambda command: command.values) if self._commands is None else self._commands.values_of
            )
            fitting = slash.suggestions(typed, values_of, offered())
            if self._opened is not None:
                fitting += agent_commands.suggestions(typed, self._opened.session.state.session.offered)
            begin = len(typed) - len(word)
            return [each.text[begin:] for each in fitting if each.text.startswith(typed.lower())]
        if not word.startswith("@") or self._files is None:
            return []
        if self._files.stale:
            self._files.read()
        return [f"@{one_line(name, 400)} " for name in self._files.search(word[1:])]

    # --- questions ------------------------------------------------------------------------------------------

    async def ask(self, dialogue: dialogues.Dialogue[Answer]) -> Answer:
        """Hold a dialogue; the lines that follow are its answers."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        opened = _Open(dialogue, answered.set_result)
        self._start(opened)
        try:
            return await answered
        finally:
            self._drop(opened)

    def _next_question(self) -> None:
        """Ask what waits, the oldest first; forget what was withdrawn."""
        questions = self.operator.questions
        for opened in [*self._conversations]:
            question = opened.question
            if question is not None and question.future.done():
                self._drop(opened)
                if question.future.cancelled():
                    self.paper.line("The question was withdrawn.")
        open_ones = [question for question in questions if not question.future.done()]
        gate = self.operator.waiting_gate
        gate = gate if gate in open_ones else None
        waiting = [question for question in open_ones if question is not gate]
        if self._ended:
            for question in open_ones:
                self.begin(question.put_to(HeadlessOperator()))  # as in a run without an operator
        elif waiting and not self._conversations:
            self._put(waiting[0])
        elif gate is not self._gate and gate is not None and not self._conversations:
            self._show_gate(gate)
        if gate is None:
            self._gate = None

    def _put(self, question: AnyQuestion) -> None:
        if self._opened is None:
            return
        ahead, now = self._input.typed_ahead(), time.monotonic()
        self._lines.extendleft(_Line(text, now) for text in reversed(ahead.lines) if text.strip())
        opened = _Open(_dialogue(question, self._opened.session.state), question.settle, question)
        self._start(opened)
        if self._input.interactive:
            opened.typing, opened.since = ahead.draft, time.monotonic()
            if ahead.draft and ahead.taken:
                opened.kept = ahead.draft
                self.paper.line(f"(What you were typing is kept for later: {sanitize(ahead.draft)})")

    def _show_gate(self, gate: GateQuestion) -> None:
        self._gate = gate
        self.paper.line(f"Next request: {outline_line(gate.asked)}.")
        self._narration.tell_note(gate.note, "With this note:")
        self.paper.line("Enter or /step sends it, /auto goes on by itself, /note TEXT changes the note.")

    def _start(self, opened: _Open) -> None:
        self._conversations.append(opened)
        self._say(opened, next(opened.dialogue))
        self._wake()

    def _say(self, opened: _Open, ask: dialogues.LinePrompt) -> None:
        opened.ask = ask
        if ask.why:
            opened.speaking = True
            self.begin(self._explained(opened))
        else:
            self.paper.lines(ask.lines)

    def _answer(self, opened: _Open, text: str) -> None:
        """Give the dialogue its line; what it returns is the answer."""
        try:
            self._say(opened, opened.dialogue.send(text))
        except StopIteration as done:
            self._drop(opened)
            opened.settle(done.value)
        self._wake()

    def _drop(self, opened: _Open) -> None:
        if opened in self._conversations:
            self._conversations.remove(opened)
            if opened.kept:
                self.put_in_prompt(opened.kept)

    async def _explained(self, opened: _Open) -> None:
        if (commands := self._commands) is not None:
            await commands.finish(explain(commands, opened.ask.why))
        self.paper.lines(opened.ask.lines)
        opened.speaking = False

    async def _take_first_model(self) -> bool:
        """If none is configured and somebody is here, offer the models that were found."""
        if not self._input.interactive:
            return False
        settings = await asyncio.to_thread(load_settings, self.arguments.overrides, self.arguments.config)
        self.paper.line("Looking for models.")
        found = (await found_now(settings))[:LISTED]
        if not found:
            self.paper.line(
                "No profile, no server and no provider's key was found; --model NAME takes any name."
            )
            return False
        chosen = await self.ask(dialogues.pick("Models", found))
        if not isinstance(chosen, Offer):
            return False
        taken = {"model": chosen.model, **({"api_base": chosen.api_base} if chosen.api_base else {})}
        self.arguments = self.arguments._replace(overrides={**self.arguments.overrides, **taken})
        return True


class _Line(NamedTuple):
    """A line, and when it came (monotonic seconds)."""

    text: str
    at: float


@dataclass(eq=False)
class _Open:
    """A dialogue that is held. `since`: when a person could begin to answer; `typing`: what they were typing then."""

    dialogue: dialogues.Dialogue[Any]
    settle: Callable[[Any], object]
    question: AnyQuestion | None = None
    since: float = 0.0
    typing: str = ""
    kept: str = ""
    """The operator's text, if it was taken out of their line."""
    speaking: bool = False
    """The text before the next line is still being gathered."""
    ask: dialogues.LinePrompt = field(default_factory=dialogues.LinePrompt)

    def missed_by(self, line: _Line) -> bool:
        """True if the line was begun before the question came, or came too soon after it to be meant for it."""
        if line.at < self.since:
            return True
        typing, self.typing = self.typing, ""
        grace = DRAFT_GRACE if typing else GRACE
        return bool(typing and line.text.startswith(typing)) or line.at - self.since < grace


def _dialogue(question: AnyQuestion, state: RunState) -> dialogues.Dialogue[Any]:
    match question:
        case ApprovalQuestion():
            return dialogues.approval(question.asked)
        case EscalationQuestion():
            said = next(state.history.texts(state.run.number), "")
            return dialogues.escalation(question.asked, attempts_before(state, question.asked), said)
        case ServerQuestion():
            return dialogues.server(question.asked)
        case GateQuestion():
            raise TypeError("commands answer a gate")
