"""Each pane, card and screen at three sizes in a dark, a light and the sixteen-colour theme, as it was last looked at.

After a change that is meant: `python -m pytest tests/console/test_snapshots.py --snapshot-update`, and look at the
difference. A picture shows its rows once and the style of every cell for each theme.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.console.live_harness import LiveSession, live
from tests.console.panes.stories import DIFF, START, STORIES, Story, troubled
from tests.console.snapshots import (
    DRAWN_BY,
    SAME_TEXTUAL,
    THEMES,
    EmptyScrollBar,
    ScreenExtension,
    in_every_theme,
)
from tests.console.waiting import until
from tests.store.session_events import write_session
from tui_agent.console.arguments import ConsoleArguments
from tui_agent.console.player import Player
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.console.screens.replay import ReplayScreen
from tui_agent.core.events import Mode, ModeChanged
from tui_agent.core.names import Decision
from tui_agent.permissions.rules import Rule, parse_rule
from tui_agent.store.replay import Replay

pytestmark = pytest.mark.skipif(not SAME_TEXTUAL, reason=f"the pictures were drawn by Textual {DRAWN_BY}")

SIZES = [(60, 20), (80, 24), (120, 40)]


@pytest.fixture(autouse=True)
def _the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("textual.scrollbar.ScrollBar.renderer", EmptyScrollBar)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(ScreenExtension)


async def _opened(app: ConsoleApp, pilot: Any, screen: DashboardScreen, command: str) -> None:
    """The screen that the command opens, drawn."""
    name, _, argument = command.partition(" ")
    action = getattr(screen, f"action_{name}")
    result = action(argument) if argument else action()
    if asyncio.iscoroutine(result):
        app.run_worker(result)
    await until(pilot, lambda: app.screen is not screen and app.screen.is_mounted)


# --- what is asked, over a session that is moved by hand ----------------------------------------------------------

LONG_COMMAND = (
    "for file in $(git ls-files '*.py'); do sed -i 's/statistics_helpers/stats.core/g' \"$file\"; done && "
    * 3
)


async def _approval(console: LiveSession) -> None:
    console.ask(input={"command": LONG_COMMAND}, preview=LONG_COMMAND)


async def _file_approval(console: LiveSession) -> None:
    console.ask(tool="edit_file", input={"path": "tests/test_stats.py", "old": "a", "new": "b"}, preview=DIFF)


async def _escalation(console: LiveSession) -> None:
    console.escalate()


async def _question(console: LiveSession) -> None:
    console.escalate(
        source="ask_operator", tool="ask_operator", question="Which branch?", options=("main", "next")
    )


async def _gate(console: LiveSession) -> None:
    console.session.record(ModeChanged(mode=Mode.STEP))
    console.gate("The path does not exist; look for it before you read it.")


async def _trust(console: LiveSession) -> None:
    console.consult(purpose="trust", message="Run: python server.py --all")


async def _elicitation(console: LiveSession) -> None:
    console.consult(fields={"name": {"type": "string"}, "big": {"type": "boolean"}}, required=("name",))


CARDS: dict[str, Callable[[LiveSession], Awaitable[None]]] = {
    "card-approval": _approval,
    "card-file-approval": _file_approval,
    "card-escalation": _escalation,
    "card-question": _question,
    "card-gate": _gate,
    "card-trust": _trust,
    "card-elicitation": _elicitation,
}


RULES = ("allow bash(pytest *)", "allow edit_file(src/**)", "ask bash(git push *)", "deny read_file(**/.env)")


class _NoRules:
    """No rule is kept for this workspace."""

    def rules(self) -> list[Rule]:
        return []


def _give_rules(session: Any) -> None:
    rules = []
    for line in RULES:
        decision, _, text = line.partition(" ")
        rules.append(parse_rule(Decision(decision), text, "config.toml"))
    session.rules = lambda: rules
    session.rule_uses = lambda: Counter({RULES[0]: 3})
    session.kept_rules = _NoRules()


LIVE = ("permissions", "keys", "tabs", "inbox", "history", "mcp")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_cards_look_as_before(
    size: tuple[int, int], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_030.0)
    async with live(size) as console:
        await console.until(lambda: set(THEMES) <= set(console.app.theme_names))
        assert await in_every_theme(console.app, console.pilot) == snapshot(name="welcome")
        console.session.start("Make the tests green.")
        for name, put in CARDS.items():
            await put(console)
            await console.card_appears()
            await console.grace_passes()
            picture = await in_every_theme(console.app, console.pilot)
            assert picture == snapshot(name=name)
            console.tasks[-1].cancel()
            await asyncio.gather(console.tasks[-1], return_exceptions=True)
            console.session.record(ModeChanged(mode=Mode.AUTO))
            await console.until(lambda: console.card is None)
        _give_rules(console.session)
        for command in LIVE:
            await _opened(console.app, console.pilot, console.screen, command)
            assert await in_every_theme(console.app, console.pilot) == snapshot(name=f"screen-{command}")
            await console.press("escape")
            await console.until(lambda: console.app.screen is console.screen)


# --- everything else, over saved runs ----------------------------------------------------------------------------


def _play(screen: ReplayScreen, story: Story) -> None:
    """Show the end of the story."""
    screen.player = Player(Replay.of(story.events))
    screen.player.seek(screen.player.replay.length)
    screen.redraw()


SAVED = ("help", "theme", "context", "status", "cost", "diff", "why", "jump", "fork", "sessions")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_panes_and_screens_look_as_before(
    size: tuple[int, int], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("time.time", lambda: START + 600)
    for name, story in STORIES.items():
        write_session(tmp_path / "sessions" / name, story().events, stamped=True)
    app = ConsoleApp(
        ConsoleArguments(overrides={"state_dir": tmp_path}, replay=str(tmp_path / "sessions" / "troubled"))
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = app.screen_stack[0]
        assert isinstance(screen, ReplayScreen)
        await until(pilot, lambda: screen.player is not None and screen.state is not None)
        await until(pilot, lambda: set(THEMES) <= set(app.theme_names))
        for name, story in STORIES.items():
            _play(screen, story())
            for form in ("strip", "side", "full"):
                screen.action_panes(form)
                await pilot.pause()
                assert await in_every_theme(app, pilot) == snapshot(name=f"run-{name}-{form}")
        _play(screen, troubled())
        for command in SAVED:
            if command == "theme":
                app.theme = THEMES[0]  # the list marks it
            await _opened(app, pilot, screen, command)
            assert await in_every_theme(app, pilot) == snapshot(name=f"screen-{command}")
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
