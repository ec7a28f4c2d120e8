"""Another agent: its process, its session, and the prompts that it is sent.

A process that has ended is started again for the next prompt, and loads its session if it can. What its updates mean
is said in `turn` and `calls`.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_agent import __version__, processes
from tui_agent.acp.wire import AUTH_REQUIRED, Wire
from tui_agent.acp_client.connection import AgentError, AgentGoneError, Connection
from tui_agent.acp_client.entries import AgentEntry
from tui_agent.acp_client.offers import KINDS, Offers
from tui_agent.acp_client.servers import handed_over
from tui_agent.acp_client.turn import Ended, Turn
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.core.events import Fault, FaultKind
from tui_agent.core.values import AgentOption
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.values import text_at, value_at
from tui_agent.headline import headline
from tui_agent.terminal_text import one_line

PROTOCOL = 1
START_PATIENCE = 120.0
"""Seconds for the agent's start and for its session: npx and uvx load what they run first."""
CHANGE_PATIENCE = 30.0
"""Seconds in which an option is set."""
END_PATIENCE = 10.0
"""Seconds in which a turn that was cancelled ends; then the process is ended."""
GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_TAIL = 4_000
"""Bytes of standard error, from its end, that may tell why it has ended."""


class AgentFault(Exception):
    """The agent does not take a prompt, or has not finished it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True)
class Running:
    """A process of the agent's. `last_words`: how it ended and what it said last; `end` ends it."""

    wire: Wire
    last_words: Callable[[], Awaitable[str]]
    end: Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Greeting:
    """The agent's words about itself and its session. `forgot`: why it could not load the one it had; `withheld`: MCP
    servers that it cannot reach.
    """

    session: str
    version: str = ""
    model: str = ""
    forgot: str = ""
    withheld: tuple[str, ...] = ()


async def started(entry: AgentEntry, workspace: Path) -> Running:
    """Start the agent's command. Raises `OSError`."""
    child = await processes.start(
        entry.argv, cwd=entry.folder(workspace), env={**os.environ, **entry.env}, limit=_TAIL
    )
    reader, writer = child.process.stdout, child.process.stdin
    if reader is None or writer is None:
        raise OSError("it has no pipes")
    tail = bytearray()

    async def read_errors() -> None:
        stream = child.process.stderr
        while stream is not None and (piece := await stream.read(_TAIL)):
            tail.extend(piece)
            del tail[:-_TAIL]

    reading = asyncio.get_running_loop().create_task(read_errors(), name="acp-agent-errors")

    async def last_words() -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.gather(asyncio.shield(reading), child.process.wait())
        said = headline(tail.decode(errors="replace"))
        code = "" if child.code is None else f" (exit code {child.code})"
        return f"the agent has ended{code}{f': {said}' if said else ''}"

    async def end() -> None:
        await child.end(GRACE)
        reading.cancel()

    return Running(Wire(reader, writer, answers=False), last_words, end)


class Agent:
    """One agent with one session. `ready` before `prompt`; one turn at a time."""

    def __init__(
        self,
        entry: AgentEntry,
        workspace: Path,
        session: str = "",
        start: Callable[[AgentEntry, Path], Awaitable[Running]] = started,
    ) -> None:
        """`session`: the agent's own name of the session that is gone on with."""
        self.entry = entry
        self.workspace = workspace
        self._session = session
        self._start = start
        self._running: Running | None = None
        self._connection: Connection | None = None
        self._turn: Turn | None = None
        self._ending: asyncio.Task[None] | None = None
        """Waits for the end of the newest turn."""
        self._logins: list[str] = []
        self._questions: set[int | str] = set()
        """Permission requests without an answer."""
        self.offers = Offers()
        self.offered: Callable[[], None] = lambda: None
        """Called when the agent says that it offers something else."""

    # --- the connection -------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """It has a session, and can be asked."""
        return self._connection is not None and self._connection.open

    async def ready(self, servers: Sequence[ServerEntry] = ()) -> Greeting | None:
        """Connect if that is not done; what the agent says of itself if it was done now. `servers`: MCP servers that it
        starts for its session. Raises `AgentFault`.
        """
        await self._settled()
        if self.open:
            return None
        await self.close()
        try:
            self._running = await self._start(self.entry, self.workspace)
        except OSError as error:
            raise _no_start(self.entry, error) from error
        self.offers = Offers()
        connection = self._connection = Connection(self._running.wire, self._handle)
        try:
            return await self._greeted(connection, servers)
        except (AgentGoneError, AgentError, TimeoutError) as error:
            fault = await self._not_opened(error)
            await self.close()
            raise AgentFault(fault) from error
        except BaseException:  # a session that is half open would be taken for one
            await self.close()
            raise

    async def _not_opened(self, error: AgentGoneError | AgentError | TimeoutError) -> Fault:
        match error:
            case AgentGoneError():
                return Fault(kind=FaultKind.UNKNOWN, message=await self._last_words(error))
            case AgentError():
                return self._fault(error)
            case _:
                said = f"{self.entry.name} has not answered in {START_PATIENCE:.0f} s"
                return Fault(kind=FaultKind.TIMEOUT, message=said)

    async def _greeted(self, connection: Connection, servers: Sequence[ServerEntry]) -> Greeting:
        said = await connection.request("initialize", _INITIALIZE, START_PATIENCE)
        if not isinstance(said, dict) or said.get("protocolVersion") != PROTOCOL:
            raise AgentFault(Fault(kind=FaultKind.BAD_REQUEST, message=self._other_protocol(said)))
        if self.entry.login:
            await connection.request("authenticate", {"methodId": self.entry.login}, START_PATIENCE)
        self._logins = [text_at(one, "id") for one in said.get("authMethods") or () if isinstance(one, dict)]
        by_address = value_at(said, "agentCapabilities", "mcpCapabilities", "http") is True
        reached = [one for one in servers if by_address or not one.url]
        place = self._place(reached)
        forgot = ""
        opened: object = None
        if self._session:
            try:
                opened = await self._loaded(connection, said, place)
            except AgentError as error:
                forgot = one_line(str(error), 300)
        if opened is None:
            opened = await connection.request("session/new", place, START_PATIENCE)
            self._session = text_at(opened, "sessionId")
        if not self._session:
            raise AgentFault(
                Fault(kind=FaultKind.BAD_REQUEST, message=f"{self.entry.name} named no session of its own")
            )
        self.offers.begin(opened)
        about = (text_at(said, "agentInfo", "name"), text_at(said, "agentInfo", "version"))
        version = one_line(" ".join(filter(None, about)), 100)
        model = self.offers.now.option("model")
        withheld = tuple(one.name for one in servers if one not in reached)
        named = one_line(model.value, 100) if model is not None else ""
        return Greeting(self._session, version, named, forgot, withheld)

    async def choose(self, option: AgentOption, value: str) -> None:
        """Give an option a value. Raises `AgentFault`."""
        connection = self._connection
        if connection is None:
            raise AgentFault(Fault(kind=FaultKind.STREAM_CUT, message="the agent has ended"))
        method, params = self.offers.change(option, value)
        try:
            answer = await connection.request(method, {"sessionId": self._session, **params}, CHANGE_PATIENCE)
        except (AgentError, AgentGoneError) as error:
            said = str(error) or "the agent has ended"
            raise AgentFault(Fault(kind=FaultKind.BAD_REQUEST, message=said)) from error
        except TimeoutError as late:
            said = f"{self.entry.name} has not answered in {CHANGE_PATIENCE:.0f} s"
            raise AgentFault(Fault(kind=FaultKind.TIMEOUT, message=said)) from late
        self.offers.changed(option, value, answer)

    def _other_protocol(self, said: object) -> str:
        found = value_at(said, "protocolVersion")
        if found is None:
            return f"{self.entry.name} does not speak the Agent Client Protocol: it did not say which version"
        return (
            f"{self.entry.name} speaks version {one_line(str(found), 40)} of the Agent Client Protocol, and this "
            f"program version {PROTOCOL}. Update the older one of the two"
        )

    def _place(self, servers: Sequence[ServerEntry]) -> dict[str, Any]:
        folder = self.entry.folder(self.workspace)
        return {"cwd": str(folder), "mcpServers": [handed_over(one, folder) for one in servers]}

    async def _loaded(self, connection: Connection, said: dict[str, Any], place: dict[str, Any]) -> object:
        """Open the session again, without its history if the agent can. Raises `AgentError`."""
        able = value_at(said, "agentCapabilities")
        if value_at(able, "sessionCapabilities", "resume") is not None:
            method = "session/resume"
        elif value_at(able, "loadSession") is True:
            method = "session/load"
        else:
            raise AgentError("it cannot open a session again")
        found = await connection.request(method, {"sessionId": self._session, **place}, START_PATIENCE)
        return found if isinstance(found, dict) else {}

    async def _last_words(self, gone: AgentGoneError) -> str:
        running = self._running
        return str(gone) or ("the agent has ended" if running is None else await running.last_words())

    def _fault(self, error: AgentError) -> Fault:
        if error.code != AUTH_REQUIRED:
            return classified(str(error))
        ways = ", ".join(filter(None, self._logins)) or "its own command"
        said = (
            f"{self.entry.name} wants you to log in ({one_line(str(error), 200)}). Log in with the agent's own "
            f"program, or name one of its ways as `login` in [agents.{self.entry.name}]: {ways}"
        )
        return Fault(kind=FaultKind.AUTH, message=said)

    async def close(self) -> None:
        """End the process. What it was asked ends with it."""
        connection, running = self._connection, self._running
        self._connection = self._running = None
        self._questions.clear()
        if connection is not None:
            await connection.close()
        if running is not None:
            await running.end()
        if self._ending is not None:
            await asyncio.wait({self._ending})
            self._ending = None

    # --- turns ----------------------------------------------------------------------------------------------

    def prompt(self, text: str, taken: set[str]) -> Turn:
        """Send a prompt; its answer, which comes. `taken`: see `Turn`. Raises `AgentFault`."""
        connection = self._connection
        if connection is None:
            raise AgentFault(Fault(kind=FaultKind.STREAM_CUT, message="the agent has ended"))
        turn = self._turn = Turn(self.workspace, taken)
        work = self._answered(connection, turn, text)
        self._ending = asyncio.get_running_loop().create_task(work, name="acp-turn")
        return turn

    async def _answered(self, connection: Connection, turn: Turn, text: str) -> None:
        params = {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]}
        try:
            answer = await connection.request("session/prompt", params)
            ended = Ended(text_at(answer, "stopReason") or "end_turn")
        except AgentGoneError as gone:
            ended = Ended(fault=Fault(kind=FaultKind.STREAM_CUT, message=await self._last_words(gone)))
        except AgentError as error:
            ended = Ended(fault=self._fault(error))
        await turn.put(ended)

    def leave(self) -> None:
        """Cancel the turn that goes on, and let go of it."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        turn.leave()
        going_on = self._ending is not None and not self._ending.done()
        if self._connection is not None and going_on:
            for request in [*self._questions]:
                self.answer(request, {"outcome": "cancelled"})
            self._connection.notify("session/cancel", {"sessionId": self._session})

    def over(self) -> None:
        """The turn has come to its end."""
        self._turn = None

    async def _settled(self) -> None:
        """Wait for the end of a turn that was left; a process that does not end it is ended."""
        if self._ending is None or self._turn is not None:
            return
        done, _ = await asyncio.wait({self._ending}, timeout=END_PATIENCE)
        if not done:
            await self.close()
        self._ending = None

    def answer(self, request: int | str, outcome: dict[str, Any]) -> None:
        """Answer a permission request."""
        self._questions.discard(request)
        if self._connection is not None:
            self._connection.answer(request, {"outcome": outcome})

    async def _handle(self, method: str, params: dict[str, Any], request: int | str | None) -> None:
        turn, connection = self._turn, self._connection
        update = params.get("update")
        match method:
            case "session/update" if self._session and params.get("sessionId") not in {None, self._session}:
                pass  # of another session, as that of a sub-agent
            case "session/update" if value_at(update, "sessionUpdate") in KINDS:
                self.offers.update(params["update"])
                self.offered()
            case "session/update" if turn is not None and isinstance(update, dict):
                await turn.put(update)
            case "session/request_permission" if request is not None:
                self._questions.add(request)
                if turn is None:
                    self.answer(request, {"outcome": "cancelled"})
                else:
                    await turn.put({**params, "request": request})
            case _ if request is not None and connection is not None:
                connection.refuse(request, method)


_INITIALIZE: dict[str, Any] = {
    "protocolVersion": PROTOCOL,
    "clientCapabilities": {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        "session": {"configOptions": {"boolean": {}}},
    },
    "clientInfo": {"name": "agent-tui", "title": "agent-tui", "version": __version__},
}


def _no_start(entry: AgentEntry, error: OSError) -> AgentFault:
    why = error.strerror or str(error)
    then = f" {entry.install}" if entry.install and isinstance(error, FileNotFoundError) else ""
    said = f"{entry.name} could not be started ({shlex.join(entry.argv)}): {why}.{then}"
    return AgentFault(Fault(kind=FaultKind.NOT_FOUND, message=said))
