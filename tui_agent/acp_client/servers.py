"""MCP servers of ours in the words of the protocol, for an agent that starts them itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tui_agent.config.mcp_servers import ServerEntry

_IN_FOLDER = 'cd "$0" && exec "$@"'
"""A script of the shell: the protocol has no place for a server's folder."""


def handed_over(entry: ServerEntry, workspace: Path) -> dict[str, Any]:
    """The entry as the agent gets it, its variables and headers with their values."""
    if entry.url:
        return {"type": "http", "name": entry.name, "url": entry.url, "headers": _pairs(entry.headers)}
    words = [shutil.which(entry.command) or entry.command, *entry.args]
    if entry.cwd is not None and entry.cwd != workspace:
        words = ["/bin/sh", "-c", _IN_FOLDER, str(entry.cwd), *words]
    return {"name": entry.name, "command": words[0], "args": words[1:], "env": _pairs(entry.env)}


def _pairs(table: Any) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in table.items()]
