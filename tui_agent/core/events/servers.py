"""Events of MCP servers: how they stand, and what the operator is asked for them and answers."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from tui_agent.core.events.base import Event
from tui_agent.quantities import counted

ServerStanding = Literal[
    "connected", "connecting again", "given up for now", "needs a login", "failed", "stopped"
]


class ServerChanged(Event):
    """An MCP server came, went, or offers other tools. Each event holds the whole of what it offers now."""

    type: Literal["server_changed"] = "server_changed"
    server: str
    status: ServerStanding
    tools: tuple[str, ...] = ()
    """Names under which the model can call its tools."""
    tools_tokens: int = 0
    """Estimated tokens of their descriptions in a request."""
    why: str = ""
    """The fault."""

    @property
    def in_words(self) -> str:
        """A sentence for the operator."""
        match self.status:
            case "connected":
                return f"MCP server {self.server}: connected, {counted(len(self.tools), 'tool')}"
            case "given up for now":
                return f"MCP server {self.server}: given up for now, its tools are refused ({self.why})"
            case _:
                return f"MCP server {self.server}: {self.status}" + (f" ({self.why})" if self.why else "")


class ServerAsked(Event):
    """The operator is asked because of a server: to start it (`trust`), or by the server itself (`elicitation`)."""

    type: Literal["server_asked"] = "server_asked"
    id: str
    server: str
    purpose: Literal["trust", "elicitation"]
    message: str
    fields: dict[str, JsonValue] = {}
    """JSON Schema of the values that are asked for (an object's `properties`)."""
    required: tuple[str, ...] = ()
    url: str = ""
    """An address that the server wants the operator to open."""


class ServerAnswered(Event):
    """The operator's answer; the values themselves are the server's alone."""

    type: Literal["server_answered"] = "server_answered"
    id: str
    server: str
    decision: Literal["accept", "decline", "cancel"]
    given: tuple[str, ...] = ()
    """Names of the values that were given."""
    by: Literal["operator", "policy"] = "operator"
