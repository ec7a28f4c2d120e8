"""How densely the conversation is drawn: chosen by a command, the same in all tabs and in a replay, remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.console.live_harness import live
from tests.console.terminal import Terminal
from tui_agent.console.screens.live import LiveScreen
from tui_agent.frontend import preferences

SCENARIO = """
title = "Counting"
task = "Count."

[[turns]]
text = "Let me count."
calls = [{ tool = "bash", args = { command = "seq 1 9" } }]

[[turns]]
calls = [{ tool = "read_file", args = { path = "a.py" } }, { tool = "grep", args = { pattern = "x" } }]

[[turns]]
calls = [{ tool = "edit_file", args = { path = "a.py", old = "x = 1", new = "x = 2" } }]

[[turns]]
calls = [{ tool = "bash", args = { command = "echo broken; exit 3" } }]

[[turns]]
text = "It is done."
"""

VIEWS = {
    "normal": (("seq 1 9  → 9", "✓ read 1 file, searched once", "step 1 ─", "x = 2"), ("│ 8",)),
    "full": (("│ 8", "✓ read_file  a.py", "✓ grep  x", "step 1 ─", "x = 2"), ("→ 9", "searched once")),
    "compact": (("seq 1 9  → 9", "✓ read 1 file, searched once"), ("step 1 ─", "x = 2", "│ 8")),
}
"""What each shows of a run, and what it does not."""


@pytest.mark.process
def test_a_view_shows_so_much_of_a_run_is_remembered_and_holds_for_its_replay(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    script = tmp_path / "scenario.toml"
    script.write_text(SCENARIO)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("x = 1\n")
    kept = tmp_path / "state" / preferences.FILE

    def judge(console: Terminal, view: str) -> None:
        there, not_there = VIEWS[view]
        console.shows(*there, "broken", "It is done.")
        console.until(lambda: not any(words in console.picture for words in not_there))

    options = ("--workspace", str(tmp_path / "work"), "--approve", "all", "--sandbox", "off")
    console = start("-m", "tui_agent", "--model", f"scripted:{script}", *options, size=(100, 60))
    console.shows("READY", "Give the agent a task")
    console.send("Count.\r")
    judge(console, "normal")
    for view in ("full", "compact"):
        console.send(f"/view {view}\r")
        console.until(lambda view=view: kept.exists() and json.loads(kept.read_text()).get("view") == view)
        judge(console, view)
    console.send(b"\x11")
    assert console.code() == 0
    session = next((tmp_path / "state" / "sessions").iterdir()).name
    replay = start("-m", "tui_agent", "replay", session, size=(100, 60))
    replay.shows("Space play")
    judge(replay, "compact")


async def test_all_tabs_have_one_view_and_the_status_line_names_it_where_it_is_not_the_usual_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with live((160, 40)) as console:
        kept: list[dict[str, str]] = []
        monkeypatch.setattr(console.app, "remember", lambda **values: kept.append(values))
        first = console.screen
        await console.press("ctrl+t")
        await console.until(lambda: len(console.app.tabs) == 2 and console.app.shown is not first)
        await console.until(lambda: console.screen.status is not None and console.screen.status.is_attached)
        for typed, now in (("/view full", "full"), ("/view", "compact"), ("/view", "normal")):
            await console.say(typed)
            named = f"{now} view"
            await console.until(lambda: kept[-1:] == [{"view": now}])  # noqa: B023
            await console.until(lambda: (f"· {named}" in console.shown()) is (now != "normal"))  # noqa: B023
            assert isinstance(first, LiveScreen)
            assert first.dashboard is not None
            assert first.dashboard.density == now
        await console.say("/view tiny")
        await console.until(lambda: "There is no view tiny" in console.shown())
