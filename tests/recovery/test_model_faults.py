"""What is done about a failed model call (RECOVERY.md, 6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.cases import Player
from tui_agent import events as e
from tui_agent.recovery.engine import RecoveryState
from tui_agent.recovery.model_faults import TRANSIENT, FaultPlan, backoff, plan
from tui_agent.recovery.policy import PRESETS, preset

TERMINAL = sorted(set(e.FaultKind) - TRANSIENT - {e.FaultKind.CONTEXT_OVERFLOW, e.FaultKind.BAD_OUTPUT})


def planned(
    kind: e.FaultKind, *, present: bool = False, retry_after: float | None = None, **facts: Any
) -> FaultPlan:
    state = RecoveryState(operator_present=present)
    fault = e.Fault(kind=kind, message="went wrong.", advice="Mend it.", retry_after=retry_after)
    return plan(state, fault, **{"tries": 1, "jitter": 0.5, **facts})


@pytest.mark.parametrize("kind", sorted(TRANSIENT))
def test_a_transient_fault_is_tried_five_times_then_the_fallbacks_then_degrades(kind: e.FaultKind) -> None:
    actions = [planned(kind, tries=tries, fallbacks=("b", "c")).action for tries in range(1, 6)]
    assert actions == ["retry"] * 4 + ["fallback"]
    assert planned(kind, tries=5, fallbacks=("b", "c")).next_model == "b"
    assert planned(kind, tries=5).action == "degrade"


def test_bad_output_is_retried_twice() -> None:
    kind = e.FaultKind.BAD_OUTPUT
    assert [planned(kind, tries=tries).action for tries in (1, 2, 3)] == ["retry", "retry", "degrade"]
    assert planned(kind, tries=3, fallbacks=["b"]).action == "fallback"


def test_an_overflow_is_shrunk_twice_and_then_degrades() -> None:
    kind = e.FaultKind.CONTEXT_OVERFLOW
    assert [planned(kind, shrinks=shrinks).action for shrinks in (0, 1, 2)] == ["shrink", "shrink", "degrade"]


@pytest.mark.parametrize("kind", TERMINAL)
def test_a_terminal_fault_stops_at_once_or_asks_and_says_what_to_do(kind: e.FaultKind) -> None:
    for present, action in ((False, "stop"), (True, "ask")):
        made = planned(kind, present=present, fallbacks=["b"])
        assert made.action == action
        assert "Mend it." in made.reason


def test_waits_double_up_to_the_cap_and_are_jittered_over_their_whole_length() -> None:
    policy = PRESETS["combined"]
    assert [backoff(policy, tries, 1.0) for tries in (1, 2, 3, 4, 7, 100)] == [1, 2, 4, 8, 60, 60]
    assert backoff(policy, 4, 0.0) == 0.0
    assert backoff(policy, 4, 0.25) == 2.0
    assert backoff(preset("combined", backoff_base=0.5, backoff_cap=3.0), 9, 1.0) == 3.0


@pytest.mark.parametrize(("asked", "delay"), [(None, 0.5), (0.1, 0.5), (20.0, 20.0), (300.0, 300.0)])
def test_retry_after_is_the_least_that_is_waited(asked: float | None, delay: float) -> None:
    assert planned(e.FaultKind.RATE_LIMIT, retry_after=asked).delay == delay


def test_a_provider_that_asks_for_too_long_a_wait_is_out_of_retries() -> None:
    made = planned(e.FaultKind.RATE_LIMIT, retry_after=3_600.0)
    assert made.action == "degrade"
    assert "3600 s" in made.reason
    assert planned(e.FaultKind.RATE_LIMIT, retry_after=3_600.0, fallbacks=["b"]).action == "fallback"


@pytest.mark.parametrize("kind", list(e.FaultKind))
def test_the_other_policies_do_not_retry(kind: e.FaultKind) -> None:
    for name, action in (
        ("forge", "stop"),
        ("gigi", "stop"),
        ("hpd", "stop"),
        ("funnelcanary", "next_iteration"),
    ):
        made = plan(RecoveryState(policy=PRESETS[name]), e.Fault(kind=kind, message="no"), tries=1)
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
    fault = e.Fault(kind=e.FaultKind.SERVER, message="broken.")
    player.feed(
        e.IterationStarted(iteration=1),
        e.ModelFaulted.model_validate({"fault": fault, "iteration": 1, "action": action, "next_model": "b"}),
    )
    verdict = player.state.strongest()
    assert (verdict.level.value, verdict.detector) == (level, "model")
    assert verdict.reason


def test_a_fault_that_ended_the_run_is_still_the_verdict_when_the_iteration_is_closed() -> None:
    player = Player()
    player.step({"model_fault": "auth"})
    assert isinstance(player.events[-1], e.IterationFinished)
    assert (player.level, player.state.strongest().detector) == ("stop", "model")


def test_faults_touch_neither_streak_nor_stall_nor_ring() -> None:
    player = Player(PRESETS["funnelcanary"])
    for _ in range(6):
        player.step({"model_fault": "server"})
        assert player.level == "guide"
    state = player.state
    assert (state.streak.count, state.cognition.stall, state.ring.filled) == (0, 0, 0)
    assert state.cognition.confidence == 0.0
    assert state.faults.in_row == 6


def test_an_answer_about_the_model_unblocks_no_call_and_clears_no_counter() -> None:
    player = Player(operator_present=True)
    for _ in range(3):
        player.step({"batch": [{"tool": "bash", "input": {"command": "x"}, "ok": False, "error": "no"}]})
    player.answer("skip")
    player.step({"batch": [{"tool": "bash", "input": {"command": "y"}, "ok": False, "error": "no"}]})
    player.feed(
        e.EscalationRaised(id="m", question="auth", source="model"),
        e.EscalationAnswered(id="m", choice="retry"),
    )
    assert player.state.streak.count == 1
    assert not player.state.permit("bash", {"command": "x"}).allowed
