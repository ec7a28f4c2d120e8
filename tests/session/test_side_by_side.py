"""What each preset says at any event is what it would say of the session up to there."""

from __future__ import annotations

import pytest

from tests.console.panes.stories import Story, troubled
from tui_agent.core.events import Level, VerdictReached
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.formats.importers.judgement import judged
from tui_agent.session import side_by_side
from tui_agent.session.replay import Replay
from tui_agent.session.side_by_side import SideBySide


def failing_six_times() -> Story:
    """One call that fails in each step."""
    story = Story().run("Go.")
    for _ in range(6):
        story.ask_model()
        (call,) = story.reply("I try.", ("bash", {"command": "make"}))
        story.fail(call, "exit code 2").judge()
    return story


def test_each_preset_says_at_any_event_what_it_says_of_the_session_up_to_there() -> None:
    for story in (failing_six_times(), troubled()):
        presets = SideBySide()
        presets.judge(Replay.of(story.events))
        seen = set()
        for position in range(len(story.events) + 1):
            said = presets.at(position)
            assert said is not None
            assert list(said) == list(PRESETS)
            for name, level in said.items():
                verdicts = [
                    one for one in judged(story.events[:position], name) if isinstance(one, VerdictReached)
                ]
                assert level == (verdicts[-1].level if verdicts else Level.CONTINUE), (position, name)
            seen.add(tuple(said.values()))
        assert len(seen) > 2


def test_a_new_run_begins_without_a_verdict() -> None:
    story = failing_six_times().run("Another task.")
    presets = SideBySide()
    presets.judge(Replay.of(story.events))
    assert set((presets.at(len(story.events)) or {}).values()) == {Level.CONTINUE}


def test_only_so_many_facts_are_judged_and_none_when_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    story = failing_six_times()
    monkeypatch.setattr(side_by_side, "MOST_FACTS", 10)
    presets = SideBySide()
    presets.judge(Replay.of(story.events))
    assert presets.at(len(story.events)) is None
    assert presets.at(3) is not None
    left = SideBySide()
    left.judge(Replay.of(story.events), lambda: False)
    assert left.at(1) is None
