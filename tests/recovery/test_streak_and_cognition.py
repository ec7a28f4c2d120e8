"""The streak, the agent's own strategy, giving up, and how verdicts are joined."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.cases import Player, fail, named, ok
from tui_agent import events as e
from tui_agent.recovery.cognition import Strategy
from tui_agent.recovery.policy import PRESETS
from tui_agent.recovery.streak import exceeded_message

# --- streak ---


def test_hpd_stops_with_its_own_words() -> None:
    player = Player(PRESETS["hpd"])
    for path in "abcd":
        player.batch(fail(path))
    stop = player.state.strongest()
    assert (stop.level, stop.detector) == (e.Level.STOP, "streak")
    assert stop.reason == "Exceeded maximum consecutive errors (3)"
    assert exceeded_message(3) == (
        "⚠️ Maximum consecutive errors (3) exceeded. Stopping execution to prevent infinite error loop."
    )


NEUTRAL = [[ok(denied=True)], [ok(cancelled=True)], [ok(denied=True), fail(cancelled=True)], []]


@pytest.mark.parametrize("batch", NEUTRAL)
def test_denials_and_cancellations_alone_neither_add_nor_clear(batch: list[dict[str, Any]]) -> None:
    player = Player()
    player.batch(fail("x"))
    before = (player.state.streak.count, player.state.cognition.stall, player.state.cognition.confidence)
    player.batch(*batch)
    assert (
        player.state.streak.count,
        player.state.cognition.stall,
        player.state.cognition.confidence,
    ) == before
    assert player.level == "continue"


# --- cognition ---


def test_confidence_stays_between_floor_and_cap_without_drift() -> None:
    player = Player(PRESETS["funnelcanary"])
    for number in range(20):
        player.batch(ok(f"{number}"))
    assert player.state.cognition.confidence == 0.9
    for number in range(20):
        player.batch(fail(f"{number}"))
    assert player.state.cognition.confidence == 0.0
    assert player.state.cognition.history[7] == (8, 0.9)


def test_the_history_is_bounded() -> None:
    player = Player()
    for number in range(200):
        player.batch(ok(f"{number}"))
    assert len(player.state.cognition.history) == 120
    assert player.state.cognition.history[-1][0] == 200


def test_uncertainties_are_told_once_and_settled_by_the_same_tool() -> None:
    player = Player(PRESETS["funnelcanary"])
    player.batch(fail("a"), fail("b"), fail("c", "grep"))
    assert player.state.cognition.uncertainties == (
        "Tool execution failed: read_file",
        "Tool execution failed: grep",
    )
    player.batch(ok("z", "read_file"))
    assert player.state.cognition.uncertainties == ("Tool execution failed: grep",)


def test_a_tool_that_does_not_exist_stays_uncertain_only_until_something_succeeds() -> None:
    player = Player()
    player.step({"unknown": {"tool": "fly", "input": {}}})
    assert player.state.cognition.uncertainties == ("Tool execution failed: fly",)
    player.batch(ok())
    assert player.state.cognition.uncertainties == ()


def test_a_fault_is_uncertain_until_the_model_answers_and_costs_confidence_once_an_iteration() -> None:
    player = Player()
    fault = e.Fault(kind=e.FaultKind.RATE_LIMIT, message="slow down")
    for tries in (1, 2, 3):
        player.fault(fault, tries=tries)
    assert player.state.cognition.uncertainties == ("API error: rate_limit",)
    assert player.state.cognition.confidence == 0.2
    player.feed(e.ReplyFinished(text="hello"))
    assert player.state.cognition.uncertainties == ()


def test_conclude_is_shown_and_never_cuts_work_short() -> None:
    for name in ("funnelcanary", "combined"):
        player = Player(PRESETS[name])
        for path in "abcd":
            player.batch(ok(path))
        assert player.state.cognition.strategy is Strategy.CONCLUDE
        assert player.level == "continue"
        player.batch(fail("x"))
        assert player.state.cognition.strategy is Strategy.CONTINUE


def test_five_open_uncertainties_degrade_at_once_in_both() -> None:
    tools = ["read_file", "grep", "glob", "list_dir", "bash"]
    for name in ("funnelcanary", "combined"):
        player = Player(PRESETS[name], operator_present=True)
        player.batch(*(fail("a", tool) for tool in tools), ok("b", "write_file"))
        assert (player.state.strongest().level, player.state.strongest().detector) == (
            e.Level.DEGRADE,
            "cognition",
        )


def test_degrade_from_a_stall_waits_for_the_streak_in_combined() -> None:
    player = Player(operator_present=True)
    strategies = []
    for path in "abcd":
        player.batch(fail(path))
        strategies.append(player.state.cognition.strategy.value)
    assert strategies == ["CONTINUE", "CONTINUE", "PIVOT", "DEGRADE"]
    assert {verdict.detector: verdict.level.value for verdict in player.state.verdicts()}[
        "cognition"
    ] == "pivot"
    assert player.state.strongest().detector == "streak"


# --- giving up ---


GIVING_UP: list[tuple[str, list[str]]] = [
    ("f", ["f:guide", "t:rejected", "t:answer"]),
    ("once per failure", ["f:guide", "t:rejected", "f:pivot", "t:rejected", "t:answer"]),
    ("a success mends it", ["f:guide", "o:continue", "t:answer"]),
    ("a failure beside a success does not count", ["m:guide", "t:answer"]),
    ("a denial between does not mend it", ["f:guide", "d:continue", "t:rejected"]),
    ("an answer without failures", ["t:answer"]),
]


@pytest.mark.parametrize(("what", "script"), GIVING_UP, ids=named)
def test_a_text_only_reply_after_a_failure_is_an_answer_only_the_second_time(
    what: str, script: list[str]
) -> None:
    player = Player(operator_present=True)
    for number, line in enumerate(script):
        action, _, expected = line.partition(":")
        if action == "t":
            rejected = not player.state.takes_text_as_answer()
            assert ("rejected" if rejected else "answer") == expected
            player.text("Well.")
            continue
        batch = {
            "f": [fail(f"{number}")],
            "o": [ok()],
            "m": [fail(f"{number}"), ok()],
            "d": [ok(denied=True)],
        }[action]
        player.batch(*batch)
        assert player.level == expected


def test_a_message_of_the_operator_may_be_answered_in_words() -> None:
    player = Player(operator_present=True)
    player.batch(fail())
    player.feed(e.OperatorSpoke(text="What did you find?"))
    assert player.state.takes_text_as_answer()


# --- joining ---


def test_the_strongest_verdict_wins_and_every_one_is_recorded_with_its_reason() -> None:
    player = Player()
    for path in "abcd":
        player.batch(fail(path))
    verdicts = player.state.verdicts()
    assert [(one.detector, one.level.value) for one in verdicts] == [
        ("attempts", "guide"),
        ("ring", "guide"),
        ("streak", "degrade"),
        ("cognition", "pivot"),
        ("stuck", "continue"),
        ("breaker", "continue"),
        ("model", "continue"),
    ]
    assert all(one.reason for one in verdicts if one.level is not e.Level.CONTINUE)
    assert player.state.strongest() == verdicts[2]


def test_a_new_run_is_fresh() -> None:
    player = Player()
    for path in "aaab":
        player.batch(fail(path))
    player.start("another task")
    fresh = Player().state
    assert player.state == fresh
