"""The scripts that take the pictures still find their way through the program."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tui_agent.console.program import ConsoleApp
from tui_agent.frontend.arguments import ConsoleArguments

SCRIPTS = Path(__file__).resolve().parents[2] / "screenshots"


@pytest.mark.skipif(not SCRIPTS.is_dir(), reason="a source distribution is without the pictures")
async def test_the_first_session_is_found_behind_the_first_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    script = importlib.import_module("make")
    app = ConsoleApp(ConsoleArguments(overrides={"state_dir": tmp_path}, demo="recovery"))
    async with app.run_test() as pilot:
        screen = await script.first_session(app, pilot)
        assert screen is app.shown
        await app.close_sessions()
