"""The operator's answer to a question, and what the model reads of it."""

from __future__ import annotations

import json

from pydantic import JsonValue

from tui_agent.core import events
from tui_agent.core.events.judgement import MASKED
from tui_agent.core.names import ABOUT_PLAN, OF_NO_FAILURE
from tui_agent.core.recovery.rules import Rule

INTERRUPTED = "interrupted"


_ANSWER_RULES = {
    "answer": Rule.OPERATOR_ANSWER,
    "retry": Rule.OPERATOR_RETRY,
    "wait": Rule.OPERATOR_WAIT,
    "edit": Rule.OPERATOR_EDIT,
    "skip": Rule.OPERATOR_SKIP,
    "fresh_start": Rule.OPERATOR_FRESH_START,
    "keep": Rule.OPERATOR_ANSWER,
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
    about_call = question.source not in {"model", *OF_NO_FAILURE}
    arguments = edited if edited is not None else question.input
    return events.EscalationAnswered.model_validate(
        {
            "id": question.id,
            "choice": choice,
            "text": text,
            "message": _message(question, choice, text.strip(), arguments)
            if by == "operator" and (about_call or question.source == ABOUT_PLAN)
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
            approved = question.source == ABOUT_PLAN and words in question.options
            return "The plan is approved: carry it out." if approved else words
        case _ if question.source == ABOUT_PLAN:
            return ""
        case "retry":
            runs = tool and MASKED not in subject
            base = f"I had this call executed once more: {subject}" if runs else f"Try {subject} once more."
        case "edit":
            edited = json.dumps(arguments, ensure_ascii=False)
            base = f"I changed the call of {tool} to these arguments and had it executed: {edited}"
        case "fresh_start":
            return words
        case "skip":
            base = f"Go on without {subject}; do not repeat it."
        case _:
            return ""
    return f"{base} {words}".strip()
