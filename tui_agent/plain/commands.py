"""The slash commands of the plain console: those of the screen that mean something in lines, and `/show`.

A command is carried out by `session_commands`, or by the method of the same name, as on the screen.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from tui_agent.frontend.commands import session_commands
from tui_agent.frontend.commands.registry import COMMANDS, Command
from tui_agent.plain import dialogues
from tui_agent.terminal_text import one_line, revealed_line, sanitize, without_middle

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.config.settings import Settings
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.commands.model_offers import Offer
    from tui_agent.frontend.lines.styled import Line
    from tui_agent.frontend.operator import ConsoleOperator
    from tui_agent.frontend.prompt_history import PromptHistory
    from tui_agent.plain.paper import Paper
    from tui_agent.session.rewind import RewindPoint, Scope
    from tui_agent.session.session import Session

Answer = TypeVar("Answer")

WIDE = 400
"""Columns for reports: the terminal wraps their lines by itself."""

SCOPES: tuple[Scope, ...] = ("both", "conversation", "files")

LISTED = 20
"""Sessions that are offered."""

HELP = """\
A line is a task; while a run is under way it is a message to the agent. A line that ends with a backslash goes on in \
the next one.
!COMMAND runs a command of your own; what it prints goes to the model with your next message. @FILE names a file.
Ctrl+C interrupts what runs; a second Ctrl+C leaves. Commands:"""


def text_of(lines: Iterable[Line]) -> list[str]:
    """A report without its styles."""
    return ["".join(span.text for span in line).rstrip() for line in lines]


class Console(Protocol):
    """What commands need of the program."""

    paper: Paper
    operator: ConsoleOperator
    history: PromptHistory
    arguments: ConsoleArguments

    @property
    def interactive(self) -> bool: ...

    async def ask(self, dialogue: dialogues.Dialogue[Answer]) -> Answer: ...

    async def submit(self, text: str) -> None: ...

    async def explain(self, seq: int) -> None: ...

    async def choose_model(self, settings: Settings) -> Offer | None: ...

    async def may_leave(self) -> bool: ...

    def leave(self, following: ConsoleArguments | None = None) -> None: ...

    def put_in_prompt(self, text: str) -> None: ...

    async def edit(self) -> str: ...

    async def secret(self, prompt: str) -> str: ...


class PlainCommands:
    """Each method takes the text behind the command's name."""

    def __init__(self, console: Console, session: Session) -> None:
        self._console = console
        self._session = session

    @property
    def _paper(self) -> Paper:
        return self._console.paper

    @property
    def _state(self) -> RunState:
        return self._session.state

    def _say(self, text: str) -> None:
        if text:
            self._paper.line(sanitize(text))

    async def run(self, command: Command, argument: str) -> None:
        """Carry out a command; what the session refuses is said."""
        from tui_agent.store.errors import SessionError

        try:
            if command.name in session_commands.AT_ONCE:
                self._say(session_commands.AT_ONCE[command.name](self._session, argument))
            elif command.name in session_commands.AWAITED:
                self._say(await session_commands.AWAITED[command.name](self._session, argument))
            else:
                method: Callable[[str], Awaitable[None]] = getattr(self, command.action)
                await method(argument)
        except (ValueError, SessionError, OSError) as error:
            self._say(without_middle(str(error)))

    # --- how the run goes on --------------------------------------------------------------------------------

    async def help(self, _: str) -> None:
        self._paper.lines(HELP.split("\n"))
        self._paper.lines(f"  {command.usage}: {command.help}" for command in plain_commands())

    async def auto(self, _: str) -> None:
        self._go("AUTO")

    async def step(self, _: str) -> None:
        self._go("STEP")

    async def pause(self, _: str) -> None:
        self._set_mode("PAUSED")

    def _go(self, mode: str) -> None:
        self._set_mode(mode)
        if self._console.operator.open_gate() or self._session.running:
            return
        if self._session.go_on():
            self._say("Going on with the run that was open.")
        elif self._session.send_waiting():
            self._say("Sending the message that waits.")

    def _set_mode(self, mode: str) -> None:
        from tui_agent.core.events import Mode

        self._session.set_mode(Mode(mode))

    async def interrupt(self, _: str) -> None:
        if not self._session.running:
            self._say("No run is under way.")
            return
        await self._session.interrupt()
        self._say("Interrupted: the run is paused. /auto goes on, /step does one step, /stop ends it.")

    async def quit(self, _: str) -> None:
        if await self._console.may_leave():
            self._console.leave()

    async def suspend(self, _: str) -> None:
        os.killpg(0, signal.SIGTSTP)

    # --- settings -------------------------------------------------------------------------------------------

    async def model(self, name: str) -> None:
        if not name:
            offer = await self._console.choose_model(self._session.settings)
            name = "" if offer is None else offer.model
        if name:
            self._say(one_line(await session_commands.model(self._session, name)))

    async def login(self, argument: str) -> None:
        words = argument.split()
        variable = self._session.key_variable(" ".join(word for word in words if word != "--forget"))
        if "--forget" in words:
            self._say(await self._session.log_out(variable))
            return
        key = (await self._console.secret(f"Key for {variable} (it is not shown): ")).strip()
        self._say(await self._session.log_in(variable, key) if key else "No key was given.")

    async def note(self, text: str) -> None:
        operator = self._console.operator
        if not text:
            note = operator.waiting_gate.note if operator.waiting_gate is not None else self._state.note
            self._say(f"The model reads next: {note}" if note else "No note goes with the next request.")
            self._say("/note TEXT replaces it, /note drop sends none.")
            return
        new = None if text == "drop" else text
        operator.rewrite_note(new)
        self._session.edit_note(new)

    async def unqueue(self, _: str) -> None:
        queue = self._state.queue
        if not queue:
            raise ValueError("No message is queued.")
        self._session.unqueue(queue[-1].id)
        self._console.put_in_prompt(queue[-1].text)
        self._say(f"Taken back: {queue[-1].text}")

    # --- reports --------------------------------------------------------------------------------------------

    async def status(self, _: str) -> None:
        from tui_agent.frontend.lines.reports import status_lines

        settings = self._session.settings
        coming = settings.model or "", str(settings.policy)
        self._paper.lines(text_of(status_lines(self._state, WIDE, *coming)))

    async def cost(self, _: str) -> None:
        from tui_agent.frontend.lines.reports import cost_lines

        self._paper.lines(text_of(cost_lines(self._state, time.time(), WIDE)))

    async def diff(self, _: str) -> None:
        from tui_agent.frontend.lines.diff import draw_unified, files_of
        from tui_agent.frontend.lines.reports import BY_TOOLS, changed_files

        patch = await self._session.changes()
        files = changed_files(self._state) if patch is None else files_of(patch)
        if files and patch is None:
            self._say(f"{BY_TOOLS}:")
        for file in files:
            self._say(f"{one_line(file.name, 400)}: {file.added} added, {file.removed} removed")
            self._paper.lines(text_of(draw_unified(file, WIDE)))
        if not files:
            self._say("This run has changed no file.")

    async def permissions(self, argument: str) -> None:
        from tui_agent.config.user_file import UserFile
        from tui_agent.frontend.commands.rule_words import USAGE
        from tui_agent.session.rules import SessionRules

        settings = self._session.settings
        file = UserFile(settings.user_file, self._console.arguments.overrides)
        if argument:
            self._say(await session_commands.permissions(self._session, file, argument))
            return
        listed = await asyncio.to_thread(SessionRules(self._session, file).listed)
        self._paper.lines(
            f"{number}. {revealed_line(str(each.rule))}" for number, each in enumerate(listed, 1)
        )
        self._say(
            "Deny comes before ask, ask before allow; `agent-tui permissions explain COMMAND` says which rule applies."
            if listed
            else "There is no rule."
        )
        self._say(USAGE)

    async def context(self, _: str) -> None:
        from tui_agent.core.request.context import context_use
        from tui_agent.frontend.lines.context import NOTHING, UNITS, sentences

        use = context_use(self._state)
        if not use.parts:
            self._say(NOTHING)
            return
        whole = f" of {use.budget:,}" if use.budget else ""
        self._say(f"The next request holds about {use.tokens:,}{whole} tokens.")
        for part in use.parts:
            one, many = UNITS.get(part.kind, ("message", "messages"))
            self._say(
                f"  {part.kind}: {part.tokens:,} tokens, {part.count} {one if part.count == 1 else many}"
            )
        self._paper.lines(sentences(use))

    async def plan(self, _: str) -> None:
        plan = self._state.conversation.plan
        self._say("The model keeps no plan." if plan is None else plan.as_text())

    async def why(self, _: str) -> None:
        from tui_agent.frontend.why import newest_trouble

        seq = newest_trouble(self._state)
        if not seq:
            raise ValueError("Nothing has failed, and no verdict was given yet.")
        await self._console.explain(seq)

    async def show(self, _: str) -> None:
        from tui_agent.core.projections.entries import CallEntry

        entries = [*self._state.conversation.entries, *self._state.conversation.calls]
        for entry in reversed(entries):
            if isinstance(entry, CallEntry) and entry.content:
                self._say(f"Result of {entry.tool}:")
                self._paper.lines(sanitize(entry.content).split("\n"), "  ")
                return
        raise ValueError("No call has given a result yet.")

    async def history(self, _: str) -> None:
        earlier = self._console.history.entries
        self._paper.lines([one_line(text, 200) for text in earlier[-LISTED:]] or ["No earlier prompts."])

    async def copy(self, _: str) -> None:
        from tui_agent.frontend.clipboard import copied, copy_by_tool
        from tui_agent.terminal_text import sanitize_between_tabs

        text = session_commands.newest_reply(self._state)
        tool = await copy_by_tool(sanitize_between_tabs(text))
        self._say(
            copied(text, "the newest reply", tool) if tool else "There is no clipboard tool that takes it."
        )

    async def skills(self, name: str) -> None:
        from tui_agent.frontend.lines.skills import skill_lines

        if name:
            await self._console.submit(f"{session_commands.skill_request(self._session, name)}.")
        else:
            self._paper.lines(text_of(skill_lines(self._session.find_skills(), WIDE)))

    async def background(self, argument: str) -> None:
        from pathlib import Path

        from tui_agent.quantities import seconds
        from tui_agent.tools.output import last_lines

        if argument:
            await session_commands.background(self._session, argument)
            return
        running = self._state.background.running.values()
        now = time.time()
        lines = []
        for one in running:
            lines.append(f"{one.id}, {seconds(max(0.0, now - one.at))}: {revealed_line(one.command, 300)}")
            printed = await asyncio.to_thread(last_lines, Path(one.output_file), 5)
            lines += [f"  | {line}" for line in printed or ["nothing printed yet"]]
        self._paper.lines(lines or ["Nothing runs in the background."])
        if lines:
            self._say("/background stop ID ends one.")

    async def mcp(self, argument: str) -> None:
        from tui_agent.frontend.lines.servers import paragraph

        if argument:
            await session_commands.mcp(self._session, argument)
            return
        servers = self._session.servers
        for row in () if servers is None else servers.rows():
            self._paper.lines(text_of(paragraph(row, WIDE)))
        if servers is None or not servers.rows():
            self._say("No MCP server is configured; agent-tui mcp add NAME COMMAND adds one.")

    async def playbook(self, argument: str) -> None:
        from tui_agent.frontend.lines.playbook import known, playbook_lines

        if argument:
            self._say(await session_commands.playbook(self._session, argument))
            return
        found = await asyncio.to_thread(known, self._session.playbook, time.time())
        self._paper.lines(text_of(playbook_lines(found, WIDE)))

    # --- sessions -------------------------------------------------------------------------------------------

    async def editor(self, _: str) -> None:
        from tui_agent.frontend.editor import EditorError

        if not self._console.interactive:
            raise ValueError("There is no terminal for an editor.")
        try:
            text = await self._console.edit()
        except EditorError as error:
            raise ValueError(str(error)) from error
        if text.strip():
            await self._console.submit(text)

    async def new(self, _: str) -> None:
        await self._leave_for(resume=None)

    async def clear(self, _: str) -> None:
        await self._leave_for(resume=None)

    async def sessions(self, _: str) -> None:
        from tui_agent.quantities import age
        from tui_agent.store.session_store import SessionStore

        store = await asyncio.to_thread(SessionStore, self._session.settings.state_dir)
        rows = [row for row in await asyncio.to_thread(store.rows) if row.id != self._session.id][:LISTED]
        now = time.time()
        said = [
            f"{one_line(row.title, 80)}, {age(now - row.ended_at)} ago, "
            f"{row.outcome_in_words or 'open'}, {row.id}"
            for row in rows
        ]
        chosen = (
            await self._console.ask(dialogues.pick("Sessions, the newest first:", said)) if rows else None
        )
        if chosen is not None:
            await self._leave_for(resume=rows[chosen].id)
        elif not rows:
            self._say("There is no other session.")

    async def fork(self, _: str) -> None:
        from tui_agent.session.fork import changed_since, fork_session
        from tui_agent.session.fork_point import fork_point
        from tui_agent.store.journal import sessions_folder

        parent = self._session
        point = await asyncio.to_thread(fork_point, parent.folder, parent.state, None)
        folder = sessions_folder(parent.settings.state_dir)
        changed = await changed_since(parent.folder, folder, point.seq)
        chosen = await self._console.ask(dialogues.fork(point, [change.path for change in changed]))
        if chosen is None or not await self._console.may_leave():
            return
        made = await fork_session(parent.folder, folder, chosen)
        self._say(f"The fork is open now. To go back: /sessions, or agent-tui resume {parent.id} --plain.")
        following = self._next(resume=made.name)
        overrides = {
            name: value for name, value in following.overrides.items() if name not in chosen.settings
        }
        self._console.leave(replace(following, overrides=overrides))

    async def rewind(self, argument: str) -> None:
        from tui_agent.frontend.commands.rewind_text import choices_of, first_choice

        if argument not in {"", "undo"}:
            raise ValueError("Write /rewind, or /rewind undo.")
        choices = choices_of(self._session)
        place: int | None = first_choice(choices, undo=True) if argument else None
        if place is None:
            place = await self._console.ask(
                dialogues.pick("Go back to:", [one_line(choice.label, 200) for choice in choices])
            )
        if place is not None:
            await self._rewind(choices[place].point)

    async def _rewind(self, point: RewindPoint | None) -> bool:
        """Show what going back to the point (None: taking the newest rewind back) changes; do it if agreed."""
        from tui_agent.frontend.commands.rewind_text import preview, rewound

        if point is None:
            plan = await self._session.plan_undo()
        else:
            ways = ["conversation and files", "the conversation alone", "the files alone"]
            scope = await self._console.ask(dialogues.pick("What goes back?", ways)) if point.ref else 1
            if scope is None:
                return False
            plan = await self._session.plan_rewind(point, SCOPES[scope])
        lines = dialogues.shown(preview(plan, self._state.session.workspace))
        if not await self._console.ask(dialogues.confirm(lines, "does it")):
            return False
        await self._session.rewind(plan)
        self._say(rewound(plan))
        return True

    async def undo(self, _: str) -> None:
        if self._session.running:
            lines = ["A run is under way. It has to end before what it did can be taken back."]
            if not await self._console.ask(dialogues.confirm(lines, "ends it")):
                return
            await self._session.stop()
        point = next((point for point in self._session.rewind_points() if point.text), None)
        if point is None:
            raise ValueError("There is no message to take back.")
        if await self._rewind(point):
            self._console.put_in_prompt(point.text)
            self._say(f"Your message was: {point.text}")

    async def redo(self, _: str) -> None:
        await self.rewind("undo")

    async def queue(self, _: str) -> None:
        waiting = self._state.queue
        rows = [one_line(message.text, 200) for message in waiting]
        chosen = (
            await self._console.ask(dialogues.pick("Messages that wait; a number drops one:", rows))
            if rows
            else None
        )
        if chosen is not None:
            self._session.unqueue(waiting[chosen].id)
        elif not rows:
            self._say("No message is queued.")

    async def export(self, argument: str) -> None:
        from tui_agent.frontend.commands.export import export_file

        file: Path = await asyncio.to_thread(export_file, self._session.folder, argument)
        self._say(f"The session was written to {file}")

    async def _leave_for(self, *, resume: str | None) -> None:
        if await self._console.may_leave():
            self._console.leave(self._next(resume))

    def _next(self, resume: str | None) -> ConsoleArguments:
        return replace(
            self._console.arguments, task=None, demo=None, replay=None, at_event=0, step=False, resume=resume
        )


SHOW = Command("show", "Write the whole result of the newest call")


def plain_commands() -> list[Command]:
    """Those of the screen that there are in lines too, and those that are only here."""
    shared = session_commands.NAMES
    there = (each for each in COMMANDS if each.name in shared or hasattr(PlainCommands, each.action))
    return [*there, SHOW]
