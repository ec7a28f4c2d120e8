"""Which MCP servers of which workspace the operator agreed to start, and which not: remembered in the state folder.

An answer is about exactly one entry as written (`ServerEntry.digest`) in one workspace; an entry that changes is asked
about anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.store.private import make_private, private

FILE = "mcp-trust.json"


class McpTrust:
    """The answers for one workspace. The file is read at every question and written at every answer."""

    def __init__(self, state_dir: Path, workspace: Path) -> None:
        self._file = state_dir / FILE
        self._workspace = str(workspace.resolve())

    def trusted(self, entry: ServerEntry) -> bool | None:
        """Whether the operator agreed to this entry; None: never asked. A file that cannot be read knows nothing."""
        answer = self._read().get(self._workspace, {}).get(entry.digest)
        trusted = answer.get("trusted") if isinstance(answer, dict) else None
        return trusted if isinstance(trusted, bool) else None

    def remember(self, entry: ServerEntry, trusted: bool | None) -> None:
        """Keep the answer; None: forget it. Raises `OSError`."""
        document = self._read()
        answers = document.setdefault(self._workspace, {})
        answers.pop(entry.digest, None)
        if trusted is not None:
            answers[entry.digest] = {"server": entry.name, "runs": entry.shown, "trusted": trusted}
        if not answers:
            del document[self._workspace]
        make_private(self._file.parent)
        beside = self._file.with_name(f".{FILE}.{os.getpid()}")
        with open(beside, "w", encoding="utf-8", opener=private) as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        beside.replace(self._file)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            document = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(document, dict):
            return {}
        return {key: value for key, value in document.items() if isinstance(value, dict)}
