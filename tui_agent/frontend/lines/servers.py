"""The MCP servers as they stand: the offers of each, its source, its fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.lines.styled import Line, Span, wrap
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line, reveal

if TYPE_CHECKING:
    from tui_agent.tools.mcp.servers import ServerRow


_ROLES = {
    "connected": "ok",
    "failed": "error",
    "given up for now": "error",
    "needs a login": "warn",
    "not trusted": "warn",
}


_MARKS = {
    "connected": "●",
    "failed": "✗",
    "given up for now": "✗",
    "needs a login": "?",
    "not trusted": "?",
    "disabled": "○",
}


_DOES = {
    "failed": "/mcp reconnect {} tries again now.",
    "given up for now": "/mcp reconnect {} tries again now.",
    "needs a login": "/mcp login {} logs in.",
    "not trusted": "/mcp trust {} starts it.",
}
"""The step that the operator can take."""


NONE = (
    "No MCP server is configured. Name some in .mcp.json of the workspace or in mcp.json of your own configuration "
    "folder, or use `agent-tui mcp add`."
)


def server_lines(rows: Sequence[ServerRow], width: int) -> list[Line]:
    """A paragraph for each server."""
    lines: list[Line] = []
    for row in rows:
        lines += [*paragraph(row, max(20, width)), ()]
    return lines[:-1] or [(Span(line),) for line in wrap(NONE, max(20, width))]


def paragraph(row: ServerRow, width: int) -> list[Line]:
    """A server: how it stands, what it is, what it offers, what is to be known."""
    status = str(row.status)
    role = _ROLES.get(status, "muted")
    title = (
        Span(f"{_MARKS.get(status, '…')} ", role),
        Span(one_line(row.name, 64), "bold"),
        Span(f"  {status}", role),
    )
    facts: list[tuple[str, str]] = [(reveal(row.entry.shown), "muted")]
    if row.server:
        facts.append((f"{one_line(row.server, 100)}, from {row.entry.file}", "muted"))
    else:
        facts.append((f"from {row.entry.file}", "muted"))
    if row.why:
        later = f"; tried again in {row.retry_in:.0f} s" if row.retry_in else ""
        facts.append((reveal(row.why) + later, "error" if role == "error" else "warn"))
    if does := _DOES.get(status):
        facts.append((does.format(one_line(row.name, 64)), "muted"))
    offers = [
        counted(len(items), word)
        for items, word in ((row.tools, "tool"), (row.resources, "resource"), (row.prompts, "prompt"))
        if items
    ]
    if offers:
        names = ", ".join(tool.name for tool in row.tools)
        facts.append((" · ".join(offers) + (f": {names}" if names else ""), ""))
    facts += [(reveal(notice), "warn") for notice in row.notices]
    lines: list[Line] = [title]
    for text, style in facts:
        lines += [(Span("  " + line, style),) for line in wrap(text, width - 2)]
    return lines
