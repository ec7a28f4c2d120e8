"""Each pane, card and screen at three sizes, as it was last looked at: in a dark, a light and the sixteen-colour theme
at the usual size, in the dark one at the others.

After a change that is meant: `python -m pytest tests/console/test_snapshots.py --snapshot-update`, and look at the
difference. A picture shows its rows once and the style of every cell for each theme.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input

from tests.console.live_harness import LiveSession, live
from tests.console.panes.stories import DIFF, START, STORIES, Story, troubled
from tests.console.snapshots import (
    DRAWN_BY,
    SAME_TEXTUAL,
    THEMES,
    EmptyScrollBar,
    ScreenExtension,
    at_every_size,
    in_themes,
)
from tests.console.test_first_start import NOTHING, SOMETHING, first_start
from tests.console.waiting import picture, until
from tests.store.session_events import write_session
from tui_agent.config.settings import Settings
from tui_agent.console.looks.themes import read_themes, theme_folders
from tui_agent.console.looks.welcome import welcome
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.dashboard_screen import DashboardScreen
from tui_agent.console.screens.pick import PickScreen
from tui_agent.console.screens.replay import ReplayScreen
from tui_agent.console.screens.rewind import RewindScreen
from tui_agent.console.screens.settings import SettingsScreen
from tui_agent.core.events import (
    BackgroundStarted,
    Image,
    Mode,
    ModeChanged,
    OperatorSpoke,
    OwnCommandEnded,
    ParentPoint,
    RunStarted,
    ToolSucceeded,
)
from tui_agent.core.names import Decision
from tui_agent.core.state import RunState
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.commands.host import RewindChoice
from tui_agent.models import discovery
from tui_agent.models.discovery import Discovery
from tui_agent.permissions.rules import PermissionRule, parse_rule
from tui_agent.session.player import Player
from tui_agent.session.replay import Replay
from tui_agent.session.rewind import RewindPlan, RewindPoint
from tui_agent.session.side_by_side import SideBySide
from tui_agent.store.file_changes import FileChange
from tui_agent.store.summary import SessionRow
from tui_agent.tools.skills import BadSkill, Skill, Skills

pytestmark = pytest.mark.skipif(not SAME_TEXTUAL, reason=f"the pictures were drawn by Textual {DRAWN_BY}")

USUAL = (80, 24)
SIZES = [(60, 20), USUAL, (120, 40)]


UNLIKE = ("agent-dark", "terminal")
"""Themes that draw by other rules. The light one draws by the dark one's, in its own colours: where each role of them
was seen once in the light one, these are enough."""


def themes_at(size: tuple[int, int], usual: Sequence[str] = THEMES) -> Sequence[str]:
    """A theme takes most of a picture's time, and colours the same parts of the screen at any size."""
    return usual if size == USUAL else THEMES[:1]


@pytest.fixture(autouse=True)
def _the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("textual.scrollbar.ScrollBar.renderer", EmptyScrollBar)
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")  # a spinner stands from the beginning
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
    screen.commands.run(name.replace("_", "-"), argument)
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

    def rules(self) -> list[PermissionRule]:
        return []


def _give_rules(session: Any) -> None:
    rules = []
    for line in RULES:
        decision, _, text = line.partition(" ")
        rules.append(parse_rule(Decision(decision), text, "config.toml"))
    uses = Counter({RULES[0]: 3})
    session.permissions = SimpleNamespace(in_force=lambda: rules, uses=lambda: uses, kept=_NoRules())


LIVE = ("permissions", "keys", "tabs", "inbox", "history", "mcp")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_cards_look_as_before(
    size: tuple[int, int], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_030.0)
    themes = themes_at(size)
    async with live(size) as console:
        await console.until(lambda: set(THEMES) <= set(console.app.theme_names))
        assert await in_themes(console.app, console.pilot, themes) == snapshot(name="welcome")
        console.session.start("Make the tests green.")
        for name, put in CARDS.items():
            before = console.session.state
            await put(console)
            await console.card_takes_keys()
            picture = await in_themes(console.app, console.pilot, themes)
            assert picture == snapshot(name=name)
            console.tasks[-1].cancel()
            await asyncio.gather(console.tasks[-1], return_exceptions=True)
            console.session.state = before
            console.session.record(ModeChanged(mode=Mode.AUTO))
            await console.until(lambda: console.card is None)
        _give_rules(console.session)
        console.screen.prompt.recall.add("Look at the README as well.")
        for command in LIVE:
            await _opened(console.app, console.pilot, console.screen, command)
            assert await in_themes(console.app, console.pilot, themes) == snapshot(name=f"screen-{command}")
            await console.press("escape")
            await console.until(lambda: console.app.screen is console.screen)


# --- what is rarer: one picture each, with the rows at three sizes -------------------------------------------------


async def _greeting(console: LiveSession) -> None:
    settings = Settings(workspace=Path("/home/ada/stats"), model="openai/gpt-5-mini")
    earlier = SessionRow(
        "s",
        title="Make the tests green.",
        outcome="answered",
        failures=3,
        recovered_same_call=3,
        ended_at=40.0,
    )
    assert console.screen.dashboard is not None
    console.screen.dashboard.greet(welcome(settings, [earlier], lambda: 1_030.0))


async def _completion(console: LiveSession) -> None:
    console.session.start("Make the tests green.")
    await console.type("/mo")


async def _queue(console: LiveSession) -> None:
    await console.say("Look at the README as well.")
    await console.say(
        "And when you are done, write an entry of the changelog that says what changed, and why."
    )


async def _queue_chosen(console: LiveSession) -> None:
    await console.press("up")


async def _remarks(console: LiveSession) -> None:
    for message in console.screen.queue.waiting:
        console.screen.queue.drop(message.id)
    console.screen.say("The next call goes to openai/gpt-5-mini.")
    console.screen.say(
        "There is no policy nonsense. The policies are forge, gigi, funnelcanary, hpd.", "warning"
    )
    console.screen.say("The session was not exported: the disk is full.", "error")


async def _paste(console: LiveSession) -> None:
    console.screen.prompt.write("a line\n" * 40)


async def _vim(console: LiveSession) -> None:
    console.screen.prompt.use_vim(True)
    await console.type("hello")
    await console.press("escape")


async def _vim_visual(console: LiveSession) -> None:
    console.screen.prompt.put("one line\nanother one\nthe last")
    await console.press("g", "g", "w", "v", "j")


async def _arguments(console: LiveSession) -> None:
    console.screen.prompt.use_vim(False)
    await _file_approval(console)
    await _focused(console, "e", "enter")


async def _reason(console: LiveSession) -> None:
    await _approval(console)
    await _focused(console, "n")


async def _note(console: LiveSession) -> None:
    await _gate(console)
    await console.card_appears()
    await console.press("f4")


async def _form(console: LiveSession) -> None:
    await _elicitation(console)
    await _focused(console, "y", "enter")


async def _budget(console: LiveSession) -> None:
    console.escalate(source="budget", tool="", question="$1.00 of $1.00 is used up.", options=("$2.00",))
    await _focused(console)


async def _model(console: LiveSession) -> None:
    console.escalate(
        source="model", tool="", question="openai/gpt-5-mini cannot be used: the key is refused."
    )
    await _focused(console)


async def _marked(console: LiveSession) -> None:
    await _file_approval(console)
    await _focused(console, "w")


async def _focused(console: LiveSession, *keys: str) -> None:
    """A card that waits for keys, and gets these."""
    await console.card_takes_keys()
    await console.press(*keys)


async def _inbox(console: LiveSession) -> None:
    await _file_approval(console)
    console.escalate()
    await console.card_appears()
    console.screen.commands.run("inbox")


async def _leave(console: LiveSession) -> None:
    await console.press("ctrl+q")


async def _settings(console: LiveSession) -> None:
    console.screen.commands.run("settings")
    await console.until(
        lambda: isinstance(console.app.screen, SettingsScreen) and console.app.screen.list.rows
    )
    console.app.screen.query_one(Input).value = "cost"


async def _setting(console: LiveSession) -> None:
    await _settings(console)
    await console.until(lambda: "max_cost" in console.shown())
    await console.press("enter")


async def _key(console: LiveSession) -> None:
    await _opened(console.app, console.pilot, console.screen, "keys")
    await console.press("enter")


async def _rule(console: LiveSession) -> None:
    await _opened(console.app, console.pilot, console.screen, "permissions")
    await console.press("ctrl+n")


async def _models(console: LiveSession) -> None:
    console.screen.opened.settings = console.session.settings
    console.screen.commands.run("model")
    await console.opens(PickScreen)
    console.app.clear_notifications()


async def _skills(console: LiveSession) -> None:
    good = Skill("release", "How a release is made.", Path("/w"), ".agents/skills/release", False)
    console.session.found = Skills((good,), (BadSkill(".agents/skills/x", "it has no description"),))
    console.screen.commands.run("skills")


async def _background(console: LiveSession) -> None:
    console.session.record(BackgroundStarted(id="b1", command="python -m http.server"))
    console.screen.commands.run("background")


async def _rewind(console: LiveSession) -> None:
    point = RewindPoint(4, 1_000.0, "after step 2: stats.py", "ref")
    points = [point, RewindPoint(1, 900.0, "before: Make the tests green.")]
    plan = RewindPlan("both", point, 3, 2, (FileChange("change", "stats.py"), FileChange("delete", "new.py")))
    session: Any = RewindSession(console.session.state, plan)
    choices = [RewindChoice(each, each.label, each.at) for each in points]
    console.app.push_screen(RewindScreen(session, choices))
    await console.until(lambda: "stats.py" in console.shown())


@dataclass(frozen=True)
class RewindSession:
    """What the rewind screen asks of a session."""

    state: RunState
    planned: RewindPlan

    @property
    def rewinding(self) -> RewindSession:
        return self

    async def plan(self, *_: object) -> RewindPlan:
        return self.planned


async def _plan(console: LiveSession) -> None:
    steps = (
        ("Read the module", "completed"),
        ("Mend the median", "in_progress"),
        ("Run the tests", "pending"),
    )
    plan = [{"step": step, "status": status} for step, status in steps]
    console.session.record(ToolSucceeded(call_id="1", tool="update_plan", input={"plan": plan}))
    await console.until(lambda: "Plan 1/3" in console.shown())
    await console.press("f7")


async def _tabs(console: LiveSession) -> None:
    console.app.open_tab(ConsoleArguments())
    await console.until(lambda: len(console.app.tabs) == 2 and console.app.shown is console.app.tabs[1])
    await console.until(lambda: "2 ▶ Make" in console.shown())


RARER: dict[str, Callable[[LiveSession], Awaitable[None]]] = {
    "first-screen": _greeting,
    "completion": _completion,
    "queue": _queue,
    "queue-chosen": _queue_chosen,
    "remarks": _remarks,
    "paste": _paste,
    "vim": _vim,
    "vim-visual": _vim_visual,
    "card-arguments": _arguments,
    "card-reason": _reason,
    "card-note": _note,
    "card-marked": _marked,
    "card-form": _form,
    "card-budget": _budget,
    "card-model": _model,
    "inbox": _inbox,
    "leave": _leave,
    "settings": _settings,
    "setting": _setting,
    "key": _key,
    "rule": _rule,
    "models": _models,
    "skills": _skills,
    "background": _background,
    "rewind": _rewind,
    "plan": _plan,
    "tabs": _tabs,
}


async def test_rarer_screens_look_as_before(
    snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def discover(*_: object) -> Discovery:
        return SOMETHING

    monkeypatch.setattr("time.time", lambda: 1_030.0)
    monkeypatch.setattr(discovery, "discover", discover)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with live((80, 24)) as console:
        await console.until(lambda: set(THEMES) <= set(console.app.theme_names))
        _give_rules(console.session)
        for name, show in RARER.items():
            before, asked = console.session.state, len(console.tasks)
            await show(console)
            assert await at_every_size(console.app, console.pilot, UNLIKE) == snapshot(name=name)
            for task in console.tasks:
                task.cancel()
            await asyncio.gather(*console.tasks, return_exceptions=True)
            if len(console.tasks) > asked:
                console.session.state = before
            console.app.clear_notifications()
            while console.app.screen.is_modal:
                await console.press("escape")
            console.screen.prompt.put("")
            console.session.record(ModeChanged(mode=Mode.AUTO))
            await console.until(lambda: console.card is None)
            console.screen.prompt.focus()


async def test_what_goes_with_a_message_looks_as_before(
    snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_030.0)
    long = f"/home/ada/Pictures/{'a long name ' * 6}.png"
    images = tuple(
        Image(name=name, file="a.png", sha256="0", media="image/png", width=1280, height=720, size=81_000)
        for name in ("@shots/chart.png", long)
    )
    printed = "\n".join(f"line {number}" for number in range(12))
    async with live((80, 24)) as console:
        await console.until(lambda: set(THEMES) <= set(console.app.theme_names))
        console.session.record(
            OwnCommandEnded(command="make chart", printed=printed, exit_code=3),
            OwnCommandEnded(command="true", printed="(no output)"),
            RunStarted(run=1, task="What is wrong with @shots/chart.png?", policy="combined", images=images),
            OperatorSpoke(text="And with this one?", images=images[:1]),
        )
        await console.until(lambda: "And with this one?" in console.shown())
        assert await at_every_size(console.app, console.pilot) == snapshot(name="attached")


@pytest.mark.parametrize("found", [SOMETHING, NOTHING], ids=["something", "nothing"])
async def test_a_first_start_looks_as_before(
    found: Discovery, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with first_start(found, tmp_path, monkeypatch) as (app, pilot):
        await pilot.resize_terminal(80, 24)
        for theme in read_themes(theme_folders())[0].values():
            app.register_theme(theme)
        assert await at_every_size(app, pilot) == snapshot


# --- everything else, over saved runs ----------------------------------------------------------------------------


def _play(screen: ReplayScreen, story: Story) -> None:
    """Show the end of the story."""
    screen.player = Player(Replay.of(story.events))
    screen.player.presets = SideBySide()
    screen.player.presets.judge(screen.player.replay)
    screen.player.seek(screen.player.replay.length)
    screen.redraw()


SAVED = ("help", "theme", "context", "status", "cost", "diff", "why", "jump", "fork", "sessions")
FURTHER = {"diff": ("v", "+"), "sessions": ("upper", "upper middle")}
"""What is typed on a screen, and what appears."""


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_panes_and_screens_look_as_before(
    size: tuple[int, int], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("time.time", lambda: START + 600)
    themes = themes_at(size)
    for name, story in STORIES.items():
        write_session(tmp_path / "sessions" / name, story().events, stamped=True)
    first, *rest = troubled().events
    forked = first.model_copy(update={"parent": ParentPoint(session_id="troubled", seq=12)})
    write_session(tmp_path / "sessions" / "forked", [forked, *rest], stamped=True)
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
            for form in ("line", "wide", "full"):
                screen.commands.run("panes", form)
                await pilot.pause()
                shown = themes if form == "full" else themes_at(size, UNLIKE)
                assert await in_themes(app, pilot, shown) == snapshot(name=f"run-{name}-{form}")
        _play(screen, troubled())
        for command in SAVED:
            if command == "theme":
                app.theme = THEMES[0]  # the list marks it
            await _opened(app, pilot, screen, command)
            assert await in_themes(app, pilot, themes) == snapshot(name=f"screen-{command}")
            if command in FURTHER:
                keys, appears = FURTHER[command]
                await pilot.press(*keys)
                await until(pilot, lambda appears=appears: appears in picture(app))
                assert await in_themes(app, pilot, themes) == snapshot(name=f"screen-{command}-{keys}")
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
            app.clear_notifications()
