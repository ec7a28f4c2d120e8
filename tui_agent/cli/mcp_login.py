"""`agent-tui mcp login` and `logout`: a login to a server from a terminal, kept in the keyring."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tui_agent import installed, keychain
from tui_agent.config.errors import ConfigError
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.config.settings import Settings
from tui_agent.frontend.browser import has_browser, open_page
from tui_agent.store.mcp_trust import McpTrust
from tui_agent.terminal_text import one_line
from tui_agent.tools.mcp.status import LoginError

if TYPE_CHECKING:
    from tui_agent.tools.mcp.oauth.kept import KeptLogin

_Result = TypeVar("_Result")


class How(NamedTuple):
    """The kind of a login."""

    device: bool
    browser: bool


def log_in(settings: Settings, entry: ServerEntry, how: How) -> int:
    """Log in, and keep the token; 0 once it is kept. Raises `ConfigError`."""

    async def work(kept: KeptLogin) -> str:
        keychain.check()
        if (
            how.browser
            and not how.device
            and not sys.stdin.isatty()
            and not has_browser(os.environ, sys.platform)
        ):
            raise LoginError(
                "there is neither a browser nor a terminal here to log in with. --device logs in with a code, "
                "--no-browser waits for a browser that you open yourself"
            )
        return await _logged_in(entry, kept, how)

    not_kept = _with_login(settings, entry, work)
    if not_kept:
        raise ConfigError(f"The login to {entry.name} was not kept: {not_kept}.")
    sys.stdout.write(f"Logged in to {entry.name}. The keyring of this system holds the login.\n")
    return 0


def log_out(settings: Settings, entry: ServerEntry) -> int:
    """Forget a login; 0 also if there was none. Raises `ConfigError`."""

    async def work(kept: KeptLogin) -> bool:
        from tui_agent.tools.mcp.oauth.login import log_out as forget

        return await forget(kept)

    there = _with_login(settings, entry, work)
    sys.stdout.write(f"Logged out of {entry.name}.\n" if there else f"There was no login to {entry.name}.\n")
    return 0


def _with_login(
    settings: Settings, entry: ServerEntry, work: Callable[[KeptLogin], Awaitable[_Result]]
) -> _Result:
    """Do something with what is kept of the login to a server. Raises `ConfigError`."""
    try:
        from tui_agent.tools.mcp.oauth.kept import KeptLogin
    except ImportError as error:
        raise ConfigError(f"The package for MCP servers is missing. {installed.adding('mcp')}") from error

    def nothing_is_written(secrets: Mapping[str, str]) -> None:
        pass

    async def within() -> _Result:
        return await work(KeptLogin(entry, settings.state_dir, nothing_is_written))

    if entry.scope == "workspace" and not McpTrust(settings.state_dir, settings.workspace).trusted(entry):
        raise ConfigError(
            f"{entry.name} is of the workspace; agree to it first: agent-tui mcp trust {entry.name}"
        )
    if not entry.logs_in:
        raise ConfigError(
            f"There is no login to {entry.name}: it has no address, or brings an Authorization header."
        )
    try:
        return asyncio.run(within())
    except keychain.NoKeyringError as error:
        raise ConfigError(f"A login to {entry.name} could not be kept: {error}.") from error
    except LoginError as error:
        raise ConfigError(f"MCP server {entry.name}: {error}.") from error


async def _logged_in(entry: ServerEntry, kept: KeptLogin, how: How) -> str:
    """The reason if the token could not be kept. Raises `LoginError`."""
    from tui_agent.tools.mcp.oauth.login import Login

    login = Login(entry, kept, device=how.device)
    try:
        invitation = await login.begin()
        opened = how.browser and await asyncio.to_thread(open_page, invitation.address)
        asked = "A browser was opened" if opened else "Open this address in a browser"
        sys.stdout.write(
            f"{asked} to log in at {invitation.host}:\n\n{one_line(invitation.address, 8_000)}\n\n"
        )
        if invitation.code:
            sys.stdout.write(f"Enter the code {invitation.code} there.\n")
        elif sys.stdin.isatty():
            sys.stdout.write(
                "If its last page cannot be shown because the browser runs on another machine, paste the address of "
                "that page here, and press Enter.\n"
            )
        sys.stdout.flush()
        with _pasted(login.paste, wanted=not invitation.code):
            return await login.finish()
    finally:
        await login.close()


@contextmanager
def _pasted(take: Callable[[str], None], *, wanted: bool) -> Iterator[None]:
    """Give lines that are typed in the terminal to `take`."""
    if not wanted or not sys.stdin.isatty():
        yield
        return
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def typed() -> None:
        read = os.read(descriptor, 65_536)
        if not read:
            loop.remove_reader(descriptor)
        try:
            if line := read.decode("utf-8", "replace").strip():
                take(line)
        except LoginError as error:
            sys.stdout.write(f"{str(error).capitalize()}.\n")
            sys.stdout.flush()

    loop.add_reader(descriptor, typed)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
