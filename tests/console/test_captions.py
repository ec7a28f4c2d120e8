"""Captions of a demo: each once at its moment, a request waits while one is read, none where they are not wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.console.driven import DrivenConsole
from tui_agent.console.looks.captions import HOLDS
from tui_agent.console.program import ConsoleApp
from tui_agent.core.state import RunState
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.models.scenario import CaptionMoment
from tui_agent.models.scenario_file import load_scenario, scenario_names

SCRIPT = """
task = "Read it."

[[captions]]
moment = "begun"
text = "The conversation stands above."

[[captions]]
moment = "question"
text = "The model asks: answer it."

[[captions]]
moment = "failed"
text = "A call failed."

[[captions]]
moment = "recovered"
text = "It found the file."

[[captions]]
moment = "done"
text = "All is saved."

[files]
"notes.txt" = "x"

[[turns]]
calls = [{ tool = "read_file", args = { path = "note.txt" } }]

[[turns]]
calls = [{ tool = "read_file", args = { path = "notes.txt" } }]

[[turns]]
calls = [{ tool = "ask_operator", args = { question = "Is that it?" } }]

[[turns]]
text = "Then it is done."
"""


@asynccontextmanager
async def demo(
    folder: Path, *, size: tuple[int, int] = (80, 24), **overrides: object
) -> AsyncIterator[DrivenConsole]:
    (folder / "script.toml").write_text(SCRIPT)
    app = ConsoleApp(
        ConsoleArguments(
            overrides={"state_dir": folder / "state", **overrides}, demo=str(folder / "script.toml")
        )
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        console = DrivenConsole(app, pilot)
        try:
            yield console
        finally:
            await app.close_sessions()


def requests(console: DrivenConsole) -> int:
    state = console.screen.state
    return 0 if state is None else state.run.iteration


async def test_each_is_shown_at_its_moment_and_the_next_request_waits_until_it_was_read(
    tmp_path: Path,
) -> None:
    async with demo(tmp_path) as console:
        await console.until(lambda: "1 of 5  Enter go on  Esc no captions" in console.shown())
        assert "The conversation stands above." in console.shown()
        assert requests(console) == 0
        await console.until(lambda: "Esc interrupt" not in console.shown())
        await console.press("enter")
        await console.until(lambda: "A call failed." in console.shown())
        assert requests(console) == 1
        await console.press("enter")
        await console.until(lambda: "It found the file." in console.shown())
        assert requests(console) == 2
        await console.press("enter")
        await console.until(lambda: "The model asks: answer it." in console.shown())
        assert "Enter go on" not in console.shown(), "the card has the keys"
        await console.until(lambda: (card := console.screen.card_host.card) and card.has_focus_within)
        await console.press("y", "e", "s", "enter")
        await console.until(lambda: "All is saved." in console.shown())
        assert "The model asks: answer it." not in console.shown()
        await console.press("enter")
        await console.until(lambda: "All is saved." not in console.shown())


async def test_esc_ends_them_and_the_run_goes_on(tmp_path: Path) -> None:
    async with demo(tmp_path) as console:
        await console.until(lambda: "1 of 5" in console.shown())
        await console.press("escape")
        await console.until(lambda: "Is that it?" in console.shown())
        assert console.screen.state is not None
        assert not console.screen.state.interrupted
        assert "of 5  " not in console.shown()


async def test_there_are_none_where_they_are_not_wanted(tmp_path: Path) -> None:
    async with demo(tmp_path, captions=False) as console:
        await console.until(lambda: "Is that it?" in console.shown())
        assert "of 5  " not in console.shown()


async def test_the_card_has_the_room_of_a_low_terminal(tmp_path: Path) -> None:
    async with demo(tmp_path, size=(60, 20)) as console:
        for moment in ("stands above", "A call failed", "found the file"):
            await console.until(lambda moment=moment: moment in console.shown())
            await console.press("enter")
        await console.until(lambda: "Is that it?" in console.shown())
        assert "The model asks: answer it." not in console.shown()


def test_every_moment_can_be_told_from_a_state() -> None:
    assert set(HOLDS) == set(CaptionMoment)
    assert not any(holds(RunState()) for holds in HOLDS.values())


@pytest.mark.parametrize("name", scenario_names())
def test_every_demo_begins_and_ends_with_one_and_none_is_long(name: str) -> None:
    captions = load_scenario(name).captions
    assert (captions[0].moment, captions[-1].moment) == (CaptionMoment.BEGUN, CaptionMoment.DONE)
    assert max(len(caption.text) for caption in captions) <= 240
