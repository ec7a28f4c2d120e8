"""Replies that are no answer because of how the model or its server wrote them.

A call that nobody can read, a call that did not arrive, thoughts alone, nothing at all. Pure; the words are for the
model.

All of them heal once something is said: the next request is another one, since the note is in it.
"""

from __future__ import annotations

from collections.abc import Collection

from tui_agent.core.events import CallProblem, FailureKind
from tui_agent.core.recovery.form import CALL_AS_TEXT
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.request.placeholders import is_placeholder
from tui_agent.core.request.written_calls import is_unreadable, written_calls

CALL_BY_API = (
    "Call the tool itself, through the API: its name, and one JSON object with its arguments. Write no call into "
    "your text."
)
"""The form of a call that the server reads."""

LOST = frozenset(
    {
        "tool_calls",
        "tool_call",
        "tool_use",
        "function_call",
        "malformed_function_call",
        "unexpected_tool_call",
    }
)
"""Reasons to finish that say of a call, whether one came or not."""

_CUT_IN_THOUGHT = (
    "The reply reached its length limit before it said anything. Think less: say the answer as text, or go on with a "
    "tool call whose arguments are short."
)


def broken_reply(
    text: str, reasoning: str, finish: str, tools: Collection[str], *, native: bool, lost_before: bool
) -> CallProblem | None:
    """Say why a reply without a call is no answer; None: it may be one.

    `native`: the model calls tools as the API has it, and does not write its calls. `lost_before`: the reply before
    this one was sent back since its call did not arrive: servers that always say so have the benefit of the doubt.
    """
    form = CALL_BY_API if native else CALL_AS_TEXT
    text = "" if is_placeholder(text) else text
    if finish == "length":
        return None if text.strip() else _problem(Rule.FORM_NO_ANSWER, _CUT_IN_THOUGHT)
    if text.strip():
        if is_unreadable(text):
            return _problem(
                Rule.FORM_TEXT_CALL, f"The reply holds a call as text that cannot be read. {form}"
            )
        if finish.casefold() in LOST and not lost_before:
            return _problem(
                Rule.FORM_LOST_CALL,
                f"The reply ended as one with a tool call, and no call arrived. {form} If the text was the answer, "
                "give it again.",
            )
        return None
    if _calls_in_thoughts(reasoning, tools):
        return _problem(
            Rule.FORM_LOST_CALL,
            f"The call stood in the thoughts, so it was not carried out. End the thoughts first. {form}",
        )
    if finish.casefold() in LOST:
        return _problem(
            Rule.FORM_LOST_CALL, f"The reply held a tool call that the server could not read. {form}"
        )
    if reasoning.strip():
        return _problem(
            Rule.FORM_NO_ANSWER,
            "The reply held thoughts alone, which nobody reads. Say the answer as text, or go on with a tool call.",
        )
    return _problem(
        Rule.FORM_NO_ANSWER,
        "The reply was empty. Go on with the task: call a tool, or give the answer as text.",
    )


def _calls_in_thoughts(reasoning: str, tools: Collection[str]) -> bool:
    found = written_calls(reasoning, tools)
    if found is not None:
        return all(call.name in tools for call in found.calls)
    return is_unreadable(reasoning[-1_000:])


def _problem(rule: Rule, message: str) -> CallProblem:
    return CallProblem(kind=FailureKind.NO_TOOL_CALL, message=message, rule=rule)
