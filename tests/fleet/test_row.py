"""The row of a run on a board."""

from __future__ import annotations

from tests.console.panes.stories import Story
from tui_agent.core import events
from tui_agent.fleet.row import row_of

TASK = "Put the new release of the website on the staging server, and tell me what its address is in the end."


def test_the_task_stands_in_the_row_as_long_as_it_did_before_the_run_began() -> None:
    assert row_of(Story().run(TASK).state).task == TASK


def test_a_title_that_somebody_gave_stands_in_the_place_of_the_task() -> None:
    story = Story().run(TASK).add(events.TitleChanged(title="staging"))
    assert row_of(story.state).task == "staging"


def test_a_session_with_several_runs_keeps_the_title_of_the_first() -> None:
    story = Story().run(TASK).add(events.RunFinished(outcome=events.Outcome.ANSWERED, answer="Done."))
    assert row_of(story.run("And now the next one.").state).task.startswith("Put the new release")
