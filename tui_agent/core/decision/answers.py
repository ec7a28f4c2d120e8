"""The operator's answer to a question, and what the model reads of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tui_agent.core import budgets, events
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import ASK_OPERATOR

if TYPE_CHECKING:
    from pydantic import JsonValue


INTERRUPTED = "interrupted"


_ANSWER_RULES = {
    "answer": Rule.OPERATOR_ANSWER,
    "retry": Rule.OPERATOR_RETRY,
    "edit": Rule.OPERATOR_EDIT,
    "skip": Rule.OPERATOR_SKIP,
    "partial": Rule.OPERATOR_PARTIAL,
    "stop": Rule.OPERATOR_STOP,
}


def escalation_answered(
    question: events.EscalationRaised,
    choice: str,
    text: str = "",
    edited: dict[str, JsonValue] | None = None,
    by: str = "operator",
) -> events.EscalationAnswered:
    """The event of an answer, with the message that the model keeps in its history ("" for none)."""
    about_call = question.source not in {"model", ASK_OPERATOR, budgets.SOURCE}
    arguments = edited if edited is not None else question.input
    return events.EscalationAnswered.model_validate(
        {
            "id": question.id,
            "choice": choice,
            "text": text,
            "message": _message(question, choice, text.strip(), arguments)
            if about_call and by == "operator"
            else "",
            "tool": question.tool if about_call else "",
            "input": arguments if about_call else None,
            "by": by,
            "rule": _ANSWER_RULES.get(choice, Rule.OPERATOR_ABSENT)
            if by == "operator"
            else Rule.OPERATOR_ABSENT,
        }
    )


def _message(
    question: events.EscalationRaised, choice: str, words: str, arguments: dict[str, JsonValue]
) -> str:
    tool = question.tool
    subject = f"{tool} {json.dumps(question.input, ensure_ascii=False)}" if tool else "the failing step"
    match choice:
        case "answer":
            return words
        case "retry":
            base = f"Try {subject} once more."
        case "edit":
            edited = json.dumps(arguments, ensure_ascii=False)
            base = f"I changed the call of {tool} to these arguments and had it executed: {edited}"
        case "skip":
            base = f"Go on without {subject}; do not repeat it."
        case _:
            return ""
    return f"{base} {words}".strip()
