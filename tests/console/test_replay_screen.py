"""The replay: a player over a saved session, its keys, its scrubber."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.console.waiting import goes_to, picture, until
from tui_agent.config.settings import user_config_file
from tui_agent.console.panes.pane_sizes import PaneSizes
from tui_agent.console.panes.scrubber import column_of
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.fork import ForkScreen
from tui_agent.console.screens.help import HelpScreen, replay_rows, sections
from tui_agent.console.screens.replay import ReplayScreen
from tui_agent.core.events import (
    ApprovalAsked,
    EscalationAnswered,
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    IterationFinished,
    IterationStarted,
    LaneEvent,
    Level,
    ModelCallStarted,
    NotePrepared,
    Outcome,
    ReplyDelta,
    ReplyFinished,
    RunFinished,
    RunStarted,
    SessionStarted,
    ToolCall,
    ToolFailed,
    ToolStarted,
    VerdictReached,
)
from tui_agent.frontend import preferences
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.commands.host import ChosenSession
from tui_agent.frontend.commands.registry import use_keys
from tui_agent.quantities import seconds
from tui_agent.session.player import FRAME, SPEEDS, Player
from tui_agent.session.replay import Replay, StopAt
from tui_agent.store.lines import encode


def recording() -> list[Event]:
    """Two iterations: a failure with a verdict and an escalation, then an answer; long idle times between."""
    call = ToolCall(id="c1", name="bash", arguments='{"command": "make"}')
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message="exit code 2", tool="bash")
    events: list[Event] = [
        SessionStarted(session_id="saved", workspace="/nowhere"),
        RunStarted(run=1, task="build it", policy="combined", model="scripted:x"),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1, model="scripted:x"),
        *(ReplyDelta(text=f"piece{number} ") for number in range(10)),
        ReplyFinished(text="I build.", calls=(call,), model="scripted:x"),
        ToolStarted(call_id="c1", tool="bash", input={"command": "make"}),
        ToolFailed(
            call_id="c1", tool="bash", input={"command": "make"}, content="exit code 2", failure=failure
        ),
        IterationFinished(iteration=1),
        VerdictReached(
            iteration=1, level=Level.GUIDE, detector="attempts", reason="bash failed (attempt 1/3)"
        ),
        NotePrepared(text="Read the error."),
        EscalationRaised(id="q", question="What now?", source="attempts"),
        EscalationAnswered(id="q", choice="answer", text="Use ninja.", message="Use ninja."),
        IterationStarted(iteration=2),
        ModelCallStarted(iteration=2, model="scripted:x"),
        ReplyFinished(text="Built.", model="scripted:x"),
        IterationFinished(iteration=2),
        RunFinished(outcome=Outcome.ANSWERED, answer="Built."),
    ]
    at = 1_000.0
    stamped = []
    for number, event in enumerate(events, 1):
        at += 0.01 if isinstance(event, ReplyDelta) else 60.0
        stamped.append(event.stamped(number, at))
    return stamped


@pytest.fixture
def player() -> Player:
    return Player(Replay.of(recording()))


def test_steps_stay_inside_and_pause(player: Player) -> None:
    player.playing = True
    player.step(-5)
    assert (player.position, player.playing) == (0, False)
    player.step(10_000)
    assert player.at_end


def test_playing_shortens_idle_times_and_shows_quick_events_together(player: Player) -> None:
    player.toggle()
    waits = []
    while player.playing:
        waits.append(player.advance())
    assert player.at_end
    assert max(waits) <= 2.0
    assert len(waits) < player.replay.length
    assert all(wait >= FRAME or wait == 0.0 for wait in waits)


def test_playing_again_at_the_end_begins_anew(player: Player) -> None:
    player.seek(player.replay.length)
    player.toggle()
    assert (player.position, player.playing) == (0, True)


def test_speed_keeps_to_its_bounds(player: Player) -> None:
    for _ in range(20):
        player.change_speed(1)
    assert player.speed == SPEEDS[-1]
    for _ in range(20):
        player.change_speed(-1)
    assert player.speed == SPEEDS[0]


@pytest.mark.parametrize("stop", list(StopAt))
def test_every_kind_of_place_is_found_there_and_back(player: Player, stop: StopAt) -> None:
    assert player.jump(stop)
    there = player.position
    player.seek(player.replay.length)
    while player.jump(stop, back=True):
        pass
    assert player.position == there


def test_columns_run_from_the_first_to_the_last_cell() -> None:
    assert (column_of(0, 100, 50), column_of(100, 100, 50)) == (0, 49)
    assert column_of(3, 0, 50) == 0


@asynccontextmanager
async def replaying(
    path: Path, state_dir: Path, at: int = 1, **options: object
) -> AsyncIterator[tuple[ReplayScreen, Pilot[None]]]:
    overrides = {"state_dir": state_dir, **options}
    app = ConsoleApp(ConsoleArguments(overrides=overrides, replay=str(path), at_event=at))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = app.screen_stack[0]
        assert isinstance(screen, ReplayScreen)
        await until(pilot, lambda: screen.player is not None)
        yield screen, pilot


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "state" / "sessions" / "saved"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(b"".join(encode(event) for event in recording()))
    return folder


def remarks(screen: ReplayScreen) -> str:
    """What was said in the corner."""
    return "\n".join(notification.message for notification in screen.app._notifications)


def shown(screen: ReplayScreen) -> str:
    strips = screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def test_the_keys_of_the_replay_move_through_the_session(saved: Path, tmp_path: Path) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        player = screen.player
        assert player is not None
        for keys, position in [
            (["right"], 2),
            (["left"], 1),
            (["shift+right"], 3),
            (["shift+right"], 23),
            (["shift+left"], 3),
            (["e"], 17),
            (["v"], 19),
            (["x"], 21),
            (["E"], 17),
            (["end"], 27),
            (["home"], 0),
        ]:
            await pilot.press(*keys)
            assert player.position == position, keys
        await pilot.press("right_square_bracket", "right_square_bracket", "left_square_bracket")
        assert player.speed == 2.0
        await pilot.press("space")
        assert player.playing
        await pilot.press("space")
        assert not player.playing


async def test_the_panes_and_the_scrubber_show_the_position(saved: Path, tmp_path: Path) -> None:
    async with replaying(saved, tmp_path / "state", at=20) as (screen, pilot):
        await until(pilot, lambda: "event 20/27" in shown(screen) and "reading" not in shown(screen))
        text = shown(screen)
        for part in ("event 20/27", "build it", "exit code 2", "Read the error.", "▽", "✗", "▲"):
            assert part in text
        assert "Built." not in text
        await pilot.press("end")
        await until(pilot, lambda: "Built." in shown(screen))


async def test_the_presets_stand_side_by_side_at_any_event(saved: Path, tmp_path: Path) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        nothing = "forge nothing · gigi nothing · funnelcanary nothing · hpd nothing · combined nothing"
        await until(pilot, lambda: nothing in shown(screen))
        await pilot.press("x")
        said = "forge guide · gigi guide · funnelcanary nothing · hpd nothing · combined guide"
        await until(pilot, lambda: said in shown(screen))


def test_each_question_to_the_operator_is_a_mark() -> None:
    asked: list[Event] = [
        ApprovalAsked(id="a", call_id="c1", tool="bash", input={}),
        EscalationRaised(id="q", question="?", source="attempts"),
        LaneEvent(lane="c1", name="look", event=ApprovalAsked(id="b", call_id="c2", tool="bash", input={})),
        LaneEvent(lane="c1", name="look", event=EscalationRaised(id="r", question="?", source="attempts")),
        LaneEvent(lane="c1", name="look", event=IterationStarted(iteration=1)),
    ]
    events = [event.stamped(seq, float(seq)) for seq, event in enumerate([*recording()[:5], *asked], 1)]
    assert list(Replay.of(events).marks().escalations) == [6, 7, 8, 9]


async def test_the_cost_of_a_run_is_told_for_the_position_and_not_for_today(
    saved: Path, tmp_path: Path
) -> None:
    async with replaying(saved, tmp_path / "state", at=20) as (screen, pilot):
        await until(pilot, lambda: "event 20/27" in shown(screen) and "reading" not in shown(screen))
        assert screen.player is not None
        passed = seconds(screen.player.now - screen.player.state.metrics.started_at)
        screen.commands.run("cost")
        await until(pilot, lambda: "1 model call" in picture(screen.app))
        assert f"1 tool call, {passed}" in picture(screen.app)


async def test_all_panes_count_a_failure_where_it_happens(saved: Path, tmp_path: Path) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        await pilot.press("f2")
        await pilot.press("e")
        # The failure itself, the end of its step, the verdict: nothing is counted a second time.
        for event in (17, 18, 19):
            await until(pilot, lambda event=event: f"event {event}/27" in shown(screen))
            text = shown(screen)
            for part in ("bash: exit code 2", "●○○ bash make", "1/3", "- bash failed: exit code 2", "0.20 ↘"):
                assert part in text, (event, part)
            assert text.count("○ ○ ○ ○  4 more like it") == 1
            await pilot.press("right")
        await pilot.press("home", *["right"] * 16)
        await until(pilot, lambda: "event 16/27" in shown(screen))
        assert "no call has failed" in shown(screen)
        assert "0.30 →" in shown(screen)
        assert "○ ○ ○ ○ ○ nothing failed" in shown(screen)


async def test_a_question_stands_in_the_conversation_until_it_is_answered(
    saved: Path, tmp_path: Path
) -> None:
    async with replaying(saved, tmp_path / "state", at=20) as (screen, pilot):
        await until(pilot, lambda: "event 20/27" in shown(screen))
        assert "What now?" not in shown(screen)
        await pilot.press("x")
        await until(pilot, lambda: all(part in shown(screen) for part in ("▲ asks you", "What now?")))
        await pilot.press("right")
        await until(pilot, lambda: all(part in shown(screen) for part in ("asked you", "» Use ninja.")))
        assert "▲ asks you" not in shown(screen)


async def test_the_help_says_what_is_on_the_screen_and_then_the_keys_of_the_replay(
    saved: Path, tmp_path: Path
) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        screen.set_focus(None)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(screen.app.screen, HelpScreen))
        await until(
            pilot,
            lambda: picture(screen.app).partition("Help")[2].splitlines()[1].strip(" │") == "The screen",
        )
    assert [title for title, _ in sections(replay=True)][:3] == [
        "The screen",
        "Replay",
        "Commands and their keys",
    ]
    assert "Prompt" not in dict(dict(sections(replay=True))["The screen"])
    assert "Prompt" not in dict(sections(replay=True))
    assert not any("/compact" in left for left, _ in dict(sections(replay=True))["Commands and their keys"])


async def test_a_jump_that_finds_nothing_says_so_in_the_words_of_the_keys(
    saved: Path, tmp_path: Path
) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        await pilot.press("end", "x")
        await until(
            pilot,
            lambda: any(note.message == "No question after this." for note in screen.app._notifications),
        )


async def test_a_click_on_the_scrubber_goes_there(saved: Path, tmp_path: Path) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        await until(pilot, lambda: "event 1/27" in shown(screen))
        await pilot.click("#scrubber", offset=(118, 1))
        await until(pilot, lambda: screen.player is not None and screen.player.at_end)


async def test_a_fork_goes_over_to_a_session_of_its_own(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopting: list[Path] = []

    async def adopt(folder: Path) -> None:
        adopting.append(folder)

    monkeypatch.setattr("tui_agent.session.fork.adopt_checkpoints", adopt)
    before = (saved / "events.jsonl").read_bytes()
    async with replaying(saved, tmp_path / "state", at=19) as (screen, pilot):
        app = screen.app
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkScreen) and app.screen.focused is not None)
        went = goes_to(app)
        await pilot.press("enter")
        await until(pilot, lambda: went)
    fork = saved.parent / str(went[0].resume) / "events.jsonl"
    assert len(fork.read_text(encoding="utf-8").splitlines()) >= 19
    assert (saved / "events.jsonl").read_bytes() == before
    assert adopting == [fork.parent]


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Reading the session through waits until this is set."""
    go_on = threading.Event()
    prepare = Replay.prepare

    def waiting(replay: Replay, progress: Callable[[float], None] | None = None) -> None:
        while not go_on.wait(0.01):
            if progress is not None:
                progress(0.0)
        prepare(replay, progress)

    monkeypatch.setattr(Replay, "prepare", waiting)
    yield go_on
    go_on.set()


async def test_keys_are_answered_while_the_session_is_read_and_done_when_it_is(
    saved: Path, tmp_path: Path, reading: threading.Event
) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        player = screen.player
        assert player is not None
        await until(pilot, lambda: "reading… 0%" in shown(screen))
        assert "▲" not in shown(screen)
        await pilot.press("end")
        await until(pilot, lambda: "event 27/27" in shown(screen))
        await pilot.press("f")
        await until(pilot, lambda: "still being read" in remarks(screen))
        assert "Built." not in shown(screen)
        await pilot.press("home", "v")
        assert player.position == 0
        reading.set()
        await until(pilot, lambda: player.position == 19 and "exit code 2" in shown(screen))
        screen.app.clear_notifications()
        await until(pilot, lambda: "▲" in shown(screen) and "reading" not in shown(screen))


async def test_a_jump_that_waits_is_forgotten_when_another_key_comes(
    saved: Path, tmp_path: Path, reading: threading.Event
) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        player = screen.player
        assert player is not None
        await pilot.press("e", "right")
        reading.set()
        await until(pilot, lambda: "reading" not in shown(screen))
        assert player.position == 2


async def test_playing_waits_where_the_session_is_not_read_yet(
    saved: Path, tmp_path: Path, reading: threading.Event
) -> None:
    async with replaying(saved, tmp_path / "state", at=3) as (screen, pilot):
        player = screen.player
        assert player is not None
        player.speed = 64.0
        await pilot.press("space")
        await until(pilot, lambda: player.playing)
        assert player.position == 3
        reading.set()
        await until(pilot, lambda: player.at_end and "Built." in shown(screen))


async def test_leaving_does_not_wait_until_the_session_is_read(
    saved: Path, tmp_path: Path, reading: threading.Event
) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        await until(pilot, lambda: "reading… 0%" in shown(screen))
        replay = screen.player.replay if screen.player is not None else None
    await asyncio.get_running_loop().shutdown_default_executor()
    assert replay is not None
    assert not replay.ready
    assert not reading.is_set()


@pytest.mark.parametrize(("damaged", "seen"), [('"detector":"attempts"', 18), ('"text":"piece3 "', 7)])
async def test_a_damaged_event_ends_the_session_where_it_is_found_and_is_reported(
    saved: Path, tmp_path: Path, damaged: str, seen: int
) -> None:
    journal = saved / "events.jsonl"
    text = journal.read_text(encoding="utf-8").replace(damaged, damaged.rpartition(":")[0] + ":[]", 1)
    journal.write_text(text, encoding="utf-8")
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        player = screen.player
        assert player is not None
        await until(pilot, lambda: "reading" not in shown(screen))
        await pilot.press("end")
        await until(pilot, lambda: f"event {seen}/{seen}" in shown(screen))
        assert f"damaged in line {seen + 1}" in remarks(screen)


async def test_a_session_that_is_judged_anew_says_so_and_is_not_forked(saved: Path, tmp_path: Path) -> None:
    async with replaying(saved, tmp_path / "state", policy="hpd") as (screen, pilot):
        await until(pilot, lambda: "Judged anew by hpd" in remarks(screen))
        await pilot.press("f")
        await until(pilot, lambda: "fork it there" in remarks(screen))
        assert screen.app.screen is screen
        before = screen.app.arguments
        assert before.overrides["policy"] == "hpd"
        went = goes_to(screen.app)
        screen.commands.open_session(ChosenSession("other"))
        assert "policy" not in went[0].overrides


@pytest.mark.parametrize("content", ["", "not a session\n", '{"type": "nonsense"}\n'])
async def test_a_file_that_is_no_session_is_reported_in_words(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content, encoding="utf-8")
    app = ConsoleApp(ConsoleArguments(overrides={"state_dir": tmp_path}, replay=str(path)))
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.exit_text)
    assert app.return_code == 2
    assert "x.jsonl" in app.exit_text
    assert "Traceback" not in app.exit_text


async def test_the_keys_of_the_replay_are_the_operators(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = user_config_file()
    file.parent.mkdir(parents=True)
    file.write_text('[keys]\nreplay-error = "r"\nreplay-play = "y"\nreplay-fork = ""\n', "utf-8")
    try:
        async with replaying(saved, tmp_path / "state") as (screen, pilot):
            player = screen.player
            assert player is not None
            await until(pilot, lambda: "r error" in shown(screen) and "y play" in shown(screen))
            assert "f fork" not in shown(screen)
            await pilot.press("e")
            assert player.position == 1
            await pilot.press("r")
            await until(pilot, lambda: player.position > 1)
            there = player.position
            await pilot.press("r")
            await until(pilot, lambda: player.position > there or "No error after" in remarks(screen))
            await pilot.press("R")
            await until(pilot, lambda: player.position <= there)
            await pilot.press("y")
            assert player.playing
            assert ("r", "Next error; with Shift the one before") in replay_rows()
    finally:
        use_keys({})


async def test_a_replay_has_the_form_and_the_sizes_of_the_panes_that_the_last_start_had(
    saved: Path, tmp_path: Path
) -> None:
    preferences.save(tmp_path / "state", panes="side", **PaneSizes(30, column=(9, 8, 7, 6)).words())
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        await until(pilot, lambda: screen.query_one("#recovery").region.width == 36)
        await until(pilot, lambda: screen.query_one("#ring").region.height == 9)
    preferences.save(tmp_path / "state", panes="strip")
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        await until(pilot, lambda: not screen.query_one("#recovery").region.width)


async def test_the_last_line_names_every_key_of_the_replay_at_120_columns(
    saved: Path, tmp_path: Path
) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        await until(pilot, lambda: "x question" in shown(screen))
        assert shown(screen).rstrip().splitlines()[-1].rstrip().endswith("f fork  ^F find  F2 panes")


async def test_a_text_of_the_whole_session_is_found_and_gone_to(saved: Path, tmp_path: Path) -> None:
    async with replaying(saved, tmp_path / "state") as (screen, pilot):
        player = screen.player
        assert player is not None
        await until(pilot, lambda: player.replay.ready)
        player.playing = False
        await pilot.press("home", "ctrl+f")
        await until(pilot, lambda: "Find in this conversation" in picture(screen.app))
        await pilot.press(*"ninja")
        await until(pilot, lambda: "Use ninja." in picture(screen.app))
        await pilot.press("enter")
        await until(pilot, lambda: screen.app.screen is screen and "Use ninja." in picture(screen.app))
        assert (player.position, player.playing) == (22, False)
        await pilot.press("home", "ctrl+f")
        await until(pilot, lambda: "Find in this conversation" in picture(screen.app))
        await pilot.press(*"i", "space", *"build", "enter")
        await until(pilot, lambda: player.position == 15)
