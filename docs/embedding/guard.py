"""The engine between a loop and its tools, for the pages beside this one: what may run, how it ended, and a journal.

`agent-tui watch JOURNAL` follows the journal while it is written, `agent-tui replay JOURNAL` plays it.
"""

import threading
import time
from pathlib import Path

from tui_agent import Recovery


class Guard:
    """One run. Its methods may be called from several threads."""

    def __init__(self, task: str, tools: list[str], journal: Path) -> None:
        self.recovery = Recovery(task=task, tools=tools, on_escalation="continue")
        self.journal = journal
        self.note: str | None = None
        self._lock = threading.Lock()

    def refusal(self, tool: str, arguments: dict) -> str | None:
        """Why the call may not run, for the model to read; None: it may."""
        with self._lock:
            permission = self.recovery.permit(tool, arguments)
            if permission.allowed:
                return None
            self.recovery.tool_refused(tool, arguments, permission.reason, refusal="blocked")
            return permission.reason

    def succeeded(self, tool: str, arguments: dict, result: str) -> None:
        """The call did its work."""
        with self._lock:
            self.recovery.tool_succeeded(tool, arguments, result)

    def failed(self, tool: str, arguments: dict, error: str) -> None:
        """The call failed."""
        with self._lock:
            self.recovery.tool_failed(tool, arguments, error)

    def step_ended(self) -> bool:
        """All calls of a reply have ended: `note` is for the model's next call. False: the run should end here."""
        with self._lock:
            step = self.recovery.end_iteration()
            self._write()
            self.note = step.note
            return step.level not in {"degrade", "stop"}

    def answered(self, text: str) -> None:
        """The model answered by text alone."""
        with self._lock:
            self.recovery.answered(text)
            self._write()

    def _write(self) -> None:
        with self.journal.open("a", encoding="utf-8") as journal:
            journal.write(self.recovery.lines(time.time()))
            journal.flush()
