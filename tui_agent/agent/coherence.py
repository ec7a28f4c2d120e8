"""The validator: no request leaves with a call and its results apart (RECOVERY.md, 9, second layer).

The history closes whole exchanges and the window cuts whole groups, so there should be nothing to mend; what is
mended here is counted as a violation. One pass, linear; a group that was found coherent is not read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tui_agent.folds.history import Group

Message = dict[str, Any]

ORPHAN = "result_without_call"
DUPLICATE = "duplicate_result"
MISSING = "missing_result"
EMPTY = "empty_assistant"

NO_RESULT = "no result was recorded"


def validate(messages: Iterable[Message]) -> tuple[list[Message], dict[str, int]]:
    """Coherent messages, and the repairs by kind. Results are matched to the assistant message before them."""
    coherent: list[Message] = []
    repairs: Counter[str] = Counter()
    waiting: dict[str, None] = {}
    answered: set[str] = set()

    def settle() -> None:
        for call_id in waiting:
            coherent.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
            repairs[MISSING] += 1
        waiting.clear()

    for message in messages:
        role = message["role"]
        if role == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id in waiting:
                del waiting[call_id]
                answered.add(call_id)
                coherent.append(message)
            else:
                repairs[DUPLICATE if call_id in answered else ORPHAN] += 1
            continue
        if waiting:
            settle()
        if role == "assistant":
            calls = message.get("tool_calls") or ()
            if not calls and not message.get("content"):
                repairs[EMPTY] += 1
                continue
            waiting.update((str(call.get("id")), None) for call in calls)
            answered = set()
        coherent.append(message)
    settle()
    return coherent, dict(repairs)


class Validator:
    """Validates requests made of groups. A group begins with no result and holds all results of its calls, so
    each can be judged by itself, and once.
    """

    def __init__(self) -> None:
        self._coherent: dict[int, Group] = {}

    def messages(self, groups: Iterable[Group]) -> tuple[list[Message], dict[str, int]]:
        """The groups' messages made coherent, and the repairs by kind."""
        messages: list[Message] = []
        repairs: Counter[str] = Counter()
        for group in groups:
            if self._coherent.get(id(group)) is group:
                messages.extend(group.messages)
                continue
            coherent, mended = validate(group.messages)
            messages.extend(coherent)
            if mended:
                repairs.update(mended)
            else:
                self._coherent[id(group)] = group
        return messages, dict(repairs)
