"""The detectors one by one, where the shared cases do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.cases import Player
from tui_agent import events as e
from tui_agent.recovery.cognition import Strategy
from tui_agent.recovery.policy import PRESETS, preset
from tui_agent.recovery.streak import exceeded_message
from tui_agent.recovery.tool_breaker import BreakerPhase

RING_ALONE = preset("combined", attempts="off", stuck=False, breaker=False)


def fail(path: str = "a", tool: str = "read_file", **facts: Any) -> dict[str, Any]:
    return {"tool": tool, "input": {"path": path}, "ok": False, "error": f"file not found: {path}", **facts}


def ok(path: str = "z", tool: str = "read_file", **facts: Any) -> dict[str, Any]:
    return {"tool": tool, "input": {"path": path}, "ok": True, "content": f"text of {path}", **facts}


def bash(error: str | None, command: str = "pytest -q") -> dict[str, Any]:
    return {"tool": "bash", "input": {"command": command}, "ok": error is None, "error": error or ""}


# --- ring ------------------------------------------------------------------------------------------------------

RING_BATCHES = [
    ("failures in call order", [fail("a"), fail("b")], ["a", "b"]),
    ("a success clears what came before it", [fail("a"), ok()], []),
    ("and not what comes after it", [ok(), fail("a")], ["a"]),
    ("the same call twice counts once", [fail("a"), fail("a"), fail("b")], ["a", "b"]),
    ("denials and cancellations do not enter", [fail("a", denied=True), fail("b", cancelled=True)], []),
]


@pytest.mark.parametrize(("what", "batch", "kept"), RING_BATCHES, ids=lambda value: value if isinstance(value, str) else "")
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


# --- attempts --------------------------------------------------------------------------------------------------


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


# --- streak ----------------------------------------------------------------------------------------------------


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
    assert (player.state.streak.count, player.state.cognition.stall, player.state.cognition.confidence) == before
    assert player.level == "continue"


# --- cognition -------------------------------------------------------------------------------------------------


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
    assert {verdict.detector: verdict.level.value for verdict in player.state.verdicts()}["cognition"] == "pivot"
    assert player.state.strongest().detector == "streak"


# --- giving up -------------------------------------------------------------------------------------------------

GIVING_UP: list[tuple[str, list[str]]] = [
    ("f", ["f:guide", "t:rejected", "t:answer"]),
    ("once per failure", ["f:guide", "t:rejected", "f:pivot", "t:rejected", "t:answer"]),
    ("a success mends it", ["f:guide", "o:continue", "t:answer"]),
    ("a failure beside a success does not count", ["m:guide", "t:answer"]),
    ("a denial between does not mend it", ["f:guide", "d:continue", "t:rejected"]),
    ("an answer without failures", ["t:answer"]),
]


@pytest.mark.parametrize(("what", "script"), GIVING_UP, ids=lambda value: value if isinstance(value, str) else "")
def test_a_text_only_reply_after_a_failure_is_an_answer_only_the_second_time(what: str, script: list[str]) -> None:
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


# --- breaker ---------------------------------------------------------------------------------------------------


def broken(player: Player, times: int = 5, **facts: Any) -> None:
    for number in range(times):
        player.batch(fail(f"{player.iteration} {number}", "grep", **facts), ok(f"{player.iteration}", "glob"))


def phase(player: Player, tool: str = "grep") -> str:
    state = player.state.breakers.states.get(tool)
    return "closed" if state is None else state.phase.value


def test_a_tool_that_fails_five_times_over_different_inputs_is_left_out_for_three_iterations() -> None:
    player = Player()
    broken(player, 4)
    assert player.state.open_tools() == frozenset()
    broken(player, 1)
    assert player.state.open_tools() == {"grep"}
    assert player.state.breakers.states["grep"].reopen_at == 9
    assert player.state.permit("grep", {"pattern": "x"}).refusal == "breaker"
    record = next(verdict for verdict in player.state.verdicts() if verdict.detector == "breaker")
    assert (record.level, record.reason) == (e.Level.GUIDE, "grep is left out for 3 iterations")
    phases = []
    for _ in range(3):
        player.batch(ok(f"{player.iteration}", "glob"))
        phases.append(phase(player))
    assert phases == ["open", "open", "half_open"]
    assert player.state.open_tools() == frozenset()


def half_open(player: Player) -> None:
    broken(player)
    for _ in range(3):
        player.batch(ok(f"{player.iteration}", "glob"))
    assert phase(player) == "half_open"


def test_half_open_lets_one_probe_through() -> None:
    player = Player()
    half_open(player)
    assert player.state.permit("grep", {"pattern": "x"}).allowed
    second = player.state.permit("grep", {"pattern": "y"}, [("glob", {}), ("grep", {"pattern": "x"})])
    assert second.refusal == "breaker"


def test_a_probe_that_succeeds_closes_it_and_one_that_fails_opens_it_for_twice_as_long() -> None:
    good, bad = Player(), Player()
    for player in (good, bad):
        half_open(player)
    good.batch(ok("x", "grep"))
    assert phase(good) == "closed"
    for span in (6, 12):
        bad.batch(fail(f"p{span}", "grep"), ok(f"p{span}", "glob"))
        assert bad.state.breakers.states["grep"].span == span
        waited = 0
        while phase(bad) == "open":
            bad.batch(ok(f"{bad.iteration}", "glob"))
            waited += 1
        assert waited == span


def test_the_same_call_does_not_open_a_breaker_but_infrastructure_does() -> None:
    mine = preset("combined", attempts="off", stuck=False)
    same, gone = Player(mine), Player(mine)
    for _ in range(6):
        same.batch(fail("a", "grep"), ok(f"{same.iteration}", "glob"))
        gone.batch(fail("a", "grep", transient=True), ok(f"{gone.iteration}", "glob"))
    assert (phase(same), phase(gone)) == ("closed", "open")


def test_wrong_calls_and_refused_calls_do_not_count() -> None:
    player = Player()
    for number in range(8):
        player.wrong_call(e.FailureKind.INVALID_TOOL_CALL, "grep", {"n": number}, f"wrong {number}")
        player.batch(ok(f"{number}", "grep", denied=True), ok(f"{number}", "glob"))
    assert phase(player) == "closed"


def test_an_edit_test_cycle_with_changing_commands_does_not_open_bash() -> None:
    player = Player()
    for number in range(10):
        player.batch(bash(f"{20 - number} failed", f"pytest -q -k t{number}"))
        player.batch(ok(f"a{number}.py", "edit_file"))
        assert phase(player, "bash") == "closed"


def test_the_ways_to_end_and_to_ask_never_open() -> None:
    player = Player()
    for number in range(6):
        for tool in ("finish", "ask_operator"):
            player.batch(fail(f"{number}", tool), ok(f"{number}", "glob"))
    player.feed(e.BreakerSet(tool="finish", open=True))
    assert player.state.open_tools() == frozenset()
    assert player.state.permit("finish", {}).allowed


@pytest.mark.parametrize("name", PRESETS)
def test_the_operator_opens_and_closes_by_hand_under_every_policy(name: str) -> None:
    player = Player(PRESETS[name])
    player.feed(e.BreakerSet(tool="bash", open=True))
    for _ in range(5):
        player.batch(ok(f"{player.iteration}", "glob"))
    assert player.state.open_tools() == {"bash"}
    assert player.state.permit("bash", {}).refusal == "breaker"
    player.start("another task")
    assert player.state.open_tools() == {"bash"}
    player.feed(e.BreakerSet(tool="bash", open=False))
    assert player.state.open_tools() == frozenset()
    assert player.state.permit("bash", {}).allowed


def test_a_tripped_breaker_does_not_poison_the_next_run() -> None:
    player = Player()
    broken(player)
    player.start("another task")
    assert player.state.open_tools() == frozenset()
    assert player.state.breakers.states == {}


def test_closing_by_hand_starts_afresh() -> None:
    player = Player()
    broken(player)
    player.feed(e.BreakerSet(tool="grep", open=False))
    broken(player, 4)
    assert phase(player) == BreakerPhase.CLOSED.value


# --- joining ---------------------------------------------------------------------------------------------------


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
