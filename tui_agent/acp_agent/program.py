"""An agent of the Agent Client Protocol on the streams of this process, until its client leaves."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from acp.connection import Connection

from tui_agent.acp.wire import Wire, own_streams
from tui_agent.acp_agent.agent import AcpAgent

if TYPE_CHECKING:
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.models.protocol import Model


async def run_agent(arguments: ConsoleArguments) -> int:
    """Serve the client that started this process; 0 once it has left, 1 if something could not be saved."""
    wire = Wire(*await own_streams())
    serving = asyncio.ensure_future(serve(wire, arguments))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, wire.end)
    faults = await serving
    if wire.fault:
        sys.stderr.write(f"agent-tui acp: {wire.fault}. The sessions are kept.\n")
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


async def serve(wire: Wire, arguments: ConsoleArguments, model: Model | None = None) -> list[str]:
    """Serve one client until its stream ends; then end its sessions, which are kept. What could not be saved."""

    def post(params: Mapping[str, Any]) -> None:
        wire.post({"jsonrpc": "2.0", "method": "session/update", "params": dict(params)})

    async def handle(method: str, params: Any, is_notification: bool) -> Any:
        if method == "$/cancel_request":
            params = _prompt_of(wire, params)
            method = "session/cancel"
        return await agent.handle(method, params, is_notification)

    async def request(method: str, params: dict[str, Any]) -> Any:
        return await connection.send_request(method, params)

    agent = AcpAgent(arguments, request, post, model)
    connection = Connection(handle, wire, listening=False)
    try:
        await connection.main_loop()
        # What was asked before the end of the stream is answered: a file of requests has its answers.
        await wire.settled(besides="session/prompt")
    finally:
        faults = await agent.close()
        await wire.settled()
        await connection.close()
    return faults


def _prompt_of(wire: Wire, params: Any) -> dict[str, Any]:
    """The session whose prompt a client cancels by the id of its request."""
    wanted = params.get("requestId") if isinstance(params, dict) else None
    found = wire.open.get(wanted, {}) if isinstance(wanted, int | str) else {}
    sent = found.get("params") if found.get("method") == "session/prompt" else None
    return {"sessionId": sent.get("sessionId")} if isinstance(sent, dict) else {}
