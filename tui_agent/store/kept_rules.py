"""Permission rules that an operator allowed for good in one workspace ("always" on an approval card).

One small JSON file a workspace, in the state folder: never in the checkout, whose files others may write.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui_agent.permissions.rules import Decision, Rule, parse_rule
from tui_agent.store.private import make_private, private

RULES_FOLDER = "permissions"
_LARGEST = 1_000_000


class KeptRules:
    """The rules kept for one workspace. A file that cannot be read allows nothing."""

    def __init__(self, state_dir: Path, workspace: Path) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        name = hashlib.sha256(os.fsencode(self._workspace)).hexdigest()[:16]
        self.path = state_dir / RULES_FOLDER / f"{name}.json"
        self._read: tuple[int, int, tuple[Rule, ...]] = (0, -1, ())

    def rules(self) -> tuple[Rule, ...]:
        """The rules as they are now; another session may have added some."""
        try:
            found = self.path.stat()
        except OSError:
            return ()
        if self._read[:2] != (found.st_mtime_ns, found.st_size):
            rules = tuple(self._parsed(entry) for entry in self._entries())
            self._read = (found.st_mtime_ns, found.st_size, tuple(rule for rule in rules if rule is not None))
        return self._read[2]

    def add(self, texts: Sequence[str], now: float | None = None) -> None:
        """Keep these rules. Raises `OSError`."""
        entries = self._entries()
        present = {entry.get("rule") for entry in entries}
        at = time.time() if now is None else now
        entries += [{"rule": text, "at": at} for text in texts if text not in present]
        self._write(entries)

    def remove(self, text: str) -> bool:
        """Forget one rule; False where it was not kept. Raises `OSError`."""
        entries = self._entries()
        left = [entry for entry in entries if entry.get("rule") != text]
        if len(left) < len(entries):
            self._write(left)
        return len(left) < len(entries)

    def _parsed(self, entry: dict[str, Any]) -> Rule | None:
        at = entry.get("at")
        day = time.strftime("%Y-%m-%d", time.gmtime(at)) if isinstance(at, int | float) else "an unknown day"
        try:
            return parse_rule(Decision.ALLOW, str(entry.get("rule", "")), f"allowed here for good on {day}")
        except ValueError:
            return None

    def _entries(self) -> list[dict[str, Any]]:
        try:
            if self.path.stat().st_size > _LARGEST:
                return []
            table = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return []
        listed = table.get("allow") if isinstance(table, dict) else None
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    def _write(self, entries: list[dict[str, Any]]) -> None:
        make_private(self.path.parent)
        unfinished = self.path.with_suffix(f".{os.getpid()}.part")
        with open(unfinished, "w", encoding="utf-8", opener=private) as file:
            json.dump({"workspace": str(self._workspace), "allow": entries}, file, indent=1)
        unfinished.replace(self.path)
