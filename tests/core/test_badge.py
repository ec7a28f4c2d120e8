"""The badge: one word for where a run stands, by the strongest thing that is said of it."""

from __future__ import annotations

import pytest

from tests.console.panes.stories import Story
from tui_agent.core import events
from tui_agent.core.badge import Badge, badge_of


def failing(times: int, path: str = "") -> Story:
    """Steps that fail: the same call again and again, or one of its own each."""
    story = Story().run("Go.")
    for number in range(times):
        story.ask_model()
        (call,) = story.reply("", ("read_file", {"path": path or str(number)}))
        story.fail(call, "no such file" if path else f"error {'abcdefghij'[number]}").judge()
    return story


def well(story: Story) -> Story:
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.succeed(call, "made").judge()
    return story


QUESTION = events.EscalationRaised(id="e", question="How should I go on?", source="attempts")


def test_a_run_that_goes_well_goes_on() -> None:
    assert badge_of(Story().run("Go.").state) is Badge.CONTINUE
    assert badge_of(well(Story().run("Go.")).state) is Badge.CONTINUE


def test_a_failure_is_never_called_going_on() -> None:
    assert badge_of(failing(1).state) is Badge.GUIDE


def test_a_question_is_asked_and_a_block_stays_one_after_it() -> None:
    story = failing(3, "a.txt").add(QUESTION)
    assert badge_of(story.state) is Badge.ASK
    story.add(events.EscalationAnswered(id="e", choice="answer", message="Look elsewhere.", by="operator"))
    assert badge_of(story.state) is Badge.BLOCKED


def test_a_block_that_a_change_has_ended_is_none() -> None:
    story = failing(3, "a.txt").add(QUESTION)
    story.add(events.EscalationAnswered(id="e", choice="skip", message="Go on without it.", by="operator"))
    story.ask_model()
    (call,) = story.reply("", ("edit_file", {"path": "b.txt", "old": "1", "new": "2"}))
    story.succeed(call, "Edited b.txt", changed=("b.txt",)).judge()
    assert badge_of(story.state) is Badge.CONTINUE


def test_an_approval_waits() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    asked = events.ApprovalAsked(id="a", call_id=call, tool="bash", input={"command": "make"}, rules=())
    assert badge_of(story.add(asked).state) is Badge.WAITING


def test_a_model_call_that_waits_for_its_next_try_is_a_retry() -> None:
    story = Story().run("Go.").ask_model()
    fault = events.Fault(kind=events.FaultKind.RATE_LIMIT, message="too many")
    story.add(events.ModelFaulted(fault=fault, action="retry", delay=2.0, rule="model.retry"))
    assert badge_of(story.state) is Badge.RETRY


@pytest.mark.parametrize(
    ("level", "badge"),
    [
        (events.Level.PIVOT, Badge.PIVOT),
        (events.Level.DEGRADE, Badge.DEGRADE),
        (events.Level.STOP, Badge.STOP),
        (events.Level.GUIDE, Badge.GUIDE),
    ],
)
def test_the_strongest_verdict_says_it(level: events.Level, badge: Badge) -> None:
    story = well(Story().run("Go."))
    story.add(events.VerdictReached(iteration=story.iteration, level=level, reason="because"))
    assert badge_of(story.state) is badge


def test_a_poor_outlook_is_never_called_going_on() -> None:
    story = failing(9)
    story.add(events.VerdictReached(iteration=story.iteration, level=events.Level.CONTINUE))
    assert badge_of(story.state) is Badge.DOUBTFUL


@pytest.mark.parametrize("outcome", events.Outcome)
def test_an_ended_run_says_how_it_ended_whatever_was_said_before(outcome: events.Outcome) -> None:
    story = failing(3, "a.txt").add(QUESTION).add(events.RunFinished(outcome=outcome))
    badge = badge_of(story.state)
    assert badge in {Badge.DONE, Badge.PARTIAL, Badge.STOPPED, Badge.FAILED}
    assert (badge is Badge.DONE) == (outcome is events.Outcome.ANSWERED)
