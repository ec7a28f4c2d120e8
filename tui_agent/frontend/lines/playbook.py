"""The playbook as lines: what is known of which failure, with its counts, and whether it is offered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.frontend.lines.styled import Line, Span, wrap
from tui_agent.playbook.book import OfferedRepair, is_evident
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.playbook.store import Playbook

EMPTY = (
    "Nothing is known yet: runs teach as they end, and `agent-tui playbook learn FILES` reads recorded ones."
)
_COMMANDS = (
    "/playbook forget ID (or all, of this workspace) forgets; /playbook edit ID WORDS puts your own words."
)
_INDENT = 8
"""Cells before the text of an entry, in which its id stands."""
_HOW = {"instead": "instead", "first": "first, then the same call again"}


class KnownRepair(NamedTuple):
    """A repair and the level at which it is known."""

    level: str
    offered: OfferedRepair

    @property
    def id(self) -> str:
        return self.offered.entry.id_of(self.offered.repair)


def known(playbook: Playbook, now: float) -> list[KnownRepair]:
    """Every repair, the workspace's own first. Raises `OSError` for a file that is no playbook."""
    return [
        KnownRepair(level, one) for level, file in playbook.files.items() for one in file.book().offered(now)
    ]


def playbook_lines(found: list[KnownRepair], width: int) -> list[Line]:
    """All that is known, and what can be done with it."""
    if not found:
        return _wrapped(EMPTY, width, "")
    lines = [line for one in found for line in entry_lines(one, width)]
    return [*lines, (Span(""),), *_wrapped(_COMMANDS, width, "muted")]


def entry_lines(one: KnownRepair, width: int) -> list[Line]:
    """One repair: its id, what failed, what helps, how often."""
    entry = one.offered.entry
    failed = one_line(entry.error or "an error of this kind", 300)
    head, *more = wrap(f"{one_line(entry.about, 100)}: {failed}", max(8, width - _INDENT))
    return [
        (Span(f"{one.id:<{_INDENT}}{head}", "bold"),),
        *((Span(" " * _INDENT + line, "bold"),) for line in more),
        *_wrapped(f"{_helps(one)}: {evidence(one)}", width, "", indent=_INDENT),
    ]


def detail(one: KnownRepair) -> str:
    """All that is kept of a repair, a line each."""
    entry, repair = one.offered.entry, one.offered.repair
    rows = [
        ("id", one.id),
        ("level", one.level),
        ("failed", entry.about),
        ("error", entry.error),
        ("helps", _helps(one)),
        ("your words", repair.words),
        ("example", repair.example),
        ("evidence", evidence(one)),
        ("tried", f"{repair.tried:.1f}, worked {repair.worked:.1f}, failed {repair.failed:.1f}"),
        ("harmed", f"{repair.harmed:.1f}"),
        ("without it", f"{entry.at_once:.1f} of {entry.seen:.1f} recovered in the next step"),
        ("counted", time.strftime("%Y-%m-%d", time.gmtime(entry.at))),
    ]
    return "".join(f"{name:<11}{one_line(text, 400)}\n" for name, text in rows if text)


def _helps(one: KnownRepair) -> str:
    repair = one.offered.repair
    return one_line(repair.words, 300) or f"{one_line(repair.name, 300)} {_HOW[repair.form]}"


def evidence(one: KnownRepair) -> str:
    """The counts in a sentence."""
    entry, repair = one.offered.entry, one.offered.repair
    low, high = repair.interval
    where = "" if one.level == "workspace" else " in all workspaces"
    if repair.words:
        said = "your words are said"
    elif not one.offered.carries and is_evident(entry, repair):
        said = "held back: suggestions of this kind are not right often enough"
    elif not one.offered.carries:
        said = "not said: too little evidence"
    else:
        said = "said" if one.level == "workspace" else "said where playbook_elsewhere is set"
    return (
        f"worked {repair.worked:.0f} of {repair.tried:.0f} times{where} ({low:.0%} to {high:.0%}), "
        f"{entry.base:.0%} recover without it; {said}"
    )


def _wrapped(text: str, width: int, style: str, indent: int = 0) -> list[Line]:
    return [(Span(" " * indent + line, style),) for line in wrap(text, max(8, width - indent))]
