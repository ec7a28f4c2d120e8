"""What reaches an operator who looks elsewhere."""

from __future__ import annotations

import pytest

from tests.console.panes.stories import Story, answered
from tui_agent.console.terminal.attention import KEEP_TITLE, RESTORE_TITLE, Attention, notification
from tui_agent.core import events

ALL = ("title", "bell", "desktop")
ITERM = {"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}


def waiting() -> Story:
    story = Story().run("Go.")
    story.ask_model()
    return story.add(events.EscalationRaised(id="e", question="Which one?\x1b[2J\nmore", source="attempts"))


def written(story: Story, *, looking: bool = False, ways: tuple[str, ...] = ALL, times: int = 1) -> list[str]:
    out: list[str] = []
    attention = Attention(out.append, lambda: looking, ways, ITERM)
    for _ in range(times):
        attention.show([story.state], story.state)
    attention.end()
    return out


def test_a_question_is_in_the_title_rings_and_notifies_once() -> None:
    out = written(waiting(), times=3)
    assert out[0] == KEEP_TITLE
    assert out[1].startswith("\x1b]2;● needs you — Which one?")
    assert "\x1b[2J" not in "".join(out)
    assert out[2] == "\x07"
    assert out[3].startswith("\x1b]9;● needs you")
    assert out[4:] == [RESTORE_TITLE]


def test_a_servers_question_calls_like_any_other() -> None:
    asked = events.ServerAsked(id="s", server="bench", purpose="elicitation", message="Which colour?")
    out = written(Story().run("Go.").add(asked))
    assert out[1].startswith("\x1b]2;● needs you — bench: Which colour?")
    assert "\x07" in out


def test_who_looks_is_not_called() -> None:
    out = written(waiting(), looking=True)
    assert [piece[:4] for piece in out] == [KEEP_TITLE[:4], "\x1b]2;", RESTORE_TITLE[:4]]


def test_the_end_of_a_run_calls_too() -> None:
    out = written(answered())
    assert out[1].startswith("\x1b]2;✓ answered — Make the tests green.")
    assert "\x07" in out


@pytest.mark.parametrize("way", ALL)
def test_each_way_can_be_had_alone(way: str) -> None:
    out = "".join(written(waiting(), ways=(way,)))
    assert ("\x1b]2;" in out) == (way == "title")
    assert ("\x1b]9;" in out) == (way == "desktop")
    assert bool(out)


@pytest.mark.parametrize(
    ("environment", "begins"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]99;;"),
        ({"TERM": "foot"}, "\x1b]777;notify;"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7000"}, "\x1b]777;notify;"),
        (ITERM, "\x1b]9;"),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/x"}, ""),
    ],
)
def test_each_terminal_has_its_own_sequence(environment: dict[str, str], begins: str) -> None:
    assert notification("t", environment).startswith(begins)
    assert bool(notification("t", environment)) == bool(begins)
