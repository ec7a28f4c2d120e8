"""The error ring, where the shared cases do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.cases import Player, fail, named, ok
from tui_agent import events as e
from tui_agent.recovery.policy import preset

RING_ALONE = preset("combined", attempts="off", stuck=False, breaker=False)


RING_BATCHES = [
    ("failures in call order", [fail("a"), fail("b")], ["a", "b"]),
    ("a success clears what came before it", [fail("a"), ok()], []),
    ("and not what comes after it", [ok(), fail("a")], ["a"]),
    ("the same call twice counts once", [fail("a"), fail("a"), fail("b")], ["a", "b"]),
    ("denials and cancellations do not enter", [fail("a", denied=True), fail("b", cancelled=True)], []),
]


@pytest.mark.parametrize(("what", "batch", "kept"), RING_BATCHES, ids=named)
def test_the_ring_folds_a_batch_in_the_order_of_the_calls(
    what: str, batch: list[dict[str, Any]], kept: list[str]
) -> None:
    player = Player(RING_ALONE)
    player.batch(*batch)
    slots = [slot.message[-1] for slot in player.state.ring.slots if slot is not None]
    assert slots == kept


def test_results_that_arrive_in_another_order_are_judged_in_the_order_of_the_calls() -> None:
    player = Player(RING_ALONE)
    player.feed(e.IterationStarted(iteration=1))
    failure = e.Failure(kind=e.FailureKind.TOOL_EXECUTION, message="no", tool="bash")
    player.feed(
        e.ToolSucceeded(call_id="2", tool="glob", index=1),
        e.ToolFailed(call_id="3", tool="bash", input={"command": "x"}, index=2, failure=failure),
        e.ToolFailed(call_id="1", tool="bash", index=0, failure=failure),
        e.IterationFinished(iteration=1),
    )
    assert player.state.ring.filled == 1
    assert [outcome.index for outcome in player.state.last.outcomes] == [0, 1, 2]


def test_the_ring_says_how_many_of_the_newest_are_identical_and_why_it_stops() -> None:
    player = Player(RING_ALONE, operator_present=True)
    for path, identical in (("a", 1), ("a", 2), ("b", 1), ("a", 1), ("a", 2), ("a", 3), ("a", 4)):
        player.batch(fail(path))
        assert player.state.ring.identical == identical
        assert not player.state.ring.tripped
    player.batch(fail("a"))
    assert player.state.ring.tripped
    stop = player.state.strongest()
    assert (stop.level, stop.detector) == (e.Level.STOP, "ring")
    assert stop.reason == "5 identical consecutive errors (tool_execution of read_file)"


def test_slots_tell_when_and_where_a_failure_was() -> None:
    player = Player()
    player.batch(ok(), fail("a"))
    slot = player.state.ring.slots[0]
    assert slot is not None
    assert (slot.tool, slot.iteration, slot.message) == ("read_file", 1, "file not found: a")
    assert player.events[slot.seq - 1].at == slot.at
