"""A login to a server: in a browser of this machine or of another one, or with a code that is entered in any browser.

`begin` says what the operator is to open; `finish` waits for that and keeps the token.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode, urlsplit, urlunsplit

import httpx2
from mcp.client.auth import OAuthFlowError, PKCEParameters
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import (
    create_client_info_from_metadata_url,
    create_client_registration_request,
    handle_registration_response,
    should_use_client_metadata_url,
    union_scopes,
    validate_authorization_response_iss,
)
from mcp.shared.auth import DEFAULT_GRANT_TYPES, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel, Field

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.terminal_text import one_line
from tui_agent.tools.mcp.oauth import exchange
from tui_agent.tools.mcp.oauth.discovery import Found, discover
from tui_agent.tools.mcp.oauth.kept import Credentials, KeptLogin
from tui_agent.tools.mcp.oauth.redirect import Redirect
from tui_agent.tools.mcp.status import Invitation, LoginError

PATIENCE = 600.0
"""Seconds that the operator has for a login."""
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_PUBLIC: Literal["none"] = "none"
"""The method of a client without a secret."""
_LEAST_INTERVAL, _MOST_INTERVAL, _SLOWER = 1.0, 60.0, 5.0


class _DeviceAuthorization(BaseModel):
    """The answer of RFC 8628, section 3.2."""

    device_code: str
    user_code: str = Field(max_length=100)
    verification_uri: str
    verification_uri_complete: str | None = None
    expires_in: float = PATIENCE
    interval: float = 5.0


@dataclass(frozen=True)
class _Begun:
    """A login that waits for the operator."""

    found: Found
    client: OAuthClientInformationFull
    scopes: str


class Login:
    """One login. `begin`, then `finish`, and `close` in the end; `paste` meanwhile."""

    def __init__(self, entry: ServerEntry, kept: KeptLogin, *, device: bool = False) -> None:
        self._entry = entry
        self._kept = kept
        self._device = device
        self._http = exchange.client()
        self._redirect = Redirect()
        self._pkce = PKCEParameters.generate()
        self._begun: _Begun | None = None
        self._authorization: _DeviceAuthorization | None = None

    async def begin(self) -> Invitation:
        """Find out where one logs in, and be known there. Raises `LoginError`."""
        found = await discover(self._http, self._entry.url)
        before = await self._kept.load(again=True)
        if before is not None and before.issuer != found.issuer:
            if self._entry.oauth.client_id:
                raise LoginError(
                    f"its logins were made at {one_line(before.issuer, 200)} and now lead to "
                    f"{one_line(found.issuer, 200)}, where its clientId does not belong. If that is right, log out"
                )
            before = None
        if not self._device:
            await self._open_way_back(found, before)
        with exchange.in_words(found.host):
            client = await self._client(found, before)
            self._begun = _Begun(found, client, self._scopes(found, before))
            if self._device:
                return await self._device_invitation(self._begun)
        return Invitation(self._authorization_url(self._begun), found.host)

    async def _open_way_back(self, found: Found, before: Credentials | None) -> None:
        if "S256" not in (found.authorization.code_challenge_methods_supported or ()):
            raise LoginError(
                f"{found.host} does not say that it protects codes (PKCE, S256), which a login needs"
            )
        uris = (before.client.redirect_uris if before is not None else None) or []
        await self._redirect.listen(self._entry.oauth.callback_port, next((uri.port or 0 for uri in uris), 0))

    def _scopes(self, found: Found, before: Credentials | None) -> str:
        if self._entry.oauth.scopes:
            return self._entry.oauth.scopes
        granted = before.token.scope if before is not None and before.token is not None else None
        asked = union_scopes(granted, before.wanted) if before is not None else None
        scopes = union_scopes(asked, found.scopes) or ""
        refreshes = "offline_access" in (found.authorization.scopes_supported or ())
        return (union_scopes(scopes, "offline_access") or "") if scopes and refreshes else scopes

    # --- the client -----------------------------------------------------------------------------------------

    async def _client(self, found: Found, before: Credentials | None) -> OAuthClientInformationFull:
        """As whom we log in: the entry's client, a document of one, the one of the last login, or a new one."""
        ours, metadata = self._entry.oauth, found.authorization
        if ours.client_id:
            methods = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
            method = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
            return OAuthClientInformationFull(
                client_id=ours.client_id,
                client_secret=ours.client_secret or None,
                token_endpoint_auth_method=method if ours.client_secret else _PUBLIC,
            )
        if ours.metadata_url and should_use_client_metadata_url(metadata, ours.metadata_url):
            return create_client_info_from_metadata_url(ours.metadata_url)
        if before is not None and self._still_good(before.client):
            return before.client
        if metadata.registration_endpoint is None:
            raise LoginError(
                f"{found.host} registers no clients by itself: register one there (redirect address "
                f"{self._redirect.address}), and give its clientId and callbackPort in `oauth` of the server's entry"
            )
        return await self._registered(found)

    def _still_good(self, client: OAuthClientInformationFull) -> bool:
        if client.client_secret_expires_at and client.client_secret_expires_at < time.time():
            return False
        if self._device:
            return _DEVICE_GRANT in client.grant_types
        return self._redirect.address in map(str, client.redirect_uris or ())

    async def _registered(self, found: Found) -> OAuthClientInformationFull:
        exchange.check_address(found.authorization.registration_endpoint, found.server)
        wanted = OAuthClientMetadata(
            client_name="agent-tui",
            redirect_uris=None if self._device else [AnyUrl(self._redirect.address)],
            grant_types=[*DEFAULT_GRANT_TYPES, *([_DEVICE_GRANT] if self._device else [])],
            token_endpoint_auth_method=_PUBLIC,
        )
        request = create_client_registration_request(found.authorization, wanted, found.server)
        response = await exchange.send(self._http, request, found.server)
        if response.status_code not in {200, 201}:
            raise LoginError(f"{found.host} does not register agent-tui: {exchange.refusal(response)[1]}")
        try:
            client = await handle_registration_response(response)
            check_registration_usable(client)
        except OAuthFlowError:
            raise LoginError(f"{found.host} registers agent-tui in a way that cannot be used") from None
        return client

    # --- with a browser -------------------------------------------------------------------------------------

    def _authorization_url(self, begun: _Begun) -> str:
        parameters = {
            "response_type": "code",
            "client_id": begun.client.client_id,
            "redirect_uri": self._redirect.address,
            "state": self._redirect.state,
            "code_challenge": self._pkce.code_challenge,
            "code_challenge_method": "S256",
            "resource": begun.found.resource,
        }
        if begun.scopes:
            parameters["scope"] = begun.scopes
            if "offline_access" in begun.scopes.split():
                parameters["prompt"] = "consent"
        parts = urlsplit(str(begun.found.authorization.authorization_endpoint))
        query = "&".join(part for part in (parts.query, urlencode(parameters)) if part)
        return urlunsplit(parts._replace(query=query, fragment=""))

    def paste(self, address: str) -> None:
        """Take the address that the browser was sent to and could not show. Raises `LoginError`."""
        if self._device:
            raise LoginError("a login with a code goes on by itself once the code is entered")
        if not self._redirect.take(address):
            raise LoginError(
                f"that is not the address that this login ends at: it begins with {self._redirect.address}?"
            )

    async def _authorized(self, begun: _Begun) -> dict[str, str]:
        """What a token is asked for with."""
        answer = await self._redirect.answer()
        try:
            validate_authorization_response_iss(answer.get("iss"), begun.found.authorization)
        except OAuthFlowError:
            raise LoginError("the answer is not from the issuer that was asked, and was not used") from None
        if "error" in answer:
            said = exchange.with_description(answer["error"], answer.get("error_description"))
            raise LoginError(f"{begun.found.host} refused: {said}")
        return {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": self._redirect.address,
            "code_verifier": self._pkce.code_verifier,
        }

    # --- with a code ----------------------------------------------------------------------------------------

    async def _device_invitation(self, begun: _Begun) -> Invitation:
        found = begun.found
        endpoint = found.authorization.device_authorization_endpoint
        if endpoint is None:
            raise LoginError(f"{found.host} has no login with a code; log in with a browser")
        data = {"resource": found.resource, **({"scope": begun.scopes} if begun.scopes else {})}
        request = exchange.token_request(str(endpoint), data, begun.client)
        response = await exchange.send(self._http, request, found.server)
        if response.status_code != 200:
            raise LoginError(f"{found.host} gives no code: {exchange.refusal(response)[1]}")
        self._authorization = given = _DeviceAuthorization.model_validate_json(response.content)
        address = given.verification_uri_complete or given.verification_uri
        exchange.check_address(address, found.server)
        return Invitation(address, found.host, one_line(given.user_code, 100))

    async def _entered(self, begun: _Begun, given: _DeviceAuthorization) -> OAuthToken:
        """Ask for the token until the operator has entered the code."""
        interval = min(_MOST_INTERVAL, max(_LEAST_INTERVAL, given.interval))
        data = {
            "grant_type": _DEVICE_GRANT,
            "device_code": given.device_code,
            "resource": begun.found.resource,
        }
        while True:
            await asyncio.sleep(interval)
            response = await self._token_answer(begun, data)
            if response.status_code == 200:
                return OAuthToken.model_validate_json(response.content)
            code, words = exchange.refusal(response)
            if code == "slow_down":
                interval += _SLOWER
            elif code != "authorization_pending":
                raise LoginError(f"{begun.found.host} refused: {words}")

    # --- the token ------------------------------------------------------------------------------------------

    async def finish(self) -> str:
        """Wait for the operator, and keep the token; the reason if it is kept until the session ends only.

        Raises `LoginError`.
        """
        begun = self._begun
        if begun is None:
            raise RuntimeError("a login is begun before it is finished")
        patience = PATIENCE if self._authorization is None else min(PATIENCE, self._authorization.expires_in)
        try:
            async with asyncio.timeout(patience):
                token = await self._token(begun)
        except TimeoutError:
            raise LoginError(f"nobody logged in within {patience:g} s") from None
        if token.scope is None and begun.scopes:
            token = token.model_copy(update={"scope": begun.scopes})
        found = begun.found
        revocation = found.authorization.revocation_endpoint
        credentials = Credentials(
            server=found.server,
            resource=found.resource,
            issuer=found.issuer,
            token_endpoint=str(found.authorization.token_endpoint),
            revocation_endpoint="" if revocation is None else str(revocation),
            client=begun.client,
        )
        async with self._kept.alone():
            return await self._kept.save(credentials.with_token(token))

    async def _token(self, begun: _Begun) -> OAuthToken:
        if self._authorization is not None:
            with exchange.in_words(begun.found.host):
                return await self._entered(begun, self._authorization)
        data = await self._authorized(begun)
        with exchange.in_words(begun.found.host):
            response = await self._token_answer(begun, {**data, "resource": begun.found.resource})
            if response.status_code in {200, 201}:
                return OAuthToken.model_validate_json(response.content)
        raise LoginError(f"{begun.found.host} gives no token: {exchange.refusal(response)[1]}")

    async def _token_answer(self, begun: _Begun, data: dict[str, str]) -> httpx2.Response:
        request = exchange.token_request(str(begun.found.authorization.token_endpoint), data, begun.client)
        return await exchange.send(self._http, request, begun.found.server)

    async def close(self) -> None:
        """Wait for nothing any more."""
        self._redirect.close()
        await self._http.aclose()


async def log_out(kept: KeptLogin) -> bool:
    """Take the token back if the server can, and forget it; False: there was none.

    Raises `NoKeyringError`.
    """
    before = await kept.load(again=True)
    if before is not None and before.token is not None and before.revocation_endpoint:
        token = before.token.refresh_token or before.token.access_token
        try:
            with exchange.in_words("revocation"):
                async with exchange.client() as http:
                    request = exchange.token_request(
                        before.revocation_endpoint, {"token": token}, before.client
                    )
                    await exchange.send(http, request, before.server)
        except LoginError:
            pass  # it is forgotten here all the same
    return await kept.forget()
