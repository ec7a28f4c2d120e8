"""A real server made with the SDK, over stdio, or over streamable HTTP with `http PORT`.

The environment that it was given, and what it was told to cancel, go into the file that the variable NOTES names.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

server = MCPServer("workbench", version="1.2", log_level="ERROR")
NOTES = Path(os.environ.get("NOTES", "/dev/null"))


def note(**facts: Any) -> None:
    with NOTES.open("a") as file:
        file.write(json.dumps(facts) + "\n")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(reason: str) -> str:
    """Fail with a reason."""
    raise ToolError(reason)


@server.tool()
async def slow(ctx: Context, steps: int) -> str:
    """Work in steps and say how far it is."""
    try:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        note(cancelled="slow")
        raise
    return "all done"


class Wanted(BaseModel):
    colour: str = Field(description="Which colour?")
    count: int = 1


async def ask() -> Elicit[Wanted]:
    return Elicit("Pick a colour", Wanted)


@server.tool()
async def paint(wanted: Annotated[Wanted, Resolve(ask)]) -> str:
    """Paint in the colour that the operator wants."""
    return f"painted {wanted.count} in {wanted.colour}"


@server.tool()
async def grow(ctx: Context) -> str:
    """Offer one more tool from now on."""

    def extra() -> str:
        """Came later."""
        return "extra"

    server.add_tool(extra)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
def die() -> str:
    """End the process in the middle of the call."""
    os._exit(7)


@server.tool()
def long(size: int) -> str:
    """A long text."""
    return "x" * size


@server.resource("notes://today", name="today", description="What is on today")
def today() -> str:
    return "buy milk"


@server.resource("notes://of/{day}", name="day", description="What is on that day")
def of_day(day: str) -> str:
    return f"{day}: nothing"


@server.prompt(description="Review a file")
def review(path: str) -> str:
    return f"Review {path} with care."


if __name__ == "__main__":
    note(environment=dict(os.environ))
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
