"""Calls from the pieces in which servers stream them: every form is read; what can be read in two ways never runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.models.call_pieces import MOST_CALLS, CallPieces, TooManyCallsError

Piece = tuple[int | None, str, str, str]
"""Index, id, name, arguments."""

TOOLS = ("bash", "read_file", "read", "file", "grep", "list_dir")

LS, PWD = '{"command": "ls"}', '{"command": "pwd"}'


def collected(pieces: Iterable[Piece]) -> CallPieces:
    calls = CallPieces(TOOLS)
    for piece in pieces:
        calls.add(*piece)
    return calls


FORMS: dict[str, tuple[Sequence[Piece], list[tuple[str, str]]]] = {
    "parts by index": ([(0, "a", "bash", ""), (0, "", "", '{"x"'), (0, "", "", ": 1}")], [("bash", '{"x": 1}')]),
    "two, interleaved": (
        [(0, "a", "bash", ""), (1, "b", "grep", ""), (0, "", "", "{}"), (1, "", "", '{"y":2}')],
        [("bash", "{}"), ("grep", '{"y":2}')],
    ),
    "the name and the id in every piece": ([(0, "a", "bash", "{"), (0, "a", "bash", "}")], [("bash", "{}")]),
    "another id in every piece": ([(0, "a", "bash", '{"x":'), (0, "b", "bash", "1}")], [("bash", '{"x":1}')]),
    "index 0 for all, own ids": ([(0, "a", "bash", LS), (0, "b", "bash", PWD)], [("bash", LS), ("bash", PWD)]),
    "index 0 for all, no ids": ([(0, "", "bash", LS), (0, "", "bash", PWD)], [("bash", LS), ("bash", PWD)]),
    "index 0 for all, one id": ([(0, "a", "bash", LS), (0, "a", "bash", PWD)], [("bash", LS), ("bash", PWD)]),
    "index 0, in parts, no ids": (
        [(0, "", "bash", ""), (0, "", "", LS), (0, "", "bash", ""), (0, "", "", PWD)],
        [("bash", LS), ("bash", PWD)],
    ),
    "other tools under one index": (
        [(0, "", "bash", LS), (0, "", "list_dir", ""), (0, "", "", '{"path": "."}')],
        [("bash", LS), ("list_dir", '{"path": "."}')],
    ),
    "without an index": ([(None, "a", "bash", LS), (None, "b", "grep", PWD)], [("bash", LS), ("grep", PWD)]),
    "the id late": ([(0, "", "bash", '{"x"'), (0, "a", "", ":1}")], [("bash", '{"x":1}')]),
    "no arguments": ([(0, "a", "list_dir", "")], [("list_dir", "{}")]),
    "no name": ([(0, "a", "", "{}")], [("", "{}")]),
    "nothing": ([(0, "", "", "")], []),
    "the whole once more": (
        [(0, "a", "bash", ""), (0, "", "", LS[:5]), (0, "", "", LS[5:]), (0, "a", "bash", LS)],
        [("bash", LS)],
    ),
    "the whole once more without a name": (
        [(0, "a", "bash", LS[:5]), (0, "", "", LS[5:]), (0, "", "", LS)],
        [("bash", LS)],
    ),
    "the same twice, one id": ([(0, "a", "bash", LS), (0, "a", "bash", LS)], [("bash", LS)]),
    "what there is so far": ([(0, "a", "bash", LS[:4]), (0, "", "", LS[:9]), (0, "", "", LS)], [("bash", LS)]),
    "so far, with name and id": (
        [(0, "a", "bash", LS[:4]), (0, "a", "bash", LS[:9]), (0, "a", "bash", LS)],
        [("bash", LS)],
    ),
    "an empty object first": ([(0, "a", "bash", "{}"), (0, "", "", LS)], [("bash", LS)]),
    "an empty object first, then parts": (
        [(0, "a", "bash", "{}"), (0, "", "", LS[:6]), (0, "", "", LS[6:])],
        [("bash", LS)],
    ),
    "the name in parts": ([(0, "a", "read_", '{"path":'), (0, "", "file", ' "a"}')], [("read_file", '{"path": "a"}')]),
    "the name growing": ([(0, "a", "li", ""), (0, "", "list_", ""), (0, "", "list_dir", "{}")], [("list_dir", "{}")]),
    "a name that no tool has": ([(0, "a", "fly", "{}")], [("fly", "{}")]),
    "broken arguments": ([(0, "a", "bash", "{command: ls")], [("bash", "{command: ls")]),
    "an id that is another call's": (
        [(0, "a", "bash", LS[:4]), (1, "b", "grep", PWD[:4]), (1, "a", "", LS[4:]), (1, "b", "", PWD[4:])],
        [("bash", LS[:4]), ("grep", PWD[:4] + LS[4:] + PWD[4:])],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("pieces", "calls"), FORMS.values(), ids=FORMS)
def test_calls_are_read_from_every_form(pieces: Sequence[Piece], calls: list[tuple[str, str]]) -> None:
    found = collected(pieces).calls(cut=False)
    assert [(call.name, call.arguments) for call in found] == calls
    assert all(call.problem is None for call in found)
    assert len({call.id for call in found}) == len(found)


AMBIGUOUS: dict[str, Sequence[Piece]] = {
    "one call, or the same twice": [(0, "", "bash", LS), (0, "", "bash", LS)],
    "a name that grows from one tool to another": [
        (0, "a", "read", ""),
        (0, "", "read_file", '{"path": "a"}'),
    ],
}


@pytest.mark.parametrize("pieces", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_can_be_read_in_two_ways_does_not_run(pieces: Sequence[Piece]) -> None:
    found = collected(pieces).calls(cut=False)
    assert found
    assert all(call.problem is not None for call in found)


def test_two_objects_behind_one_name_do_not_run() -> None:
    [call] = collected([(0, "a", "bash", LS), (0, "", "", PWD)]).calls(cut=False)
    with pytest.raises(ValueError, match="Extra data"):
        json.loads(call.arguments)


def test_missing_ids_are_made_and_differ() -> None:
    first, second = collected([(0, "", "bash", "{}"), (1, "", "bash", "{}")]).calls(cut=False)
    assert first.id
    assert second.id
    assert first.id != second.id


def test_a_call_cut_before_its_arguments_is_not_mistaken_for_a_complete_one() -> None:
    calls = collected([(0, "a", "bash", LS), (1, "b", "list_dir", "")])
    assert [call.name for call in calls.calls(cut=True)] == ["bash"]
    assert [call.name for call in calls.calls(cut=False)] == ["bash", "list_dir"]


def test_calls_without_end_are_refused() -> None:
    calls = collected((number, f"c{number}", "bash", "{}") for number in range(MOST_CALLS))
    with pytest.raises(TooManyCallsError):
        calls.add(MOST_CALLS, "one more", "bash", "{}")


OBJECTS = st.dictionaries(
    st.text(max_size=6),
    st.text(max_size=12) | st.integers() | st.dictionaries(st.text(max_size=3), st.text()),
    max_size=4,
).map(lambda value: json.dumps(value, ensure_ascii=False))


@given(
    OBJECTS, st.lists(st.integers(1, 9), max_size=12), st.sampled_from(["parts", "so far", "twice", "whole"])
)
def test_one_call_in_any_pieces_is_that_call_or_none(arguments: str, sizes: list[int], form: str) -> None:
    ends = [end for end in accumulate(sizes) if end < len(arguments)]
    parts = [arguments[start:end] for start, end in zip([0, *ends], [*ends, len(arguments)], strict=True)]
    match form:
        case "so far":
            parts = list(accumulate(parts))
        case "twice":
            parts = [*parts, arguments]
        case "whole":
            parts = [arguments]
    calls = CallPieces(TOOLS)
    calls.add(0, "a", "bash", "")
    for part in parts:
        calls.add(0, "", "", part)
    [call] = calls.calls(cut=False)
    if call.problem is None:
        assert json.loads(call.arguments) == json.loads(arguments)


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 2),
            st.sampled_from(["", "a", "b"]),
            st.sampled_from(["", *TOOLS]),
            st.text(max_size=6),
        )
    )
)
def test_any_pieces_make_calls_with_ids_and_names_of_their_own(pieces: list[Piece]) -> None:
    calls = collected(pieces)
    for call in calls.calls(cut=False):
        assert call.id
        assert isinstance(call.arguments, str)
    assert isinstance(calls.complete, bool)
