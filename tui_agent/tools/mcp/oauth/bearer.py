"""Requests to a server that carry the token of a login, renewed when it is due or refused.

Nobody is asked here: a server that wants a login which is not there ends the connection, and says so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth
from mcp.shared.auth import OAuthToken

from tui_agent.terminal_text import one_line
from tui_agent.tools.mcp.oauth import exchange
from tui_agent.tools.mcp.oauth.kept import Credentials, KeptLogin
from tui_agent.tools.mcp.status import LoginError
from tui_agent.tools.mcp.transport import Line


class Bearer(httpx2.Auth):
    """The authorization of every request of one connection."""

    def __init__(self, kept: KeptLogin, line: Line) -> None:
        self._kept = kept
        self._line = line

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send it with the token; once more with a renewed one if the server refuses that."""
        credentials = await self._kept.load()
        if credentials is not None and credentials.due:
            credentials = await self._renewed(credentials)
        carried = _carry(request, credentials)
        response = yield request
        if response.status_code == 401 and carried and credentials is not None:
            credentials = await self._renewed(credentials)
            if _carry(request, credentials):
                response = yield request
        if response.status_code == 401:
            self._line.needs_login("its login was refused or is over" if carried else "nobody has logged in")
        elif extract_field_from_www_auth(response, "error") == "insufficient_scope":
            scopes = extract_scope_from_www_auth(response) or ""
            await self._kept.want(scopes)
            self._line.wanted_scopes = one_line(scopes, 200)

    async def _renewed(self, used: Credentials) -> Credentials | None:
        try:
            return await renewed(self._kept, used)
        except LoginError as error:
            why = f"its login could not be renewed: {error}"
            self._line.end(why)
            raise httpx2.ConnectError(why) from None


def _carry(request: httpx2.Request, credentials: Credentials | None) -> bool:
    if credentials is None or credentials.token is None:
        return False
    request.headers["Authorization"] = f"Bearer {credentials.token.access_token}"
    return True


async def renewed(kept: KeptLogin, used: Credentials) -> Credentials | None:
    """The login with another token than the one that was used: of another process, or a new one. None: a person has to
    log in.

    Raises `LoginError` if the authorization server cannot be asked now.
    """
    try:
        async with kept.alone():
            now = await kept.load(again=True)
            if now is None or now.token is None or used.token is None:
                return None
            if now.token.access_token != used.token.access_token:
                return now
            if not now.token.refresh_token:
                return None
            token = await _refreshed(now)
            latest = await kept.load(again=True)
            if token is None and latest is not None and latest.token != now.token:
                return latest  # a process that goes by another lock was first
            await kept.save(now.with_token(token))
            return await kept.load() if token is not None else None
    except OSError as error:
        why = str(error) or "another process has it"
        raise LoginError(f"the lock of logins cannot be had: {why}") from None


async def _refreshed(now: Credentials) -> OAuthToken | None:
    """A new token; None: refused for good. Raises `LoginError` if it may be otherwise later."""
    if now.token is None or now.token.refresh_token is None:
        return None
    data = {
        "grant_type": "refresh_token",
        "refresh_token": now.token.refresh_token,
        "resource": now.resource,
    }
    where = exchange.host_of(now.token_endpoint)
    with exchange.in_words(where):
        async with exchange.client() as http:
            request = exchange.token_request(now.token_endpoint, data, now.client)
            response = await exchange.send(http, request, now.server)
        if response.status_code == 200:
            return OAuthToken.model_validate_json(response.content)
    code, words = exchange.refusal(response)
    if code and response.status_code < 500:
        return None
    raise LoginError(f"{where}: {words}")
