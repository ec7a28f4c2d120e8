"""Looking for a text in a conversation: every block that has it, newest first, by the first line that does.

It knows entries only; the screen that asked finds the place of a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.widgets import Input

from tui_agent.console.panes.found import said
from tui_agent.console.screens.pick import PickScreen
from tui_agent.frontend.lines.passages import Row

if TYPE_CHECKING:
    from tui_agent.core.projections.entries import AnyEntry

LISTED = 200
"""Blocks that are listed at most."""

LEAD = 30
"""Characters of a line that are shown before what was found in it."""

WHO = {"operator": "you", "own_command": "your command", "reply": "the model", "fault": "model fault"}
"""Kinds of entries that are not named as such."""


class FindScreen(PickScreen):
    """Dismissed with the event of a block and the text that was looked for, or None."""

    def __init__(self, entries: Iterable[AnyEntry], sought: str = "") -> None:
        super().__init__("Find in this conversation", ())
        self._said: list[tuple[AnyEntry, str]] = []
        for entry in entries:
            text = said(entry)
            # A run's answer is its last reply.
            if text and not (self._said and self._said[-1][1] == text):
                self._said.append((entry, text))
        self._sought = sought

    def on_mount(self) -> None:
        """The last search is repeated until something else is typed."""
        super().on_mount()
        field = self.query_one(Input)
        field.value = self._sought
        field.select_all()

    def _search(self, typed: str) -> None:
        sought = typed.strip().lower()
        found: list[Row] = []
        for entry, text in reversed(self._said):
            if sought in text.lower():
                found.append(Row(first_line(text, sought), _place(entry), (entry.seq, sought)))
            if len(found) == LISTED:
                break
        self._list.put(found)


def first_line(text: str, sought: str) -> str:
    """The first line that has the text (in small letters), from shortly before it on; never an empty one."""
    lines = [line for line in text.split("\n") if line.strip() and sought in line.lower()]
    line = lines[0] if lines else ""
    cut = max(0, line.lower().find(sought) - LEAD)
    return f"…{line[cut:]}" if cut else line


def _place(entry: AnyEntry) -> str:
    kind = entry.kind
    step = f"step {entry.iteration} · " if entry.iteration else ""
    return f"{step}{WHO.get(kind, kind)}"
