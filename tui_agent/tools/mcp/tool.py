"""A tool of a server, as a tool of ours."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_agent.core.tool_facts import Effect, Use, Uses
from tui_agent.terminal_text import sanitize_between_tabs
from tui_agent.tools.errors import ToolError
from tui_agent.tools.mcp.content import result_text
from tui_agent.tools.output import DEFAULT_LIMIT, Capture
from tui_agent.tools.tool import ToolContext, ToolOutput

if TYPE_CHECKING:
    from tui_agent.tools.mcp.connection import Connection
    from tui_agent.tools.mcp.offer import Offered
    from tui_agent.tools.workspace import Workspace


@dataclass(frozen=True)
class ServerTool:
    """`server__tool`: what it does is the server's affair, so it asks like a command whatever is said of it."""

    offered: Offered
    connection: Connection
    output_limit: int = DEFAULT_LIMIT

    @property
    def name(self) -> str:
        return self.offered.name

    @property
    def description(self) -> str:
        """The server's own words, bounded."""
        return self.offered.description

    @property
    def parameters(self) -> dict[str, Any]:
        """The server's schema, bounded."""
        return self.offered.parameters

    @property
    def accepted(self) -> dict[str, Any]:
        """The part of the schema that is checked before the call is sent."""
        return self.offered.checked

    @property
    def identity(self) -> str:
        """The subject of its approval: its words, its schema and its effects by the server's word."""
        offered = self.offered
        said = [offered.description, offered.parameters, offered.read_only, offered.destructive]
        return json.dumps(said, sort_keys=True, default=str)

    @property
    def effect(self) -> Effect:
        """Anything: a server's hint that a tool only reads is no proof."""
        return Effect.COMMAND

    @property
    def uses(self) -> Uses:
        """Unknown, whatever the server says, but for an address: rules that narrow look at each argument."""
        properties = self.parameters.get("properties", {})
        names = properties if isinstance(properties, dict) else {}
        return {name: Use.SENDS if name == "url" else Use.ANYTHING for name in names}

    @property
    def says_it_reads(self) -> bool:
        """True if it only reads by the server's word, which is not checked."""
        return self.offered.read_only

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The server, the tool by its own name, the server's hints, and the arguments."""
        entry = self.connection.entry
        if self.offered.read_only:
            hint = "The server says that it only reads (its word, not checked)."
        elif self.offered.destructive:
            hint = "It may change or destroy things."
        else:
            hint = "The server says that it changes but does not destroy (its word, not checked)."
        text = json.dumps(arguments, indent=2, ensure_ascii=False, default=str)
        return f"{self.offered.raw} of the MCP server {entry.name} ({entry.shown})\n{hint}\n\n{text}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Call it at the server. Raises `ToolError`: with the server's own words, or why it could not be asked."""
        result = await self.connection.call(self.offered.raw, arguments, context.progress)
        text, whole = await asyncio.to_thread(self._kept, result_text(result), context)
        if result.is_error:
            raise ToolError(text or "The server reported an error without a text.", output_file=whole)
        return ToolOutput(text or "(no content)", output_file=whole)

    def _kept(self, text: str, context: ToolContext) -> tuple[str, str]:
        """The text within the limit, and the file with the whole of it if it was cut."""
        capture = Capture(context.output_dir, self.name, self.output_limit, mask=context.new_mask())
        try:
            capture.feed(text.encode("utf-8", "replace"))
            cut, whole = capture.finish()
        except BaseException:
            capture.discard()
            raise
        return sanitize_between_tabs(cut).rstrip("\n"), whole
