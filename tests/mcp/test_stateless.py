"""Servers of the newest protocol, which keep nothing between requests, beside one that only knows sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.mcp.authorization import Answer, Asked, answered, authorization_server, served
from tests.mcp.harness import call, connected, session_with, turns
from tui_agent.core import events

NEWEST = "2026-07-28"
OLDER = "2025-06-18"


class Headers:
    """Keeps the names and values of the headers of every request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.seen: list[dict[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await self._app(scope, receive, send)


def stateless(_: str) -> Headers:
    server = MCPServer("stateless", version="1", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return Headers(server.streamable_http_app(stateless_http=True, json_response=True))


def with_sessions(asked: Asked) -> Answer:
    """A server from before: it begins with a handshake, and wants its session named from then on."""
    if asked.method != "POST":
        return 405, {}, b""
    message: dict[str, Any] = json.loads(asked.body)
    tool = {"name": "echo", "description": "", "inputSchema": {"type": "object"}}
    results = {
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "echoed"}]},
    }
    method, number = message["method"], message.get("id")
    if method == "initialize":
        info = {"name": "older", "version": "1"}
        result = {"protocolVersion": OLDER, "capabilities": {"tools": {}}, "serverInfo": info}
        return answered({"jsonrpc": "2.0", "id": number, "result": result}, **{"Mcp-Session-Id": "s1"})
    if asked.headers["Mcp-Session-Id"] != "s1":
        return 400, {}, b"no session"
    if number is None:
        return 202, {}, b""
    if method not in results:
        error = {"code": -32601, "message": "no"}
        return answered({"jsonrpc": "2.0", "id": number, "error": error})
    return answered({"jsonrpc": "2.0", "id": number, "result": results[method]})


async def test_a_stateless_server_and_an_older_one_are_used_in_one_session(tmp_path: Path) -> None:
    apps: list[Headers] = []

    def made(address: str) -> Headers:
        apps.append(stateless(address))
        return apps[0]

    script = turns(call("new__add", a=1, b=2), call("old__echo"))
    with served(made) as address, authorization_server() as older:
        older.instead["/mcp"] = with_sessions
        servers = {"new": {"url": f"{address}/mcp"}, "old": {"url": older.resource}}
        async with session_with(tmp_path, servers, script) as live:
            await connected(live, "new", "old")
            await live.run()
            said = [event.content for event in live.events if isinstance(event, events.ToolResult)]
            assert said[:2] == ["3", "echoed"]
    seen = apps[0].seen
    assert {each.get("mcp-protocol-version") for each in seen} == {NEWEST}
    assert not any("mcp-session-id" in each for each in seen)
    calls = [each.headers for each in older.asked if b'"tools/call"' in each.body]
    assert [(each["Mcp-Session-Id"], each["MCP-Protocol-Version"]) for each in calls] == [("s1", OLDER)]
