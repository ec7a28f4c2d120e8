"""An MCP server that wants a login, made with the SDK, and an authorization server that can lie.

Both are real, over HTTP on loopback, in threads of their own. `browse` is the browser of the person.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver.exceptions import ToolError
from starlette.applications import Starlette
from starlette.types import Message as Event
from starlette.types import Receive, Scope, Send

Answer = tuple[int, dict[str, str], bytes]


def answered(document: Any, status: int = 200, **headers: str) -> Answer:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(document).encode()


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    given: dict[str, str]
    body: bytes
    headers: Message


@dataclass
class Grant:
    """What a token, a code or a device code stands for."""

    client_id: str
    scope: str
    resource: str
    challenge: str = ""
    redirect_uri: str = ""
    ends: float = float("inf")


class AuthorizationServer:
    """Answers as RFC 6749, 7591, 8414, 8628 and 9207 have it. `instead` replaces the answer of a path, `changed` adds
    to its metadata.
    """

    def __init__(self) -> None:
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, Grant] = {}
        self.tokens: dict[str, Grant] = {}
        self.refreshes: dict[str, Grant] = {}
        self.devices: dict[str, Grant] = {}
        self.entered: set[str] = set()
        """Device codes that the person has entered."""
        self.asked: list[Asked] = []
        self.changed: dict[str, Any] = {}
        self.instead: dict[str, Callable[[Asked], Answer]] = {}
        self.lasts = 3600
        self.release = threading.Event()
        """Lets an answer go that hangs."""
        self._busy = threading.Lock()
        self.url = ""

    @property
    def resource(self) -> str:
        """The address at which it is an MCP server too, if it is told to be."""
        return f"{self.url}/mcp"

    @property
    def metadata(self) -> dict[str, Any]:
        made = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "device_authorization_endpoint": f"{self.url}/device",
            "revocation_endpoint": f"{self.url}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            **self.changed,
        }
        return {name: value for name, value in made.items() if value is not None}

    def answer(self, asked: Asked) -> Answer:
        given = asked.given
        with self._busy:
            self.asked.append(asked)
        if asked.path in self.instead:
            return self.instead[asked.path](asked)
        with self._busy:
            match asked.method, asked.path:
                case "GET", "/.well-known/oauth-authorization-server":
                    return answered(self.metadata)
                case "POST", "/register":
                    client = json.loads(asked.body)
                    made = {**client, "client_id": f"client-{len(self.clients)}"}
                    self.clients[made["client_id"]] = made
                    return answered(made, 201)
                case "GET", "/authorize":
                    return self._authorize(given)
                case "POST", "/device":
                    return self._device(given)
                case "POST", "/token":
                    return self._token(given)
                case "POST", "/revoke":
                    self.refreshes.pop(given["token"], None)
                    return answered({})
        return answered({}, 404)

    def _authorize(self, given: dict[str, str]) -> Answer:
        code = secrets.token_urlsafe(16)
        self.codes[code] = Grant(
            given["client_id"],
            given.get("scope", ""),
            given["resource"],
            given["code_challenge"],
            given["redirect_uri"],
        )
        back = urlencode({"code": code, "state": given["state"], "iss": self.metadata["issuer"]})
        return 302, {"Location": f"{given['redirect_uri']}?{back}"}, b""

    def _device(self, given: dict[str, str]) -> Answer:
        code = secrets.token_urlsafe(16)
        self.devices[code] = Grant(given["client_id"], given.get("scope", ""), given["resource"])
        return answered(
            {"device_code": code, "user_code": "ABCD-EFGH", "verification_uri": f"{self.url}/enter", "expires_in": 60,
             "interval": 0}
        )  # fmt: skip

    def _token(self, given: dict[str, str]) -> Answer:
        match given["grant_type"]:
            case "authorization_code":
                grant = self.codes.pop(given["code"], None)
                digest = hashlib.sha256(given["code_verifier"].encode()).digest()
                if (
                    grant is not None
                    and base64.urlsafe_b64encode(digest).decode().rstrip("=") != grant.challenge
                ):
                    grant = None
                if grant is not None and given["redirect_uri"] != grant.redirect_uri:
                    grant = None
            case "refresh_token":
                grant = self.refreshes.pop(given["refresh_token"], None)
                if grant is None:
                    self.tokens.clear()  # whoever shows an old one is taken for a thief
                    self.refreshes.clear()
            case _:
                if given["device_code"] not in self.entered:
                    return answered({"error": "authorization_pending"}, 400)
                grant = self.devices.pop(given["device_code"], None)
        if grant is None or grant.client_id != given["client_id"] or grant.resource != given["resource"]:
            return answered(
                {"error": "invalid_grant", "error_description": "<b>no</b> such \x1b[31mgrant"}, 400
            )
        return answered(self.issue(grant))

    def issue(self, grant: Grant) -> dict[str, Any]:
        """A new token, and a new one to renew it with."""
        access, refresh = f"access-{secrets.token_urlsafe(12)}", f"refresh-{secrets.token_urlsafe(12)}"
        self.tokens[access] = Grant(
            grant.client_id, grant.scope, grant.resource, ends=time.time() + self.lasts
        )
        self.refreshes[refresh] = grant
        return {
            "access_token": access, "token_type": "Bearer", "expires_in": self.lasts, "refresh_token": refresh,
            "scope": grant.scope,
        }  # fmt: skip

    def times(self, path: str, **having: str) -> int:
        """How often a path was asked for with these parameters."""
        return sum(each.path == path and having.items() <= each.given.items() for each in self.asked)


@contextmanager
def authorization_server() -> Iterator[AuthorizationServer]:
    made = AuthorizationServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._send(made.answer(Asked("GET", parts.path, dict(parse_qsl(parts.query)), b"", self.headers)))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            given = dict(parse_qsl(body.decode()))
            self._send(made.answer(Asked("POST", urlsplit(self.path).path, given, body, self.headers)))

        def _send(self, answer: Answer) -> None:
            status, headers, body = answer
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # who asked has left

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        made.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Verifier:
    """Takes the tokens of an authorization server that are for one resource."""

    def __init__(self, issuer: AuthorizationServer, resource: str) -> None:
        self._issuer = issuer
        self._resource = resource

    async def verify_token(self, token: str) -> AccessToken | None:
        grant = self._issuer.tokens.get(token)
        if grant is None or grant.ends < time.time() or grant.resource != self._resource:
            return None
        return AccessToken(
            token=token, client_id=grant.client_id, scopes=grant.scope.split(), resource=grant.resource
        )


@dataclass
class Guarded:
    """A server that wants a login."""

    url: str
    challenges: dict[str, str] = field(default_factory=dict)
    """By the name of a tool: the scope that calls of it want."""
    calls: list[str] = field(default_factory=list)


def _tools(server: MCPServer, guarded: Guarded) -> None:
    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        guarded.calls.append("add")
        return a + b

    @server.tool()
    def token() -> str:
        """Say the token that came with the call."""
        given = get_access_token()
        return "none" if given is None else f"it is {given.token}"

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ToolError("no paper")


class _Scopes:
    """Refuses calls of tools whose scope the token lacks, as RFC 6750 has it."""

    def __init__(self, app: Any, guarded: Guarded, issuer: AuthorizationServer) -> None:
        self._app, self._guarded, self._issuer = app, guarded, issuer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not self._guarded.challenges:
            await self._app(scope, receive, send)
            return
        messages: list[Event] = []
        while not messages or messages[-1].get("more_body"):
            messages.append(await receive())
        text = b"".join(message.get("body", b"") for message in messages)
        called = json.loads(text or b"{}")
        name = called.get("params", {}).get("name", "") if called.get("method") == "tools/call" else ""
        wanted = self._guarded.challenges.get(name)
        bearer = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        grant = self._issuer.tokens.get(bearer)
        if wanted and (grant is None or wanted not in grant.scope.split()):
            header = f'Bearer error="insufficient_scope", scope="{wanted}"'.encode()
            await send(
                {"type": "http.response.start", "status": 403, "headers": [(b"www-authenticate", header)]}
            )
            await send({"type": "http.response.body", "body": b""})
            return
        left = iter(messages)
        await self._app(scope, lambda: _next(left, receive), send)


async def _next(left: Iterator[Event], receive: Receive) -> Event:
    return next(left, None) or await receive()


@contextmanager
def guarded_server(
    issuer: AuthorizationServer, *, named: str = "", path: str = "/mcp", **how: Any
) -> Iterator[Guarded]:
    """The SDK's server behind a login at `issuer`, which its metadata name as `named`."""
    made = Guarded("")

    def app(address: str) -> Starlette:
        made.url = f"{address}{path}"
        auth = AuthSettings(
            issuer_url=named or issuer.url,
            resource_server_url=made.url,
            required_scopes=["read"],
            validate_token_resource=True,
        )
        server = MCPServer(
            "vault", version="1", log_level="CRITICAL", auth=auth, token_verifier=Verifier(issuer, made.url)
        )
        _tools(server, made)
        built = server.streamable_http_app(streamable_http_path=path, **how)
        built.add_middleware(_Scopes, guarded=made, issuer=issuer)
        return built

    with served(app):
        yield made


@contextmanager
def served(made_for: Callable[[str], Any]) -> Iterator[str]:
    """An application in a thread of its own, made for the address at which it is then served."""
    config = uvicorn.Config(Starlette(), host="127.0.0.1", port=0, log_level="critical", lifespan="on")
    listening = config.bind_socket()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config.app = made_for(address)
    program = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(program.serve([listening])))
    thread.start()
    try:
        while not program.started and thread.is_alive():
            time.sleep(0.01)
        yield address
    finally:
        program.should_exit = program.force_exit = True
        thread.join()


class _Stays(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def browse(address: str, *, follow: bool = True) -> str:
    """Open a page as a browser does whose person agrees to all; the address that it is sent to, which is opened too."""
    opener = build_opener(_Stays)
    try:
        opener.open(Request(address), timeout=30).close()
    except HTTPError as answer:
        with answer:
            back = answer.headers["Location"]
    if follow:
        try:
            opener.open(Request(back), timeout=30).close()
        except HTTPError as answer:
            answer.close()
    return str(back)


def parameters(address: str) -> dict[str, str]:
    """The parameters of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
