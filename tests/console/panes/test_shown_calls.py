"""What is shown of a call is what the detectors made of it."""

from __future__ import annotations

from typing import Any

from tests.console.panes.stage import Stage
from tests.console.panes.stories import Story
from tui_agent.console.panes.attempts import AttemptsPane
from tui_agent.console.panes.pane import Asked
from tui_agent.core.names import CallState
from tui_agent.core.projections.entries import CallEntry
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.session.replay import Replay, StopAt


def calls(story: Story) -> list[CallEntry]:
    return [entry for entry in story.state.conversation.entries if isinstance(entry, CallEntry)]


def test_a_call_that_fails_in_another_way_begins_to_count_anew() -> None:
    story = Story().run("task")
    counted = []
    for error in ("no rule to make target", "two tests failed", "two tests failed"):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "make"}))
        story.fail(call, error).judge()
        counted.append(story.state.recovery.of(AttemptLedger).highest)
    assert [call.attempt for call in calls(story)] == counted == [1, 1, 2]


def test_a_search_that_found_nothing_has_failed_nowhere() -> None:
    """As recorded by agents whose shell calls every exit code a failure."""
    story = Story().run("task")
    for command in ("grep -r nothing .", "make"):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": command}))
        story.fail(call, "exit code 1").judge()
    assert [call.state for call in calls(story)] == [CallState.SUCCEEDED, CallState.FAILED]
    errors = [line.iteration for line in story.state.timeline.lines if line.kind == "error"]
    assert (errors, story.state.metrics.failures) == ([2], 1)
    replay = Replay.of(story.events)
    (mark,) = replay.marks().errors
    assert replay.next(0, StopAt.ERROR) == mark
    assert replay.state_at(mark).run.iteration == 2


async def test_why_on_attempts_that_were_all_recovered_is_about_the_newest_of_them() -> None:
    story = Story().run("task")
    for outcome in ("fail", "succeed"):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "make"}))
        getattr(story, outcome)(call, "no rule").judge()
    (failed,) = (event for event in story.events if event.type == "tool_failed")
    async with Stage(AttemptsPane).run_test(size=(60, 8)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        assert app.query_one(AttemptsPane).subject() == Asked(failed.seq)
