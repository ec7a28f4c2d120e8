"""`/mcp login` and `/mcp logout`: the address is opened or shown, and the rest goes on in the background."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.frontend.browser import open_page
from tui_agent.frontend.lines.styled import Line, Span, wrap
from tui_agent.terminal_text import one_line
from tui_agent.tools.mcp.status import Invitation, LoginError

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import SessionHost

_PASTE = (
    "If the browser runs on another machine, its last page cannot be shown there. Copy the address of that page, "
    "and write /mcp login {} again."
)


async def log_in(host: SessionHost, words: str) -> str:
    """Begin a login, or go on with one that waits. Raises `ValueError`."""
    names = [word for word in words.split(" ") if word != "--device"]
    name = " ".join(names).strip()
    logins = host.session.mcp.logins
    try:
        if logins.waits(name):
            about = (
                "It was not shown there, and begins with http://localhost. Nothing: the login is given up."
            )
            address = (await host.secret("Address of the browser's last page", about)).strip()
            if not address:
                await logins.give_up(name)
                return f"The login to {name} is given up."
            logins.paste(name, address)
            return ""
        invitation = await logins.begin(name, device=words != name)
    except LoginError as error:
        raise ValueError(f"MCP server {name}: {error}.") from error
    await _invite(host, name, invitation)
    return ""


async def _invite(host: SessionHost, name: str, invitation: Invitation) -> None:
    opened = await asyncio.to_thread(open_page, invitation.address)
    how = "Log in in your browser" if opened else "Open this address in a browser"
    texts = [f"{how}, at {invitation.host}:", one_line(invitation.address, 4_000)]
    texts += [f"Enter the code {invitation.code} there."] if invitation.code else [_PASTE.format(name)]
    if not host.on_screen:
        host.say("\n".join(texts))
        return
    copied = await host.copy(invitation.address, "the address")

    def draw(width: int) -> list[Line]:
        return [(Span(line),) for text in [*texts, copied] for line in [*wrap(text, max(20, width)), ""]]

    await host.show_report(f"Log in to {one_line(name, 64)}", draw, 100)


async def log_out(host: SessionHost, name: str) -> str:
    """Forget a login. Raises `ValueError`."""
    try:
        there = await host.session.mcp.logins.log_out(name)
    except LoginError as error:
        raise ValueError(f"MCP server {name}: {error}.") from error
    return f"Logged out of {name}." if there else f"There was no login to {name}."
