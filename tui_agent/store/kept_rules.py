"""Permission rules that an operator made for good in one workspace ("always" on an approval card, `/permissions`).

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

from tui_agent.core.names import Decision
from tui_agent.disk import replace_whole
from tui_agent.permissions.rules import PermissionRule, parse_rule
from tui_agent.store.private import make_private

RULES_FOLDER = "permissions"
_LARGEST = 1_000_000

Entries = dict[Decision, list[dict[str, Any]]]
"""The rules of each kind, each with its text and when it was made."""


class KeptRules:
    """The rules kept for one workspace. With a file that cannot be read, every call asks."""

    def __init__(self, state_dir: Path, workspace: Path) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        name = hashlib.sha256(os.fsencode(self._workspace)).hexdigest()[:16]
        self.path = state_dir / RULES_FOLDER / f"{name}.json"
        self._read: tuple[int, int, tuple[PermissionRule, ...]] = (0, -1, ())

    def rules(self) -> tuple[PermissionRule, ...]:
        """The rules as they are now; another session may have added some."""
        try:
            found = self.path.stat()
        except OSError:
            return ()
        if self._read[:2] != (found.st_mtime_ns, found.st_size):
            self._read = (found.st_mtime_ns, found.st_size, self._parsed())
        return self._read[2]

    def add(
        self, texts: Sequence[str], decision: Decision = Decision.ALLOW, now: float | None = None
    ) -> None:
        """Keep these rules. Raises `OSError`, also for a file that is damaged."""
        entries = self._entries()
        present = {entry.get("rule") for entry in entries[decision]}
        at = time.time() if now is None else now
        entries[decision] += [{"rule": text, "at": at} for text in texts if text not in present]
        self._write(entries)

    def remove(self, text: str, decision: Decision) -> bool:
        """Forget one rule; False if it was not kept. Raises `OSError`, also for a file that is damaged."""
        entries = self._entries()
        left = [entry for entry in entries[decision] if entry.get("rule") != text]
        found = len(left) < len(entries[decision])
        if found:
            self._write({**entries, decision: left})
        return found

    def _parsed(self) -> tuple[PermissionRule, ...]:
        try:
            return tuple(
                parse_rule(
                    decision, str(entry.get("rule", "")), f"{decision.done} here for good on {_day(entry)}"
                )
                for decision, listed in self._entries().items()
                for entry in listed
            )
        except (OSError, ValueError, OverflowError) as error:
            return (parse_rule(Decision.ASK, "*", str(error)),)

    def _entries(self) -> Entries:
        """The rules in the file; none if there is no file. Raises `OSError` if it cannot be read as rules."""
        try:
            return _checked(self.path.read_bytes()[: _LARGEST + 1])
        except FileNotFoundError:
            return {decision: [] for decision in Decision}
        except (OSError, ValueError, RecursionError) as error:
            raise OSError(f"{self.path} cannot be read ({error}): correct it, or delete it") from error

    def _write(self, entries: Entries) -> None:
        make_private(self.path.parent)
        replace_whole(self.path, json.dumps({"workspace": str(self._workspace), **entries}, indent=1))


def _checked(data: bytes) -> Entries:
    """Raises `ValueError` for what is no table of rules."""
    table = json.loads(data)
    listed = (
        {decision: table.get(decision.value, []) for decision in Decision} if isinstance(table, dict) else {}
    )
    if not listed or not all(
        isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
        for entries in listed.values()
    ):
        raise ValueError("it holds no rules")
    return listed


def _day(entry: dict[str, Any]) -> str:
    at = entry.get("at")
    return time.strftime("%Y-%m-%d", time.gmtime(at)) if isinstance(at, int | float) else "an unknown day"
