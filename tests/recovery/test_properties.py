"""What holds for any sequence of events, sensible or not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recovery.player import TOOLS, Player
from tui_agent.core import partial_answer
from tui_agent.core.decision.decide import decide
from tui_agent.core.events import (
    BreakerSet,
    EscalationAnswered,
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    IterationFinished,
    IterationStarted,
    Level,
    ModelFaulted,
    Notice,
    OperatorSpoke,
    ReplyDelta,
    ReplyFinished,
    ReplyRejected,
    RunStarted,
    ToolCall,
    ToolCancelled,
    ToolFailed,
    ToolProgress,
    ToolRefused,
    ToolSucceeded,
    parse_event,
)
from tui_agent.core.fold import apply
from tui_agent.core.names import RING_SLOTS
from tui_agent.core.recovery import folding, note
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.engine import RecoveryState
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.recovery.stuck import StuckPatterns
from tui_agent.core.state import RunState

POLICIES = st.sampled_from(sorted(PRESETS)).map(PRESETS.__getitem__)

TOOL = st.sampled_from(["read_file", "edit_file", "bash", "fetch", ""])
INPUT = st.sampled_from([{}, {"path": "a"}, {"path": "b"}, {"command": "make", "description": "x"}])
TEXT = st.sampled_from(["", "no", "no at 12:00:11", "5 failed", "Error: \ud7ff\x1b[2J", "x" * 3_000])

CALLS = st.fixed_dictionaries(
    {"tool": TOOL, "input": INPUT, "ok": st.booleans(), "error": TEXT, "content": TEXT},
    optional={"denied": st.just(True), "cancelled": st.just(True), "transient": st.just(True)},
)

STEPS = st.one_of(
    st.lists(CALLS, max_size=4).map(lambda calls: {"batch": calls}),
    TEXT.map(lambda text: {"text": text}),
    TOOL.map(lambda tool: {"invalid": {"tool": tool, "raw": "{"}}),
    TOOL.map(lambda tool: {"unknown": {"tool": tool, "input": {}}}),
    st.sampled_from(list(FaultKind)).map(lambda kind: {"model_fault": kind.value}),
    st.just({"operator": "go on"}),
    st.just({"new_run": "again"}),
)

FAILURES = st.builds(
    Failure, kind=st.sampled_from(list(FailureKind)), message=TEXT, tool=TOOL, transient=st.booleans()
)
RESULT = {"call_id": st.just("c"), "tool": TOOL, "input": INPUT, "index": st.integers(-2, 5), "content": TEXT}

ANY_EVENT = st.one_of(
    st.builds(
        RunStarted,
        run=st.just(1),
        task=TEXT,
        policy=st.sampled_from([*PRESETS, "of tomorrow"]),
        policy_settings=st.sampled_from([{}, {"what": 1}, {"attempts_limit": 1, "streak_limit": 1}]),
        operator_present=st.booleans(),
    ),
    st.builds(IterationStarted, iteration=st.integers(0, 9)),
    st.builds(IterationFinished, iteration=st.integers(0, 9), cancelled=st.booleans()),
    st.builds(ReplyFinished, text=TEXT, calls=st.sampled_from([(), (ToolCall(id="1", name="t"),)])),
    st.builds(ReplyRejected, failure=FAILURES),
    st.builds(ToolSucceeded, **RESULT, changed=st.sampled_from([(), ("a",)])),
    st.builds(ToolFailed, **RESULT, failure=FAILURES),
    st.builds(ToolRefused, **RESULT, refusal=st.sampled_from(["denied", "blocked", "withheld", "breaker"])),
    st.builds(ToolCancelled, **RESULT),
    st.builds(
        ModelFaulted,
        fault=st.builds(Fault, kind=st.sampled_from(list(FaultKind)), message=TEXT),
        action=st.sampled_from(["retry", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask"]),
    ),
    st.builds(
        EscalationRaised,
        id=st.sampled_from(["1", "2"]),
        question=TEXT,
        source=st.sampled_from(["attempts", "streak", "ask_operator", "model"]),
        tool=TOOL,
        input=INPUT,
    ),
    st.builds(
        EscalationAnswered,
        id=st.sampled_from(["1", "2"]),
        choice=st.sampled_from(["answer", "retry", "edit", "skip", "partial", "stop", "continue"]),
        tool=TOOL,
        input=st.one_of(st.none(), INPUT),
        by=st.sampled_from(["operator", "policy"]),
    ),
    st.builds(OperatorSpoke, text=TEXT),
    st.builds(BreakerSet, tool=TOOL, open=st.booleans()),
    st.just(ReplyDelta(text="x")),
)


@given(st.lists(ANY_EVENT, max_size=60))
def test_any_sequence_of_events_gives_a_state_that_can_be_shown_and_judged(events: list[Event]) -> None:
    whole = RunState()
    for event in events:
        whole = apply(whole, event)
        state = whole.recovery
        assert len(state.of(ErrorRing).slots) == RING_SLOTS
        assert 0 <= state.of(ErrorRing).identical <= state.of(ErrorRing).filled <= RING_SLOTS
        assert 0.0 <= state.of(CognitiveState).confidence <= 1.0
        assert len(state.of(StuckPatterns).window) <= state.policy.stuck_window
        assert state.strongest().level.rank == max((one.level.rank for one in state.last_verdicts), default=0)
        text = note.compose(state, whole.answer).text
        assert text is None or 0 < len(text) < note.LONGEST_NOTE + 100
        assert partial_answer.compose("x", whole)
        assert decide(whole) == decide(whole)
        for tool in ("read_file", "bash", "finish"):
            key = state.key(tool, {"path": "a"})
            state.permit(tool, key, {tool: 1, key: 1})
        assert "finish" not in state.open_tools()


@given(POLICIES, st.lists(STEPS, max_size=30), st.booleans())
def test_the_state_is_the_same_whether_folded_live_or_again_from_the_journal(
    policy: Any, steps: list[dict[str, Any]], operator: bool
) -> None:
    player = Player(policy, operator)
    for step in steps:
        player.step(step)
    again = RecoveryState()
    for event in player.events:
        again = folding.apply(again, parse_event(event.model_dump_json()))
    assert again == player.state


@given(st.sampled_from(["forge", "gigi", "funnelcanary", "hpd"]), st.lists(STEPS, max_size=40))
def test_policies_without_a_block_let_every_call_through(name: str, steps: list[dict[str, Any]]) -> None:
    player = Player(PRESETS[name])
    for step in steps:
        player.step(step)
        for tool in TOOLS:
            assert player.state.permit(tool, player.state.key(tool, {"path": "a"})).allowed
        assert player.state.open_tools() == frozenset()


FAILING = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["read_file", "bash", "grep"]),
        "input": INPUT,
        "ok": st.just(False),
        "error": TEXT,
    }
)


@settings(max_examples=30, deadline=None)
@given(st.lists(FAILING, min_size=6, max_size=12), TEXT, st.booleans())
def test_a_run_in_which_one_error_comes_back_climbs_the_ladder_and_never_comes_down(
    calls: list[dict[str, Any]], error: str, operator: bool
) -> None:
    player = Player(operator_present=operator)
    ranks = []
    for call in calls:
        player.batch(call | {"tool": "read_file", "error": error})
        ranks.append(player.state.strongest().level.rank)
        if player.level in {"escalate", "degrade", "stop"}:
            break
    assert ranks == sorted(ranks)
    assert ranks[0] >= Level.GUIDE.rank
    assert len(ranks) <= 4, "at the latest the fourth failing iteration in a row asks or ends"


@settings(max_examples=30, deadline=None)
@given(FAILING, st.integers(5, 30))
def test_an_operator_who_always_says_retry_is_asked_before_every_further_try(
    call: dict[str, Any], turns: int
) -> None:
    player = Player(preset("combined", breaker=False), operator_present=True)
    levels = []
    for _ in range(turns):
        player.batch(call)
        levels.append(player.level)
        if player.level == "escalate":
            player.answer("retry")
    assert levels == ["guide", "guide", *["escalate"] * (turns - 2)]
    assert player.state.of(AttemptLedger).highest == turns


@pytest.mark.parametrize(
    "event", [ReplyDelta(text="x"), ToolProgress(call_id="1", text="x"), Notice(text="x")]
)
def test_events_that_do_not_concern_recovery_give_the_very_same_state(event: Event) -> None:
    state = Player().state
    assert folding.apply(state, event) is state


def test_a_result_that_is_cancelled_by_its_kind_is_no_failure() -> None:
    player = Player()
    player.batch(
        {"tool": "bash", "input": {}, "ok": False, "error": "stopped", "kind": FailureKind.CANCELLED}
    )
    assert (player.level, player.state.of(ErrorRing).filled, player.state.of(ErrorStreak).count) == (
        "continue",
        0,
        0,
    )
