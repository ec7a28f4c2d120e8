"""Questions that wait for the operator in any tab, the oldest first. Nothing here draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.call_names import short_input
from tui_agent.frontend.operator import (
    AnyQuestion,
    ApprovalQuestion,
    EscalationQuestion,
    GateQuestion,
    ServerQuestion,
)
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.console.tabs.tab import Tab


class Item(NamedTuple):
    """A question that waits, and the tab that asks it. `since` in seconds since the epoch."""

    tab: Tab
    question: AnyQuestion
    since: float

    @property
    def asks(self) -> tuple[str, str]:
        """The kind of question, and what it asks with the sub-agent that asks it, in one line each."""
        match self.question:
            case ApprovalQuestion(asked=asked):
                call = f"{one_line(asked.tool)} {short_input(asked.tool, asked.input)}"
                return "approve", _of_lane(asked.lane) + call
            case EscalationQuestion(asked=raised):
                call = f": {short_input(raised.tool, raised.input)}" if raised.input else ""
                return "answer", _of_lane(raised.lane) + one_line(f"{raised.in_words}{call}", 300)
            case ServerQuestion(asked=server):
                if server.purpose == "trust":
                    return "server", one_line(f"start the MCP server {server.server}?", 300)
                return "server", one_line(f"{server.server}: {server.message}", 300)
            case GateQuestion(asked=outline):
                return "request", f"the request of step {outline.iteration} waits to go out"


def _of_lane(lane: str) -> str:
    """Name the sub-agent that asks; the run itself goes without a name."""
    return f"{one_line(lane)} › " if lane else ""


def waiting(tabs: Iterable[Tab]) -> list[Item]:
    """All questions that are open, the oldest first."""
    items = [
        Item(tab, question, question.since)
        for tab in tabs
        for question in tab.questions
        if not question.future.done()
    ]
    return sorted(items, key=lambda item: item.since)
