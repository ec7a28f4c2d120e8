"""Which card puts which question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.console.cards.approval import ApprovalCard
from tui_agent.console.cards.card import Card
from tui_agent.console.cards.escalation import EscalationCard
from tui_agent.console.cards.gate import GateCard
from tui_agent.console.cards.held import HeldCard
from tui_agent.console.cards.server import ServerCard
from tui_agent.console.cards.watched import WatchedCard
from tui_agent.frontend.lines.escalation import attempts_before
from tui_agent.frontend.operator import (
    AnyQuestion,
    ApprovalQuestion,
    EscalationQuestion,
    ServerQuestion,
    WatchedQuestion,
)

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


def make_card(question: AnyQuestion, state: RunState) -> Card:
    """The card for a question; what was tried is read from the state as it is now."""
    match question:
        case WatchedQuestion():
            return WatchedCard(question, attempts_before(state, question.asked))
        case ApprovalQuestion() if question.asked.held:
            return HeldCard(question)
        case ApprovalQuestion():
            return ApprovalCard(question)
        case EscalationQuestion():
            return EscalationCard(question, attempts_before(state, question.asked))
        case ServerQuestion():
            return ServerCard(question)
        case _:
            return GateCard(question)
