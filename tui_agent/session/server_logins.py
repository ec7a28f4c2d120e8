"""The logins to MCP servers that the operator has begun. Each goes on in the background and ends with a notice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from tui_agent import keychain
from tui_agent.tools.mcp.status import Invitation, LoginError

if TYPE_CHECKING:
    from tui_agent.tools.mcp.oauth.login import Login
    from tui_agent.tools.mcp.servers import McpServers


class LoginHost(Protocol):
    """The servers of a session."""

    servers: McpServers | None

    def reconnect(self, name: str) -> bool: ...

    def notice(self, text: str) -> None: ...


class ServerLogins:
    """One login to each server at a time."""

    def __init__(self, host: LoginHost) -> None:
        self._host = host
        self._waiting: dict[str, tuple[Login, asyncio.Task[None]]] = {}

    @property
    def _servers(self) -> McpServers:
        if self._host.servers is None:
            raise LoginError("no MCP server is configured")
        return self._host.servers

    async def begin(self, name: str, *, device: bool) -> Invitation:
        """Begin a login, instead of one that waits. Raises `LoginError`."""
        await self.give_up(name)
        login = self._servers.log_in(name, device=device)
        try:
            invitation = await login.begin()
        except BaseException:
            await login.close()
            raise
        task = asyncio.get_running_loop().create_task(self._finish(name, login), name=f"mcp-login-{name}")
        self._waiting[name] = (login, task)
        return invitation

    async def _finish(self, name: str, login: Login) -> None:
        try:
            not_kept = await login.finish()
        except LoginError as error:
            self._host.notice(f"MCP server {name}: the login failed: {error}.")
        else:
            until = f", until this session ends: {not_kept}" if not_kept else ""
            self._host.notice(f"MCP server {name}: logged in{until}.")
            self._host.reconnect(name)
        finally:
            self._waiting.pop(name, None)
            await login.close()

    def waits(self, name: str) -> bool:
        """True while the operator has still to log in."""
        return name in self._waiting

    def paste(self, name: str, address: str) -> None:
        """Take the address that the browser was sent to. Raises `LoginError`."""
        if name in self._waiting:
            self._waiting[name][0].paste(address)

    async def give_up(self, name: str) -> None:
        """Wait no longer for a login."""
        if name in self._waiting:
            task = self._waiting[name][1]
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def log_out(self, name: str) -> bool:
        """Forget a login, and connect without it; False: there was none. Raises `LoginError`."""
        from tui_agent.tools.mcp.oauth.login import log_out

        await self.give_up(name)
        kept = self._servers.login(name)
        try:
            there = kept is not None and await log_out(kept)
        except keychain.NoKeyringError as error:
            raise LoginError(str(error)) from error
        self._host.reconnect(name)
        return there

    async def close(self) -> None:
        """Give all of them up."""
        for name in list(self._waiting):
            await self.give_up(name)
