"""The card that asks if what a command left for programs outside to run may stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.content import Content

from tui_agent.call_names import of_lane
from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.looks.hints import key_line
from tui_agent.frontend.lines.approval import KEEP, held_files, held_title, held_whole
from tui_agent.runtime.operator import ApprovalReply

if TYPE_CHECKING:
    from tui_agent.frontend.operator import ApprovalQuestion


class HeldCard(Card):
    """Take back, keep this once, or show the whole of it first. Esc takes back."""

    question: ApprovalQuestion

    def __init__(self, question: ApprovalQuestion) -> None:
        asked = question.asked
        super().__init__(question, of_lane(held_title(asked.held), asked.lane))

    def compose(self) -> ComposeResult:
        yield CardBody(list(held_files(self.question.asked.held)))
        yield Choices(KEEP)

    def way_back(self) -> Content:
        return key_line(("Esc", "take back"), ("^C", "interrupt"))

    def picked(self, value: str) -> None:
        if value == "show":
            body = self.query_one(CardBody)
            body.remark(list(held_whole(self.question.asked.held)))
            body.redraw()
            body.refresh(layout=True)
            self.call_after_refresh(lambda: body.scroll_to(y=body.subject_lines, animate=False))
        elif value == "deny" or self.shows_all():
            self.settle(ApprovalReply("once" if value == "once" else "deny"))

    def on_key(self, event: events.Key) -> None:
        """Esc is an answer here: what nobody says yes to goes."""
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.settle(ApprovalReply("deny"))
