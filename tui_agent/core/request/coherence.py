"""The validator: no request leaves with a call and its results apart in any preset.

The history closes whole exchanges and the window cuts whole groups, so there should be nothing to repair; what is
repaired here is counted as a violation, by the rule's id. One pass, linear; a group that was found coherent is not
read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tui_agent.core.projections.history import Group, Message
from tui_agent.core.recovery.rules import Rule

NO_RESULT = "no result was recorded"


def validate(messages: Iterable[Message]) -> tuple[list[Message], dict[str, int]]:
    """Coherent messages, and the repairs by rule. Results are matched to the assistant message before them."""
    coherent: list[Message] = []
    repairs: Counter[str] = Counter()
    waiting: dict[str, None] = {}
    answered: set[str] = set()

    def settle() -> None:
        for call_id in waiting:
            coherent.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
            repairs[Rule.COHERENCE_MISSING_RESULT.value] += 1
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
                known = call_id in answered
                rule = Rule.COHERENCE_DUPLICATE_RESULT if known else Rule.COHERENCE_ORPHAN_RESULT
                repairs[rule.value] += 1
            continue
        if waiting:
            settle()
        if role == "assistant":
            calls = message.get("tool_calls") or ()
            if not calls and not message.get("content"):
                repairs[Rule.COHERENCE_EMPTY_ASSISTANT.value] += 1
                continue
            waiting.update((str(call.get("id")), None) for call in calls)
            answered = set()
        coherent.append(message)
    settle()
    return coherent, dict(repairs)


class Validator:
    """Validates requests made of groups. A group begins with no result and holds all results of its calls, so
    each can be judged by itself; those with which the request before began are not read again.
    """

    def __init__(self, outgoing: Callable[[Message], Message] = lambda message: message) -> None:
        """`outgoing` makes of each message what goes out in its place."""
        self._outgoing = outgoing
        self._groups: list[Group] = []
        self._messages: list[Message] = []
        self._repairs: Counter[str] = Counter()

    def messages(self, groups: list[Group]) -> tuple[Sequence[Message], dict[str, int]]:
        """The groups' messages made coherent, until it is asked again, and the repairs by rule."""
        known = len(self._groups)
        if groups[:known] != self._groups:
            known, self._messages, self._repairs = 0, [], Counter()
        for group in groups[known:]:
            coherent, repairs = validate(group.messages)
            self._messages += map(self._outgoing, coherent)
            self._repairs.update(repairs)
        self._groups = groups
        return self._messages, dict(self._repairs)
