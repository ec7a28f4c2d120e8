"""The note of an iteration, and what a run leaves behind when it ends without an answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.player import Player, fail, named, ok
from tui_agent.console.panes.prose import Prose
from tui_agent.core import partial_answer
from tui_agent.core.events import FailureKind
from tui_agent.core.recovery import note
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.frontend.lines.styled import text_of

HEAD = "The previous iteration failed with the following error:\n\n"
ANALYZE = "\n\nPlease analyze what went wrong and try a different approach.\n"


def after(policy: str, *steps: dict[str, Any], operator: bool = False) -> Player:
    player = Player(PRESETS[policy], operator, tools=("read_file", "bash", "finish"))
    for step in steps:
        player.step(step)
    return player


def note_after(preset: str, *steps: dict[str, Any], operator: bool = False) -> str:
    return after(preset, *steps, operator=operator).note()


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
        {"unknown": {"tool": "fetch", "input": {}}},
        "there is no tool fetch",
        "Use one of the available tools: [bash, finish, read_file]",
    ),
}


@pytest.mark.parametrize(("step", "detail", "closing"), FORGE.values(), ids=FORGE)
def test_forges_note_by_kind_to_the_letter(step: dict[str, Any], detail: str, closing: str) -> None:
    assert note_after("forge", step) == f"{HEAD}{detail}{ANALYZE}{closing}"


OF_FORM = {kind: row for kind, row in FORGE.items() if kind != "tool_execution"}


@pytest.mark.parametrize(("step", "detail", "closing"), OF_FORM.values(), ids=OF_FORM)
def test_the_merged_note_about_the_form_is_the_closing_instruction_alone(
    step: dict[str, Any], detail: str, closing: str
) -> None:
    steps = [{"batch": [fail("x")]}, step] if "text" in step else [step]
    assert note_after("combined", *steps) == closing


def test_arguments_that_are_json_but_break_the_schema_are_not_called_badly_formatted() -> None:
    player = after("combined")
    player.wrong_call(FailureKind.INVALID_TOOL_CALL, "bash", {"cmd": "ls"}, "'command' missing")
    assert (
        player.note() == "Give each argument as the tool's schema asks for it; the error names what is wrong."
    )


def test_the_merged_note_says_nothing_that_the_result_above_it_says() -> None:
    assert note_after("combined", {"batch": [fail(), ok(), fail("b")]}) == ""


def test_the_merged_note_counts_in_words() -> None:
    texts = [note_after("combined", *[{"batch": [fail()]}] * times) for times in (1, 2, 3)]
    assert "failure of this call" not in texts[0]
    assert texts[1].startswith("The second failure of this call of read_file, and the error is the same.")
    assert texts[2].startswith("The third failure of this call of read_file")
    assert not any(character.isdigit() for text in texts for character in text)


WARNINGS = [
    ("gigi", True, "the operator's help will be needed"),
    ("gigi", False, "it counts as out of reach"),
]


@pytest.mark.parametrize(("preset", "operator", "warning"), WARNINGS)
def test_attempts_are_counted_in_gigis_words(preset: str, operator: bool, warning: str) -> None:
    texts = [note_after(preset, *[{"batch": [fail()]}] * times, operator=operator) for times in (1, 2, 3)]
    assert "Tool read_file failed (attempt 1/3)." in texts[0]
    assert "Tool read_file failed (attempt 2/3)." in texts[1]
    assert warning in texts[1]
    assert "Tool read_file has failed 3 times." in texts[2]
    assert ("now with the operator" in texts[2]) is operator
    assert all("file not found: a" in text for text in texts)


@pytest.mark.parametrize("preset", PRESETS)
def test_no_note_speaks_of_an_operator_where_none_is_present(preset: str) -> None:
    player = after(preset)
    steps: list[dict[str, Any]] = [
        *[{"batch": [fail()]}] * 5,
        *[{"invalid": {"tool": "bash", "raw": "{"}}] * 4,
        *[{"batch": [ok()]}] * 7,
        {"text": "I give up."},
        {"model_fault": "server"},
    ]
    for step in steps:
        player.step(step)
        assert "operator" not in player.note()
        if player.level == "escalate":
            player.answer("continue", by="policy")
            assert "operator" not in player.note()


LAST_WARNINGS = [
    (True, "If it fails once more, the operator's help will be needed."),
    (False, "If it fails once more, it will not be executed any more."),
]


@pytest.mark.parametrize(("operator", "warning"), LAST_WARNINGS)
def test_the_second_failure_says_what_follows_the_next_one(operator: bool, warning: str) -> None:
    assert warning in note_after("combined", *[{"batch": [fail()]}] * 2, operator=operator)


def test_all_failures_of_the_iteration_are_quoted_once() -> None:
    text = note_after("forge", {"batch": [fail("a"), ok(), fail("b"), fail("a")]})
    assert text.count("error:\n\nfile not found: a") == 1
    assert text.count("error:\n\nfile not found: b") == 1
    assert text.index("file not found: a") < text.index("file not found: b")


def test_a_search_that_finds_nothing_needs_no_note() -> None:
    search = {"tool": "bash", "input": {"command": "grep -rn x ."}, "ok": False, "error": "exit code 1"}
    assert note_after("combined", {"batch": [search]}) == ""


def test_a_pivot_gives_the_last_instruction() -> None:
    player = Player(preset("combined", streak="off"))
    for path in "abcd":
        player.batch(fail(path))
    text = player.note()
    assert text.startswith("4 steps without a success, and the same kind of error again.")
    assert text.endswith("the next step must differ in kind.")
    assert "The error was" not in text


# --- after the operator's answer ---------------------------------------------------------------------------------

ABOUT_A_CALL = [
    ("retry", "", "The operator allows this call to run once more."),
    ("answer", "try once more", "The operator allows this call to run once more."),
    (
        "answer",
        "Write the file.",
        "The operator answered: follow the answer. The call that failed runs again once something has changed",
    ),
    ("skip", "", "The operator chose to go on without this call: it stays blocked."),
]


@pytest.mark.parametrize(("choice", "text", "words"), ABOUT_A_CALL)
@pytest.mark.parametrize("paths", ["aaa", "xyaaa"])
def test_the_note_is_composed_after_the_answer_and_carries_it(
    paths: str, choice: str, text: str, words: str
) -> None:
    player = after("combined", *[{"batch": [fail(path), ok(path, "glob")]} for path in paths], operator=True)
    player.answer(choice, text)
    written = player.note()
    assert words in written
    for contradiction in ("now with the operator", "Leave this line of work", "help will be needed"):
        assert contradiction not in written


def test_the_note_after_retry_does_not_ask_for_another_approach() -> None:
    player = after("combined", *[{"batch": [fail()]}] * 3, operator=True)
    player.answer("retry")
    written = player.note()
    assert "The operator allows this call to run once more." in written
    assert "different approach" not in written


@pytest.mark.parametrize("choice", ["answer", "skip"])
def test_calling_a_call_that_stays_blocked_is_not_with_the_operator_again(choice: str) -> None:
    player = after("combined", *[{"batch": [fail()]}] * 3, operator=True)
    player.answer(choice, "Write the file.")
    player.batch(fail())
    assert player.refused == ["blocked"]
    assert "now with the operator" not in player.note()


def test_an_edit_where_no_call_was_asked_about_claims_no_execution() -> None:
    player = after("combined", *[{"batch": [fail(path)]} for path in "abcd"], operator=True)
    assert player.subject is None
    player.answer("edit", "Look elsewhere.", edited={"path": "z"})
    assert "had it executed" not in player.note()


@pytest.mark.parametrize("choice", ["answer", "skip"])
def test_an_answer_about_no_single_call_is_to_be_followed(choice: str) -> None:
    player = after("combined", *[{"batch": [fail(path)]} for path in "abcd"], operator=True)
    assert player.state.strongest().rule == "streak.ask"
    assert "operator" not in player.note()
    player.answer(choice, "Look into the other folder.")
    assert player.note().endswith("The operator answered: follow the answer.")


def test_where_the_policy_answers_and_nobody_is_there_the_note_asks_to_work_round() -> None:
    player = after("combined", *[{"batch": [fail()]}] * 3)
    player.answer("continue", by="policy")
    assert player.note().endswith(
        "Nobody can answer now: work round what is blocked, and reach the goal in another way."
    )


# --- other paragraphs --------------------------------------------------------------------------------------------


def test_a_loop_of_successes_is_said_without_an_error() -> None:
    text = note_after("combined", *[{"batch": [ok()]}] * 4)
    assert text.startswith("You are going in circles: the same call of read_file")
    assert text.endswith("Choose another step.")


def test_a_tool_that_was_switched_off_is_named_with_its_time() -> None:
    text = note_after("combined", *[{"batch": [fail(path), ok(path, "bash")]} for path in "abcde"])
    assert "Tool read_file failed too often and is not available for the next 3 steps." in text


def test_an_unknown_effect_is_to_be_verified_before_it_is_repeated() -> None:
    text = note_after("combined", {"batch": [fail(tool="bash", unknown_effect=True)]})
    assert "It is not known whether bash had its effect" in text
    assert "verify the state before you repeat it" in text


def test_there_is_no_note_where_nothing_happened() -> None:
    for policy in PRESETS:
        assert note_after(policy, {"batch": [ok()]}) == ""
        assert note_after(policy) == ""


def test_hpd_writes_no_note_and_funnelcanary_only_its_pivot_and_its_faults() -> None:
    steps = [{"batch": [ok(path)]} for path in "uvwx"] + [{"batch": [fail(path)]} for path in "abc"]
    assert note_after("hpd", *steps) == ""
    assert note_after("funnelcanary", *steps[:6]) == ""
    assert note_after("funnelcanary", *steps).startswith("3 steps have passed")
    assert "model call failed (server error)" in note_after("funnelcanary", {"model_fault": "server"})


def test_what_hooks_say_comes_last_in_paragraphs_of_its_own() -> None:
    text = after("combined", *[{"batch": [fail()]}] * 2).note(["Run make first.", " ", "See HACKING."])
    assert text.endswith("\n\nRun make first.\n\nSee HACKING.")
    assert after("hpd").note(["Only this."]) == "Only this."


@pytest.mark.parametrize("name", ["forge", "gigi"])
def test_the_note_stays_bounded_and_keeps_both_ends_of_a_long_error(name: str) -> None:
    long = {
        "batch": [{**fail(f"{n}"), "error": f"BEGIN{n} " + "x" * 100_000 + f" END{n}"} for n in range(50)]
    }
    text = note_after(name, long)
    assert len(text) < note.LONGEST_NOTE + 100
    assert "BEGIN0" in text
    assert "END0" in text
    assert "characters left out" in text


RULES = [
    ("combined", [{"text": "Hm."}, {"batch": [fail()]}], ()),
    ("combined", [{"batch": [fail()]}] * 2, ("note.attempts",)),
    ("combined", [{"batch": [*(fail(str(n), f"t{n}") for n in range(5)), ok()]}], ("note.pivot",)),
    ("combined", [{"batch": [ok()]}] * 4, ("note.repeated",)),
    ("combined", [{"batch": [fail(unknown_effect=True)]}], ("note.unknown_effect",)),
    ("forge", [{"batch": [fail()]}], ("note.error",)),
    ("gigi", [{"batch": [fail()]}], ("note.attempts",)),
    ("funnelcanary", [{"model_fault": "server"}], ("note.fault",)),
    ("hpd", [{"batch": [fail()]}], ()),
]  # fmt: skip


@pytest.mark.parametrize(("preset", "steps", "rules"), RULES)
def test_every_paragraph_carries_the_id_of_its_rule(
    preset: str, steps: list[dict[str, Any]], rules: tuple[str, ...]
) -> None:
    assert note.compose(after(preset, *steps).state).rules == rules


def test_every_note_is_sent_inside_the_tag_that_the_system_prompt_explains() -> None:
    assert note.tagged("x") == f"<{note.NOTE_TAG}>\nx\n</{note.NOTE_TAG}>"
    assert f"<{note.NOTE_TAG}>" in note.system_rule()


def test_two_calls_that_failed_alike_give_one_paragraph_about_their_attempts() -> None:
    text = after("combined", *[{"batch": [fail("a"), fail("b")]}] * 2).note()
    assert text.count("The second failure of this call of read_file") == 1


def test_the_system_rule_forbids_giving_up() -> None:
    for word in ("do not give up", "read the error", "try again", "single failure"):
        assert word in note.system_rule()


# --- the partial answer ------------------------------------------------------------------------------------------


def section(text: str, title: str) -> list[str]:
    """The lines of one list of a partial answer."""
    part = text.partition(f"\n{title}\n")[2]
    return part.partition("\n\n")[0].splitlines()


def test_a_partial_answer_says_why_what_was_done_tried_and_open_and_asks() -> None:
    player = after("combined")
    player.batch(ok("b.py", "edit_file"), text="I changed the file and look on.")
    player.step({"batch": [{"tool": "bash", "input": {"command": "make -s"}, "ok": True}]})
    for path in "abcd":
        player.batch(fail(path), text="Again.")
    text = partial_answer.compose("4 failing iterations", player.whole, "Where is the file?")
    assert text.startswith("The task could not be completed: 4 failing iterations.")
    assert "Completed steps: 2" in text
    assert section(text, "Done:") == ["- Changed: b.py", "- Ran: make -s: done"]
    assert section(text, "Tried without success:") == [
        f"- read_file {path} (once): file not found: {path}" for path in "dcba"
    ]
    assert section(text, "Open problems:") == ["- read_file failed"]
    repeated = partial_answer.compose("read_file: file not found: d", player.whole)
    assert section(repeated, "Tried without success:")[0] == "- read_file d (once)"
    assert repeated.count("file not found: d") == 1
    assert section(text, "A question for you:") == ["Where is the file?"]
    assert section(text, "The agent's last text:") == ["I changed the file and look on."]


def test_a_partial_answer_gives_the_cause_of_a_failed_command_and_not_its_exit_code() -> None:
    player = after("combined")
    error = "The command failed with exit code 7.\ndeploying …\ncannot reach staging:22: no route from here"
    player.step({"batch": [{"tool": "bash", "input": {"command": "deploy"}, "ok": False, "error": error}]})
    text = partial_answer.compose("x", player.whole)
    cause = "cannot reach staging:22: no route from here"
    assert section(text, "Tried without success:") == [f"- bash deploy (once): {cause}"]
    assert section(text, "Open problems:") == ["- bash failed"]


@pytest.mark.parametrize(
    "raw",
    [
        *(
            "src/__init__.py is missing",
            "make: *** No rule to make target '*.o'. Stop.",
            "a <b>bold</b> &lt; b &#42;",
        ),
        *(
            "[a link](http://x) and ![a picture](y)",
            "a_b_c.py and _d_",
            r"C:\\temp\* \_x",
            "~~gone~~ `code` and ``two``",
        ),
    ],
)
def test_raw_text_in_a_partial_answer_is_shown_as_it_is(raw: str) -> None:
    player = after("combined")
    player.step({"batch": [{"tool": "bash", "input": {"command": raw}, "ok": False, "error": raw}]})
    text = partial_answer.compose(f"bash: {raw}", player.whole)
    shown = " ".join(" ".join(text_of(line) for line in Prose(500).finish(text)).split())
    assert shown.count(raw) == 2


def test_a_partial_answer_names_a_changed_file_on_one_line() -> None:
    player = after("combined")
    player.batch(ok("a\n\u202fb.py", "edit_file"))
    text = partial_answer.compose("x", player.whole)
    assert section(text, "Done:") == [r"- Changed: a\n\u202fb.py"]


CONFIDENCES = [
    ("nothing yet", [], "Confidence: 30%"),
    ("a success", [{"batch": [ok()]}], "Confidence: 40%"),
    ("a success and a failure", [{"batch": [ok()]}, {"batch": [fail()]}], "Confidence: 30%"),
    ("three failures", [{"batch": [fail(path)]} for path in "abc"], "Confidence: 0%"),
]


@pytest.mark.parametrize(("what", "steps", "line"), CONFIDENCES, ids=named)
def test_the_confidence_is_in_per_cent(what: str, steps: list[dict[str, Any]], line: str) -> None:
    player = after("funnelcanary", *steps)
    assert line in partial_answer.compose("x", player.whole).splitlines()


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        ([{"batch": [fail()]}], "Confidence: 20%"),
        ([{"batch": [ok()]}], "Confidence: 40%"),
        ([{"batch": [ok()]}, {"model_fault": "auth"}], "Confidence: 30%"),
    ],
)
def test_combined_gives_the_confidence_that_every_place_shows(steps: list[dict[str, Any]], line: str) -> None:
    text = partial_answer.compose("x", after("combined", *steps).whole)
    assert line in text.splitlines()
    assert "next step succeeds" not in text


def test_a_partial_answer_holds_the_last_three_problems_and_500_characters() -> None:
    player = after("hpd")
    player.batch(*(fail("a", f"tool{n}") for n in range(5)), text="y z " * 500)
    text = partial_answer.compose("", player.whole)
    assert section(text, "Open problems:") == [f"- tool{n} failed" for n in (2, 3, 4)]
    (words,) = section(text, "The agent's last text:")
    assert len(words) <= 500
    assert words.endswith("…")
    assert "the run was ended" in text


def test_hpds_own_message_leads_its_partial_answer() -> None:
    player = after("hpd", *[{"batch": [fail()]}] * 4)
    text = partial_answer.compose(player.state.strongest().reason, player.whole)
    assert text.startswith(
        "⚠️ Maximum consecutive errors (3) exceeded. Stopping execution to prevent infinite error loop.\n"
    )


def test_an_iteration_without_a_reply_is_not_completed_and_its_fault_is_an_open_problem() -> None:
    player = after("combined", {"batch": [ok()]}, {"model_fault": "auth"})
    text = partial_answer.compose("no", player.whole)
    assert "Completed steps: 1" in text
    assert section(text, "Open problems:") == ["- API error: key not accepted (scripted)"]


def test_where_no_text_says_much_the_newest_is_quoted() -> None:
    player = after("combined")
    for words in ("Hm.", "Again."):
        player.batch(fail(words), text=words)
    text = partial_answer.compose("x", player.whole)
    assert section(text, "The agent's last text:") == ["Again."]


RESULTS = [
    ("checking\na.py:3: E4977 wrong indent\nwrote 2 files", ": a.py:3: E4977 wrong indent"),
    ("building\nvalue = 42", ": value = 42"),
    ("ok\nValueError: no such key\ndone", ": ValueError: no such key"),
    ("(no output)", ""),
    ("", ""),
]


@pytest.mark.parametrize(("output", "said"), RESULTS)
def test_a_partial_answer_holds_what_a_command_showed(output: str, said: str) -> None:
    player = after("combined")
    call = {"tool": "bash", "input": {"command": "python3  gen.py"}, "ok": True, "content": output}
    player.step({"batch": [call]})
    text = partial_answer.compose("x", player.whole)
    assert section(text, "Done:") == [f"- Ran: python3 gen.py{said}"]
