"""The error ring, where the shared cases do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.player import Player, fail, named, ok
from tui_agent.core import events
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy, preset
from tui_agent.core.recovery.ring import ErrorRing

RING_ALONE = preset("combined", attempts="off", stuck=False, breaker=False)


RING_BATCHES = [
    ("failures of one reply take one slot", [fail("a"), fail("b")], ["a"]),
    ("a success clears what came before it", [fail("a"), ok()], []),
    ("and not what comes after it", [ok(), fail("a")], ["a"]),
    ("the same call twice takes one slot", [fail("b"), fail("b"), fail("a")], ["b"]),
    ("denials and cancellations do not enter", [fail("a", denied=True), fail("b", cancelled=True)], []),
]


@pytest.mark.parametrize(("what", "batch", "kept"), RING_BATCHES, ids=named)
@pytest.mark.parametrize("policy", [RING_ALONE, PRESETS["forge"]], ids=lambda policy: policy.name)
def test_the_ring_takes_one_slot_a_reply_after_its_last_success(
    policy: RecoveryPolicy, what: str, batch: list[dict[str, Any]], kept: list[str]
) -> None:
    player = Player(policy)
    player.batch(*batch)
    slots = [slot.message[-1] for slot in player.state.of(ErrorRing).slots if slot is not None]
    assert slots == kept


@pytest.mark.parametrize("name", ["forge", "combined"])
def test_five_equal_errors_of_one_reply_do_not_stop(name: str) -> None:
    player = Player(PRESETS[name])
    player.batch(*({**fail(path), "error": "Permission denied"} for path in "abcde"))
    assert (player.state.of(ErrorRing).filled, player.state.of(ErrorRing).identical, player.level) == (
        1,
        1,
        "guide",
    )


def test_replies_are_identical_only_where_all_their_failures_are() -> None:
    player = Player(RING_ALONE)
    player.batch(fail("a"), fail("b"))
    player.batch(fail("a"))
    assert player.state.of(ErrorRing).identical == 1
    player.batch(fail("a"), fail("a"))
    assert player.state.of(ErrorRing).identical == 2


def test_results_that_arrive_in_another_order_are_judged_in_the_order_of_the_calls() -> None:
    player = Player(RING_ALONE)
    player.feed(events.IterationStarted(iteration=1))
    failure = events.Failure(kind=events.FailureKind.TOOL_EXECUTION, message="no", tool="bash")
    player.feed(
        events.ToolSucceeded(call_id="2", tool="glob", index=1),
        events.ToolFailed(call_id="3", tool="bash", input={"command": "x"}, index=2, failure=failure),
        events.ToolFailed(call_id="1", tool="bash", index=0, failure=failure),
        events.IterationFinished(iteration=1),
    )
    assert player.state.of(ErrorRing).filled == 1
    assert player.state.last is not None
    assert [result.index for result in player.state.last.results] == [0, 1, 2]


ENDS = [
    ("combined asks the operator", RING_ALONE, True, ("escalate", "ring.ask")),
    ("combined stops where nobody is there", RING_ALONE, False, ("stop", "ring.stop")),
    ("forge stops", PRESETS["forge"], False, ("stop", "ring.stop")),
    ("forge stops also where an operator is there", PRESETS["forge"], True, ("stop", "ring.stop")),
]


@pytest.mark.parametrize(("what", "policy", "operator", "end"), ENDS, ids=named)
def test_the_ring_says_how_many_of_the_newest_are_identical_and_ends_with_the_fifth(
    what: str, policy: RecoveryPolicy, operator: bool, end: tuple[str, str]
) -> None:
    player = Player(policy, operator)
    for path, identical in (("a", 1), ("a", 2), ("b", 1), ("a", 1), ("a", 2), ("a", 3), ("a", 4)):
        player.batch(fail(path))
        assert player.state.of(ErrorRing).identical == identical
        assert not player.state.of(ErrorRing).tripped
    player.batch(fail("a"))
    assert player.state.of(ErrorRing).tripped
    verdict = next(one for one in player.state.last_verdicts if one.detector == "ring")
    assert (verdict.level.value, verdict.rule) == end
    assert verdict.reason == "5 identical consecutive errors (tool failed, read_file)"


def test_the_answer_to_its_question_empties_the_ring() -> None:
    player = Player(RING_ALONE, operator_present=True)
    for _ in range(5):
        player.batch(fail("a"))
    assert player.state.strongest().rule == "ring.ask"
    player.answer("answer", "Look into b.")
    assert player.state.of(ErrorRing).filled == 0
    player.batch(fail("a"))
    assert player.level == "guide"


def test_slots_say_when_and_where_a_failure_was() -> None:
    player = Player()
    player.batch(ok(), fail("a"))
    slot = player.state.of(ErrorRing).slots[0]
    assert slot is not None
    assert (slot.tool, slot.iteration, slot.message) == ("read_file", 1, "file not found: a")
    assert player.events[slot.seq - 1].at == slot.at
