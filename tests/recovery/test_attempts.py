"""Attempts: blocking, what each answer does, what is progress and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.player import Player, bash, fail, named, ok
from tui_agent.core import events
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.recovery.stuck import StuckPatterns
from tui_agent.core.recovery.tool_breaker import ToolBreakers


def stuck_call(player: Player, times: int = 3) -> None:
    for _ in range(times):
        player.batch(fail())


def test_a_call_that_failed_three_times_is_blocked_until_the_operator_answers() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    assert player.subject == ("read_file", {"path": "a"})
    permit = player.permit("read_file", {"path": "a", "thought": "again"})
    assert (permit.allowed, permit.refusal, permit.rule) == (False, "blocked", "attempts.block")
    assert "3 times" in permit.reason
    assert player.permit("read_file", {"path": "b"}).allowed


ANSWERS = [
    ("retry", "", "operator", True),
    ("edit", "", "operator", True),
    ("answer", "try once more", "operator", True),
    ("answer", "Please try it again!", "operator", True),
    ("answer", "Retry.", "operator", True),
    ("answer", "retry once", "operator", True),
    ("answer", "Do not read, write the file", "operator", False),
    ("answer", "Try again with b", "operator", False),
    ("answer", "Do not try again", "operator", False),
    ("answer", "", "operator", False),
    ("skip", "", "operator", False),
    ("skip", "try once more", "operator", False),
    ("continue", "", "policy", False),
    ("answer", "try once more", "policy", False),
]


@pytest.mark.parametrize(("choice", "text", "by", "allowed"), ANSWERS)
def test_only_retry_and_edit_unblock_a_call(choice: str, text: str, by: str, allowed: bool) -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer(choice, text, by=by)
    assert player.permit("read_file", {"path": "a"}).allowed is allowed
    assert (player.state.of(ErrorStreak).count == 0) is (by == "operator")
    assert (player.state.of(CognitiveState).stall == 0) is (by == "operator")
    assert player.state.of(ErrorRing).filled == 3


REFUSALS = [
    ("not answered yet", True, None, "It waits for the operator's answer"),
    ("nobody there", False, None, "Nobody can be asked now"),
    ("a free answer", True, ("answer", "operator"), "The operator answered: Write the file."),
    ("skip", True, ("skip", "operator"), "The operator chose to go on without it, and said: Write the file."),
    ("the policy went on", False, ("continue", "policy"), "Nobody can be asked now"),
]


@pytest.mark.parametrize(("what", "operator", "answer", "words"), REFUSALS, ids=named)
def test_the_refusal_says_why_the_call_stays_blocked(
    what: str, operator: bool, answer: tuple[str, str] | None, words: str
) -> None:
    player = Player(operator_present=operator)
    stuck_call(player)
    if answer is not None:
        player.answer(answer[0], "Write the file.", by=answer[1])
    reason = player.permit("read_file", {"path": "a"}).reason
    assert words in reason
    assert operator or "operator" not in reason


@pytest.mark.parametrize("operator", [True, False])
def test_refusals_of_a_blocked_call_count_in_no_detector_but_the_stuck_patterns(operator: bool) -> None:
    player = Player(operator_present=operator)
    stuck_call(player)
    player.answer("skip", by="operator" if operator else "policy")
    before = player.state
    for _ in range(3):
        player.batch(fail())
        assert (player.refused, player.level) == (["blocked"], "continue")
    after = player.state
    assert after.of(ErrorRing).slots == before.of(ErrorRing).slots
    assert after.of(AttemptLedger).entries == before.of(AttemptLedger).entries
    assert after.of(ErrorStreak).count == before.of(ErrorStreak).count
    assert after.of(CognitiveState).stall == before.of(CognitiveState).stall
    assert after.of(ToolBreakers) == before.of(ToolBreakers)
    assert len(after.of(StuckPatterns).window) == len(before.of(StuckPatterns).window) + 3


def test_an_edited_call_may_run_and_the_one_that_failed_may_not() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("edit", edited={"path": "b"})
    assert player.permit("read_file", {"path": "b"}).allowed
    assert not player.permit("read_file", {"path": "a"}).allowed


def test_an_answer_allows_one_try_also_where_the_reply_makes_the_call_twice() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("retry")
    player.batch(fail(), fail())
    assert player.refused == ["blocked"]
    assert player.state.of(AttemptLedger).highest == 4
    assert player.level == "escalate"
    assert not player.permit("read_file", {"path": "a"}).allowed


def test_a_try_that_succeeds_clears_the_call() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("retry")
    player.batch(ok("a"))
    assert player.state.of(AttemptLedger).entries == {}
    assert player.level == "continue"


def test_an_answer_to_the_agents_own_question_unblocks_nothing() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("skip")
    player.feed(
        events.EscalationRaised(id="q", question="Which file?", source="ask_operator"),
        events.EscalationAnswered(id="q", choice="answer", text="a"),
    )
    assert not player.permit("read_file", {"path": "a"}).allowed


def test_a_skipped_call_is_not_asked_about_again_until_calling_it_is_a_stuck_pattern() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("skip")
    levels = []
    for _ in range(6):
        player.batch(fail())
        assert player.refused == ["blocked"]
        levels.append(player.level)
    assert levels == ["continue"] * 3 + ["guide", "guide", "escalate"]
    assert player.state.strongest().rule == "stuck.ask"
    assert player.state.of(AttemptLedger).highest == 3


def test_two_calls_that_need_the_operator_are_both_asked_about() -> None:
    player = Player(operator_present=True)
    for _ in range(3):
        player.batch(fail("a"), fail("b"))
    assert player.subject == ("read_file", {"path": "a"})
    player.answer("retry")
    assert player.permit("read_file", {"path": "a"}).allowed
    player.batch(fail("b"))
    assert player.refused == ["blocked"]
    assert (player.level, player.subject) == ("escalate", ("read_file", {"path": "b"}))


PROGRESS = [
    ("an edit and another error", ok("a.py", "edit_file"), "4 failed", 1),
    ("an edit that changed nothing and another error", ok("a.py", "edit_file", changed=()), "4 failed", 1),
    ("an edit by a command and another error", bash(None, "sed -i s/a/b/ a.py"), "4 failed", 1),
    ("another error and nothing else", None, "4 failed", 1),
    ("an edit and the same error", ok("a.py", "edit_file"), "5 failed in 0.2s", 1),
    ("an edit by a command and the same error", bash(None, "sed -i s/a/b/ a.py"), "5 failed in 0.2s", 1),
    (
        "an edit that changed nothing and the same error",
        ok("a.py", "edit_file", changed=()),
        "5 failed in 0.3s",
        3,
    ),
    ("a look and the same error", bash(None, "cat a.py"), "5 failed in 0.2s", 3),
    ("the same error and nothing else", None, "5 failed in 0.2s", 3),
]


@pytest.mark.parametrize(("what", "between", "third", "count"), PROGRESS, ids=named)
def test_another_error_of_the_same_call_or_a_change_since_restarts_its_count(
    what: str, between: dict[str, Any] | None, third: str, count: int
) -> None:
    player = Player(operator_present=True)
    player.batch(bash("5 failed in 0.1s"))
    player.batch(bash("5 failed in 0.1s"))
    if between is not None:
        player.batch(between)
    player.batch(bash(third))
    assert player.state.of(AttemptLedger).count(player.state.key("bash", {"command": "pytest -q"})) == count


def test_under_gigi_another_error_is_no_progress() -> None:
    player = Player(PRESETS["gigi"])
    for error in ("5 failed", "4 failed", "3 failed"):
        player.batch(bash(error))
    assert (player.state.of(AttemptLedger).highest, player.level) == (3, "escalate")


def test_infrastructure_faults_are_not_the_models_attempts() -> None:
    player = Player(operator_present=True)
    for _ in range(3):
        player.batch(fail(transient=True), ok())
    assert player.state.of(AttemptLedger).highest == 0


@pytest.mark.parametrize("kind", ["invalid", "unknown"])
def test_wrong_calls_are_no_attempts(kind: str) -> None:
    player = Player()
    player.step({kind: {"tool": "bash", "raw": "{", "input": {}}})
    assert player.state.of(AttemptLedger).entries == {}
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
    assert (player.state.of(ErrorStreak).count, player.state.of(ErrorRing).filled) == (1, 1)


def test_newest_failures_come_first_on_the_screen() -> None:
    player = Player()
    for path in "abca":
        player.batch(fail(path), ok())
    assert [entry.input["path"] for entry in player.state.of(AttemptLedger).newest_first()] == ["a", "c", "b"]


def test_the_ledger_stays_small_and_keeps_what_is_blocked() -> None:
    player = Player(operator_present=True)
    stuck_call(player)
    player.answer("skip")
    for number in range(300):
        player.batch(fail(f"f{number}"), ok(f"g{number}"))
    assert len(player.state.of(AttemptLedger).entries) <= 200
    assert not player.permit("read_file", {"path": "a"}).allowed


def test_nothing_is_blocked_where_the_policy_has_no_block() -> None:
    for name in ("forge", "gigi", "funnelcanary", "hpd"):
        player = Player(PRESETS[name])
        for _ in range(8):
            player.batch(fail())
            assert player.refused == []
