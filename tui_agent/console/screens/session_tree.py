"""Which sessions the browser lists, and in what order: those that fit what was typed, forks below their parents.

Pure: rows and hits come from the store, what comes out is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tui_agent.store.session_index import Hit
    from tui_agent.store.summary import SessionRow

DEEPEST = 6
"""Levels of forks that are drawn with an indent of their own."""


class SessionBranch(NamedTuple):
    """A session in the list. `branch`: the lines that lead to it from its parent; `hit`: the place of the
    words.
    """

    row: SessionRow
    branch: str = ""
    hit: Hit | None = None


def entries(rows: Sequence[SessionRow], words: str, hits: Iterable[Hit]) -> list[SessionBranch]:
    """The sessions (`rows`: the newest first) that hold all `words` in their title, id, workspace or model,
    and those with a hit. A tree of forks stands in the place of its newest.
    """
    by_session = {hit.session_id: hit for hit in hits}
    wanted = words.lower().split()
    found = {
        row.id: row
        for row in rows
        if row.id in by_session
        or all(word in f"{row.title}\n{row.id}\n{row.workspace}\n{row.model}".lower() for word in wanted)
    }
    children: dict[str, list[SessionRow]] = {}
    for row in found.values():
        children.setdefault(row.parent, []).append(row)
    listed: dict[str, SessionBranch] = {}
    for row in found.values():
        if row.id not in listed:
            for each, branch in _tree(_root(row, found), children):
                listed.setdefault(each.id, SessionBranch(each, branch, by_session.get(each.id)))
    return list(listed.values())


def _root(row: SessionRow, found: Mapping[str, SessionRow]) -> SessionRow:
    """The oldest ancestor that is listed; a journal that names its own descendant as its parent ends the search."""
    seen = {row.id}
    while row.parent in found and row.parent not in seen:
        row = found[row.parent]
        seen.add(row.id)
    return row


def _tree(root: SessionRow, children: Mapping[str, Sequence[SessionRow]]) -> Iterable[tuple[SessionRow, str]]:
    """The root and everything below it, each with its branch."""
    waiting = [(root, "", "")]
    seen: set[str] = set()
    while waiting:
        row, branch, indent = waiting.pop()
        if row.id in seen:
            continue
        seen.add(row.id)
        yield row, branch
        below = children.get(row.id, ())
        for place, child in reversed(list(enumerate(below))):
            last = place == len(below) - 1
            deeper = indent + ("  " if last else "│ ") if len(indent) < 2 * DEEPEST else indent
            waiting.append((child, indent + ("└ " if last else "├ "), deeper))
