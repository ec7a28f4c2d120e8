"""The MCP servers of a session: started in the background once they are trusted, their tools put among the others.

The SDK is imported, in a thread, when the first server is started. What the operator is asked and what is recorded goes
through the `ServerHost`.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui_agent import installed
from tui_agent.config.mcp_servers import ConfiguredServers, ServerEntry
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.tools.errors import ToolError
from tui_agent.tools.mcp.offer import Offered, offer, slugs
from tui_agent.tools.mcp.status import (
    Elicitation,
    ElicitationReply,
    LoginError,
    Resource,
    ServerPrompt,
    ServerStatus,
)
from tui_agent.tools.mcp.tool import ServerTool

if TYPE_CHECKING:
    from tui_agent.tools.mcp.connection import Connection
    from tui_agent.tools.mcp.oauth.kept import KeptLogin
    from tui_agent.tools.mcp.oauth.login import Login
    from tui_agent.tools.registry import ToolRegistry

_LIST_WAIT = 2.0
"""Seconds that a request waits for lists which a server says have changed."""


class ServerHost(Protocol):
    """The interface of the session that holds the servers."""

    @property
    def present(self) -> bool:
        """True if somebody can be asked."""

    @property
    def state_dir(self) -> Path:
        """The folder that processes of one user share."""

    def trusted(self, entry: ServerEntry) -> bool | None:
        """The operator's answer for exactly this entry; None: never asked."""

    async def ask_trust(self, entry: ServerEntry) -> bool:
        """Ask the operator to start a server of a checkout, and remember the answer."""

    async def ask(self, question: Elicitation) -> ElicitationReply:
        """Put a server's question to the operator."""

    async def sandbox(self, entry: ServerEntry) -> Sandbox:
        """The sandbox that the server runs in."""

    def mask(self, secrets: Mapping[str, str]) -> None:
        """These values must not be seen from now on."""

    def changed(self, row: ServerRow) -> None:
        """A server came, went or has other tools."""

    def notice(self, text: str) -> None:
        """Something the operator should know."""


@dataclass(frozen=True)
class ServerRow:
    """A server as it stands now."""

    entry: ServerEntry
    status: ServerStatus
    why: str = ""
    tools: tuple[Offered, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    server: str = ""
    retry_in: float | None = None
    notices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.entry.name


class McpServers:
    """All servers. `start` returns at once; `close` ends every one of them."""

    def __init__(
        self,
        configured: ConfiguredServers,
        registry: ToolRegistry,
        host: ServerHost,
        workspace: Path,
    ) -> None:
        self.workspace_uri = workspace.as_uri()
        self.state_dir = host.state_dir
        self.mask = host.mask
        self._configured = configured
        self._registry = registry
        self._host = host
        self._slugs = slugs(entry.name for entry in configured.entries)
        self._connections: dict[str, Connection] = {}
        self._refused: dict[str, tuple[ServerStatus, str]] = {}
        self._offered: dict[str, tuple[tuple[Offered, ...], tuple[str, ...]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._shown: dict[str, object] = {}
        self._started = asyncio.Event()
        """Every server that can be started by itself has been."""
        self._closing = False
        self._asking: list[asyncio.Task[None]] = []
        self._starting: asyncio.Task[None] | None = None

    # --- as surroundings of the connections -----------------------------------------------------------------

    @property
    def ask(self) -> Callable[[Elicitation], Awaitable[ElicitationReply]] | None:
        """Puts a server's question to the operator; None if nobody is there."""
        return self._host.ask if self._host.present else None

    def changed(self, connection: Connection) -> None:
        """Offer what the server offers now."""
        if self._closing:
            return
        name = connection.entry.name
        self._tasks[f"{name} offer"] = asyncio.get_running_loop().create_task(self._offer(connection))

    async def sandbox(self, entry: ServerEntry) -> Sandbox:
        """The sandbox that a server runs in."""
        return await self._host.sandbox(entry)

    # --- life -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start what may be started, and ask about the rest, all in the background."""
        self._starting = asyncio.get_running_loop().create_task(self._start(), name="mcp-servers")

    async def _start(self) -> None:
        try:
            for problem in self._configured.problems:
                self._host.notice(f"MCP servers: {problem}.")
            for entry in self._configured.entries:
                if entry.disabled:
                    self._refused[entry.name] = (ServerStatus.DISABLED, "")
                elif entry.scope == "user" or self._host.trusted(entry):
                    await self._connect(entry)
                else:
                    self._not_trusted(entry)
        finally:
            self._started.set()

    def _not_trusted(self, entry: ServerEntry) -> None:
        refused = self._host.trusted(entry) is False
        how = _how_to_trust(entry)
        if refused:
            self._refused[entry.name] = (ServerStatus.UNTRUSTED, f"you refused it; {how}")
            return
        self._refused[entry.name] = (ServerStatus.UNTRUSTED, how)
        if self._host.present:
            self._asking.append(asyncio.get_running_loop().create_task(self._ask_trust(entry)))
        else:
            self._host.notice(not_started(entry))

    async def _ask_trust(self, entry: ServerEntry) -> None:
        if await self._host.ask_trust(entry):
            await self.trust(entry.name)

    def untrusted(self, name: str) -> ServerEntry | None:
        """The server of that name that waits for the operator's trust."""
        status, _ = self._refused.get(name, (None, ""))
        return self._configured.get(name) if status is ServerStatus.UNTRUSTED else None

    async def trust(self, name: str) -> None:
        """Start a server that was not trusted: the operator has agreed."""
        entry = self._configured.get(name)
        if entry is not None and name not in self._connections:
            await self._connect(entry)

    async def _connect(self, entry: ServerEntry) -> None:
        try:
            module = await asyncio.to_thread(importlib.import_module, "tui_agent.tools.mcp.connection")
        except ImportError as error:
            why = f"the package it needs is not installed: {installed.adding('mcp')}"
            if not any(status is ServerStatus.FAILED for status, _ in self._refused.values()):
                self._host.notice(
                    f"MCP servers are configured, and the package for them is missing ({error}). "
                    f"{installed.adding('mcp')}"
                )
            self._refused[entry.name] = (ServerStatus.FAILED, why)
            return
        self.mask(entry.secrets)
        self._refused.pop(entry.name, None)
        connection: Connection = module.Connection(entry, self)
        self._connections[entry.name] = connection
        self._tasks[entry.name] = asyncio.get_running_loop().create_task(
            connection.run(), name=f"mcp-{entry.name}"
        )

    async def ready(self, seconds: float) -> None:
        """Until every server that is being started is connected or given up, for so long at most."""
        if self._starting is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._started.wait()
                await asyncio.gather(*(connection.settled() for connection in self._connections.values()))
                await self._offers()

    async def listed(self) -> None:
        """Until the lists that changed have been read again and are offered; for a moment at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIST_WAIT):
                await asyncio.gather(*(connection.listed() for connection in self._connections.values()))
                await self._offers()

    async def _offers(self) -> None:
        offers = [task for name, task in self._tasks.items() if name.endswith(" offer")]
        await asyncio.gather(*offers, return_exceptions=True)

    async def close(self) -> None:
        """End every server; all at once, so that the slowest one counts."""
        self._closing = True
        tasks = [*self._asking, *self._tasks.values(), *([] if self._starting is None else [self._starting])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- tools ----------------------------------------------------------------------------------------------

    async def _offer(self, connection: Connection) -> None:
        entry = connection.entry
        tools = connection.lists.tools
        try:
            offered, notices = await asyncio.to_thread(offer, entry.name, self._slugs[entry.name], tools)
        except Exception as error:  # noqa: BLE001 - what a server says of its tools costs its tools and no more
            offered, notices = [], [f"its tools cannot be offered ({type(error).__name__})"]
        if connection.lists.tools is not tools:
            return  # a newer list is on its way
        self._offered[entry.name] = (tuple(offered), tuple(notices))
        # Also of a server that is away: the request begins as before, and calls are refused with the reason.
        self._registry.put(entry.name, [ServerTool(each, connection) for each in offered])
        row = self._row(entry)
        shown = (row.status, tuple(tool.name for tool in row.tools))
        passing = row.status is ServerStatus.CONNECTING or (
            row.status is ServerStatus.RETRYING and entry.name not in self._shown
        )
        if not passing and self._shown.get(entry.name) != shown:
            self._shown[entry.name] = shown
            self._host.changed(row)

    # --- what is shown and asked for ------------------------------------------------------------------------

    def rows(self) -> list[ServerRow]:
        """Every configured server as it stands."""
        return [self._row(entry) for entry in self._configured.entries]

    def _row(self, entry: ServerEntry) -> ServerRow:
        connection = self._connections.get(entry.name)
        if connection is None:
            status, why = self._refused.get(entry.name, (ServerStatus.CONNECTING, ""))
            return ServerRow(entry, status, why)
        offered, notices = self._offered.get(entry.name, ((), ()))
        retry = None
        if connection.status in {ServerStatus.OPEN, ServerStatus.RETRYING}:
            retry = max(0.0, connection.retry_at - asyncio.get_running_loop().time())
        return ServerRow(
            entry, connection.status, connection.why, offered, connection.lists.resources, connection.lists.prompts,
            connection.server, retry, notices,
        )  # fmt: skip

    def log_in(self, name: str, *, device: bool) -> Login:
        """A login to a server. Raises `LoginError`."""
        return self._started_one(name).log_in(device=device)

    def login(self, name: str) -> KeptLogin | None:
        """What is kept of the login to a server, if one can log in to it. Raises `LoginError`."""
        return self._started_one(name).login

    def _started_one(self, name: str) -> Connection:
        connection = self._connections.get(name)
        if connection is None:
            raise LoginError("no MCP server of that name was started")
        return connection

    def reconnect(self, name: str) -> bool:
        """Try a server again now. False: there is none of that name that was started."""
        connection = self._connections.get(name)
        if connection is None:
            return False
        connection.reconnect()
        return True

    async def read_resource(self, server: str, uri: str) -> str:
        """The text of a resource. Raises `ToolError`."""
        return await self._connection(server).read_resource(uri)

    async def get_prompt(self, server: str, name: str, arguments: dict[str, str]) -> str:
        """A prompt filled in. Raises `ToolError`."""
        return await self._connection(server).get_prompt(name, arguments)

    def _connection(self, server: str) -> Connection:
        connection = self._connections.get(server)
        if connection is None:
            raise ToolError(f"There is no MCP server {server} that was started; /mcp lists them.")
        return connection


def _how_to_trust(entry: ServerEntry) -> str:
    return f"`agent-tui mcp trust {entry.name}` allows it"


def not_started(entry: ServerEntry) -> str:
    """Why a server of the workspace is left out if nobody can be asked."""
    return (
        f"The MCP server {entry.name} of {entry.file.name} was not started: it comes with the workspace, and nobody "
        f"has agreed to run `{entry.shown}`. {_how_to_trust(entry)}."
    )
