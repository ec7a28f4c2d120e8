"""A policy over a run that happened elsewhere: verdicts and notes where the loop makes them, and marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats import samples
from tui_agent.core.events import (
    EscalationRaised,
    Event,
    Notice,
    Outcome,
    ReplyRejected,
    RunFinished,
    RunStarted,
    ToolFailed,
    VerdictReached,
)
from tui_agent.core.evolve import evolve
from tui_agent.core.fold import apply, apply_unseen
from tui_agent.core.recovery.form import FormErrors
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.core.state import RunState
from tui_agent.formats.importers.judgement import judged
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.formats.importers.normalise import facts
from tui_agent.formats.importers.transcript import Call, Ending, Result, Said, Transcript, Turn


def _turn(key: str, tool: str, error: str = "", **given: Any) -> Turn:
    turn = Turn(calls=[Call(key, tool, "{}", given)])
    turn.results[key] = Result("failed", error, message=error) if error else Result("ok", "fine")
    return turn


def _facts(*steps: Any, **more: Any) -> list[Event]:
    transcript = Transcript(steps=[Said("Do it"), *steps], **more)
    return facts(transcript, session_id="s", source="test", summary="", base_at=0.0)


SAME = [_turn(f"c{number}", "bash", "boom", command="make") for number in range(6)]


def _marks(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice) and event.origin == "judgement"]


def _levels(events: list[Event]) -> list[str]:
    return [str(event.level) for event in events if isinstance(event, VerdictReached)]


@pytest.mark.parametrize(
    ("policy", "present", "levels"),
    [
        ("combined", True, ["guide", "guide", "escalate", "escalate", "escalate", "escalate"]),
        ("combined", False, ["guide", "guide", "guide", "pivot", "pivot", "pivot"]),
        ("gigi", True, ["guide", "guide", "escalate", "escalate", "escalate", "escalate"]),
        ("hpd", True, ["continue", "continue", "continue", "stop", "stop", "stop"]),
    ],
)
def test_the_detectors_go_on_after_what_they_would_have_done(
    policy: str, present: bool, levels: list[str]
) -> None:
    assert _levels(judged(_facts(*SAME), policy, operator_present=present)) == levels


def test_nobody_changes_how_the_model_of_a_recording_sends_its_calls() -> None:
    state = RunState()
    for event in judged(_facts(*SAME), "combined"):
        state = apply(state, event)
    assert state.run.tool_calls == "native"
    assert not state.recovery.of(FormErrors).needs_text(state.recovery.policy)
    assert state.recovery.of(FormErrors).written is None


def test_what_would_have_been_done_is_marked_once_and_nobody_was_asked() -> None:
    events = judged(_facts(*SAME), "combined", operator_present=False)
    marks = _marks(events)
    assert not [mark for mark in marks if "asked the operator" in mark], "alone it goes on without an answer"
    assert [mark for mark in marks if "blocked this call" in mark] == [
        "combined would have blocked this call of bash: it had failed too often, and nothing had changed"
    ]
    assert not [event for event in events if isinstance(event, EscalationRaised)]
    assert sum(isinstance(event, ToolFailed) for event in events) == len(SAME)


def test_a_fresh_start_in_a_recording_is_marked_and_counted_and_comes_twice() -> None:
    many = [_turn(f"c{number}", "bash", "boom", command=f"make {number % 4}") for number in range(30)]
    levels = _levels(judged(_facts(*many), "combined", operator_present=False))
    assert [number for number, level in enumerate(levels, 1) if level == "restart"] == [10, 20]
    assert levels[-1] == "stop"
    marks = _marks(judged(_facts(*many), "combined", operator_present=False))
    assert len([mark for mark in marks if "would have begun anew" in mark]) == 2
    assert len([mark for mark in marks if "stopped the run" in mark]) == 1


def test_without_an_operator_the_same_run_would_have_gone_on_in_another_way() -> None:
    different = [
        _turn(f"c{number}", "bash", f"boom {number}", command=f"make {number}") for number in range(4)
    ]
    asked = judged(_facts(*different), "combined", operator_present=True)
    alone = judged(_facts(*different), "combined", operator_present=False)
    assert _levels(asked)[-1] == "escalate"
    assert _levels(alone)[-1] == "pivot"
    assert _marks(alone) == []


def test_a_new_message_of_the_operator_starts_a_run_with_fresh_counters() -> None:
    answer = Turn(text="I stop here.")
    events = judged(_facts(*SAME[:2], Turn(text="Hm."), answer, Said("Again"), *SAME[2:4]), "gigi")
    assert [event.run for event in events if isinstance(event, RunStarted)] == [1, 2]
    assert _levels(events) == ["guide", "guide", "guide", "guide"]


def test_an_interrupt_ends_the_run_and_an_interrupt_before_any_run_is_a_notice() -> None:
    events = _facts(*SAME[:1], Ending("interrupted by the operator"), Ending("twice"))
    ended = [event for event in events if isinstance(event, RunFinished)]
    assert [event.outcome for event in ended] == [Outcome.INTERRUPTED]
    assert isinstance(events[-1], Notice)


def test_the_answer_of_a_run_is_judged_by_nobody() -> None:
    events = judged(_facts(_turn("c1", "bash"), Turn(text="Done.")), "combined")
    assert _levels(events) == ["continue"]
    assert isinstance(events[-1], RunFinished)


def test_a_text_that_the_policy_would_not_take_is_rejected_and_one_it_would_have_taken_is_marked() -> None:
    steps = [_turn("c1", "bash", "boom"), Turn(text="I give up."), _turn("c2", "bash"), Turn(text="Done.")]
    alone = judged(_facts(*steps), "combined", operator_present=False)
    assert sum(isinstance(event, ReplyRejected) for event in alone) == 1
    read = judged(_facts(*steps), "combined", operator_present=True)
    assert not any(isinstance(event, ReplyRejected) for event in read)
    gigi = judged(_facts(*steps), "gigi")
    assert not [event for event in gigi if isinstance(event, ReplyRejected)]
    assert _marks(gigi) == ["gigi would have taken this reply as the run's answer"]


def test_text_that_begins_with_error_is_a_failure_where_the_policy_says_so() -> None:
    turn = Turn(calls=[Call("c1", "cat", "{}", {})])
    turn.results["c1"] = Result("ok", "Error: in this log")
    assert any(isinstance(event, ToolFailed) for event in judged(_facts(turn), "hpd"))
    assert not any(isinstance(event, ToolFailed) for event in judged(_facts(turn), "combined"))


@pytest.mark.parametrize("name", samples.NAMES)
@pytest.mark.parametrize("before", ["forge", "combined"])
@pytest.mark.parametrize("after", sorted(PRESETS))
def test_judging_again_forgets_the_judgement_before(
    name: str, before: str, after: str, tmp_path: Path
) -> None:
    given = load_transcripts(samples.write(tmp_path, name))[0].events
    assert judged(judged(given, before), after) == judged(given, after)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError):
        judged(_facts(), "nonsense")


@pytest.mark.parametrize("name", samples.NAMES)
def test_what_is_only_judged_comes_to_the_same_state_but_for_what_a_screen_shows(
    tmp_path: Path, name: str
) -> None:
    shown = unseen = RunState()
    for event in judged(load_transcripts(samples.write(tmp_path, name))[0].events):
        shown, unseen = apply(shown, event), apply_unseen(unseen, event)
    assert unseen == evolve(shown, conversation=unseen.conversation, timeline=unseen.timeline)


@pytest.mark.parametrize("name", samples.NAMES)
@pytest.mark.parametrize("policy", sorted(PRESETS))
def test_the_detectors_with_a_say_come_to_what_all_come_to(tmp_path: Path, name: str, policy: str) -> None:
    """Judging leaves out the others, the history and the counts."""
    shown, said = RunState(), None
    for event in judged(load_transcripts(samples.write(tmp_path, name))[0].events, policy):
        if isinstance(event, VerdictReached):
            assert event.verdicts == said
        shown = apply(shown, event)
        said = tuple(record for record in shown.recovery.last_verdicts if record.reason)


def test_an_answer_by_a_call_that_would_have_been_sent_back_is_judged() -> None:
    edited = Turn(calls=[Call("1", "edit_file", "{}", {"path": "a.py", "old": "x", "new": "y"})])
    edited.results["1"] = Result("ok", "done", changed=("a.py",))
    answer = '{"answer": "All tests pass now."}'
    done = Turn(calls=[Call("2", "finish", answer, {"answer": "All tests pass now."})])
    done.results["2"] = Result("ok", "")
    failed = _turn("0", "bash", "boom", command="make")
    again = Turn(calls=[*done.calls, *_turn("3", "bash", command="make").calls], results=dict(done.results))
    events = judged(_facts(edited, done), "combined")
    assert isinstance(events[-1], RunFinished)
    assert isinstance(judged(_facts(failed, edited, again), "combined")[-1], RunFinished)


def test_what_is_judged_is_numbered_from_one() -> None:
    for policy in PRESETS:
        numbers = [event.seq for event in judged(_facts(*SAME), policy)]
        assert numbers == list(range(1, len(numbers) + 1))
