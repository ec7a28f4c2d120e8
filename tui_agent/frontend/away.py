"""Questions that nobody answers at the screen: after a while they go where `[notify]` says, and an answer from there
settles them, as a card does.

What is dangerous, or does not fit into a notice, is not allowed from away. The screen waits for none of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agents.notices import HASTE, LONGEST_TEXT, Notices, notices_of
from tui_agent.core.events import ApprovalAsked, EscalationRaised
from tui_agent.frontend.lines import approval as approval_text
from tui_agent.frontend.lines import escalation as escalation_text
from tui_agent.frontend.operator import AnyQuestion, ApprovalQuestion, EscalationQuestion
from tui_agent.runtime.operator import ApprovalReply, EscalationReply
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.frontend.lines.passages import Passage

UNANSWERED = 60.0
"""Seconds for an answer at the screen."""
_ALLOW, _DENY = "allow once", "deny"
_HOW = 150
"""Characters of a notice that say how it is answered."""


def away_of(settings: Settings) -> Away:
    """The person whom these settings reach."""
    # What cannot be sent is kept for the next start; there is no line at the screen to say it in.
    return Away(notices_of(settings), settings.workspace)


class Away:
    """A person who is away from the screen. `unanswered` is the time for an answer there."""

    def __init__(self, notices: Notices, workspace: Path, unanswered: float = UNANSWERED) -> None:
        self._notices = notices
        self._workspace = workspace
        self._unanswered = unanswered
        self._begun = False

    async def ask(self, question: AnyQuestion) -> None:
        """Ask, once the question was open for long enough, and settle it with the answer."""
        await asyncio.sleep(self._unanswered)
        if not self._begun:
            self._begun = True
            self._notices.begin()
        text, choices = words_of(question.asked)
        title = f"agent-tui in {self._workspace.name}: a question"
        if not choices:
            self._notices.put(title, text)
        elif (said := await self._notices.ask(title, text, choices)) is not None:
            match question:
                case ApprovalQuestion():
                    question.settle(permission(question.asked, said))
                case EscalationQuestion():
                    question.settle(answer(question.asked, said))

    async def close(self) -> None:
        """Leave what was not sent for the next start."""
        await self._notices.close(HASTE)


def words_of(asked: object) -> tuple[str, tuple[str, ...]]:
    """A question in words, and answers for a person who is away to choose from; none: it is answered at the screen."""
    match asked:
        case ApprovalAsked():
            shown = (*approval_text.subject(asked.preview, asked.input), *approval_text.about(asked))
            text = _joined(f"Allow {asked.tool}?", shown)
            may = not (asked.held or approval_text.is_dangerous(asked) or len(text) > LONGEST_TEXT - _HOW)
            return text, (_ALLOW, _DENY) if may else (_DENY,)
        case EscalationRaised():
            return _joined("", escalation_text.subject(asked, (), "line")), tuple(_choices(asked))
        case _:
            return "A tool server asks something; it is answered at the screen.", ()


def permission(asked: ApprovalAsked, said: str) -> ApprovalReply:
    """The reply to an approval that words from away are: what is not offered denies."""
    if said == _ALLOW and _ALLOW in words_of(asked)[1]:
        return ApprovalReply("once")
    return ApprovalReply("deny", "" if said == _DENY else said)


def answer(asked: EscalationRaised, said: str) -> EscalationReply:
    """The reply to an escalation that words from away are."""
    kind, _, place = _choices(asked).get(said, "answer").partition(":")
    match kind:
        case "retry" | "wait" | "skip" | "keep" | "partial" | "stop":
            return EscalationReply(kind)
        case "option":
            said = asked.options[int(place)]
    return EscalationReply("retry" if asked.source == "model" else "answer", said)


def _choices(asked: EscalationRaised) -> dict[str, str]:
    """Labels of the choices that need nothing more, with their values."""
    return {
        one_line(choice.label or asked.options[int(choice.value.partition(":")[2])], 60): choice.value
        for choice in escalation_text.choices_for(asked)
        if choice.value not in {"edit", "why"}
    }


def _joined(head: str, passages: Iterable[Passage]) -> str:
    texts = [head, *(passage.text for passage in passages)]
    return " · ".join(one for text in texts if (one := " ".join(text.split())))
