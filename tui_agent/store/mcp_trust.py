"""Which MCP servers of which workspace the operator agreed to start, and which not.

An answer is about exactly one entry as written (`ServerEntry.digest`).
"""

from __future__ import annotations

from pathlib import Path

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.store.trust_file import TrustFile

FILE = "mcp-trust.json"


class McpTrust:
    """The answers for one workspace."""

    def __init__(self, state_dir: Path, workspace: Path) -> None:
        self._answers = TrustFile(state_dir / FILE, workspace)

    def trusted(self, entry: ServerEntry) -> bool | None:
        """The operator's answer for this entry; None: never asked."""
        return self._answers.answer(entry.digest)

    def remember(self, entry: ServerEntry, trusted: bool | None) -> None:
        """Keep the answer; None: forget it. Raises `OSError`."""
        self._answers.keep(entry.digest, {"server": entry.name, "runs": entry.shown}, trusted)
