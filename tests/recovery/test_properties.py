"""What holds for any sequence of events, sensible or not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recovery.cases import TOOLS, Player
from tui_agent import events as e
from tui_agent.recovery import note, partial_answer
from tui_agent.recovery.engine import RecoveryState
from tui_agent.recovery.policy import PRESETS, preset
from tui_agent.recovery.ring import SLOTS

POLICIES = st.sampled_from(sorted(PRESETS)).map(PRESETS.__getitem__)

TOOL = st.sampled_from(["read_file", "edit_file", "bash", "fly", ""])
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
    st.sampled_from(list(e.FaultKind)).map(lambda kind: {"model_fault": kind.value}),
    st.just({"operator": "go on"}),
    st.just({"new_run": "again"}),
)

FAILURES = st.builds(
    e.Failure, kind=st.sampled_from(list(e.FailureKind)), message=TEXT, tool=TOOL, transient=st.booleans()
)
RESULT = {"call_id": st.just("c"), "tool": TOOL, "input": INPUT, "index": st.integers(-2, 5), "content": TEXT}

ANY_EVENT = st.one_of(
    st.builds(
        e.RunStarted,
        run=st.just(1),
        task=TEXT,
        policy=st.sampled_from([*PRESETS, "of tomorrow"]),
        policy_settings=st.sampled_from([{}, {"what": 1}, {"attempts_limit": 1, "streak_limit": 1}]),
        operator_present=st.booleans(),
    ),
    st.builds(e.IterationStarted, iteration=st.integers(0, 9)),
    st.builds(e.IterationFinished, iteration=st.integers(0, 9), cancelled=st.booleans()),
    st.builds(e.ReplyFinished, text=TEXT, calls=st.sampled_from([(), (e.ToolCall(id="1", name="t"),)])),
    st.builds(e.ReplyRejected, failure=FAILURES),
    st.builds(e.ToolSucceeded, **RESULT, changed=st.sampled_from([(), ("a",)])),
    st.builds(e.ToolFailed, **RESULT, failure=FAILURES),
    st.builds(e.ToolRefused, **RESULT, refusal=st.sampled_from(["denied", "blocked", "withheld", "breaker"])),
    st.builds(e.ToolCancelled, **RESULT),
    st.builds(
        e.ModelFaulted,
        fault=st.builds(e.Fault, kind=st.sampled_from(list(e.FaultKind)), message=TEXT),
        action=st.sampled_from(["retry", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask"]),
    ),
    st.builds(
        e.EscalationRaised,
        id=st.sampled_from(["1", "2"]),
        question=TEXT,
        source=st.sampled_from(["attempts", "streak", "ask_operator", "model"]),
        tool=TOOL,
        input=INPUT,
    ),
    st.builds(
        e.EscalationAnswered,
        id=st.sampled_from(["1", "2"]),
        choice=st.sampled_from(["answer", "retry", "edit", "skip", "partial", "stop", "continue"]),
        tool=TOOL,
        input=st.one_of(st.none(), INPUT),
        by=st.sampled_from(["operator", "policy"]),
    ),
    st.builds(e.OperatorSpoke, text=TEXT),
    st.builds(e.BreakerSet, tool=TOOL, open=st.booleans()),
    st.just(e.ReplyDelta(text="x")),
)


@settings(max_examples=250, deadline=None)
@given(st.lists(ANY_EVENT, max_size=60))
def test_any_sequence_of_events_gives_a_state_that_can_be_shown_and_told(events: list[e.Event]) -> None:
    state = RecoveryState()
    for event in events:
        state = state.apply(event)
        assert len(state.ring.slots) == SLOTS
        assert 0 <= state.ring.identical <= state.ring.filled <= SLOTS
        assert 0.0 <= state.cognition.confidence <= 1.0
        assert len(state.stuck.window) <= state.policy.stuck_window
        assert state.strongest().level.rank == max((one.level.rank for one in state.verdicts()), default=0)
        text = note.compose(state)
        assert text is None or 0 < len(text) < 45_000
        assert partial_answer.compose("x", state, 1, "y")
        for tool in ("read_file", "bash", "finish"):
            state.permit(tool, {"path": "a"}, [(tool, {"path": "a"})])
        assert "finish" not in state.open_tools()


@settings(max_examples=150, deadline=None)
@given(POLICIES, st.lists(STEPS, max_size=30), st.booleans())
def test_the_state_is_the_same_whether_folded_live_or_again_from_the_journal(
    policy: Any, steps: list[dict[str, Any]], operator: bool
) -> None:
    player = Player(policy, operator)
    for step in steps:
        player.step(step)
    again = RecoveryState()
    for event in player.events:
        again = again.apply(e.parse_event(event.model_dump_json()))
    assert again == player.state


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["forge", "gigi", "funnelcanary", "hpd"]), st.lists(STEPS, max_size=40))
def test_policies_without_a_block_let_every_call_through(name: str, steps: list[dict[str, Any]]) -> None:
    player = Player(PRESETS[name])
    for step in steps:
        player.step(step)
        for tool in TOOLS:
            assert player.state.permit(tool, {"path": "a"}).allowed
        assert player.state.open_tools() == frozenset()


FAILING = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["read_file", "bash", "grep"]),
        "input": INPUT,
        "ok": st.just(False),
        "error": TEXT,
    }
)


@settings(max_examples=150, deadline=None)
@given(st.lists(FAILING, min_size=6, max_size=12), st.booleans())
def test_a_run_in_which_nothing_succeeds_climbs_the_ladder_and_never_comes_down(
    calls: list[dict[str, Any]], operator: bool
) -> None:
    player = Player(operator_present=operator)
    ranks = []
    for call in calls:
        player.batch(call)
        ranks.append(player.state.strongest().level.rank)
        if player.level in {"escalate", "degrade", "stop"}:
            break
    assert ranks == sorted(ranks)
    assert ranks[0] >= e.Level.GUIDE.rank
    assert len(ranks) <= 4, "at the latest the fourth failing iteration in a row asks or ends"


@settings(max_examples=100, deadline=None)
@given(st.lists(FAILING, min_size=1, max_size=3), st.integers(5, 30))
def test_an_operator_who_always_says_retry_is_not_asked_for_ever(
    calls: list[dict[str, Any]], turns: int
) -> None:
    player = Player(preset("combined", breaker=False), operator_present=True)
    for _ in range(turns * 3):
        player.batch(calls[0])
        if player.level == "escalate":
            player.answer("retry")
        if player.level == "stop":
            break
    assert player.level == "stop"
    assert player.state.attempts.highest == 5


@pytest.mark.parametrize(
    "event", [e.ReplyDelta(text="x"), e.ToolProgress(call_id="1", text="x"), e.Notice(text="x")]
)
def test_events_that_do_not_concern_recovery_give_the_very_same_state(event: e.Event) -> None:
    state = Player().state
    assert state.apply(event) is state


def test_a_result_that_is_cancelled_by_its_kind_is_no_failure() -> None:
    player = Player()
    player.batch(
        {"tool": "bash", "input": {}, "ok": False, "error": "stopped", "kind": e.FailureKind.CANCELLED}
    )
    assert (player.level, player.state.ring.filled, player.state.streak.count) == ("continue", 0, 0)
