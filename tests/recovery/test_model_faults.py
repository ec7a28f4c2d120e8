"""What is done about a failed model call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.player import Player, ok
from tui_agent.core import events
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.fault_plan import FaultPlan, backoff, plan
from tui_agent.core.recovery.model_faults import TRANSIENT, ModelFaults
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak

DOUBTFUL = {events.FaultKind.BAD_OUTPUT, events.FaultKind.UNKNOWN}
BAD_OUTPUT, OVERFLOW = events.FaultKind.BAD_OUTPUT, events.FaultKind.CONTEXT_OVERFLOW

TERMINAL = sorted(set(events.FaultKind) - TRANSIENT - {OVERFLOW})


def planned(
    kind: events.FaultKind, *, present: bool = False, retry_after: float | None = None, **facts: Any
) -> FaultPlan:
    """The plan for the first fault of an iteration."""
    fault = events.Fault(kind=kind, message="went wrong.", advice="Check it.", retry_after=retry_after)
    return plan(PRESETS["combined"], ModelFaults(), fault, operator_present=present, **facts)


def plans(player: Player, kind: events.FaultKind, *, most: int = 40, **facts: Any) -> list[FaultPlan]:
    """Plans for faults of one kind in a row, up to the one that does not try again by itself."""
    made = []
    while len(made) < most:
        made.append(player.fault(events.Fault(kind=kind, message="went wrong."), **facts))
        if made[-1].action not in {"retry", "fallback", "shrink"}:
            break
    return made


@pytest.mark.parametrize("kind", sorted(TRANSIENT - DOUBTFUL))
@pytest.mark.parametrize(("present", "end"), [(False, "degrade"), (True, "ask")])
def test_a_transient_fault_is_tried_then_the_fallbacks_in_order_then_it_asks_or_degrades(
    kind: events.FaultKind, present: bool, end: str
) -> None:
    player = Player(preset("combined", model_patience=0), present, fallbacks=("b", "c"))
    made = plans(player, kind)
    actions = [one.action for one in made]
    tries = actions.index("fallback")
    assert tries == PRESETS["combined"].model_tries - 1
    assert actions == [*(["retry"] * tries + ["fallback"]) * 2, *["retry"] * tries, end]
    assert [one.next_model for one in made if one.next_model] == ["b", "c"]
    assert made[-1].rule == f"model.{end}"
    assert player.level == ("escalate" if present else "degrade")
    assert player.iteration == 1, "a retry costs no iteration"


@pytest.mark.parametrize("kind", [events.FaultKind.CONNECTION, events.FaultKind.SERVER])
@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_a_server_that_is_away_is_waited_for_a_minute_in_all(kind: events.FaultKind, jitter: float) -> None:
    assert sum(one.delay for one in plans(Player(jitter=jitter), kind)) >= 60.0


def test_a_fallback_is_for_one_call_and_the_next_iteration_begins_with_the_first_model() -> None:
    player = Player(fallbacks=("b",))
    for _ in range(5):
        player.fault(events.Fault(kind=events.FaultKind.RATE_LIMIT, message="went wrong."))
    assert player.state.of(ModelFaults).used_fallbacks == ("b",)
    player.batch(ok())
    player.fault(events.Fault(kind=events.FaultKind.RATE_LIMIT, message="went wrong."))
    faults = player.state.of(ModelFaults)
    assert (faults.used_fallbacks, faults.tries, faults.total) == ((), 1, 6)


@pytest.mark.parametrize("kind", sorted(DOUBTFUL))
def test_bad_output_and_what_no_rule_knows_are_retried_twice(kind: events.FaultKind) -> None:
    assert [one.action for one in plans(Player(), kind)] == ["retry", "retry", "degrade"]
    with_fallback = plans(Player(fallbacks=("b",)), kind)
    assert [one.action for one in with_fallback] == [*["retry"] * 2, "fallback", *["retry"] * 2, "degrade"]


def test_an_overflow_is_shrunk_twice_and_then_degrades() -> None:
    assert [one.action for one in plans(Player(), OVERFLOW)] == ["shrink", "shrink", "degrade"]
    made = plans(Player(), OVERFLOW)[-1]
    assert "after it was shortened 2 times" in made.reason
    assert "went wrong." in made.reason


def test_an_overflow_that_nothing_can_shrink_is_never_sent_again() -> None:
    assert [one.action for one in plans(Player(), OVERFLOW, can_shrink=False)] == ["degrade"]


@pytest.mark.parametrize("kind", TERMINAL)
@pytest.mark.parametrize("name", PRESETS)
def test_a_fault_that_cannot_heal_ends_the_run_at_once_under_every_policy(
    name: str, kind: events.FaultKind
) -> None:
    fault = events.Fault(kind=kind, message="went wrong.", advice="Check the key.")
    for present in (False, True):
        player = Player(PRESETS[name], present)
        made = player.fault(fault)
        asks = present and name == "combined"
        assert (made.action, player.level) == (("ask", "escalate") if asks else ("stop", "stop"))
        assert player.state.strongest().rule == ("model.ask" if asks else "model.stop")
        assert "went wrong." in made.reason
        offered = asks and kind is events.FaultKind.USAGE_LIMIT
        # What the question offers is not said in it once more.
        assert ("Check the key." in player.state.strongest().reason) is not offered


@pytest.mark.parametrize("kind", [*TERMINAL, OVERFLOW])
def test_a_fault_that_trying_again_cannot_help_takes_the_fallback_of_its_kind_at_once(
    kind: events.FaultKind,
) -> None:
    for present in (False, True):
        made = planned(kind, present=present, fallbacks=("b",))
        assert (made.action, made.next_model, made.delay) == ("fallback", "b", 0.0)


def test_waits_double_up_to_the_cap_and_are_jittered_over_their_upper_half() -> None:
    policy = PRESETS["combined"]
    assert [backoff(policy, tries, 1.0) for tries in (1, 2, 3, 4, 7, 100)] == [1, 2, 4, 8, 60, 60]
    assert backoff(policy, 4, 0.0) == 4.0
    assert backoff(policy, 4, 0.25) == 5.0
    assert backoff(preset("combined", backoff_base=0.5, backoff_cap=3.0), 9, 1.0) == 3.0


@pytest.mark.parametrize(("asked", "delay"), [(None, 0.75), (0.1, 0.75), (20.0, 20.0), (300.0, 300.0)])
def test_retry_after_is_the_least_that_is_waited(asked: float | None, delay: float) -> None:
    assert planned(events.FaultKind.RATE_LIMIT, retry_after=asked).delay == delay


def test_a_provider_that_asks_for_too_long_a_wait_is_out_of_retries() -> None:
    made = planned(events.FaultKind.RATE_LIMIT, retry_after=3_600.0)
    assert made.action == "degrade"
    assert "3600 s" in made.reason
    for present in (False, True):
        made = planned(events.FaultKind.RATE_LIMIT, present=present, retry_after=3_600.0, fallbacks=("b",))
        assert made.action == "fallback"
    assert planned(events.FaultKind.RATE_LIMIT, present=True, retry_after=3_600.0).action == "ask"


OTHERS = {"forge": "stop", "gigi": "stop", "hpd": "stop", "funnelcanary": "next_iteration"}


@pytest.mark.parametrize("kind", sorted({*TRANSIENT, OVERFLOW}))
@pytest.mark.parametrize(("name", "action"), OTHERS.items(), ids=OTHERS)
def test_the_other_policies_do_not_retry(name: str, action: str, kind: events.FaultKind) -> None:
    made = Player(PRESETS[name], fallbacks=("b",)).fault(events.Fault(kind=kind, message="no"))
    assert (made.action, made.delay) == (action, 0.0)


LEVELS = {
    "retry": "continue",
    "fallback": "continue",
    "shrink": "continue",
    "next_iteration": "guide",
    "ask": "escalate",
    "degrade": "degrade",
    "stop": "stop",
}


@pytest.mark.parametrize(("action", "level"), LEVELS.items(), ids=LEVELS)
def test_what_is_done_is_the_verdict_with_a_reason(action: str, level: str) -> None:
    player = Player(operator_present=True)
    fault = events.Fault(kind=events.FaultKind.SERVER, message="broken.")
    player.feed(
        events.IterationStarted(iteration=1),
        events.ModelFaulted.model_validate(
            {"fault": fault, "iteration": 1, "action": action, "next_model": "b"}
        ),
    )
    verdict = player.state.strongest()
    assert (verdict.level.value, verdict.detector) == (level, "model")
    assert verdict.reason


def test_a_fault_that_ended_the_run_is_still_the_verdict_when_the_iteration_is_closed() -> None:
    player = Player()
    player.step({"model_fault": "auth"})
    assert isinstance(player.events[-1], events.IterationFinished)
    assert (player.level, player.state.strongest().detector) == ("stop", "model")


def test_faults_count_in_the_stall_and_in_neither_streak_nor_ring() -> None:
    player = Player(PRESETS["funnelcanary"])
    for _ in range(6):
        player.step({"model_fault": "server"})
    state = player.state
    assert (state.of(CognitiveState).stall, state.of(ErrorStreak).count, state.of(ErrorRing).filled) == (
        6,
        0,
        0,
    )
    assert state.of(CognitiveState).confidence == 0.0
    assert state.of(ModelFaults).in_row == 6


def test_faults_that_a_retry_heals_count_in_nothing() -> None:
    player = Player()
    plans(player, events.FaultKind.SERVER, most=4)
    player.batch(ok())
    assert (player.iteration, player.state.of(CognitiveState).stall, player.level) == (1, 0, "continue")
    assert player.state.of(ModelFaults).in_row == 0


def test_an_answer_about_the_model_unblocks_no_call_and_clears_no_counter() -> None:
    player = Player(operator_present=True)
    for _ in range(3):
        player.step({"batch": [{"tool": "bash", "input": {"command": "x"}, "ok": False, "error": "no"}]})
    player.answer("skip")
    player.step({"batch": [{"tool": "bash", "input": {"command": "y"}, "ok": False, "error": "no"}]})
    player.feed(
        events.EscalationRaised(id="m", question="auth", source="model"),
        events.EscalationAnswered(id="m", choice="retry"),
    )
    assert player.state.of(ErrorStreak).count == 1
    assert not player.permit("bash", {"command": "x"}).allowed
