"""Stuck patterns: what is a loop, what is work, and the rungs between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recovery.player import Player
from tui_agent.core import events
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.stuck import StuckPatterns

ENDS = {"escalate", "degrade", "stop"}


def call(tool: str = "read_file", content: str = "text", /, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "input": arguments or {"path": "a"}, "ok": True, "content": content}


def levels(player: Player, *calls: dict[str, Any]) -> list[str]:
    shown = []
    for one in calls:
        player.batch(one)
        shown.append(player.level)
    return shown


@pytest.mark.parametrize(("operator", "end"), [(True, "escalate"), (False, "stop")])
def test_the_ladder_of_a_repeated_success(operator: bool, end: str) -> None:
    player = Player(operator_present=operator)
    assert levels(player, *[call()] * 6) == ["continue"] * 3 + ["guide", "guide", end]
    assert player.refused == ["withheld"]
    assert player.state.strongest().detector == "stuck"
    assert player.subject == ("read_file", {"path": "a"})


def test_a_withheld_call_brings_the_earlier_result_and_the_remark_that_nothing_has_changed() -> None:
    player = Player()
    levels(player, *[call("read_file", "the same text")] * 4)
    permit = player.permit("read_file", {"path": "a"})
    assert (permit.refusal, permit.earlier_result) == ("withheld", "the same text")
    assert "nothing has changed" in permit.reason
    assert player.permit("read_file", {"path": "b"}).allowed


def test_a_withheld_call_touches_neither_ring_nor_attempts() -> None:
    player = Player()
    player.batch({**call(path="x"), "ok": False, "error": "no"})
    levels(player, *[call()] * 3)
    before = (player.state.of(ErrorRing), player.state.of(AttemptLedger).entries)
    levels(player, *[call()] * 2)
    assert player.refused == ["withheld"]
    assert (player.state.of(ErrorRing).slots, player.state.of(AttemptLedger).entries) == (
        before[0].slots,
        before[1],
    )


def test_an_alternation_is_seen_at_the_third_round_and_ends_with_the_fifth() -> None:
    a, b = call(path="a"), call("read_file", "other text", path="b")
    shown = levels(Player(), *[a, b] * 5)
    assert shown[:6] == ["continue"] * 5 + ["guide"]
    assert not ENDS & set(shown[:9])
    assert shown[9] == "stop"


def test_the_same_call_twice_in_a_reply_counts_once() -> None:
    player = Player()
    for _ in range(3):
        player.batch(call(), call(), call())
    assert player.level == "continue"
    player.batch(call(), call())
    assert player.level == "guide"


def test_volatile_text_does_not_hide_a_loop() -> None:
    player = Player()
    calls = [call("bash", f"12 passed in 0.{number}s", command="pytest -q") for number in range(10, 14)]
    assert levels(player, *calls)[-1] == "guide"


def test_messages_without_a_call_are_a_monologue_at_the_third() -> None:
    player = Player(operator_present=True)
    shown = []
    for number in range(5):
        player.text(f"I am thinking {number}")
        shown.append(player.level)
    assert shown == ["continue", "continue", "guide", "guide", "guide"]


def test_overflow_without_effect_is_a_pattern() -> None:
    player = Player()
    fault = events.Fault(kind=events.FaultKind.CONTEXT_OVERFLOW, message="too long")
    for _ in range(2):
        player.fault(fault)
    assert player.state.of(StuckPatterns).moving is not None
    assert player.state.of(StuckPatterns).moving.name == "overflow"
    player.feed(events.ReplyFinished(calls=(events.ToolCall(id="1", name="glob"),)))
    player.fault(fault)
    assert player.state.of(StuckPatterns).overflows == 1


LOOK = call("list_dir", "a b c", path=".")
NOTHING = call("grep", "no matches", pattern="x")

WORK: dict[str, list[dict[str, Any]]] = {
    "re-reading after an edit": [
        step
        for number in range(8)
        for step in (call(), call("edit_file", "done", path="a", old=str(number), new=str(number + 1)))
    ],
    "re-running passing tests after edits": [
        step
        for number in range(8)
        for step in (
            call("write_file", "done", path=f"{number}.py", content="x"),
            call("bash", "12 passed in 0.1s", command="pytest -q"),
        )
    ],
    "paging": [call("read_file", f"page {number}", path="a", offset=number) for number in range(30)],
    "polling": [call("bash", f"{number} lines", command="wc -l out") for number in range(30)],
    "looking again between new things": [
        step for number in range(8) for step in (LOOK, call("read_file", f"text {number}", path=f"f{number}"))
    ],
    "searching for many things that are not there": [
        call("grep", "no matches", pattern=f"p{number}") for number in range(30)
    ],
    "commands that say nothing": [
        step
        for number in range(8)
        for step in (
            call("bash", "(no output)", command=f"sed -i s/a/{number}/ f"),
            call("bash", "(no output)", command="make -s"),
        )
    ],
}


@pytest.mark.parametrize("calls", WORK.values(), ids=WORK)
@pytest.mark.parametrize("operator", [True, False])
def test_work_is_never_taken_for_a_loop(operator: bool, calls: list[dict[str, Any]]) -> None:
    player = Player(operator_present=operator)
    assert set(levels(player, *calls)) == {"continue"}


def test_something_new_lifts_the_withholding() -> None:
    player = Player()
    levels(player, *[call()] * 5)
    assert player.refused == ["withheld"]
    player.batch(call("glob", "a b", pattern="*"))
    assert player.level == "continue"
    assert player.permit("read_file", {"path": "a"}).allowed


def test_something_new_that_only_repeats_a_known_outcome_lifts_nothing() -> None:
    player = Player()
    levels(player, *[call()] * 4)
    player.batch(call(path="b"))
    assert player.permit("read_file", {"path": "a"}).refusal == "withheld"


@pytest.mark.parametrize(
    "event",
    [
        events.OperatorSpoke(text="go on"),
        events.EscalationAnswered(id="x", choice="answer", text="go on"),
    ],
    ids=lambda event: event.type,
)
def test_an_operators_word_starts_afresh(event: events.Event) -> None:
    player = Player(operator_present=True)
    levels(player, *[call()] * 4)
    player.feed(event)
    assert player.permit("read_file", {"path": "a"}).allowed
    assert levels(player, *[call()] * 3) == ["continue"] * 3


def test_the_policys_own_continue_starts_nothing_afresh() -> None:
    player = Player(operator_present=True)
    levels(player, *[call()] * 4)
    player.answer("continue", by="policy")
    assert not player.permit("read_file", {"path": "a"}).allowed


def test_infrastructure_faults_are_left_to_the_breaker() -> None:
    player = Player()
    gone = {**call("mcp_search", query="x"), "ok": False, "error": "server is gone", "transient": True}
    for number in range(5):
        player.batch(gone, call("read_file", f"{number}", path=f"{number}"))
        assert player.refused == []
    assert player.state.open_tools() == {"mcp_search"}


@pytest.mark.parametrize("name", ["forge", "gigi", "funnelcanary", "hpd"])
def test_other_policies_withhold_nothing(name: str) -> None:
    player = Player(PRESETS[name])
    assert set(levels(player, *[call()] * 8)) == {"continue"}
    assert player.refused == []


# --- no run that makes progress is stopped -----------------------------------------------------------------------

FILES = st.sampled_from(["a", "b", "c"])
NOISE = st.lists(
    st.one_of(
        FILES.map(lambda path: call(path=path)),
        st.sampled_from(
            [LOOK, NOTHING, call("bash", "ok", command="make"), call("bash", "", command="true")]
        ),
    ),
    max_size=3,
)
STEPS_FORWARD = st.sampled_from(["edit", "poll", "new"])


@given(st.lists(st.tuples(NOISE, STEPS_FORWARD), min_size=1, max_size=25), st.booleans(), st.booleans())
def test_a_run_that_keeps_making_progress_is_neither_stopped_nor_held_up(
    script: list[tuple[list[dict[str, Any]], str]], operator: bool, in_one_reply: bool
) -> None:
    player = Player(operator_present=operator)
    for number, (noise, forward) in enumerate(script):
        step = {
            "edit": call("edit_file", "done", path="a", old=str(number), new=str(number + 1)),
            "poll": call("bash", f"{number} of {len(script)} done", command="status"),
            "new": call("read_file", f"text {number}", path=f"new{number}"),
        }[forward]
        if in_one_reply:
            player.batch(*noise, step)
            assert player.level not in ENDS
        else:
            for one in (*noise, step):
                player.batch(one)
                assert player.level not in ENDS
        assert player.refused == []


@settings(max_examples=25, deadline=None)
@given(st.lists(FILES, min_size=40, max_size=60), st.booleans())
def test_a_run_that_only_turns_in_circles_comes_to_an_end(paths: list[str], operator: bool) -> None:
    player = Player(operator_present=operator)
    assert ENDS & set(levels(player, *(call(path=path) for path in paths)))


SPELLINGS = [
    (
        "grep",
        [{"pattern": word, "path": "src"} for word in ("color", "colour", "Color", "COLOUR", "colou?r")],
        True,
    ),
    (
        "bash",
        [{"command": f"grep -rn {word} src"} for word in ("retry", "retries", "RETRY", "re_try", "retry=")],
        True,
    ),
    ("grep", [{"pattern": word} for word in ("color", "price", "order", "total", "customer")], False),
    (
        "bash",
        [{"command": f"grep -rn {word} src"} for word in ("color", "price", "order", "total", "user")],
        False,
    ),
]


@pytest.mark.parametrize(("tool", "calls", "told"), SPELLINGS)
def test_one_word_in_many_spellings_is_a_loop_and_many_words_are_none(
    tool: str, calls: list[dict[str, str]], told: bool
) -> None:
    player = Player()
    for arguments in calls:
        player.batch({"tool": tool, "input": arguments, "ok": True, "content": "No matches."})
    assert (player.level == "guide") is told
