"""The sliding window: which groups of the history go into a request (RECOVERY.md, 9, first layer).

Only whole groups stay or go. The run's first message, the operator's last one and the newest group always stay,
whatever the budget says: without them the model would not know what it is doing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui_agent.appendlog import AppendLog
from tui_agent.folds.history import Group


@dataclass(frozen=True)
class Window:
    """The groups that were kept, in order, their tokens, and how many were left out."""

    groups: list[Group]
    tokens: int
    dropped: int


def select(groups: AppendLog[Group] | list[Group], run: int, budget: int | None) -> Window:
    """The newest groups that fit `budget` tokens (None: all), and the pinned ones. Linear in the history."""
    groups = groups[:]
    tokens = sum(group.tokens for group in groups)
    if budget is None or tokens <= budget:
        return Window(groups, tokens, 0)
    pinned = _pinned(groups, run)
    left = budget - sum(groups[position].tokens for position in pinned)
    keep = set(pinned)
    for position in range(len(groups) - 1, -1, -1):
        if position in keep:
            continue
        left -= groups[position].tokens
        if left < 0:
            break
        keep.add(position)
    kept = [groups[position] for position in sorted(keep)]
    return Window(kept, sum(group.tokens for group in kept), len(groups) - len(kept))


def _pinned(groups: list[Group], run: int) -> set[int]:
    pinned: set[int] = set()
    if groups:
        pinned.add(len(groups) - 1)
    operator_seen = False
    for position in range(len(groups) - 1, -1, -1):
        group = groups[position]
        if group.kind == "exchange":
            continue
        if not operator_seen:
            pinned.add(position)
            operator_seen = True
        if group.kind == "task" and group.run == run:
            pinned.add(position)
            break
    return pinned
