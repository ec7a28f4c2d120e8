"""The console in a browser: textual-serve behind a guard, one console of its own for each tab.

textual-serve lets in everybody who reaches it. The guard stands before every path, the websocket and the
static files included: the address that was printed holds a token, and its first use is answered by a cookie.
A request that names another host or comes from another page is refused, even if another name was made to lead
here (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from tui_agent import processes
from tui_agent.listening import is_loopback

PATIENCE = 15.0
"""Seconds that a console has to close its session when its tab or the server ends."""

COOKIE_DAYS = 7

_HEAD = """
    <title>agent-tui</title>
    <script>
      new MutationObserver((_, observer) => {
        const input = document.querySelector(".xterm-helper-textarea");
        if (input) {
          observer.disconnect();
          input.focus();
        }
      }).observe(document, { childList: true, subtree: true });
    </script>
  </head>"""
"""Additions to textual-serve's page: a title, and a terminal that takes keys before it has been clicked."""


@dataclass(frozen=True)
class Address:
    """The server's address, and the secrets that open it."""

    host: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Its own secret: what a browser keeps is not what stands in its history."""

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 80 else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.netloc}"

    @property
    def url(self) -> str:
        """The address to open in the browser."""
        return f"{self.origin}/?token={self.token}"

    @property
    def cookie_name(self) -> str:
        """Cookies know no ports: several servers of one machine must not share one."""
        return f"agent_tui_{self.port}"


class ConsoleServer(Server):
    """textual-serve with the guard, and without its greeting. Consoles end with it."""

    def __init__(self, command: str, address: Address) -> None:
        super().__init__(command, address.host, address.port, "agent-tui", address.origin)
        self._address = address
        self._tabs: set[asyncio.Task[object]] = set()

    async def application(self) -> web.Application:
        app = await self._make_app()
        app.middlewares.append(guard(self._address))
        return app

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page, with `_HEAD`."""
        # textual-serve declares the template's values; its decorator makes the response of them.
        page = cast("web.Response", await super().handle_index(request))
        page.text = (page.text or "").replace("</head>", _HEAD, 1)
        return page

    async def on_startup(self, app: web.Application) -> None:
        """Nothing is printed here."""

    async def on_shutdown(self, app: web.Application) -> None:
        """End every console, and wait until its session is closed."""
        tabs = list(self._tabs)
        for tab in tabs:
            tab.cancel()
        if tabs:
            await asyncio.wait(tabs)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One tab: a console until either of them goes, and until the console has ended."""
        tab = asyncio.current_task()
        if tab is None:
            raise web.HTTPServiceUnavailable
        websocket = web.WebSocketResponse(heartbeat=15)
        await websocket.prepare(request)

        async def close() -> None:
            await websocket.close()

        console = _Console(
            self.command,
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=close,
            download_manager=self.download_manager,
            debug=self.debug,
        )
        self._tabs.add(tab)
        try:
            width, height = (to_int(request.query.get(name, ""), 0) for name in ("width", "height"))
            await console.start(width or 80, height or 24)
            await self._process_messages(websocket, console)
        finally:
            try:
                await processes.uncancelled(console.stop())
            finally:
                self._tabs.discard(tab)
                await websocket.close()
        return websocket


class _Console(AppService):
    """A console's process; of itself, textual-serve waits for the end of its output alone, unless it is cancelled."""

    _child: processes.Child | None = None

    async def _open_app_process(self, width: int = 80, height: int = 24) -> asyncio.subprocess.Process:
        command, environment = ["/bin/sh", "-c", self.command], self._build_environment(width, height)
        self._child = await processes.start(command, env=environment)
        self._process, self._stdin = self._child.process, self._child.process.stdin
        return self._process

    async def stop(self) -> None:
        """Have it close its session, and wait until it has ended; by force once that takes too long."""
        if self._child is None:
            return
        asked = asyncio.ensure_future(super().stop())
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.wait([asked])
                await self._child.output(limit=0)  # which nobody reads any more, and would hold it up
        except TimeoutError:
            pass
        finally:
            await self._child.end()
            await asyncio.gather(asked, return_exceptions=True)


def guard(address: Address) -> Middleware:
    """The middleware in front of everything."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.getall("Host", []) != [address.netloc]:
            raise _refused(f"This server answers as {address.netloc} and under no other name.")
        origins = request.headers.getall("Origin", [])
        if origins != [address.origin] and (origins or request.path == "/ws"):
            raise _refused("A page of another origin asked for this.")
        if _same(request.query.get("token", ""), address.token) and request.path == "/":
            return _let_in(address)
        if not _same(request.cookies.get(address.cookie_name, ""), address.cookie):
            raise _refused("Open the address that `agent-tui serve` printed, with its token.")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(_headers(address))
        return response

    return guarded


def _same(given: str, secret: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def _let_in(address: Address) -> web.Response:
    """The cookie, and the address again without its token."""
    response = web.Response(status=303, headers={"Location": "/", "Cache-Control": "no-store"})
    response.set_cookie(
        address.cookie_name,
        address.cookie,
        max_age=COOKIE_DAYS * 86_400,
        httponly=True,
        samesite="Strict" if is_loopback(address.host) else "Lax",
    )
    return response


def _refused(why: str) -> web.HTTPForbidden:
    return web.HTTPForbidden(text=f"agent-tui: {why}\n", headers={"Cache-Control": "no-store"})


def _headers(address: Address) -> dict[str, str]:
    """Nothing is loaded from elsewhere, framed, kept or passed on."""
    sources = f"default-src 'self' 'unsafe-inline' data: blob:; connect-src 'self' ws://{address.netloc}"
    return {
        "Content-Security-Policy": f"{sources}; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


def run_server(arguments: Sequence[str], host: str, port: int) -> int:
    """Serve consoles that are started with these arguments until Ctrl+C. `port` 0: a free one. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        address = Address(host, listening.getsockname()[1])
        # The shell gives way to the console: what is ended is the console.
        command = f"exec {shlex.join([sys.executable, '-m', 'tui_agent', *arguments])}"
        asyncio.run(_serve(ConsoleServer(command, address), address, listening))
    return 0


async def _serve(server: ConsoleServer, address: Address, listening: socket.socket) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    runner = web.AppRunner(await server.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    sys.stdout.write(
        f"The console is at {address.url}\n"
        "Whoever has this address runs commands as you. Each tab is a session of its own. Ctrl+C ends them all.\n"
    )
    sys.stdout.flush()
    try:
        await ended.wait()
    finally:
        sys.stdout.write("\nClosing the sessions.\n")
        await runner.cleanup()
