"""How densely the conversation is drawn: chosen by a command, the same in all tabs and in a replay, remembered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.console.live_harness import live
from tests.console.terminal import Terminal
from tests.openai_server import OpenAIServer, calls, text
from tui_agent.console.screens.live import LiveScreen
from tui_agent.frontend import preferences

SCRIPT = (
    calls([("bash", json.dumps({"command": "seq 1 9"}))], say="Let me count."),
    calls([("read_file", json.dumps({"path": "a.py"})), ("grep", json.dumps({"pattern": "x"}))]),
    calls([("edit_file", json.dumps({"path": "a.py", "old": "x = 1", "new": "x = 2"}))]),
    calls([("bash", json.dumps({"command": "echo broken; exit 3"}))]),
    text("It is done."),
)


@pytest.mark.parametrize(
    ("density", "there", "not_there"),
    [
        ("compact", ("seq 1 9  → 9", "✓ read 1 file, searched once"), ("step 1 ─", "x = 2", "│ 8")),
        ("normal", ("seq 1 9  → 9", "✓ read 1 file, searched once", "step 1 ─", "x = 2"), ("│ 8",)),
        ("full", ("│ 8", "✓ read_file  a.py", "✓ grep  x", "step 1 ─", "x = 2"), ("→ 9", "searched once")),
    ],
)
async def test_a_view_shows_so_much_of_a_run_and_of_its_replay(
    start: Callable[..., Terminal],
    tmp_path: Path,
    density: str,
    there: tuple[str, ...],
    not_there: tuple[str, ...],
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("x = 1\n")
    kept = tmp_path / "state" / preferences.FILE

    def judge(console: Terminal) -> None:
        console.shows(*there, "broken", "It is done.")
        assert [words for words in not_there if words in console.picture] == []

    def look(url: str) -> None:
        options = ("--workspace", str(tmp_path / "work"), "--approve", "all", "--sandbox", "off")
        model = ("--model", "openai/x", "--api-base", url)
        console = start("-m", "tui_agent", *model, *options, size=(100, 60), OPENAI_API_KEY="k")
        console.shows("READY", "Give the agent a task")
        console.send(f"/view {density}\r")
        console.until(lambda: kept.exists() and json.loads(kept.read_text()).get("view") == density)
        console.send("Count.\r")
        judge(console)
        console.send(b"\x11")
        assert console.code() == 0
        session = next((tmp_path / "state" / "sessions").iterdir()).name
        replay = start("-m", "tui_agent", "replay", session, size=(100, 60))
        replay.shows("Space play")
        judge(replay)

    async with OpenAIServer(SCRIPT) as server:
        await asyncio.to_thread(look, server.url)


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
