"""One server from the first connection to the last: kept in the background, given up for a while when it fails.

A task of its own holds the connection, since the SDK wants it opened and closed by the same one; calls come from
elsewhere. Nothing here raises into a run but `ToolError`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tui_agent import __version__
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.terminal_text import one_line
from tui_agent.tools.errors import ToolError
from tui_agent.tools.mcp import transport
from tui_agent.tools.mcp.content import prompt_text, resource_text
from tui_agent.tools.mcp.lists import Lists, listed
from tui_agent.tools.mcp.oauth.bearer import Bearer
from tui_agent.tools.mcp.oauth.kept import KeptLogin
from tui_agent.tools.mcp.oauth.login import Login
from tui_agent.tools.mcp.open_calls import OpenCalls
from tui_agent.tools.mcp.patience import Breaker, Patience
from tui_agent.tools.mcp.status import Elicitation, ElicitationReply, LoginError, ServerStatus

logger = logging.getLogger(__name__)

_CLOSED = frozenset({types.CONNECTION_CLOSED})
_STRIKES = 3
"""Calls in a row without an answer after which the connection is made anew."""


class ConnectionHolder(Protocol):
    """The interface of the holder of a connection."""

    workspace_uri: str
    state_dir: Path

    def mask(self, secrets: Mapping[str, str]) -> None:
        """These values must not be seen from now on."""

    async def sandbox(self, entry: ServerEntry) -> Sandbox:
        """The sandbox that the server runs in."""

    def changed(self, connection: Connection) -> None:
        """Its status or lists are others now."""

    @property
    def ask(self) -> Callable[[Elicitation], Awaitable[ElicitationReply]] | None:
        """Puts a question to the operator; None if there is none."""


class ServerGoneError(Exception):
    """The connection has ended, or could not be made; the message says why."""


class Connection:
    """A server that is connected to, or tried again. `run` is its life; the rest may be called from any task."""

    def __init__(self, entry: ServerEntry, surroundings: ConnectionHolder) -> None:
        self.entry = entry
        self.status = ServerStatus.CONNECTING
        self.why = ""
        """The last fault, in words."""
        self.login = KeptLogin(entry, surroundings.state_dir, surroundings.mask) if entry.logs_in else None
        self.lists = Lists()
        self.server = ""
        """Name and version, as the server gives them."""
        self.protocol = ""
        self.retry_at = 0.0
        """When the next try comes, on the event loop's clock."""
        self._around = surroundings
        self._patience = Patience()
        self._breaker = Breaker(self._patience)
        self._client: Client | None = None
        self._line: transport.Line | None = None
        self._settled = asyncio.Event()
        """Connected, or given up: a call that waits for the connection need wait no longer."""
        self._tried = asyncio.Event()
        """The first try is over, however it ended."""
        self._again = asyncio.Event()
        self._calls = OpenCalls(entry.name, entry.call_limit)
        self._strikes = 0
        self._stale = asyncio.Event()
        self._listed = asyncio.Event()
        """The lists are as the server last said, but for a server that says too often that they changed."""
        self._listed.set()
        self._old_first = False
        """Begin with the older handshake: the server did not survive being asked for the newer protocol."""

    # --- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, stay connected, connect again, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            standing: ServerStatus | None = None
            try:
                await self._connected()
            except asyncio.CancelledError:
                self._set(ServerStatus.STOPPED)
                raise
            except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
                self.why = f"it cannot be started: {error.strerror or error} ({error.filename})"
                standing = ServerStatus.FAILED
            except Exception as error:  # noqa: BLE001 - whatever the SDK raises costs this connection alone
                standing = self._unless_logged_in()
                self.why = self._said(error)
            finally:
                self._client = None
            stood = self.status is ServerStatus.READY
            if not stood and standing is None:
                self._old_first = not self._old_first
            self._breaker.ended(loop.time() - began if stood else None)
            await self._wait_before_next(standing)

    async def _wait_before_next(self, standing: ServerStatus | None) -> None:
        """For a while; in a standing that only the operator can change, until then."""
        self._again.clear()
        status, delay = (standing, None) if standing is not None else self._breaker.next_try()
        if delay is not None:
            self.retry_at = asyncio.get_running_loop().time() + delay
        self._set(status)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._again.wait()
        if self._again.is_set():
            self._breaker.forget()
        self._set(ServerStatus.CONNECTING)

    def reconnect(self) -> None:
        """Try again now, whatever went wrong before; a connection that stands is made anew."""
        self._again.set()
        if self._line is not None:
            self._line.end("the operator asked for a new connection")

    def log_in(self, *, device: bool) -> Login:
        """A login to this server. Raises `LoginError` if it is none that one logs in to."""
        if self.login is None:
            why = (
                "its entry has an Authorization header"
                if self.entry.url
                else "it is a program, not an address"
            )
            raise LoginError(f"there is no login to it: {why}")
        return Login(self.entry, self.login, device=device)

    def _unless_logged_in(self) -> ServerStatus | None:
        """The standing of a server that only a login can help."""
        line = self._line
        if line is not None and line.wanted_scopes and self.status is not ServerStatus.READY:
            line.login = f"its login lacks the scopes {line.wanted_scopes}"
        return ServerStatus.LOGIN if line is not None and line.login else None

    async def _connected(self) -> None:
        """One connection from its start to its end. Raises what ended it."""
        self._line = line = transport.Line()
        self._strikes = 0
        async with self._streams(line) as streams:
            client = Client(
                _Given(streams),
                client_info=types.Implementation(name="agent-tui", version=__version__),
                message_handler=self._on_message,
                list_roots_callback=self._on_roots,
                elicitation_callback=None if self._around.ask is None else self._on_question,
                cache=None,
                mode="legacy" if self._old_first else "auto",
            )
            async with asyncio.timeout(self._patience.connect) as limit:
                await self._ended_or(line, client.__aenter__())
            try:
                async with asyncio.timeout_at(limit.when()):
                    self.lists = await self._ended_or(line, listed(client))
                self._introduce(client)
                await self._stay(client, line)
            finally:
                self._client = None
                await client.__aexit__(None, None, None)
        raise ServerGoneError(line.why)

    async def _stay(self, client: Client, line: transport.Line) -> None:
        """Offer what it has until the line ends."""
        self._client = client
        self._breaker.connected()
        self._set(ServerStatus.READY)
        watching = asyncio.create_task(self._watch(client))
        try:
            await line.ended.wait()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    @asynccontextmanager
    async def _streams(self, line: transport.Line) -> AsyncIterator[transport.Streams]:
        if self.entry.url:
            auth = None if self.login is None else Bearer(self.login, line)
            async with transport.http(self.entry, line, auth) as streams:
                yield streams
        else:
            sandbox = await self._around.sandbox(self.entry)
            async with transport.stdio(self.entry, line, sandbox) as streams:
                yield streams

    async def _ended_or(self, line: transport.Line, work: Awaitable[Any]) -> Any:
        """The result of `work`, which is done here, in this task; an end of the line interrupts it."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is made by a task")
        cut = False

        async def watch() -> None:
            nonlocal cut
            await line.ended.wait()
            cut = True
            task.cancel()

        watcher = asyncio.create_task(watch())
        try:
            return await work
        except asyncio.CancelledError:
            if cut and task.uncancel() == 0:
                raise ServerGoneError(line.why) from None
            raise
        finally:
            watcher.cancel()

    def _introduce(self, client: Client) -> None:
        info = client.server_info
        self.server = one_line(f"{info.name} {info.version}", 100) if info is not None else ""
        self.protocol = client.protocol_version

    def _said(self, error: Exception) -> str:
        """The fault, with the exit code and the last words of a process."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        line = self._line
        if isinstance(error, TimeoutError):
            error = ServerGoneError(f"it did not answer within {self._patience.connect:g} s")
        text = one_line(str(error), 400) or type(error).__name__
        if not isinstance(error, ServerGoneError | MCPError):
            text = f"{type(error).__name__}: {text}" if str(error) else text
        if line is not None:
            if line.login:
                text = f"{line.login}; `agent-tui mcp login {self.entry.name}` logs in"
            elif line.http_status in {401, 403} and self.login is None:
                text = f"it wants authorization (HTTP {line.http_status}): give its entry the header that it asks for"
            elif line.http_status is not None and line.http_status >= 400 and line.http_status != 405:
                text += f" (HTTP {line.http_status})"
            if line.exit_code is not None:
                text += f" (exit code {line.exit_code})"
            if line.last_words:
                text += f"; it said: {line.last_words}"
        return text

    def _set(self, status: ServerStatus) -> None:
        if status in {ServerStatus.CONNECTING, ServerStatus.RETRYING}:
            self._settled.clear()
        else:
            self._settled.set()
        if status is not ServerStatus.CONNECTING:
            self._tried.set()
        self.status = status
        if status is ServerStatus.READY:
            self.why = ""
        self._around.changed(self)

    async def settled(self) -> None:
        """Until the first try is over."""
        await self._tried.wait()

    async def listed(self) -> None:
        """Until lists that are being read again have been read."""
        await self._listed.wait()

    # --- lists ----------------------------------------------------------------------------------------------

    async def _on_message(self, message: Any) -> None:
        if isinstance(
            message,
            types.ToolListChangedNotification
            | types.ResourceListChangedNotification
            | types.PromptListChangedNotification,
        ):
            self._stale.set()

    async def _watch(self, client: Client) -> None:
        """List anew when the server says that something changed."""
        self._stale.clear()
        subscribed = asyncio.create_task(self._listen(client))
        patience = self._patience
        clock = asyncio.get_running_loop().time
        times, last = 0, float("-inf")
        try:
            while True:
                await self._stale.wait()
                pause = last + (patience.relist if times < 10 else patience.relist_often) - clock()
                if pause > 0:
                    await asyncio.sleep(pause)
                else:
                    self._listed.clear()
                times, last = times + 1, clock()
                self._stale.clear()
                before = self.lists
                try:
                    async with asyncio.timeout(patience.connect):
                        self.lists = await listed(client)
                except (MCPError, TimeoutError, ValueError) as error:
                    logger.info("%s: its lists could not be read again: %s", self.entry.name, error)
                    continue
                finally:
                    self._listed.set()
                if before != self.lists:
                    self._around.changed(self)
        finally:
            self._listed.set()
            subscribed.cancel()
            await asyncio.gather(subscribed, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """Servers of the newer protocol say what changed only to those who ask for it."""
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        delay = 1.0
        while True:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as subscription:
                    async for _ in subscription:
                        self._stale.set()
            await asyncio.sleep(delay)
            delay = min(60.0, delay * 2)

    # --- what the server asks -------------------------------------------------------------------------------

    async def _on_roots(self, context: Any) -> types.ListRootsResult:
        root = {"uri": self._around.workspace_uri, "name": "workspace"}
        return types.ListRootsResult.model_validate({"roots": [root]})

    async def _on_question(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        return await self._calls.asked(params, self._around.ask)

    # --- what is asked of the server ------------------------------------------------------------------------

    async def call(
        self, tool: str, arguments: dict[str, Any], show: Callable[[str], None]
    ) -> types.CallToolResult:
        """Call a tool; `show` is given what it says of its progress. Raises `ToolError`.

        A call that is cancelled is cancelled at the server too.
        """
        async with self._asked(f"the tool {tool}", effect=True) as (client, timer):
            last = asyncio.get_running_loop().time() + _MOST_SILENCES * self.entry.call_limit

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                if asyncio.get_running_loop().time() < last:
                    self._calls.alive(timer)
                show(_progress_line(progress, total, message))

            return await client.call_tool(tool, arguments, progress_callback=on_progress)

    async def read_resource(self, uri: str) -> str:
        """The text of a resource. Raises `ToolError`."""
        async with self._asked(f"the resource {uri}") as (client, _):
            result = await client.read_resource(uri)
        return "\n".join(resource_text(part) for part in result.contents)

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> str:
        """A prompt's messages as one text. Raises `ToolError`."""
        async with self._asked(f"the prompt {name}") as (client, _):
            result = await client.get_prompt(name, arguments)
        return prompt_text(result.messages)

    @asynccontextmanager
    async def _asked(
        self, what: str, *, effect: bool = False
    ) -> AsyncIterator[tuple[Client, asyncio.Timeout]]:
        client = await self._ready()
        line = self._line
        limit = self.entry.call_limit
        began = asyncio.get_running_loop().time()
        try:
            async with self._calls.one_more() as timer:
                yield client, timer
            self._strikes = 0
        except TimeoutError:
            self._strike(line)
            waited = max(limit, round(asyncio.get_running_loop().time() - began))
            raise ToolError(
                f"The server {self.entry.name} gave no answer about {what} within {waited:g} s; the call was cancelled."
                + (" What it did until then is not known." if effect else ""),
                transient=True,
                unknown_effect=effect,
            ) from None
        except MCPError as error:
            raise self._failed(error, line, what, effect=effect) from None
        except (httpx2.HTTPError, OSError) as error:
            if line is not None:
                line.end(f"the connection broke: {one_line(str(error)) or type(error).__name__}")
            raise self._lost(what, str(error), effect=effect) from None
        except ValueError as error:
            # A result that breaks the protocol or the tool's own schema.
            raise ToolError(
                f"The server {self.entry.name} answered about {what} with something that breaks the protocol: "
                f"{one_line(str(error), 600)}",
                unknown_effect=effect,
            ) from None
        except RuntimeError as error:
            raise ToolError(
                f"The server {self.entry.name} failed at {what}: {one_line(str(error), 600)}",
                unknown_effect=effect,
            ) from None

    def _failed(self, error: MCPError, line: transport.Line | None, what: str, *, effect: bool) -> ToolError:
        code, text = error.error.code, one_line(error.error.message, 2_000)
        if line is not None and line.login:
            return self._not_logged_in(line)
        broken = code in _CLOSED or "session terminated" in text.lower()
        if broken or (line is not None and line.ended.is_set()):
            if line is not None:
                line.end(text)
            return self._lost(what, line.why if line is not None else text, effect=effect)
        self._strikes = 0
        if line is not None and line.http_status == 403 and line.wanted_scopes:
            text = f"its login lacks the scopes {line.wanted_scopes}. The operator can log in again with them"
        return ToolError(f"The server {self.entry.name} refused {what}: {text} (code {code})")

    def _not_logged_in(self, line: transport.Line) -> ToolError:
        return ToolError(
            f"The server {self.entry.name} takes no calls: {line.login}. Go on without it; the operator can log in."
        )

    def _lost(self, what: str, why: str, *, effect: bool) -> ToolError:
        return ToolError(
            f"The connection to the server {self.entry.name} ended during {what}: {one_line(why, 300)}. It is "
            "connected to again." + (" What the call did until then is not known." if effect else ""),
            transient=True,
            unknown_effect=effect,
        )

    def _strike(self, line: transport.Line | None) -> None:
        self._strikes += 1
        if self._strikes >= _STRIKES and line is not None:
            line.end(f"{self._strikes} calls in a row had no answer")

    async def _ready(self) -> Client:
        """The connection, waited for if one is being made. Raises `ToolError`."""
        line = self._line
        if self._client is None or (line is not None and line.ended.is_set()):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience.reconnect):
                    await self._until_ready()
        if self._client is None:
            if self.status is ServerStatus.LOGIN and self._line is not None:
                raise self._not_logged_in(self._line)
            again = {
                ServerStatus.OPEN: f" It is tried again in {max(1.0, self._until_retry()):.0f} s.",
                ServerStatus.CONNECTING: " It is still being connected to.",
                ServerStatus.RETRYING: " It is being connected to again.",
            }.get(self.status, "")
            why = f" ({self.why})" if self.why else ""
            raise ToolError(
                f"The server {self.entry.name} cannot be reached now{why}.{again} Go on without it, or try later.",
                transient=True,
            )
        return self._client

    async def _until_ready(self) -> None:
        while True:
            await asyncio.sleep(0)  # an end that was just noticed is taken up by `run` first
            if self._client is not None and self._line is not None and not self._line.ended.is_set():
                return
            await self._settled.wait()
            if self.status is not ServerStatus.READY:
                return
            await asyncio.sleep(0.01)

    def _until_retry(self) -> float:
        return self.retry_at - asyncio.get_running_loop().time()


_MOST_SILENCES = 60
"""How often the time for an answer may begin anew because a call says that it makes progress."""


class _Given:
    """Streams that are there already, as the SDK wants to be given them."""

    def __init__(self, streams: transport.Streams) -> None:
        self._streams = streams

    async def __aenter__(self) -> transport.Streams:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        for stream in self._streams:
            await stream.aclose()


def _progress_line(done: float, total: float | None, message: str | None) -> str:
    share = f"{done:g}" if not total else f"{done:g} of {total:g}"
    return f"{share} · {one_line(message, 400)}\n" if message else f"{share}\n"
