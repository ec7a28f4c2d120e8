"""The id of the rule that judged, refused, asked or ended stands on the screen, and never in place of the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.console.panes.stage import Stage, text_of_pane
from tests.console.panes.stories import Story
from tui_agent.console.panes import (
    AttemptsPane,
    ConfidencePane,
    ConversationPane,
    NotePane,
    RingPane,
    TimelinePane,
)
from tui_agent.core import events
from tui_agent.core.values import VerdictRecord

REASON = "bash has failed 3 times with the same input and the same error"


def judged(rules: bool = True) -> Story:
    """A run in which a call is refused, the operator is asked, and that then ends."""
    records = [
        ("attempts", "attempts.escalate"),
        ("ring", "ring.ask"),
        ("cognition", "cognition.pivot"),
    ]
    story = Story().run("Build it.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    tool = {"call_id": call, "tool": "bash", "input": {"command": "make"}, "index": 0}
    story.add(
        events.ToolRefused(
            **tool, refusal="blocked", reason="It waits.", rule="attempts.block" if rules else ""
        )
    )
    story.add(events.IterationFinished(iteration=1))
    story.add(
        events.VerdictReached(
            iteration=1,
            level=events.Level.ESCALATE,
            detector="attempts",
            reason=REASON,
            rule="attempts.escalate" if rules else "",
            verdicts=tuple(
                VerdictRecord(
                    level=events.Level.GUIDE, detector=name, reason="so", rule=rule if rules else ""
                )
                for name, rule in records
            ),
        )
    )
    asked = events.EscalationRaised(
        id="e1", question="What now?", source="attempts", rule="attempts.escalate" if rules else ""
    )
    story.add(asked)
    story.add(events.EscalationAnswered(id="e1", choice="skip"))
    story.add(events.NotePrepared(text="Try another way.", rules=("note.pivot",) if rules else ()))
    return story


def ended(rules: bool = True) -> Story:
    outcome = events.RunFinished(
        outcome=events.Outcome.PARTIAL, reason="It failed.", rule="streak.degrade" if rules else ""
    )
    return judged(rules).add(outcome)


async def seen(kind: type, story: Story, size: tuple[int, int]) -> str:
    """The pane's rows and its lower edge."""
    async with Stage(kind).run_test(size=size) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(kind)
        return f"{text_of_pane(pane)}\n{pane.border_subtitle or ''}"


@pytest.mark.parametrize(
    ("kind", "story", "rules"),
    [
        (TimelinePane, ended, ("attempts.escalate", "attempts.block", "streak.degrade")),
        (ConversationPane, ended, ("attempts.block", "attempts.escalate", "streak.degrade")),
        (AttemptsPane, judged, ("attempts.escalate",)),
        (RingPane, judged, ("ring.ask",)),
        (ConfidencePane, judged, ("cognition.pivot",)),
        (NotePane, judged, ("note.pivot",)),
    ],
)
async def test_rule_ids_are_shown_where_the_journal_names_them(
    kind: type, story: Any, rules: tuple[str, ...]
) -> None:
    text = await seen(kind, story(), (120, 24))
    for rule in rules:
        assert rule in text
    without = await seen(kind, story(rules=False), (120, 24))
    assert not [rule for rule in rules if rule in without]
    assert "[]" not in without


async def test_in_a_narrow_timeline_the_reason_stays_and_the_opened_line_names_the_rule() -> None:
    story = judged()
    async with Stage(TimelinePane).run_test(size=(80, 14)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(TimelinePane)
        pane.focus()
        assert REASON[:30] in text_of_pane(pane)
        row = next(index for index, line in enumerate(pane._log) if line.text == REASON)
        pane._move_to(row)
        await pilot.pause()
        assert "attempts.escalate" in text_of_pane(pane)
