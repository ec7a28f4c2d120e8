"""The MCP servers as they stand: what each offers, where it comes from, what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.console.screens.report import ReportScreen
from tui_agent.frontend.lines.servers import server_lines

if TYPE_CHECKING:
    from tui_agent.tools.mcp.servers import Row


class ServersScreen(ReportScreen):
    """Looked at anew every second while it is open."""

    DEFAULT_CSS = """
    ServersScreen ReportPane { width: 100; }
    """

    def __init__(self, rows: Callable[[], Sequence[Row]]) -> None:
        super().__init__("MCP servers", lambda width: server_lines(rows(), width))

    def on_mount(self) -> None:
        self.set_interval(1.0, self._again)

    def _again(self) -> None:
        self.pane.redraw()
        self.pane.refresh(layout=True)
