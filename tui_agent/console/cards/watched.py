"""The card over another agent's session: what our policy would ask, and whether an answer can reach that agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content

from tui_agent.call_names import of_lane
from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.cards.escalation import EscalationCard
from tui_agent.console.looks.hints import key_line
from tui_agent.frontend.lines.escalation import EarlierFailure, subject
from tui_agent.frontend.lines.passages import Choice, Passage

if TYPE_CHECKING:
    from tui_agent.frontend.operator import WatchedQuestion


class WatchedCard(EscalationCard):
    """Only a free answer, and only if it is read."""

    question: WatchedQuestion

    def __init__(self, question: WatchedQuestion, attempts: Sequence[EarlierFailure]) -> None:
        super().__init__(question, attempts)
        self._title = of_lane("Our policy would ask", question.asked.lane)

    def way_back(self) -> Content:
        """There is no prompt to go back to."""
        return key_line(("Esc", "panes"))

    def compose(self) -> ComposeResult:
        question = self.question
        lines = list(subject(question.asked, self._attempts, self._detail))
        yield CardBody(lines, [Passage(question.reach, "muted")])
        choices = [Choice("w", "why?", "why"), Choice("d", "not now", "dismiss")]
        field = AnswerField("What the agent is to be told", [choice.key for choice in choices])
        field.display = question.reaches
        yield field
        yield Choices(choices)

    def picked(self, value: str) -> None:
        """Why it asks, or nothing."""
        if value == "dismiss":
            self._reply("skip", "")
        else:
            super().picked(value)
