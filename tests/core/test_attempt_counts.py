"""The attempt that a call's block shows is the one that the ledger counts."""

from __future__ import annotations

from tests.console.panes.stories import Story
from tui_agent.core.projections.entries import CallEntry


def test_a_call_that_fails_in_another_way_begins_to_count_anew() -> None:
    story = Story().run("task")
    counted = []
    for error in ("no rule to make target", "two tests failed", "two tests failed"):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "make"}))
        story.fail(call, error).judge()
        counted.append(story.state.recovery.attempts.highest)
    shown = [entry.attempt for entry in story.state.conversation.entries if isinstance(entry, CallEntry)]
    assert shown == counted == [1, 1, 2]
