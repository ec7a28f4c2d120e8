"""The console in a browser: who gets in, and that consoles end with the server."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.console.terminal import LIMIT, ROOT
from tests.tools.box import wait_until
from tui_agent.cli import main
from tui_agent.cli.serve import console_arguments
from tui_agent.console.serve import Address, ConsoleServer
from tui_agent.listening import refusal

PATHS = ("/", "/ws", "/static/js/textual.js", "/static/", "/download/x", "/nothing")


@asynccontextmanager
async def served(command: str) -> AsyncIterator[Address]:
    """A server whose consoles are this command."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = Address("127.0.0.1", listening.getsockname()[1])
        runner = web.AppRunner(await ConsoleServer(command, address).application(), access_log=None)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        try:
            yield address
        finally:
            await runner.cleanup()


@pytest_asyncio.fixture
async def address() -> AsyncIterator[Address]:
    """A server whose consoles end at once."""
    async with served("exec true") as address:
        yield address


async def test_nobody_gets_in_without_the_token(address: Address) -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(address.origin, cookie_jar=jar) as browser:
        for path in PATHS:
            for query in ({}, {"token": ""}, {"token": address.token[:-1]}, {"token": address.cookie}):
                async with browser.get(path, params=query) as answer:
                    assert answer.status == 403, path
                    assert address.token not in await answer.text()
        async with browser.get("/static/js/textual.js", params={"token": address.token}) as answer:
            assert answer.status == 403, "the token opens the page and nothing else"
        async with browser.get(address.url, allow_redirects=False) as answer:
            assert answer.status == 303
            cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert address.token not in cookie
        async with browser.get("/") as answer:
            page = await answer.text()
            assert answer.status == 200
            assert f"ws://{address.netloc}/ws" in page
            assert address.token not in page
            assert "<title>agent-tui</title>" in page
            assert "input.focus()" in page, "keys go to the console before it was clicked"
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        async with browser.get("/static/js/textual.js") as answer:
            assert answer.status == 200


async def test_other_names_and_other_pages_are_refused_even_with_the_cookie(address: Address) -> None:
    cookies = {address.cookie_name: address.cookie}
    async with aiohttp.ClientSession(address.origin, cookies=cookies) as browser:
        for headers in (
            {"Host": "evil.example"},
            {"Host": f"localhost:{address.port}"},
            {"Host": f"127.0.0.1:{address.port + 1}"},
            {"Origin": "http://evil.example"},
            {"Origin": f"http://localhost:{address.port}"},
            {"Origin": "null"},
        ):
            for path in ("/", "/static/js/textual.js", "/ws"):
                async with browser.get(path, headers=headers) as answer:
                    assert answer.status == 403, (headers, path)
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await browser.ws_connect("/ws")  # no origin: no browser
        async with browser.ws_connect("/ws", headers={"Origin": address.origin}) as tab:
            assert not tab.closed


@pytest.mark.process
async def test_a_tab_is_a_console_that_ends_with_the_server(tmp_path: Path) -> None:
    state = tmp_path / "state"
    server = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "tui_agent",
            "serve",
            "--demo",
            "approvals",
            "--state-dir",
            str(state),
        ),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "AGENT_TUI_CAPTIONS": "false"},
    )
    assert server.stdout is not None
    url = (await server.stdout.readline()).decode().rpartition(" ")[2].strip()
    origin, _, _ = url.partition("/?")
    shown = b""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as browser, asyncio.timeout(LIMIT):
        async with browser.get(url) as page:
            assert page.status == 200
        async with browser.ws_connect(f"{origin}/ws?width=100&height=30", headers={"Origin": origin}) as tab:
            while b"The agent asks" not in shown:
                shown += (await tab.receive()).data
            server.terminate()
            async for _ in tab:  # as a browser does, until it is closed
                pass
            assert await server.wait() == 0
    journal = next(state.glob("sessions/*/events.jsonl")).read_text().splitlines()
    assert json.loads(journal[-1])["type"] == "run_finished", "the console closed its session"


SLOW_TO_END = "head -c 1 >/dev/null; exec >&- 2>&-; until [ -e {0}/go ]; do sleep 0.02; done; touch {0}/ended"
"""A console that is asked to end, says nothing more, and has a session to close."""


async def test_a_console_whose_tab_was_closed_is_waited_for_when_the_server_ends(tmp_path: Path) -> None:
    async with served(SLOW_TO_END.format(tmp_path)) as address:
        cookies = {address.cookie_name: address.cookie}
        async with (
            aiohttp.ClientSession(address.origin, cookies=cookies) as browser,
            browser.ws_connect("/ws", headers={"Origin": address.origin}),
        ):
            pass
        asyncio.get_running_loop().call_later(0.3, (tmp_path / "go").touch)
    assert (tmp_path / "ended").exists()


async def test_a_console_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.console.serve.PATIENCE", 0.5)
    pid = tmp_path / "pid"
    async with served(f"echo $$ > {pid}; exec sleep 600") as address:
        cookies = {address.cookie_name: address.cookie}
        async with (
            aiohttp.ClientSession(address.origin, cookies=cookies) as browser,
            browser.ws_connect("/ws", headers={"Origin": address.origin}),
        ):
            assert await wait_until(lambda: pid.exists() and pid.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    ("host", "allow", "refused"),
    [
        ("127.0.0.1", False, ""),
        ("::1", False, ""),
        ("localhost", False, ""),
        ("192.168.1.5", False, "--allow-remote"),
        ("myhost", False, "--allow-remote"),
        ("0.0.0.0", False, "--allow-remote"),
        ("0.0.0.0", True, "no address that a browser can open"),
        ("192.168.1.5", True, ""),
    ],
)
def test_other_machines_are_let_in_only_when_that_is_said(host: str, allow: bool, refused: str) -> None:
    why = refusal(host, allow_remote=allow, danger="whoever opens the console runs commands as you")
    assert refused in why
    assert bool(why) == bool(refused)


def test_the_consoles_get_the_other_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--host", "127.0.0.1", "--model", "a b", "--port=80", "--step", "--demo", "x", "--allow-remote"]
    assert console_arguments(given) == ["--model", "a b", "--step"]
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "--allow-remote" in capsys.readouterr().err
