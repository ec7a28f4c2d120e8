"""No request leaves with a call and its results apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.core.projections.history import Group
from tui_agent.core.request.coherence import NO_RESULT, Validator, validate

Message = dict[str, Any]


def calls(*ids: str) -> Message:
    made = [{"id": one, "type": "function", "function": {"name": "t", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, content: str = "ok") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER: Message = {"role": "user", "content": "go"}

CASES = [
    ("coherent messages pass untouched", [USER, calls("a", "b"), result("a"), result("b")], {}),
    ("a result without a call is dropped", [USER, result("z")], {"coherence.orphan_result": 1}),
    (
        "the second result of a call is dropped",
        [calls("a"), result("a"), result("a")],
        {"coherence.duplicate_result": 1},
    ),
    ("a missing result is synthesised", [calls("a"), USER], {"coherence.missing_result": 1}),
    ("also at the very end", [calls("a", "b"), result("a")], {"coherence.missing_result": 1}),
    (
        "an id that an earlier turn used is no duplicate",
        [calls("a"), result("a"), calls("a"), result("a")],
        {},
    ),
    (
        "an empty assistant message goes",
        [USER, {"role": "assistant", "content": None}],
        {"coherence.empty_assistant": 1},
    ),
]


@pytest.mark.parametrize(
    ("messages", "repairs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_repairs_are_made_and_counted(messages: list[Message], repairs: dict[str, int]) -> None:
    coherent, counted = validate(messages)
    assert counted == repairs
    assert validate(coherent) == (coherent, {})


def test_a_synthesised_result_stands_right_behind_its_call() -> None:
    coherent, _ = validate([calls("a"), USER])
    assert coherent[1] == result("a", NO_RESULT)


messages = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(lambda ids: calls(*ids), st.lists(st.sampled_from("abc"), max_size=3, unique=True)),
        st.builds(result, st.sampled_from("abcd")),
        st.just({"role": "assistant", "content": "words"}),
    ),
    max_size=40,
)


@given(messages)
def test_whatever_comes_in_every_call_that_goes_out_has_exactly_one_result(mixed: list[Message]) -> None:
    coherent, _ = validate(mixed)
    waiting: set[str] = set()
    for message in coherent:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    assert not waiting


def exchange(*messages: Message) -> Group:
    return Group("exchange", messages, 1, 1, 1)


def test_groups_are_repaired_each_time_and_counted() -> None:
    validator = Validator()
    groups = [exchange(calls("a"), result("a")), exchange(calls("b"))]
    for _ in range(2):
        coherent, repairs = validator.messages(groups)
        assert coherent == [calls("a"), result("a"), calls("b"), result("b", NO_RESULT)]
        assert repairs == {"coherence.missing_result": 1}


@given(st.lists(messages.map(lambda mixed: exchange(calls("a"), *mixed)), max_size=5))
def test_judging_groups_one_by_one_is_judging_all_at_once(groups: list[Group]) -> None:
    validator = Validator()
    together = validate([message for group in groups for message in group.messages])
    assert validator.messages(groups) == together
    assert validator.messages(groups) == together
