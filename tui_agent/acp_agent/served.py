"""One session that a client drives: its prompts, its commands, its end.

To the commands it is a console in lines (`plain.commands.Console`): what they write is a message of the agent, and a
line that they ask for is the next prompt.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tui_agent.acp.content import text_block
from tui_agent.acp.wire import AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS
from tui_agent.acp_agent.options import modes, options
from tui_agent.acp_agent.prompts import Blocks, message_of
from tui_agent.acp_agent.questions import ClientQuestions
from tui_agent.acp_agent.refusals import Refused
from tui_agent.acp_agent.updates import META, Announced, Update, Updates, history
from tui_agent.config.settings import require_model
from tui_agent.core import events
from tui_agent.core.names import FaultKind
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.result import result_of
from tui_agent.frontend.commands.dispatch import is_command, names_command
from tui_agent.frontend.commands.model_offers import found_now, known_at_once
from tui_agent.frontend.commands.running import with_servers
from tui_agent.frontend.commands.server_entries import names_a_server
from tui_agent.frontend.prompt_history import PromptHistory
from tui_agent.headless_output import Outlet
from tui_agent.plain.commands import PlainHost, offered
from tui_agent.plain.paper import Paper
from tui_agent.runtime.recorder import RecordingFailed
from tui_agent.store.journal import read_journal

if TYPE_CHECKING:
    from tui_agent.core.state import RunState
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.frontend.lines.passages import Row
    from tui_agent.frontend.operator import ConsoleOperator
    from tui_agent.plain.dialogues import Dialogue
    from tui_agent.session.own_run import OwnRun
    from tui_agent.session.session import Session

Answer = TypeVar("Answer")

MOST_WAITING = 50
"""Prompts that may wait for their turn."""
OF_CONSOLES = {
    "auto", "pause", "step", "stop", "interrupt", "note", "history", "editor", "copy", "suspend", "unqueue", "queue",
    "image", "settings", "keys", "help", "login", "new", "clear", "quit", "sessions", "fork",
}  # fmt: skip
"""Commands that a client does in its own way."""
LOGIN = "Keys are not asked for here: `agent-tui acp --login` in a terminal takes one."


class ServedSession:
    """Made of an open session; `post` sends an update of it to the client."""

    def __init__(
        self,
        session: Session,
        questions: ClientQuestions,
        updates: Updates,
        post: Callable[[Update], None],
        arguments: ConsoleArguments,
    ) -> None:
        self.session = session
        self.questions = questions
        self.operator: ConsoleOperator = questions.operator
        self.arguments = arguments
        self.history = PromptHistory()
        self.own_run: OwnRun | None = None
        self._updates = updates
        self._post = post
        self._written = _Written()
        self.paper = Paper(Outlet(self._written))
        self._host = PlainHost(self, session)
        self._command: asyncio.Task[None] | None = None
        self._line: asyncio.Future[str] | None = None
        self._asks_line = asyncio.Event()
        self._cancels = self._turns = 0
        self._found: Sequence[Row] = ()
        self._looking: asyncio.Task[None] | None = None
        session.subscribe(self._heard)

    # --- what the client is told ----------------------------------------------------------------------------

    def _heard(self, event: events.Event, state: RunState) -> None:
        for update in self._updates.of(event, state):
            self._post(update)
        if isinstance(event, events.SettingChanged):
            self._say_options()
            if event.setting == "policy":
                self._post({"sessionUpdate": "current_mode_update", "currentModeId": event.value})

    def facts(self) -> dict[str, Any]:
        """Modes and options, as the answer to a request for a session holds them."""
        return {"modes": modes(self.session), "configOptions": self.options}

    @property
    def options(self) -> list[dict[str, Any]]:
        """The options with their values now."""
        return options(self.session, self._found)

    def _say_options(self) -> None:
        self._post({"sessionUpdate": "config_option_update", "configOptions": self.options})

    async def find_models(self) -> None:
        """Take up the models that can be named without asking a server."""
        self._found = await known_at_once(self.session.settings)

    def begin_to_serve(self) -> None:
        """Say which commands there are, and look for servers of models in the background."""
        commands = [
            {"name": command.name, "description": command.help}
            | ({"input": {"hint": command.argument}} if command.argument else {})
            for command in offered()
            if command.name not in OF_CONSOLES
        ]
        self._post({"sessionUpdate": "available_commands_update", "availableCommands": commands})
        self._looking = asyncio.get_running_loop().create_task(self._look_for_models(), name="acp-models")

    async def _look_for_models(self) -> None:
        known, self._found = self._found, await found_now(self.session.settings)
        if [row.value for row in self._found] != [row.value for row in known]:
            self._say_options()

    async def replay(self, announced: Announced) -> None:
        """Send the whole history."""
        await self.session.recorder.barrier()
        workspace = Path(self.session.state.session.workspace)

        def read() -> list[Update]:
            return history(read_journal(self.session.folder).events, workspace, announced)

        for update in await asyncio.to_thread(read):
            self._post(update)

    # --- prompts --------------------------------------------------------------------------------------------

    async def prompt(self, blocks: Blocks) -> dict[str, Any]:
        """Take a prompt; the answer when its turn has ended. Raises `Refused` for one that cannot be carried out."""
        before, self._turns = self._cancels, self._turns + 1
        try:
            workspace = Path(self.session.state.session.workspace)
            message = await asyncio.to_thread(message_of, blocks, workspace, self.session.folder)
            if self._line is not None and not is_command(message.typed):
                self._give_line(message.typed)
            elif self.questions.take_answer(message.text):
                pass
            elif self._is_command(message.typed):
                await self._end_command()
                self._begin_command(message.typed)
            else:
                await self._submit(message.text, message.typed)
            await self._command_ends()
            return await self._turn(before)
        finally:
            self._turns -= 1

    def _is_command(self, text: str) -> bool:
        servers = self.session.mcp.servers
        return names_command(text) and (servers is None or not names_a_server(text, servers.rows()))

    async def _submit(self, text: str, typed: str | None, model: str = "") -> None:
        session = self.session
        if len(session.state.queue) >= MOST_WAITING:
            raise Refused(INVALID_PARAMS, f"{MOST_WAITING} prompts wait already; this one was not sent.")
        message = await with_servers(session, text)
        if not session.state.model:
            require_model(session.settings)
        session.go_on()
        await session.submit(message, typed, model)

    async def _turn(self, before: int) -> dict[str, Any]:
        """Wait for the end of the run, or for a question that the next prompt answers."""
        runs = self.session.running
        if runs and self._cancels == before and await self._left_to_prompt():
            return {"stopReason": "end_turn"}
        if self._cancels != before:
            await self._stop()  # it came in the moment before the run began
            return {"stopReason": "cancelled"}
        return self._ended() if runs else {"stopReason": "end_turn"}

    async def _left_to_prompt(self) -> bool:
        """True if a question waits for the next prompt, False at the end of the run."""
        run = asyncio.ensure_future(self.session.wait())
        left = asyncio.ensure_future(self.questions.left_to_prompt.wait())
        await asyncio.wait({run, left}, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if not run.done():
            run.cancel()
            return True
        try:
            run.result()
        except RecordingFailed as error:
            raise Refused(INTERNAL_ERROR, str(error)) from error
        return False

    def _ended(self) -> dict[str, Any]:
        """The answer to a prompt whose run has ended. Raises `Refused` if it failed."""
        state, unprepared = self.session.state, self.session.runs.unprepared
        outcome, said = state.run.outcome, unprepared or state.run.reason
        result = result_of(state).to_json()
        about = {META: {key: value for key, value in result.items() if key != "answer"}}
        fault = state.fault.fault.kind if state.fault is not None else None
        if outcome is events.Outcome.MODEL_FAILED and fault is FaultKind.CONTENT_POLICY and not unprepared:
            return {"stopReason": "refusal", "_meta": about}
        if unprepared or outcome in {events.Outcome.MODEL_FAILED, events.Outcome.ERROR}:
            code = AUTH_REQUIRED if fault is FaultKind.AUTH and not unprepared else INTERNAL_ERROR
            raise Refused(code, said, about)
        if outcome is events.Outcome.INTERRUPTED:
            reason = "cancelled"
        else:
            reason = "max_turn_requests" if state.run.rule == Rule.LIMIT_ITERATIONS else "end_turn"
        usage = state.metrics.usage
        answer: dict[str, Any] = {"stopReason": reason, "_meta": about}
        if usage.tokens:
            answer["usage"] = {
                "totalTokens": usage.tokens,
                "inputTokens": usage.prompt_tokens,
                "outputTokens": usage.completion_tokens,
                "cachedReadTokens": usage.cached_tokens,
                "cachedWriteTokens": usage.cache_write_tokens,
            }
        return answer

    async def cancel(self) -> None:
        """End the turns that are under way, and take back the prompts that wait. Nothing happens between turns."""
        await self._end_command()
        if self._turns or self.session.running:
            self._cancels += 1
            await self._stop()

    async def _stop(self) -> None:
        for message in self.session.state.queue:
            self.session.runs.drop(message.id)
        await self.session.stop("The client cancelled the turn.")

    # --- commands, as a console in lines --------------------------------------------------------------------

    def _begin_command(self, line: str) -> None:
        name = line.removeprefix("/").split(maxsplit=1)[0:1]
        if name and name[0].lower() in OF_CONSOLES:
            said = LOGIN if name[0].lower() == "login" else "it is for agent-tui's own consoles."
            self.paper.line(f"/{name[0]}: {said}")
            self._flush()
            return
        self._host.run_line(line)
        if self._command is None:
            self._flush()

    async def _end_command(self) -> None:
        """Give up a command that is under way or waits for its line."""
        if self._command is not None:
            self._command.cancel()
            await asyncio.wait([self._command])

    def _give_line(self, line: str) -> None:
        self._asks_line.clear()
        if self._line is not None and not self._line.done():
            self._line.set_result(line)

    async def _command_ends(self) -> None:
        """Wait for the end of a command, or for its wish for a line."""
        command = self._command
        if command is None:
            return
        asks = asyncio.ensure_future(self._asks_line.wait())
        await asyncio.wait({command, asks}, return_when=asyncio.FIRST_COMPLETED)
        asks.cancel()
        if command.done():
            self._command = None
            if not command.cancelled() and (fault := command.exception()) is not None:
                self._flush()
                raise Refused(INTERNAL_ERROR, str(fault)) from fault
        self._flush()

    def _flush(self) -> None:
        """Send what a command has written."""
        self.paper.end()
        text = self._written.taken()
        if text.strip():
            self._post(
                {
                    "sessionUpdate": "agent_message_chunk",
                    "messageId": f"c{self.session.state.seq}",
                    "content": text_block(_fenced(text)),
                }
            )

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry out a command; one at a time."""
        if self._command is not None and not self._command.done():
            work.close()
            self.paper.line("Another command is under way; cancel it, or wait for its end.")
            self._flush()
            return
        self._command = asyncio.get_running_loop().create_task(work, name="acp-command")

    async def ask(self, dialogue: Dialogue[Answer]) -> Answer:
        """Hold a dialogue: what it says ends the turn, and the next prompt is its line."""
        try:
            asked = next(dialogue)
            while True:
                self.paper.lines(asked.lines)
                self._line = asyncio.get_running_loop().create_future()
                self._asks_line.set()
                asked = dialogue.send(await self._line)
        except StopIteration as ended:
            answer: Answer = ended.value
            return answer
        finally:
            self._line = None
            self._asks_line.clear()

    async def submit(self, text: str, typed: str | None = None, model: str = "") -> None:
        """Start a run with the message of a command."""
        await self._submit(text, typed, model)

    async def may_leave(self) -> bool:
        """A command may end the run that is under way: the client asked for it."""
        return True

    def leave(self, following: ConsoleArguments | None = None) -> None:
        """Nothing is left: the client closes sessions."""

    def put_in_prompt(self, text: str) -> None:
        """Show a text that a console would put into its prompt."""
        self.paper.line(text)

    async def edit(self) -> str:
        """Raise `ValueError`: no editor is here."""
        raise ValueError("There is no editor here; write the message in your client.")

    async def secret(self, prompt: str) -> str:
        """Raise `ValueError`: a secret goes through no client."""
        raise ValueError(LOGIN)

    async def close(self) -> None:
        """End the session. Raises `SessionError` if the disk refuses."""
        self._cancels += 1
        await self._end_command()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        try:
            await self.session.close()
        finally:
            self.questions.close()


class _Written(io.StringIO):
    """The text that commands write, until it is sent."""

    def taken(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


def _fenced(text: str) -> str:
    """Text in columns, as Markdown that keeps them; one line is a sentence."""
    text = text.strip("\n")
    if "\n" not in text:
        return text
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
