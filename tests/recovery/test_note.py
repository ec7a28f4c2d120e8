"""What the model is told after an iteration, and what a run leaves behind when it ends without an answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.cases import Player, fail, ok
from tui_agent import events as e
from tui_agent.recovery import note, partial_answer
from tui_agent.recovery.policy import PRESETS

HEAD = "The previous iteration failed with the following error:\n\n"
ANALYZE = "\n\nPlease analyze what went wrong and try a different approach.\n"


def after(preset: str, *steps: dict[str, Any], operator: bool = False) -> Player:
    player = Player(PRESETS[preset], operator, tools=("read_file", "bash", "finish"))
    for step in steps:
        player.step(step)
    return player


def told(preset: str, *steps: dict[str, Any], operator: bool = False) -> str:
    return note.compose(after(preset, *steps, operator=operator).state) or ""


FORGE = {
    "tool_execution": ({"batch": [fail()]}, "file not found: a", "The error was: file not found: a"),
    "no_tool_call": (
        {"text": "Hm."},
        "The reply has no tool call.",
        "You must provide a tool call in your response.",
    ),
    "invalid_tool_call": (
        {"invalid": {"tool": "bash", "raw": "{"}},
        "the arguments of bash are not JSON: {",
        "Ensure your tool call JSON is properly formatted.",
    ),
    "unknown_tool": (
        {"unknown": {"tool": "fly", "input": {}}},
        "there is no tool fly",
        "Use one of the available tools: [bash, finish, read_file]",
    ),
}


@pytest.mark.parametrize(("step", "detail", "closing"), FORGE.values(), ids=FORGE)
def test_forges_note_by_kind_to_the_letter(step: dict[str, Any], detail: str, closing: str) -> None:
    assert told("forge", step) == f"{HEAD}{detail}{ANALYZE}{closing}"


@pytest.mark.parametrize(("step", "detail", "closing"), FORGE.values(), ids=FORGE)
def test_the_merged_note_has_the_same_form_and_the_same_closing_instruction(
    step: dict[str, Any], detail: str, closing: str
) -> None:
    steps = [{"batch": [fail("x")]}, step] if "text" in step else [step]
    text = told("combined", *steps)
    assert text.startswith(HEAD)
    assert detail in text
    assert ANALYZE in text
    assert text.endswith(closing)


@pytest.mark.parametrize("preset", ["gigi", "combined"])
def test_attempts_are_told_in_gigis_words(preset: str) -> None:
    texts = [told(preset, *[{"batch": [fail()]}] * times) for times in (1, 2, 3)]
    assert "Tool read_file failed (attempt 1/3)." in texts[0]
    assert "Tool read_file failed (attempt 2/3)." in texts[1]
    assert "operator's help will be needed" in texts[1]
    assert "Tool read_file has failed 3 times." in texts[2]
    assert "now with the operator" in texts[2]
    assert all("file not found: a" in text for text in texts)


def test_all_failures_of_the_iteration_are_told_once() -> None:
    text = told("combined", {"batch": [fail("a"), ok(), fail("b"), fail("a")]})
    assert text.count("read_file: file not found: a") == 1
    assert text.count("read_file: file not found: b") == 1
    assert text.index("file not found: a") < text.index("file not found: b")


def test_the_strongest_verdict_gives_the_closing_instruction() -> None:
    steps = [{"batch": [fail(path)]} for path in "abcd"]
    pivot, escalate = told("combined", *steps[:3]), told("combined", *steps, operator=True)
    assert "3 iterations have passed without a successful tool call" in pivot
    assert pivot.endswith("Your next step must differ in kind from the ones that failed.")
    assert escalate.endswith("and work round what stays blocked.")
    assert "The error was" not in pivot


def test_a_loop_of_successes_is_told_without_an_error() -> None:
    text = told("combined", *[{"batch": [ok()]}] * 4)
    assert text.startswith("You are going in circles: the same call of read_file")
    assert "The previous iteration failed" not in text
    assert text.endswith("Choose a different next step.")


def test_a_tool_that_was_switched_off_is_told_with_its_time() -> None:
    text = told("combined", *[{"batch": [fail(path), ok(path, "bash")]} for path in "abcde"])
    assert "Tool read_file failed too often and is not available for the next 3 iterations." in text


def test_an_unknown_effect_is_to_be_verified_before_it_is_repeated() -> None:
    text = told("combined", {"batch": [fail(tool="bash", unknown_effect=True)]})
    assert "It is not known whether bash had its effect" in text
    assert "verify the state before you repeat it" in text


def test_nothing_is_told_where_nothing_happened() -> None:
    for preset in PRESETS:
        assert note.compose(after(preset, {"batch": [ok()]}).state) is None
        assert note.compose(after(preset).state) is None


def test_hpd_tells_nothing_and_funnelcanary_only_its_pivot() -> None:
    steps = [{"batch": [ok(path)]} for path in "uvwx"] + [{"batch": [fail(path)]} for path in "abc"]
    assert told("hpd", *steps) == ""
    assert told("funnelcanary", *steps[:6]) == ""
    assert told("funnelcanary", *steps).startswith("3 iterations have passed")
    assert "model call failed (server)" in told("funnelcanary", {"model_fault": "server"})


def test_what_hooks_say_comes_last_in_paragraphs_of_its_own() -> None:
    state = after("combined", {"batch": [fail()]}).state
    text = note.compose(state, hook_context=["Run make first.", " ", "See HACKING."])
    assert text is not None
    assert text.endswith("\n\nRun make first.\n\nSee HACKING.")
    assert note.compose(after("hpd").state, hook_context=["Only this."]) == "Only this."


@pytest.mark.parametrize("preset", ["forge", "gigi", "combined"])
def test_the_note_stays_bounded_and_keeps_both_ends_of_a_long_error(preset: str) -> None:
    long = {
        "batch": [{**fail(f"{n}"), "error": f"BEGIN{n} " + "x" * 100_000 + f" END{n}"} for n in range(50)]
    }
    text = told(preset, long)
    assert len(text) < 45_000
    assert "BEGIN0" in text
    assert "END0" in text
    assert "characters left out" in text


def test_the_system_rule_forbids_giving_up() -> None:
    for word in ("do not give up", "read the error", "try again", "single failure"):
        assert word in note.SYSTEM_RULE


# --- the partial answer ------------------------------------------------------------------------------------------


def test_a_partial_answer_says_why_how_sure_how_far_what_is_open_and_what_was_last_said() -> None:
    player = after("combined", *[{"batch": [fail(path)]} for path in "abcd"])
    text = partial_answer.compose("4 failing iterations", player.state, 4, "  I looked into a.  ")
    for part in (
        "4 failing iterations",
        "Confidence: 0.00",
        "Completed iterations: 4",
        "- Tool execution failed: read_file (file not found: d)",
        "I looked into a.",
    ):
        assert part in text


def test_a_partial_answer_holds_the_last_three_problems_and_500_characters() -> None:
    player = after("hpd", {"batch": [fail("a", f"tool{n}") for n in range(5)]})
    text = partial_answer.compose("", player.state, 1, "y" * 2_000)
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        f"- Tool execution failed: tool{n} (file not found: a)" for n in (2, 3, 4)
    ]
    assert text.count("y") < 510
    assert "the run was ended" in text


def test_hpds_own_message_leads_its_partial_answer() -> None:
    player = after("hpd", *[{"batch": [fail()]}] * 4)
    text = partial_answer.compose(player.state.strongest().reason, player.state, 4)
    assert text.startswith("⚠️ Maximum consecutive errors (3) exceeded.")


def test_a_fault_is_among_the_open_problems() -> None:
    player = after("combined", {"model_fault": "auth"})
    text = partial_answer.compose("no", player.state, 0)
    assert "- API error: auth" in text
    assert player.state.faults.last.fault.kind == e.FaultKind.AUTH
