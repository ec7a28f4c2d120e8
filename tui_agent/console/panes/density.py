"""How densely the conversation is drawn, and the runs of calls that only look, which stand in one line.

Nothing is drawn here. A run grows with the log, a call at a time, and its length is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tui_agent.call_names import subject_of
from tui_agent.core.names import CallState
from tui_agent.core.tool_facts import UNKNOWN, Looks, facts_of
from tui_agent.formats.importers.tools_of_others import by_other_agents
from tui_agent.quantities import counted

if TYPE_CHECKING:
    from tui_agent.core.projections.entries import CallEntry


class Density(StrEnum):
    """From the least to the most that is shown unopened."""

    COMPACT = "compact"
    """A call that succeeded is one line, an edit too; no rules between the steps."""
    NORMAL = "normal"
    """A call that succeeded is one line; an edit shows what it changed."""
    FULL = "full"
    """Every call shows the first or last lines of its output."""


LONGEST_RUN = 200
"""Calls that one line stands for."""

_FOLDED = frozenset({"file", "search", "folder"})


def looks_by(entry: CallEntry) -> Looks:
    """Say what a call shows that only looks; "" for any other, and for one that ended a failure."""
    if entry.state is not CallState.SUCCEEDED or entry.recovered or entry.diff:
        return ""
    facts = facts_of(entry)
    looks = (by_other_agents(entry.tool) if facts is UNKNOWN else facts).looks
    return looks if looks in _FOLDED else ""


@dataclass
class Lookups:
    """Calls that only look and follow each other; `first` and `last` are their places in the log."""

    first: int
    last: int
    calls: int = 0
    unfolded: bool = False
    """The operator opened it."""
    _seen: dict[tuple[Looks, str], None] = field(default_factory=dict)
    """How each was looked at and what it was, in the order of the calls."""
    _searches: int = 0

    @property
    def folded(self) -> bool:
        """One line stands for all of it."""
        return self.calls > 1 and not self.unfolded

    def hides(self, index: int) -> bool:
        """Tell if the block at `index`, one of its own, is not drawn."""
        return self.folded and index != self.first

    def add(self, index: int, entry: CallEntry, how: Looks) -> None:
        """Take the next call, at `index`, of which `looks_by` says `how`."""
        self.last = index
        self.calls += 1
        self._searches += how == "search"
        self._seen[how, subject_of(entry)] = None

    @property
    def words(self) -> str:
        """The looks in a line: how many of each kind."""
        read, listed = (sum(how == kind for how, _ in self._seen) for kind in ("file", "folder"))
        times = {1: "once", 2: "twice"}.get(self._searches, f"{self._searches:,} times")
        done = (
            f"read {counted(read, 'file')}" if read else "",
            f"searched {times}" if self._searches else "",
            f"listed {counted(listed, 'folder')}" if listed else "",
        )
        return ", ".join(words for words in done if words)

    @property
    def names(self) -> str:
        """The things that were looked at, the newest first, so that a line that is cut names the last one."""
        return ", ".join(name for _, name in reversed(self._seen) if name)
