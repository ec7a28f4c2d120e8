"""The streak, the strategy, giving up, and how verdicts are joined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.recovery.player import Player, fail, named, ok
from tui_agent.core import events
from tui_agent.core.recovery.cognition import CognitiveState, Strategy
from tui_agent.core.recovery.detectors import DETECTORS
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.core.recovery.streak import ErrorStreak, exceeded_message

# --- streak ---


def test_hpd_stops_with_its_own_words() -> None:
    player = Player(PRESETS["hpd"])
    for path in "abcd":
        player.batch(fail(path))
    stop = player.state.strongest()
    assert (stop.level, stop.detector) == (events.Level.STOP, "streak")
    assert stop.reason == "Exceeded maximum consecutive errors (3)"
    assert exceeded_message(3) == (
        "⚠️ Maximum consecutive errors (3) exceeded. Stopping execution to prevent infinite error loop."
    )


NEUTRAL = [[ok(denied=True)], [ok(cancelled=True)], [ok(denied=True), fail(cancelled=True)], []]


@pytest.mark.parametrize("batch", NEUTRAL)
def test_denials_and_cancellations_alone_neither_add_nor_clear(batch: list[dict[str, Any]]) -> None:
    player = Player()
    player.batch(fail("x"))
    before = (
        player.state.of(ErrorStreak).count,
        player.state.of(CognitiveState).stall,
        player.state.of(CognitiveState).confidence,
    )
    player.batch(*batch)
    assert (
        player.state.of(ErrorStreak).count,
        player.state.of(CognitiveState).stall,
        player.state.of(CognitiveState).confidence,
    ) == before
    assert player.level == "continue"


# --- cognition ---


def test_confidence_stays_between_floor_and_cap_without_drift() -> None:
    player = Player(PRESETS["funnelcanary"])
    for number in range(20):
        player.batch(ok(f"{number}"))
    assert player.state.of(CognitiveState).confidence == 0.9
    for number in range(20):
        player.batch(fail(f"{number}"))
    assert player.state.of(CognitiveState).confidence == 0.0
    assert player.state.of(CognitiveState).history[7] == (8, 0.9)


def test_the_history_is_bounded() -> None:
    player = Player()
    for number in range(200):
        player.batch(ok(f"{number}"))
    assert len(player.state.of(CognitiveState).history) == 120
    assert player.state.of(CognitiveState).history[-1][0] == 200


def test_uncertainties_are_listed_once_and_settled_by_the_same_tool() -> None:
    player = Player(PRESETS["funnelcanary"])
    player.batch(fail("a"), fail("b"), fail("c", "grep"))
    assert player.state.of(CognitiveState).uncertainties == (
        "Tool execution failed: read_file",
        "Tool execution failed: grep",
    )
    player.batch(ok("z", "read_file"))
    assert player.state.of(CognitiveState).uncertainties == ("Tool execution failed: grep",)


def test_a_tool_that_does_not_exist_stays_uncertain_only_until_something_succeeds() -> None:
    player = Player()
    player.step({"unknown": {"tool": "fetch", "input": {}}})
    assert player.state.of(CognitiveState).uncertainties == ("Tool execution failed: fetch",)
    player.batch(ok())
    assert player.state.of(CognitiveState).uncertainties == ()


def test_a_fault_is_uncertain_until_the_model_answers_and_costs_confidence_once_an_iteration() -> None:
    player = Player()
    fault = events.Fault(kind=events.FaultKind.RATE_LIMIT, message="slow down")
    for _ in range(3):
        player.fault(fault)
    assert player.iteration == 1
    assert player.state.of(CognitiveState).uncertainties == ("API error: rate limit",)
    assert player.state.of(CognitiveState).confidence == 0.2
    player.feed(events.ReplyFinished(text="hello"))
    assert player.state.of(CognitiveState).uncertainties == ()


CONCLUDES = {"funnelcanary": Strategy.CONCLUDE, "combined": Strategy.CONTINUE}


@pytest.mark.parametrize(("name", "strategy"), CONCLUDES.items(), ids=CONCLUDES)
def test_conclude_is_funnelcanarys_and_never_cuts_work_short(name: str, strategy: Strategy) -> None:
    player = Player(PRESETS[name])
    for path in "abcd":
        player.batch(ok(path))
    assert player.state.of(CognitiveState).strategy is strategy
    assert player.level == "continue"
    player.batch(fail("x"))
    assert player.state.of(CognitiveState).strategy is Strategy.CONTINUE


def test_five_open_uncertainties_degrade_at_once_and_in_combined_ask_for_another_way() -> None:
    tools = ["read_file", "grep", "glob", "list_dir", "bash"]
    for name, level in (("funnelcanary", events.Level.DEGRADE), ("combined", events.Level.PIVOT)):
        player = Player(PRESETS[name], operator_present=True)
        player.batch(*(fail("a", tool) for tool in tools), ok("b", "write_file"))
        assert (player.state.strongest().level, player.state.strongest().detector) == (
            level,
            "cognition",
        )


def test_a_stall_never_degrades_in_combined_where_the_streak_ends_it() -> None:
    player = Player(operator_present=True)
    strategies = []
    for path in "abcd":
        player.batch(fail(path))
        strategies.append(player.state.of(CognitiveState).strategy.value)
    assert strategies == ["CONTINUE", "CONTINUE", "CONTINUE", "PIVOT"]
    by_detector = {one.detector: one.level.value for one in player.state.last_verdicts}
    assert by_detector["cognition"] == "pivot"
    assert player.state.strongest().rule == "streak.ask"


OTHERS = ["Permission denied", "invalid syntax", "timed out", "connection refused", "no space left"]

PIVOTS: list[tuple[str, list[str], str]] = [
    ("four of one shape", ["no file a.py", "no file b.py", "no file c.py", "no file d.py"], "pivot"),
    ("two kinds in turn", ["no file a.py", OTHERS[0], "no file b.py", OTHERS[0], "no file c.py"], "pivot"),
    ("two kinds in turn, the second time", ["no file a.py", OTHERS[0], "no file b.py", OTHERS[0]], "guide"),
    ("the last three alike", [OTHERS[0], "no file a.py", "no file b.py", "no file c.py"], "guide"),
    ("an error that is new", ["no file a.py", "no file b.py", "no file c.py", OTHERS[0]], "guide"),
    ("five different errors", OTHERS, "guide"),
]


@pytest.mark.parametrize(("what", "errors", "level"), PIVOTS, ids=named)
def test_a_pivot_needs_the_stall_and_errors_that_were_all_there_before(
    what: str, errors: list[str], level: str
) -> None:
    player = Player(preset("combined", streak="off"))
    alone = Player(PRESETS["funnelcanary"])
    for path in "wxyzv":
        alone.batch(ok(path))
    levels = []
    for number, error in enumerate(errors):
        for one in (player, alone):
            one.batch({**fail(f"{number}", "bash"), "error": error})
        levels.append(player.level)
    assert levels == [*["guide"] * (len(errors) - 1), level]
    assert alone.level == "pivot", "FunnelCanary's own strategy asks for the stall alone"


def test_a_repetition_counts_among_the_last_three_errors_only() -> None:
    player = Player(preset("combined", streak="off", stuck=False, breaker=False))
    levels = []
    for number, error in enumerate([*(f"no file {name}.py" for name in "abcd"), *OTHERS]):
        player.batch({**fail(f"{number}", "bash"), "error": error})
        levels.append(player.level)
    assert levels == [*["guide"] * 3, "pivot", *["guide"] * len(OTHERS)]


def test_a_stall_with_a_success_between_is_none() -> None:
    player = Player()
    for path in "abc":
        player.batch(fail(path))
        if path == "b":
            player.batch(ok())
    assert (player.state.of(CognitiveState).stall, player.level) == (1, "guide")


def test_failed_model_calls_count_in_the_stall_under_funnelcanary() -> None:
    player = Player(PRESETS["funnelcanary"])
    levels = []
    for _ in range(3):
        player.step({"model_fault": "server"})
        levels.append(player.level)
    assert levels == ["guide", "guide", "degrade"]
    assert (player.state.of(CognitiveState).stall, player.state.of(CognitiveState).confidence) == (3, 0.0)
    assert player.state.strongest().rule == "cognition.degrade"


SEARCHES: list[tuple[str, str, str, str]] = [
    ("grep", "grep -rn needle src", "exit code 1", "continue"),
    ("rg", "rg needle", "exit code 1", "continue"),
    ("diff", "diff a b", "exit code 1\n1c1\n< a\n---\n> b", "continue"),
    ("test", "test -f a", "exit code 1", "continue"),
    ("bracket", "[ -f a ]", "exit code 1", "continue"),
    ("git diff", "git diff --exit-code", "exit code 1", "continue"),
    ("grep with an error", "grep needle a", "exit code 2\ngrep: a: No such file or directory", "guide"),
    ("another program", "./deploy", "exit code 1", "guide"),
]


@pytest.mark.parametrize(("what", "command", "error", "level"), SEARCHES, ids=named)
def test_a_search_that_finds_nothing_is_a_success_under_combined(
    what: str, command: str, error: str, level: str
) -> None:
    call = {"tool": "bash", "input": {"command": command}, "ok": False, "error": error}
    combined, hpd = Player(), Player(PRESETS["hpd"])
    for player in (combined, hpd):
        player.batch(fail("x"))
        player.batch(call)
    assert combined.level == level
    assert (combined.state.of(ErrorStreak).count == 0) is (level == "continue")
    assert hpd.state.of(ErrorStreak).count == 2, "HPD takes every non-zero exit as a failure"


# --- giving up ---


GIVING_UP: list[tuple[str, bool, list[str]]] = [
    ("the second is the answer", False, ["f:guide", "t:rejected", "t:answer"]),
    ("once a failure", False, ["f:guide", "t:rejected", "f:guide", "t:rejected", "t:answer"]),
    ("an answer where an operator reads it", True, ["f:guide", "t:answer"]),
    ("a success clears it", False, ["f:guide", "o:continue", "t:answer"]),
    ("a failure beside a success does not count", False, ["m:guide", "t:answer"]),
    ("a denial between does not clear it", False, ["f:guide", "d:continue", "t:rejected"]),
    ("an answer without failures", False, ["t:answer"]),
]


@pytest.mark.parametrize(("what", "operator", "script"), GIVING_UP, ids=named)
def test_a_text_only_reply_after_a_failure_is_an_answer_only_the_second_time(
    what: str, operator: bool, script: list[str]
) -> None:
    player = Player(operator_present=operator)
    for number, line in enumerate(script):
        action, _, expected = line.partition(":")
        if action == "t":
            rejected = player.state.rejects_text("Well.")
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
    player.feed(events.OperatorSpoke(text="What did you find?"))
    assert not player.state.rejects_text("The file a is missing.")


QUESTIONS: list[tuple[str, str, bool]] = [
    ("a question", "The file a does not exist. Did you mean b?", True),
    ("a question with choices below it", "Which one shall I take?\n\n- a\n- b", True),
    ("a marked question", "**Shall I create it?**", True),
    ("another script", "要不要继续？", True),
    ("no question", "The file a does not exist.", False),
    (
        "a question and why it is put",
        "I found no account. Could you share your name? This will help me.",
        True,
    ),
    ("a question with choices in a paragraph", "Which one shall I take?\n\n1. a\n2. b", True),
    ("an address with a query", "I give up. See http://a.example/?q=1 for more.", False),
    ("code in a line", "I give up: `ls a?` finds nothing.", False),
    ("a question long before the end", "Why?\n\nIt is gone.\nSo is b.\nI give up.", False),
    ("a question in code alone", "I give up.\n```\nwhat?\n```", False),
]


@pytest.mark.parametrize(("what", "text", "taken"), QUESTIONS, ids=named)
def test_a_reply_that_puts_a_question_or_is_read_by_somebody_is_never_rejected_under_combined(
    what: str, text: str, taken: bool
) -> None:
    alone, read = Player(operator_present=False), Player(operator_present=True)
    for player in (alone, read):
        player.batch(fail())
    assert alone.state.rejects_text(text) is not taken
    assert not read.state.rejects_text(text)
    assert Player(PRESETS["forge"]).state.rejects_text(text)


def test_what_is_said_after_an_interruption_is_an_answer() -> None:
    player = Player(operator_present=False)
    player.batch(fail())
    player.feed(events.IterationStarted(iteration=2), events.IterationFinished(iteration=2, cancelled=True))
    assert not player.state.rejects_text("All tests pass.")


# --- joining ---


def test_the_strongest_verdict_wins_and_every_one_is_recorded_with_its_reason() -> None:
    player = Player()
    for path in "abcd":
        player.batch(fail(path))
    verdicts = player.state.last_verdicts
    assert [one.detector for one in verdicts] == [kind.name for kind in DETECTORS]
    said = {one.detector: one.level.value for one in verdicts if one.level is not events.Level.CONTINUE}
    assert said == {"attempts": "guide", "ring": "guide", "streak": "degrade", "cognition": "pivot"}
    assert all(one.reason and one.rule for one in verdicts if one.level is not events.Level.CONTINUE)
    assert player.state.strongest().detector == "streak"


def test_a_new_run_is_fresh() -> None:
    player = Player()
    for path in "aaab":
        player.batch(fail(path))
    record = player.state.of(CognitiveState).next_step
    player.start("another task")
    state, fresh = player.state, Player().state
    cognition = state.of(CognitiveState)
    kept = cognition.next_step
    assert state.having(replace(cognition, next_step=fresh.of(CognitiveState).next_step)) == fresh
    assert (kept.stall, kept.repeated) == (0, False)
    assert (kept.successes, kept.failures) == (record.successes, record.failures), "what the model has shown"
