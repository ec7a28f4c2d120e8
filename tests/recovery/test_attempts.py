"""Attempts: blocking, what each answer does, what is progress and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.cases import Player, fail, ok
from tui_agent import events as e
from tui_agent.recovery.policy import PRESETS


def bash(error: str | None, command: str = "pytest -q") -> dict[str, Any]:
    return {"tool": "bash", "input": {"command": command}, "ok": error is None, "error": error or ""}


def stuck_call(player: Player, times: int = 3) -> None:
    for _ in range(times):
        player.batch(fail())


def test_a_call_that_failed_three_times_is_blocked_until_the_operator_answers() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    assert player.state.subject() == ("read_file", {"path": "a"})
    permit = player.state.permit("read_file", {"path": "a", "thought": "again"})
    assert (permit.allowed, permit.refusal) == (False, "blocked")
    assert "3 times" in permit.reason
    assert player.state.permit("read_file", {"path": "b"}).allowed


ANSWERS = [
    ("answer", "operator", True),
    ("retry", "operator", True),
    ("edit", "operator", True),
    ("skip", "operator", False),
    ("continue", "policy", False),
]


@pytest.mark.parametrize(("choice", "by", "allowed"), ANSWERS)
def test_what_each_answer_does_to_a_blocked_call(choice: str, by: str, allowed: bool) -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer(choice, by=by)
    assert player.state.permit("read_file", {"path": "a"}).allowed is allowed
    assert (player.state.streak.count == 0) is (by == "operator")
    assert (player.state.cognition.stall == 0) is (by == "operator")
    assert player.state.ring.filled == 3


def test_an_edited_call_may_run_and_the_one_that_failed_may_not() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("edit", edited={"path": "b"})
    assert player.state.permit("read_file", {"path": "b"}).allowed
    assert not player.state.permit("read_file", {"path": "a"}).allowed


def test_an_answer_allows_one_try_also_where_the_reply_makes_the_call_twice() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("retry")
    player.batch(fail(), fail())
    assert player.refused == ["blocked"]
    assert player.state.attempts.highest == 4
    assert player.level == "escalate"
    assert not player.state.permit("read_file", {"path": "a"}).allowed


def test_a_try_that_succeeds_clears_the_call() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("retry")
    player.batch(ok("a"))
    assert player.state.attempts.entries == {}
    assert player.level == "continue"


def test_an_answer_to_the_agents_own_question_unblocks_nothing() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("skip")
    player.feed(
        e.EscalationRaised(id="q", question="Which file?", source="ask_operator"),
        e.EscalationAnswered(id="q", choice="answer", text="a"),
    )
    assert not player.state.permit("read_file", {"path": "a"}).allowed


def test_a_skipped_call_is_not_asked_about_again_but_calling_it_for_ever_comes_to_an_end() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("skip")
    levels = []
    for _ in range(4):
        player.batch(fail())
        assert player.refused == ["blocked"]
        levels.append(player.level)
    assert levels == ["guide", "guide", "pivot", "escalate"]
    assert player.state.attempts.highest == 3


def test_two_calls_that_need_the_operator_are_both_asked_about() -> None:
    player = Player(operator_present=True)
    for _ in range(3):
        player.batch(fail("a"), fail("b"))
    assert player.state.subject() == ("read_file", {"path": "a"})
    player.answer("retry")
    assert player.state.permit("read_file", {"path": "a"}).allowed
    player.batch(fail("b"))
    assert player.refused == ["blocked"]
    assert (player.level, player.state.subject()) == ("escalate", ("read_file", {"path": "b"}))


PROGRESS = [
    ("changed and another failure", True, "4 failed", 1),
    ("changed and the same failure", True, "5 failed", 3),
    ("another failure and nothing changed", False, "4 failed", 3),
]


@pytest.mark.parametrize(("what", "edited", "third", "count"), PROGRESS)
def test_only_a_change_and_another_failure_together_are_progress(
    what: str, edited: bool, third: str, count: int
) -> None:
    player = Player(operator_present=True)
    player.batch(bash("5 failed"))
    player.batch(bash("5 failed"))
    if edited:
        player.batch(ok("a.py", "edit_file"))
    player.batch(bash(third))
    assert player.state.attempts.highest == count


def test_an_edit_that_changed_nothing_is_no_progress() -> None:
    player = Player(operator_present=True)
    player.batch(bash("5 failed"))
    player.batch(ok("a.py", "edit_file", changed=()))
    player.batch(bash("4 failed"))
    assert player.state.attempts.highest == 2


def test_an_edit_earlier_in_the_same_reply_counts_as_one_before_the_failure() -> None:
    player = Player(operator_present=True)
    player.batch(bash("5 failed"))
    player.batch(ok("a.py", "edit_file"), bash("4 failed"))
    assert player.state.attempts.highest == 1


def test_infrastructure_faults_are_not_the_models_attempts() -> None:
    player = Player(operator_present=True)
    for _ in range(3):
        player.batch(fail(transient=True), ok())
    assert player.state.attempts.highest == 0


@pytest.mark.parametrize("kind", ["invalid", "unknown"])
def test_wrong_calls_count_in_the_ring_the_streak_and_the_stall_and_not_in_the_attempts(kind: str) -> None:
    player = Player()
    player.step({kind: {"tool": "bash", "raw": "{", "input": {}}})
    state = player.state
    assert (state.ring.filled, state.streak.count, state.cognition.stall) == (1, 1, 1)
    assert state.attempts.highest == 0
    assert player.level == "guide"


def test_the_third_denial_of_a_call_escalates_and_denials_reset_nothing() -> None:
    player = Player(operator_present=True)
    player.batch(fail("x"))
    levels = []
    for _ in range(3):
        player.batch(ok("a", "bash", denied=True))
        levels.append(player.level)
    assert levels == ["continue", "continue", "escalate"]
    assert player.state.strongest().reason == "bash was denied 3 times"
    assert (player.state.streak.count, player.state.ring.filled) == (1, 1)


def test_newest_failures_come_first_on_the_screen() -> None:
    player = Player()
    for path in "abca":
        player.batch(fail(path), ok())
    assert [entry.input["path"] for entry in player.state.attempts.newest_first()] == ["a", "c", "b"]


def test_the_ledger_stays_small_and_keeps_what_is_blocked() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("skip")
    for number in range(300):
        player.batch(fail(f"f{number}"), ok(f"g{number}"))
    assert len(player.state.attempts.entries) <= 200
    assert not player.state.permit("read_file", {"path": "a"}).allowed


def test_nothing_is_blocked_where_the_policy_has_no_block() -> None:
    for name in ("forge", "gigi", "funnelcanary", "hpd"):
        player = Player(PRESETS[name])
        for _ in range(8):
            player.batch(fail())
            assert player.refused == []
