"""The engine alone, as other programs use it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent import Recovery
from tui_agent.core.fold import fold
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.watch.watched import Watched

MAKE = {"command": "make"}


def failing(recovery: Recovery, times: int) -> list[str]:
    levels = []
    for _ in range(times):
        recovery.tool_failed("bash", MAKE, "exit code 2: no rule")
        levels.append(recovery.end_iteration().level)
    return levels


def test_three_equal_failures_escalate_and_block_the_call() -> None:
    recovery = Recovery()
    assert recovery.permit("bash", MAKE).allowed
    assert failing(recovery, 3) == ["guide", "guide", "escalate"]
    refused = recovery.permit("bash", MAKE)
    assert (refused.allowed, refused.rule) == (False, "attempts.block")
    assert "failed 3 times" in refused.reason


@pytest.mark.parametrize(
    ("text", "choice", "allowed"),
    [
        ("", "retry", True),
        ("try once more", "answer", True),
        ("Do not make, read the README.", "answer", False),
        ("", "skip", False),
    ],
)
def test_only_retry_lets_the_blocked_call_run_again(text: str, choice: str, allowed: bool) -> None:
    recovery = Recovery(operator_present=True)
    failing(recovery, 3)
    recovery.operator_answered(text, choice)
    assert recovery.permit("bash", MAKE).allowed is allowed


def test_a_step_names_its_rule_detector_reason_and_note() -> None:
    recovery = Recovery()
    recovery.tool_failed("read_file", {"path": "a"}, "file not found: a")
    step = recovery.end_iteration()
    assert (step.level, step.rule, step.detector) == ("guide", "attempts.guide", "attempts")
    assert step.note is None, "the error says it all"
    recovery.tool_failed("read_file", {"path": "a"}, "file not found: a")
    note = recovery.end_iteration().note
    assert note is not None
    assert note.startswith("The second failure of this call")
    recovery.tool_succeeded("read_file", {"path": "b"}, "text")
    assert recovery.end_iteration().note is None


def test_a_reply_of_text_alone_is_rejected_once_after_a_failure() -> None:
    recovery = Recovery()
    assert recovery.takes_as_answer("Done.")
    recovery.tool_failed("read_file", {"path": "a"}, "file not found: a")
    recovery.end_iteration()
    assert not recovery.takes_as_answer("I could not find it.")
    assert recovery.takes_as_answer("Did you mean b?")
    recovery.reply_rejected()
    assert recovery.end_iteration().level == "guide"
    assert recovery.takes_as_answer("It does not exist.")


def test_a_failed_model_call_is_retried_or_ends_the_run() -> None:
    assert Recovery().model_failed("rate_limit", "busy").rule == "model.retry"
    stopped = Recovery("forge").model_failed("server", "down")
    assert (stopped.level, stopped.rule) == ("stop", "model.stop")
    assert Recovery(operator_present=True).model_failed("auth", "key").level == "escalate"


def test_a_new_run_has_fresh_counters() -> None:
    recovery = Recovery("forge")
    assert failing(recovery, 5)[-1] == "stop"
    recovery.new_run("again")
    assert failing(recovery, 1) == ["guide"]


@pytest.mark.parametrize("wrong", [{"policy": "best"}, {"attempts_limit": 0}, {"nothing": 1}])
def test_an_unknown_policy_or_parameter_is_a_value_error(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Recovery(**wrong)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 99, "events": [1]}'])
def test_what_to_json_did_not_make_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Recovery.from_json(text)


calls = st.tuples(st.sampled_from(["a", "b"]), st.booleans(), st.sampled_from(["no", "gone", "5 failed"]))


@settings(max_examples=25)
@given(st.lists(st.lists(calls, max_size=3), max_size=8), st.booleans())
def test_a_run_that_was_kept_goes_on_like_the_one_that_was_not(
    iterations: list[list[tuple[str, bool, str]]], present: bool
) -> None:
    recovery = Recovery(operator_present=present)
    for reply in iterations:
        for path, ok, error in reply:
            if ok:
                recovery.tool_succeeded("read_file", {"path": path}, "x")
            else:
                recovery.tool_failed("read_file", {"path": path}, error)
        again = Recovery.from_json(recovery.to_json())
        assert again.to_json() == recovery.to_json()
        assert recovery.end_iteration() == again.end_iteration()
        assert recovery.permit("read_file", {"path": "a"}) == again.permit("read_file", {"path": "a"})


def test_the_lines_of_a_run_are_a_session_that_can_be_followed_and_replayed(tmp_path: Path) -> None:
    recovery = Recovery(task="build it")
    path = tmp_path / "run.jsonl"
    failing(recovery, 2)
    path.write_text(recovery.lines(100.0, "mine"))
    watched = Watched(path)
    watched.update(100.0)
    assert sum(event.type == "tool_failed" for event in watched.events) == 2
    again = Recovery.from_json(recovery.to_json())
    recovery.tool_succeeded("bash", MAKE, "built")
    again.tool_succeeded("bash", MAKE, "built")
    assert recovery.end_iteration() == again.end_iteration()
    again.answered("It is built.")
    with path.open("a") as journal:
        journal.write(again.lines(107.0))
        assert again.lines(108.0) == ""
    watched.update(108.0)
    (run,) = load_transcripts(path)
    assert run.report.clean
    assert run.events == watched.events
    assert [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
    assert {event.at for event in run.events} == {100.0, 107.0}
    assert run.events[0].session_id == "mine"
    state = fold(run.events)
    assert (state.run.task, state.run.outcome, state.run.answer) == ("build it", "answered", "It is built.")
    assert (state.metrics.failures, state.metrics.recoveries) == (2, 2)
