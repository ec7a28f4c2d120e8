"""The console over another agent's session: it follows, goes back, asks, answers where hooks are, forks."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.cli.test_watch import failing
from tests.console.waiting import picture, until
from tests.formats import samples
from tui_agent.agents.answers import mark_of, take
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.fork import ForkScreen
from tui_agent.console.screens.watch import WatchScreen
from tui_agent.core import events
from tui_agent.formats.importers.judgement import GrowingJudgement
from tui_agent.frontend.arguments import ConsoleArguments


def task(text: str = "Fix it", name: str = "u1") -> dict[str, Any]:
    return samples.claude("user", name, None, text, 0)


def add(path: Path, *records: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(samples.lines(records))


@asynccontextmanager
async def watching(tmp_path: Path, *paths: Path) -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    arguments = ConsoleArguments(
        overrides={"state_dir": str(tmp_path / "state")}, watch=tuple(map(str, paths))
    )
    app = ConsoleApp(arguments)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.shown, WatchScreen) and app.shown.player is not None)
        yield app, pilot


def screen_of(app: ConsoleApp) -> WatchScreen:
    assert isinstance(app.shown, WatchScreen)
    return app.shown


async def test_what_is_written_comes_to_the_panes(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    add(path, task())
    async with watching(tmp_path, path) as (app, pilot):
        await until(pilot, lambda: "Fix it" in picture(app))
        add(path, *failing(1, "u1"))
        await until(pilot, lambda: "no rule" in picture(app) and "failure" in picture(app))
        assert not screen_of(app).questions


async def test_the_end_of_a_long_session_is_shown_before_it_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = threading.Event()
    update = GrowingJudgement.update

    def later(judgement: GrowingJudgement, facts: list[events.Event], stand: int) -> int:
        judged.wait(60)
        return update(judgement, facts, stand)

    monkeypatch.setattr(GrowingJudgement, "update", later)
    monkeypatch.setattr("tui_agent.frontend.watching._LONG", 20)
    path = tmp_path / "session.jsonl"
    add(path, task(), *(line for number in range(1, 9) for line in failing(number, f"r{number - 1}")))
    async with watching(tmp_path, path) as (app, pilot):
        screen = screen_of(app)
        await until(pilot, lambda: "step 8" in picture(app))
        assert "Our policy" not in picture(app)
        assert screen.state is not None
        assert not screen.state.seq
        judged.set()
        await until(pilot, lambda: "the same error 8 times" in picture(app) and "Our policy" in picture(app))


async def test_going_back_stays_there_while_it_grows_and_the_end_follows_again(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    add(path, task(), *failing(1, "u1"))
    async with watching(tmp_path, path) as (app, pilot):
        player = screen_of(app).player
        assert player is not None
        await until(pilot, lambda: player.replay.length > 5)
        await pilot.press("home", "right")
        add(path, *failing(2, "r1"))
        before = player.replay.length
        await until(pilot, lambda: player.replay.length > before)
        assert player.position == 1
        await pilot.press("end")
        add(path, samples.claude("assistant", "z", "r2", [{"type": "text", "text": "The end."}], 9))
        await until(pilot, lambda: "The end." in picture(app))
        assert player.at_end


async def test_the_card_says_that_it_only_watches_where_no_hook_was_heard(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    add(path, task(), *failing(1, "u1"), *failing(2, "r1"), *failing(3, "r2"))
    async with watching(tmp_path, path) as (app, pilot):
        await until(pilot, lambda: "Our policy would ask" in picture(app))
        await until(pilot, lambda: "only watches" in picture(app))
        assert "hooks install claude-code" in picture(app)
        assert len(screen_of(app).questions) == 1
        goes_on = samples.claude("assistant", "z", "r3", [{"type": "text", "text": "Otherwise."}], 9)
        add(path, goes_on)
        await until(pilot, lambda: "Our policy would ask" not in picture(app))
        await until(pilot, lambda: "Otherwise." in picture(app) and "reading" not in picture(app))
        assert not screen_of(app).questions


async def test_an_answer_waits_for_the_next_hook_of_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    folder = tmp_path / "state" / "sessions" / f"20260102-030400-{mark_of('claude-code', 's-1')}"
    folder.mkdir(parents=True)
    add(path, task(), *failing(1, "u1"), *failing(2, "r1"), *failing(3, "r2"))
    async with watching(tmp_path, path) as (app, pilot):
        await until(pilot, lambda: "Its hooks are installed" in picture(app))
        await pilot.press("f8", *"use ninja", "enter")
        await until(pilot, (folder / "answer.txt").exists)
        assert not screen_of(app).questions
    assert take(folder) == "use ninja"
    assert take(folder) == ""


async def test_several_sessions_are_tabs_and_questions_stand_in_one_inbox(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    add(one, task("the first"))
    add(other, task("the second"), *failing(1, "u1"), *failing(2, "r1"), *failing(3, "r2"))
    async with watching(tmp_path, one, other) as (app, pilot):
        await until(pilot, lambda: len(app.tabs) == 2 and any(tab.questions for tab in app.tabs))
        await pilot.press("alt+1", "ctrl+l")
        await until(pilot, lambda: "Bash has failed 3 times" in picture(app))
        await pilot.press("enter")
        await until(pilot, lambda: "the second" in picture(app))


async def test_what_runs_is_shown_and_what_has_ended_is_behind_a_key(tmp_path: Path) -> None:
    """The newest file is that of a session that is over, while a call of another one takes long."""
    over, runs, older = (tmp_path / f"{name}.jsonl" for name in ("over", "runs", "older"))
    answer = samples.claude("assistant", "a9", "u1", [{"type": "text", "text": "Done."}], 9)
    add(over, task("the first"), answer)
    add(runs, task("the second"), *failing(1, "u1"))
    add(older, task("the third"), answer)
    async with watching(tmp_path, over, runs, older) as (app, pilot):
        await until(pilot, lambda: "the second" in picture(app))
        assert len(app.tabs) == 2
        await pilot.press("alt+1")
        await until(pilot, lambda: "the first" in picture(app))
        await pilot.press("m")
        await until(pilot, lambda: len(app.tabs) == 3)
        await until(pilot, lambda: app.shown is app.tabs[0])


async def test_a_fork_is_a_session_of_ours_with_its_history(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    add(path, task(), *failing(1, "u1"))
    async with watching(tmp_path, path) as (app, pilot):
        await until(pilot, lambda: "no rule" in picture(app))
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkScreen))
    (kept,) = (tmp_path / "state" / "sessions").iterdir()
    assert "no rule" in (kept / "events.jsonl").read_text()


async def test_a_session_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    async with watching(tmp_path, path) as (app, pilot):
        await pilot.press("right", "end", "f", "f8")
        add(path, task("late"))
        await until(pilot, lambda: "late" in picture(app))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (200, 60)])
async def test_hostile_text_and_small_screens_are_drawn(size: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    add(path, task("[/red] \x1b]0;x\x07 [@click=app.quit]go[/]"), *failing(1, "u1"))
    async with watching(tmp_path, path) as (app, pilot):
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: "[/red]" in picture(app))
        assert "\x1b" not in picture(app)
