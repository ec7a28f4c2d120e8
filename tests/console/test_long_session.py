"""A long session is opened: its end is on the screen, and messages are taken, while the whole of it is read."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.waiting import picture, until
from tests.store.session_events import iteration, run_started, start, write_session
from tui_agent.console.panes import ConversationPane
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.live import LiveScreen
from tui_agent.core.events import Event, Outcome, RunFinished
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.session import opening
from tui_agent.session.session import Session
from tui_agent.store import journal_tail

SCENARIO = """
task = "x"
[pace]
pause = 0.0
interval = 0.0
[[turns]]
text = "The whole is known, and so is this."
"""


def long_session() -> list[Event]:
    events: list[Event] = [start()]
    for run in range(1, 31):
        events.append(run_started(run, f"Task number {run}"))
        for number in range(1, 4):
            events += iteration(number, call=f"c{run}-{number}")
        events.append(RunFinished(outcome=Outcome.ANSWERED, answer=f"Answer number {run}"))
    return events


def under_cursor(app: ConsoleApp) -> list[str]:
    """The rows of the block that has the cursor, each with its number on the screen."""
    rows = enumerate(picture(app).splitlines())
    return [f"{number} {row[:60]}" for number, row in rows if row.startswith("│▌")]


async def test_its_end_is_shown_and_a_message_waits_until_the_whole_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_tail, "TAIL", 20_000)
    monkeypatch.setattr(journal_tail, "ENOUGH", 60)
    read, open_session = asyncio.Event(), opening.open_session

    async def held(*arguments: Any, **options: Any) -> Session:
        await read.wait()
        return await open_session(*arguments, **options)

    monkeypatch.setattr(opening, "open_session", held)
    workspace, scenario = tmp_path / "w", tmp_path / "s.toml"
    workspace.mkdir()
    scenario.write_text(SCENARIO)
    folder = tmp_path / "state" / "sessions" / "s1"
    write_session(folder, [start(workspace=str(workspace)), *long_session()[1:]])
    overrides = {"state_dir": tmp_path / "state", "model": f"scripted:{scenario}"}
    app = ConsoleApp(ConsoleArguments(overrides=overrides, resume="s1"))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "Answer number 30" in picture(app))
        screen = app.shown
        assert isinstance(screen, LiveScreen)
        assert screen.live.session is None
        assert "OPENING" in picture(app)

        # A message is taken; the operator looks at something further up.
        screen.prompt.put("and now?")
        await pilot.press("enter")
        await until(pilot, lambda: "and now?" in picture(app))
        conversation = screen.query_one(ConversationPane)
        conversation.focus()
        await pilot.press(*["up"] * 14)
        await until(pilot, lambda: "End" in picture(app) and "Answer number 30" not in picture(app))
        place = under_cursor(app)
        assert place

        read.set()
        await until(
            pilot, lambda: screen.live.session is not None and "The whole is known" in str(screen.state)
        )
        await until(pilot, lambda: "OPENING" not in picture(app))
        assert screen.live.session is not None
        assert "The whole is known" in screen.live.session.state.run.answer
        assert under_cursor(app) == place
        new = re.search(r"↓ (\d+) new", picture(app))
        assert new is not None
        assert int(new[1]) < 10
        await pilot.press("home")
        await until(pilot, lambda: "Task number 1" in picture(app))
        await app.close_sessions()
