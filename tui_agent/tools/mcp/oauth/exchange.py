"""Requests of a login: bounded in time and size, over TLS, and answered in words when something is wrong."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic_core import from_json

from tui_agent.terminal_text import one_line
from tui_agent.tools.mcp.status import LoginError

_STEP = 20.0
"""Seconds that one request may take."""
_LARGEST_ANSWER = 1_000_000
_MOST_REDIRECTS = 5


def client() -> httpx2.AsyncClient:
    """A client without compression, so that the size of an answer is known before it is read."""
    return httpx2.AsyncClient(timeout=_STEP, headers={"Accept-Encoding": "identity"})


def host_of(url: object) -> str:
    """The host and port of an address, for people."""
    return one_line(httpx2.URL(str(url)).netloc.decode("ascii", "replace"), 200)


def check_address(url: object, server: str) -> httpx2.URL:
    """The address, which is one that a login to this server may use. Raises `LoginError`.

    Everything is over TLS and elsewhere than on this machine, but for servers of this machine itself.
    """
    parsed = httpx2.URL(str(url))
    shown = one_line(str(parsed.copy_with(userinfo=b"", query=None, fragment=None)), 200)
    at_home = _of_this_machine(parsed.host)
    if parsed.userinfo or not parsed.host or (at_home and not _of_this_machine(httpx2.URL(server).host)):
        raise LoginError(f"the login leads to {shown}, which is no place for it")
    if parsed.scheme != "https" and not (parsed.scheme == "http" and at_home):
        raise LoginError(f"the login leads to {shown}, which is not protected by https")
    return parsed


def _of_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def send(
    http: httpx2.AsyncClient, request: httpx2.Request, server: str, *, read: bool = True
) -> httpx2.Response:
    """The answer, with its body if it is to be read. Redirects of a GET are followed within its origin.

    Raises `LoginError`, `httpx2.HTTPError`, `TimeoutError`.
    """
    followed = 0
    while True:
        check_address(request.url, server)
        async with asyncio.timeout(_STEP):
            response = await http.send(request, stream=True, follow_redirects=False)
            try:
                body = await _body(response) if read else b""
            finally:
                await response.aclose()
        following = response.next_request if request.method == "GET" and followed < _MOST_REDIRECTS else None
        if following is None or not _same_origin(request.url, following.url):
            break
        request, followed = following, followed + 1
    headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-length"]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


def _same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port) and not other.userinfo


async def _body(response: httpx2.Response) -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise LoginError(f"{host_of(response.request.url)} sends what nobody asked for (compressed)")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > _LARGEST_ANSWER:
            raise LoginError(
                f"{host_of(response.request.url)} sends more than {_LARGEST_ANSWER:,} bytes of an answer"
            )
    return bytes(body)


def token_request(
    endpoint: str, data: dict[str, str], registered: OAuthClientInformationFull
) -> httpx2.Request:
    """A form for an endpoint that wants to know the client. Raises `OAuthTokenError`."""
    context = OAuthContext(
        server_url="",
        client_metadata=OAuthClientMetadata(redirect_uris=None),
        storage=cast("TokenStorage", None),
        redirect_handler=None,
        callback_handler=None,
        client_info=registered,
    )
    data, headers = context.prepare_token_auth({"client_id": registered.client_id, **data}, {})
    return httpx2.Request("POST", endpoint, data=data, headers={"Accept": "application/json", **headers})


def refusal(response: httpx2.Response) -> tuple[str, str]:
    """The code of an OAuth error in an answer, and the same for people with its description; ("", …) if it is none."""
    words = f"HTTP {response.status_code}"
    try:
        document: Any = from_json(response.content)
    except ValueError:
        return "", words
    code = document.get("error") if isinstance(document, dict) else None
    if not isinstance(code, str) or not code:
        return "", words
    return code, with_description(code, document.get("error_description"))


def with_description(code: str, description: object) -> str:
    """An OAuth error in one line; the description is the server's own words."""
    said = f" ({one_line(description, 200)})" if isinstance(description, str) and description.strip() else ""
    return one_line(code, 80) + said


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """Whatever goes wrong in a step becomes a `LoginError` without values of answers, which may hold tokens."""
    try:
        yield
    except (TimeoutError, httpx2.TimeoutException):
        raise LoginError(f"{what}: no answer within {_STEP:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise LoginError(f"{what}: {one_line(str(error), 200) or type(error).__name__}") from None
    except OAuthFlowError:
        raise LoginError(f"{what}: the client that is registered there cannot be used") from None
    except ValueError:
        raise LoginError(f"{what}: the answer is not of the form that it must have") from None
