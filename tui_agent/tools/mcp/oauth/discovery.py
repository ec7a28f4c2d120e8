"""The place of logins to a server: its resource metadata (RFC 9728), then those of its authorization server.

The latter have one of two places (RFC 8414, OpenID Connect Discovery).
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import AnyHttpUrl, ValidationError

from tui_agent.terminal_text import one_line
from tui_agent.tools.mcp.oauth import exchange
from tui_agent.tools.mcp.status import LoginError


class AuthorizationServer(OAuthMetadata):
    """Its metadata, with what RFC 8628 adds."""

    device_authorization_endpoint: AnyHttpUrl | None = None


@dataclass(frozen=True)
class Found:
    """What a server says about logins to it."""

    server: str
    resource: str
    authorization: AuthorizationServer
    scopes: str
    """Those that it wants for a start; empty: it does not say."""

    @property
    def issuer(self) -> str:
        return str(self.authorization.issuer)

    @property
    def host(self) -> str:
        """Where the login is made, for people."""
        return exchange.host_of(self.authorization.issuer)


async def discover(http: httpx2.AsyncClient, server: str) -> Found:
    """Ask the server, then its authorization server. Raises `LoginError`."""
    exchange.check_address(server, server)
    with exchange.in_words(exchange.host_of(server)):
        challenge = await exchange.send(http, _probe(server), server, read=False)
        protected = await _protected(http, server, challenge)
    issuer = str(protected.authorization_servers[0]) if protected is not None else None
    where = exchange.host_of(issuer or server)
    with exchange.in_words(where):
        authorization = await _authorization(http, server, issuer)
    if authorization is None:
        asked = challenge.status_code in {401, 403}
        raise LoginError(
            f"{where} says nowhere how to log in; a header in the entry of the server may do instead"
            if asked
            else "it asks for no login"
        )
    scopes = extract_scope_from_www_auth(challenge)
    if scopes is None and protected is not None:
        scopes = " ".join(protected.scopes_supported or ())
    resource = resource_url_from_server_url(server) if protected is None else str(protected.resource)
    return Found(server, resource, authorization, scopes or "")


def _probe(server: str) -> httpx2.Request:
    """A request that means nothing, to be refused: the refusal says where to look."""
    accepted = {"Accept": "application/json, text/event-stream"}
    return httpx2.Request(
        "POST", server, json={"jsonrpc": "2.0", "id": "login", "method": "ping"}, headers=accepted
    )


async def _protected(
    http: httpx2.AsyncClient, server: str, challenge: httpx2.Response
) -> ProtectedResourceMetadata | None:
    named = (
        extract_resource_metadata_from_www_auth(challenge) if challenge.status_code in {401, 403} else None
    )
    for url in build_protected_resource_metadata_discovery_urls(named, server):
        response = await exchange.send(http, create_oauth_metadata_request(url), server)
        if response.status_code >= 500 or response.status_code == 429:
            raise LoginError(f"{exchange.host_of(url)}: HTTP {response.status_code}")
        try:
            found = ProtectedResourceMetadata.model_validate_json(response.content)
        except ValidationError:
            continue
        wanted, told = resource_url_from_server_url(server), str(found.resource)
        if not check_resource_allowed(requested_resource=wanted, configured_resource=told):
            raise LoginError(f"its metadata are those of {one_line(told, 200)}, another server")
        return found
    return None


async def _authorization(
    http: httpx2.AsyncClient, server: str, issuer: str | None
) -> AuthorizationServer | None:
    """The metadata of the issuer; without one, of the server itself, as in older protocols."""
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server):
        response = await exchange.send(http, create_oauth_metadata_request(url), server)
        if response.status_code >= 500:
            raise LoginError(f"HTTP {response.status_code}")
        if response.status_code != 200:
            continue
        try:
            found = AuthorizationServer.model_validate_json(response.content)
        except ValidationError:
            continue
        expected = issuer or str(httpx2.URL(server).join("/"))
        # A slash at the end makes no other issuer: both have their metadata at the same address (RFC 8414, 3.1).
        if str(found.issuer).removesuffix("/") != expected.removesuffix("/"):
            raise LoginError(
                f"its metadata are those of the issuer {one_line(str(found.issuer), 200)}, "
                f"not of {one_line(expected, 200)}"
            )
        for endpoint in (found.authorization_endpoint, found.token_endpoint):
            exchange.check_address(endpoint, server)
        return found
    return None
