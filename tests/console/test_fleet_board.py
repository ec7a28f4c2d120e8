"""The board of many runs: rows, one inbox, the way into a run and back, and how runs are stopped and left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from tests.console.waiting import LIMIT, picture, until
from tests.fleet.harness import arguments, let_go
from tests.formats import samples
from tests.store.session_events import iteration, run_started, start, write_session
from tui_agent.console.looks.command_keys import with_tabs
from tui_agent.console.panes.board import BoardList, BoardRun
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.ask import AskScreen
from tui_agent.console.screens.fleet import FleetScreen
from tui_agent.console.screens.followed import FollowedScreen
from tui_agent.console.screens.inbox import InboxScreen
from tui_agent.console.terminal.compositor import SparingScreen
from tui_agent.fleet.folder import FolderRun
from tui_agent.fleet.hosts import LocalHost
from tui_agent.fleet.row import RunRow
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.lines.styled import Line
from tui_agent.store.lines import encode


class Board:
    """Keys in, the board and its tabs out."""

    def __init__(self, app: ConsoleApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> FleetScreen:
        screen = self.app.tabs[0]
        assert isinstance(screen, FleetScreen)
        return screen

    @property
    def outcomes(self) -> list[str]:
        return [run.outcome for run in self.screen.runs]

    async def until(self, holds: Any) -> None:
        await until(self.pilot, holds)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def opened_run(self) -> FollowedScreen:
        """The tab of a run that was just opened, once it shows it."""
        await self.until(lambda: isinstance(self.app.shown, FollowedScreen) and self.app.shown.state)
        shown = self.app.shown
        assert isinstance(shown, FollowedScreen)
        return shown


@asynccontextmanager
async def board(console: ConsoleArguments) -> AsyncIterator[Board]:
    app = ConsoleApp(console)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        made = Board(app, pilot)
        await made.until(lambda: made.screen.can_draw)
        yield made
        await app.close_sessions()


def fleet(folder: Path, runs: int, **given: Any) -> ConsoleArguments:
    start = arguments(folder, runs, **given)
    return ConsoleArguments(fleet=start, overrides={"state_dir": str(folder / "state")})


@pytest.mark.process
async def test_runs_are_answered_from_one_board(tmp_path: Path) -> None:
    async with board(fleet(tmp_path, 2, overrides={"approve": "ask"})) as shown:
        let_go(tmp_path)
        await shown.until(lambda: [run.row.asks for run in shown.screen.runs] == [1, 1])
        await shown.until(lambda: "2 for you" in picture(shown.app))
        assert "WAITING" in picture(shown.app)
        await shown.press("ctrl+l")
        await shown.until(lambda: isinstance(shown.app.screen, InboxScreen))
        await shown.until(lambda: "r1 Part 1" in picture(shown.app))
        await shown.press("escape")
        for place in range(2):
            await shown.press("home", *["down"] * place, "enter")
            run = await shown.opened_run()
            for _ in range(2):  # the command, and the write
                await shown.until(lambda run=run: run.asked and run.card_host.card)
                await shown.until(lambda run=run: run.card_host.card.has_focus_within)
                assert f"Part {place}" in picture(shown.app)
                asked = run.asked[0]
                await shown.until(lambda run=run: run.card_host.card.armed)
                await shown.press("enter")
                await shown.until(lambda asked=asked: asked.future.done())
            await shown.until(lambda place=place: shown.screen.runs[place].over)
            await shown.until(lambda run=run: run.state.run.outcome == "answered")
            assert run.player.at_end
            await shown.press("escape")
            await shown.until(lambda: shown.app.shown is shown.screen)
        assert shown.outcomes == ["answered"] * 2
        assert (tmp_path / "w1" / "out.txt").is_file()


async def test_one_run_is_stopped_from_the_board_and_open_ones_are_left_as_they_are(tmp_path: Path) -> None:
    async with board(fleet(tmp_path, 2)) as shown:
        await shown.until(lambda: all(run.row.step >= 2 for run in shown.screen.runs))
        await shown.press("s")
        await shown.until(lambda: isinstance(shown.app.screen, AskScreen))
        await shown.press("y", "enter")
        await shown.until(lambda: shown.outcomes == ["interrupted", "running"])
        await shown.press("ctrl+q")
        await shown.until(lambda: isinstance(shown.app.screen, AskScreen))
        await shown.press("q", "enter")
        await shown.until(lambda: not shown.app.is_running)
    assert "1 interrupted, 1 running" in shown.app.exit_text
    kept = (tmp_path / "tasks.fleet" / "runs.jsonl").read_text().splitlines()
    results = {said["id"]: said["result"] for said in map(json.loads, kept)}
    assert (results["r0"]["outcome"], results["r1"]) == ("interrupted", None)


async def test_a_folder_of_growing_sessions_is_a_board_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[LocalHost] = []
    begin = LocalHost.start

    async def begun(*arguments: str) -> LocalHost:
        hosts.append(await begin(*arguments))
        return hosts[0]

    monkeypatch.setattr(LocalHost, "start", begun)
    runs = tmp_path / "job"
    told = [start(), run_started(1), *iteration(1, call="c1", fails="no such file: a.py")]
    write_session(runs / "ours", told)
    recorded = samples.write(runs / "ours", "codex")
    (runs / "theirs").mkdir()
    recorded.rename(runs / "theirs" / "rollout.jsonl")
    (runs / "result.json").write_text("{}")
    (runs / "trial__a" / "agent").mkdir(parents=True)
    for name in ("rollout.jsonl", "session.jsonl"):
        samples.write(runs / "trial__a", "codex").rename(runs / "trial__a" / "agent" / name)
    console = ConsoleArguments(watched_folder=runs, overrides={"state_dir": str(tmp_path / "state")})
    wanted = {"ours", "theirs/rollout.jsonl", "trial__a", "trial__a/agent/session.jsonl"}
    async with board(console) as shown:
        await shown.until(lambda: {run.name for run in shown.screen.runs} == wanted)
        ours = next(run for run in shown.screen.runs if run.name == "ours")
        assert (ours.row.step, len(ours.row.ring)) == (1, 1)
        journal = runs / "ours" / "events.jsonl"
        known = journal.read_bytes().count(b"\n")
        more = iteration(2, call="c2", fails="no such file: a.py")
        with journal.open("ab") as file:
            file.writelines(
                encode(event.stamped(known + place, 100.0 + place)) for place, event in enumerate(more, 1)
            )
        await shown.until(lambda: ours.row.step == 2)
    assert [host._child.process.returncode for host in hosts] == [0], "it ends by itself, and at once"


def standing_at(step: int, runs: list[FolderRun]) -> None:
    for run in runs:
        run.row = RunRow(badge="THINKING", step=step, task=f"{run.name} in step {step}")


async def test_a_key_draws_the_two_rows_that_it_is_about_and_a_change_what_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with board(ConsoleArguments(watched_folder=tmp_path)) as shown:
        shown_runs = shown.screen.query_one(BoardList)
        runs = [FolderRun(f"run-{number}", tmp_path) for number in range(200)]
        standing_at(1, runs)
        shown.screen.runs = runs
        for _ in range(2):  # the scroll bar takes a column
            shown.screen.redraw()
            await shown.until(lambda: "run-9 in step 1" in picture(shown.app))
        drawn: list[str] = []
        draw_row = shown_runs.draw_row

        def noted(row: BoardRun, width: int, *, current: bool) -> Line:
            drawn.append(row.name)
            return draw_row(row, width, current=current)

        monkeypatch.setattr(shown_runs, "draw_row", noted)
        standing_at(2, runs)
        await shown.press("down")
        await shown.until(lambda: "▌ run-1 " in picture(shown.app))
        assert sorted(drawn) == ["run-0", "run-1"]
        shown.screen.redraw()
        await shown.until(lambda: "run-9 in step 2" in picture(shown.app))
        assert len(drawn) <= shown_runs.size.height
        await shown.press("end")
        await shown.until(lambda: "run-199 in step 2" in picture(shown.app))


async def test_a_key_on_the_board_does_not_wait_for_the_timer_of_the_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with board(ConsoleArguments(watched_folder=tmp_path)) as shown:
        shown.screen.runs = runs = [FolderRun(f"run-{number}", tmp_path) for number in range(3)]
        standing_at(1, runs)
        shown.screen.redraw()
        await shown.until(lambda: "run-0: run-0 in step 1" in picture(shown.app))  # below, from the first on
        painted: list[object] = []
        frame = SparingScreen._on_timer_update
        monkeypatch.setattr(SparingScreen, "_on_timer_update", lambda screen: painted.append(frame(screen)))
        monkeypatch.setattr(shown.screen._update_timer, "resume", lambda: None)
        shown.screen._update_timer.pause()
        shown.screen._frame_began = 0.0
        shown.app.post_message(events.Key("down", None))
        async with asyncio.timeout(LIMIT):
            while not painted:
                await asyncio.sleep(0.001)


async def test_the_last_line_names_each_key_once_and_help_has_the_keys_of_the_board(tmp_path: Path) -> None:
    async with board(ConsoleArguments(watched_folder=tmp_path)) as shown:
        keys = [hint.key for hint in with_tabs(shown.screen.usual_hints())]
        assert len(set(keys)) == len(keys)
        await shown.press("f1")
        await shown.until(lambda: "The run above" in picture(shown.app))
        assert "One event back" not in picture(shown.app)


async def test_names_take_the_room_that_they_need_and_titles_stand_over_their_columns(tmp_path: Path) -> None:
    async with board(ConsoleArguments(watched_folder=tmp_path)) as shown:
        for name, width in (("a", 10), ("fourteen-cells", 14), ("a-name-of-thirty-cells-and-more", 20)):
            shown.screen.runs = runs = [FolderRun(name, tmp_path)]
            standing_at(1, runs)
            shown.screen.redraw()
            await shown.until(lambda name=name: f"{name}: {name} in step 1" in picture(shown.app))
            _, head, row, *_ = picture(shown.app).splitlines()
            assert head.index("state") - head.index("run") == width + 1
            assert row.index("THINKING") == head.index("state")


async def test_what_the_last_line_has_no_room_for_is_seen_to_be_cut(tmp_path: Path) -> None:
    async with board(ConsoleArguments(watched_folder=tmp_path)) as shown:
        shown.screen.runs = runs = [FolderRun("a-run", tmp_path)]
        standing_at(1, runs)
        runs[0].why = "words " * 60
        shown.screen.redraw()
        await shown.until(lambda: "a-run: words" in picture(shown.app))
        foot = next(line for line in picture(shown.app).splitlines() if "a-run: words" in line)
        assert foot.rstrip().endswith("…")
