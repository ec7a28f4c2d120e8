"""Rules of other agents, as their sources say them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.bench.harness import CASES, journal, ran
from tui_agent.core import events
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.lab.bench.peers import DoomLoop, GeminiCli, OpenHands
from tui_agent.lab.bench.policies import CONTESTANTS

LS = ("bash", {"command": "ls"})


def reply(*names: str, text: str = "") -> events.ReplyFinished:
    calls = tuple(events.ToolCall(id=str(place), name=name) for place, name in enumerate(names))
    return events.ReplyFinished(text=text, calls=calls)


def result(content: str) -> events.ToolSucceeded:
    return events.ToolSucceeded(call_id="0", tool="t", content=content)


def wrong(content: str) -> events.ToolFailed:
    failure = events.Failure(kind=events.FailureKind.UNKNOWN_TOOL, message=content)
    return events.ToolFailed(call_id="0", tool="t", content=content, failure=failure)


def test_opencode_asks_at_the_third_equal_call_within_one_reply_only() -> None:
    within, over = DoomLoop(within_reply=True), DoomLoop(within_reply=False)
    said = []
    for rule in (within, over):
        for _ in range(3):
            rule.heard(reply("bash"))
            last = rule.before_call(*LS)
        said.append(last)
    assert said == ["goes on", "ask"]
    within.heard(reply("bash", "bash", "bash"))
    assert [within.before_call(*LS) for _ in range(3)] == ["goes on", "goes on", "ask"]


@pytest.mark.parametrize(
    ("steps", "does"),
    [
        ([(reply("a"), result("x"))] * 4, "stop"),
        ([(reply("a"), result("x"))] * 3, "goes on"),
        ([(reply("a", text=f"thought {n}"), result("x")) for n in range(6)], "goes on"),
        ([(reply("a"), wrong("no such tool"))] * 3, "refuse"),
        ([(reply("a"), result("x")), (reply("b"), result("y"))] * 3, "stop"),
        ([(reply("a"), result("x")), (reply("b"), result("y"))] * 2, "goes on"),
        ([(reply(text="hm"), events.Interrupted())] * 3, "stop"),
    ],
)
def test_openhands_sees_equal_pairs_errors_alternation_and_monologue(
    steps: list[tuple[events.Event, events.Event]], does: str
) -> None:
    rule = OpenHands()
    rule.heard(events.OperatorSpoke(text="go"))
    last = "goes on"
    for pair in steps:
        for event in pair:
            rule.heard(event)
        last = rule.before_request()
    assert last == does


def test_openhands_ends_the_run_at_the_error_after_the_one_it_spoke_about() -> None:
    rule = OpenHands()
    said = []
    for _ in range(4):
        rule.heard(reply("a"))
        rule.heard(wrong("no such tool"))
        said.append(rule.before_request())
    assert said == ["goes on", "goes on", "refuse", "stop"]


def test_gemini_tells_the_model_at_five_equal_calls_and_ends_the_run_at_the_next_five() -> None:
    rule = GeminiCli()
    said = [rule.before_call(*LS) for _ in range(10)]
    assert [place for place, one in enumerate(said, 1) if one != "goes on"] == [5, 10]
    assert (said[4], said[9]) == ("refuse", "stop")


async def test_a_rule_that_ends_a_run_ends_it_before_the_call(tmp_path: Path) -> None:
    row = await ran(tmp_path, "sampling/seven", "doom-loop")
    assert (row.outcome, row.tool_calls) == ("interrupted", 3)
    row = await ran(tmp_path, "sampling/seven", "openhands")
    assert (row.outcome, row.tool_calls) == ("interrupted", 4)


async def test_gemini_goes_on_after_it_told_the_model(tmp_path: Path) -> None:
    row = await ran(tmp_path, "sampling/seven", "gemini-cli")
    assert row.tool_errors == 1


async def test_an_operator_lets_a_doom_loop_go_on_or_rejects_it(tmp_path: Path) -> None:
    badly = await ran(tmp_path, "sampling/five", "doom-loop", operator="badly")
    well = await ran(tmp_path, "sampling/five", "doom-loop", operator="well")
    assert (badly.solved, badly.questions) == (True, 3)
    assert (well.solved, well.questions) == (True, 1)
    loop = await ran(tmp_path, "same-call/log", "doom-loop", "ignores-notes", "well", seed=3)
    said = [event["content"] for event in journal(tmp_path) if event["type"] == "tool_failed"]
    assert loop.questions == len(said) > 0
    assert "The operator rejected this call, and said: It is in error.log." in said[0]


def test_each_contestant_but_the_presets_changes_something_of_the_policy() -> None:
    for contestant in CONTESTANTS.values():
        made = preset(contestant.policy, **contestant.recovery)
        assert (made == PRESETS[contestant.policy]) is (not contestant.recovery), contestant.name


def test_nothing_judges_in_none() -> None:
    none = preset("combined", **CONTESTANTS["none"].recovery)
    assert none.ladder == frozenset()
    assert none.note == "none"


async def test_nobody_is_told_anything_where_there_is_no_recovery(tmp_path: Path) -> None:
    for case in ("wrong-path/typo", "broken-form/cut-json", "hidden-exit-code/tail"):
        row = await ran(tmp_path, CASES[case], "none", "repeats")
        assert (row.notes, row.refusals, row.questions) == (0, 0, 0)
