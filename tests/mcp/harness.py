"""Sessions with MCP servers: a workspace's `.mcp.json`, servers that really run, and whoever agrees to start them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, start_session
from tui_agent.runtime.operator import ServerReply
from tui_agent.tools.mcp.servers import ServerRow

HERE = Path(__file__).parent
RAW_SERVER = HERE / "raw_server.py"
ROOT = HERE.parents[1]


def raw(how: str = "", **more: Any) -> dict[str, Any]:
    """The entry of a server that misbehaves so."""
    return {"command": sys.executable, "args": ["-S", str(RAW_SERVER), how], **more}


def sdk(notes: Path, **more: Any) -> dict[str, Any]:
    """The entry of a real server over stdio."""
    env = {"NOTES": str(notes)}
    return {"command": sys.executable, "args": [str(HERE / "sdk_server.py")], "env": env, **more}


def one_tool_server(tool: str, said: str) -> str:
    """A server's program that needs no package; `said` defines `said()`, what its one tool answers."""
    return said + _SERVER.replace("TOOL", tool)


_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked.get("method"), None
    if method == "initialize":
        answer = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "probe", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [{"name": "TOOL", "description": "", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer = {"content": [{"type": "text", "text": said()}]}
    if "id" in asked:
        reply = {"jsonrpc": "2.0", "id": asked["id"]}
        reply |= {"result": answer} if answer is not None else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps(reply), flush=True)
"""


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "args": arguments}


def turns(*calls: dict[str, Any]) -> list[Any]:
    """A turn for each call, then the answer."""
    return [*({"calls": [each]} for each in calls), {"calls": [call("finish", answer="done")]}]


@asynccontextmanager
async def session_with(
    folder: Path,
    servers: Mapping[str, Any],
    script: list[Any],
    *,
    operator: ScriptedOperator | None = None,
    patience: float = 60,
    **settings: Any,
) -> AsyncIterator[LiveSession]:
    """A session whose workspace names these servers; the operator of the script agrees to all that are asked about."""
    operator = operator or ScriptedOperator()
    if operator.present and not operator.consultations:
        operator.consultations.extend([ServerReply("accept")] * len(servers))
    files = {".mcp.json": json.dumps({"mcpServers": dict(servers)})}
    live = await start_session(folder, script, operator=operator, files=files, **settings)
    try:
        live.session.mcp.connect(patience)
        await eventually(lambda: live.session.mcp.servers is not None)
        yield live
    finally:
        await live.close()


def standing(live: LiveSession, name: str) -> ServerRow:
    """How a server stands."""
    assert live.session.mcp.servers is not None
    return next(row for row in live.session.mcp.servers.rows() if row.name == name)


async def connected(live: LiveSession, *names: str) -> None:
    """Wait until these servers are connected, and the session knows."""
    for name in names:
        await eventually(lambda name=name: name in live.state.servers)


async def eventually(holds: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until it is so; only a hang reaches the limit."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)
