"""The timeline tells what happened, and what stays true once."""

from __future__ import annotations

import pytest

from tests.console.panes.stories import Story
from tui_agent.core import events
from tui_agent.core.projections.entries import EscalationEntry, OutcomeEntry
from tui_agent.core.projections.timeline import Timeline


def verdict(level: events.Level, reason: str) -> events.VerdictReached:
    return events.VerdictReached(iteration=1, level=level, detector="cognition", reason=reason)


def lines(*verdicts: events.VerdictReached) -> list[str]:
    timeline = Timeline()
    for event in verdicts:
        timeline = timeline.apply(event)
    return [line.text for line in timeline.lines]


def test_a_remark_that_stays_true_is_told_once() -> None:
    due = verdict(events.Level.CONTINUE, "an answer is due")
    assert lines(due, due, due) == ["an answer is due"]


def test_it_is_told_again_after_something_else_was_said() -> None:
    due, guide = (
        verdict(events.Level.CONTINUE, "an answer is due"),
        verdict(events.Level.GUIDE, "bash failed"),
    )
    assert lines(due, guide, due) == ["an answer is due", "bash failed", "an answer is due"]


def test_verdicts_that_guide_are_all_told() -> None:
    guide = verdict(events.Level.GUIDE, "bash failed")
    assert lines(guide, guide) == ["bash failed"] * 2


def test_a_verdict_without_anything_to_say_is_not_told() -> None:
    assert lines(verdict(events.Level.CONTINUE, "")) == []


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (2, "2 steps left out of requests"),
        (0, "results of more than 1,200 characters were cut in the middle"),
    ],
)
def test_a_cut_of_the_window_says_what_it_took(groups: int, said: str) -> None:
    cut = events.WindowCut(to_seq=0, groups=groups, tokens=40, longest_result=1_200)
    assert [line.text for line in Timeline().apply(cut).lines] == [said]


def test_where_nobody_could_be_asked_nobody_has_answered() -> None:
    story = Story().run("task")
    for by, choice in (("policy", "continue"), ("operator", "retry"), ("policy", "partial")):
        story.add(
            events.EscalationRaised(id=by, question="How?", source="attempts", rule="attempts.escalate")
        )
        story.add(events.EscalationAnswered(id=by, choice=choice, by=by))
    story.add(events.RunFinished(outcome=events.Outcome.PARTIAL, reason="it failed"))
    answers = [entry.text for entry in story.state.timeline.lines if entry.kind == "operator"]
    nobody = "nobody was asked: the run"
    assert answers == [f"{nobody} goes on", "retry once", f"{nobody} ends with a partial answer"]
    *asked, outcome = [
        entry
        for entry in story.state.conversation.entries
        if isinstance(entry, EscalationEntry | OutcomeEntry)
    ]
    assert [entry.unasked for entry in asked] == [True, False, True]
    assert (story.state.metrics.escalations, outcome.asked) == (3, 1)


def test_a_tool_that_is_left_out_is_told_also_where_another_detector_said_more() -> None:
    pivot = events.VerdictRecord(level=events.Level.PIVOT, detector="cognition", reason="no success")
    opened = events.VerdictRecord(
        level=events.Level.GUIDE,
        detector="breaker",
        reason="bash is left out for 3 steps",
        rule="breaker.open",
    )
    said = verdict(events.Level.PIVOT, "no success").model_copy(update={"verdicts": (pivot, opened)})
    lines = Timeline().apply(said).lines
    assert [(line.kind, line.text, line.rule) for line in lines] == [
        ("verdict", "no success", ""),
        ("breaker", "bash is left out for 3 steps", "breaker.open"),
    ]
    alone = said.model_copy(update={"detector": "breaker"})
    assert [line.kind for line in Timeline().apply(alone).lines] == ["verdict"]


def test_a_reply_in_form_recovers_no_tool_that_was_never_there() -> None:
    story = Story().run("task")
    for tool in ("nosuch", "read_file"):
        story.ask_model()
        (call,) = story.reply("", (tool, {"path": "a"}))
        if tool == "nosuch":
            kind = events.FailureKind.UNKNOWN_TOOL
            story.add(
                events.ToolFailed(
                    call_id=call,
                    tool=tool,
                    input={},
                    failure=events.Failure(kind=kind, message="There is no such tool.", tool=tool),
                )
            )
        else:
            story.succeed(call)
        story.judge()
    recovered = [line.text for line in story.state.timeline.lines if line.kind == "recovered"]
    assert recovered == ["the reply has the right form after 1 failure"]


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ("denied", "bash denied"),
        ("blocked", "bash blocked"),
        ("withheld", "bash not run again"),
        ("breaker", "bash switched off"),
    ],
)
def test_a_refusal_is_told_in_words(refusal: str, said: str) -> None:
    refused = events.ToolRefused.model_validate(
        {"call_id": "c", "tool": "bash", "refusal": refusal, "reason": "it failed"}
    )
    (line,) = Timeline().apply(refused).lines
    assert line.text == f"{said}: it failed"
