"""The first start: no model is chosen, and the console offers what it finds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.console.waiting import picture, until
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.screens.pick import PickScreen
from tui_agent.console.screens.theme_gallery import ThemeGallery
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.models import discovery
from tui_agent.models.catalogue import KnownModel
from tui_agent.models.discovery import Discovery, Provider
from tui_agent.models.local_servers import ModelServer, ServedModel

NOTHING = Discovery(None, (), (), (), ())
SOMETHING = Discovery(
    None,
    (),
    (),
    (
        ModelServer(
            "Ollama", "127.0.0.1:11434", "http://127.0.0.1:9/v1", (ServedModel("openai/qwen3", 32_768),)
        ),
    ),
    (Provider("openai", "OPENAI_API_KEY", "openai", (KnownModel("openai/gpt-5", 400_000, 1.25, 10.0),)),),
)


@asynccontextmanager
async def first_start(
    found: Discovery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[ConsoleApp, Pilot[None]]]:
    async def discover(*_: Any) -> Discovery:
        return found

    monkeypatch.setattr(discovery, "discover", discover)
    monkeypatch.delenv("AGENT_TUI_MODEL", raising=False)
    overrides: dict[str, object] = {"state_dir": tmp_path / "state", "workspace": tmp_path}
    app = ConsoleApp(ConsoleArguments(overrides=overrides, config=tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text("", encoding="utf-8")
    async with app.run_test(size=(110, 34)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, PickScreen) and "Which model?" in picture(app))
        yield app, pilot
        await app.close_sessions()


async def test_a_server_of_this_machine_is_offered_and_used_with_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with first_start(SOMETHING, tmp_path, monkeypatch) as (app, pilot):
        shown = picture(app)
        assert "Ollama on this machine · window 32.8k" in shown
        assert "openai/gpt-5  window 400k · $1.25 in, $10 out · OPENAI_API_KEY is set" in shown
        await pilot.press("q", "w", "e", "n", "enter")
        await until(pilot, lambda: app.opened is not None)
        assert app.opened is not None
        assert (app.opened.settings.model, app.opened.settings.api_base) == (
            "openai/qwen3",
            "http://127.0.0.1:9/v1",
        )


async def test_what_is_known_of_a_model_stands_below_it_where_a_line_is_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with first_start(SOMETHING, tmp_path, monkeypatch) as (app, pilot):
        await pilot.resize_terminal(70, 24)
        await until(pilot, lambda: "▌ openai/qwen3 " in picture(app))
        rows = [line.strip("│ ") for line in picture(app).splitlines()]
        place = rows.index("openai/gpt-5")
        assert rows[place + 1] == "window 400k · $1.25 in, $10 out · OPENAI_API_KEY is set"
        await pilot.resize_terminal(110, 34)
        await until(pilot, lambda: "openai/gpt-5  window 400k" in picture(app))


async def _opens_with(app: ConsoleApp, pilot: Any, model: str, address: str) -> None:
    await until(pilot, lambda: app.opened is not None)
    assert app.opened is not None
    assert (app.opened.settings.model, app.opened.settings.api_base) == (model, address)


async def test_a_model_that_is_written_is_taken_with_the_address_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with first_start(NOTHING, tmp_path, monkeypatch) as (app, pilot):
        await pilot.press(*"openai/mine http://127.0.0.1:9/v1")
        await until(pilot, lambda: "as you wrote it · http://127.0.0.1:9/v1" in picture(app))
        await pilot.press("enter")
        await _opens_with(app, pilot, "openai/mine", "http://127.0.0.1:9/v1")


async def test_a_model_that_was_chosen_once_is_offered_first_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with first_start(NOTHING, tmp_path, monkeypatch) as (app, pilot):
        await pilot.press(*"openai/mine http://127.0.0.1:9/v1", "enter")
        await until(pilot, lambda: app.opened is not None)
    async with first_start(SOMETHING, tmp_path, monkeypatch) as (app, pilot):
        await until(pilot, lambda: "▌ openai/mine   chosen last time · http://127.0.0.1:9/v1" in picture(app))
        await pilot.press("enter")
        await _opens_with(app, pilot, "openai/mine", "http://127.0.0.1:9/v1")


async def test_where_nothing_is_found_it_says_what_to_do_and_offers_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with first_start(NOTHING, tmp_path, monkeypatch) as (app, pilot):
        shown = picture(app)
        assert "ollama serve" in shown
        await pilot.press("enter")
        await until(pilot, lambda: app.opened is not None)
        screen = app.screen_stack[0]
        assert isinstance(screen, LiveScreen)
        await until(
            pilot, lambda: screen.live.session is not None and screen.live.session.state.run.number == 1
        )


async def test_a_theme_can_be_chosen_before_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with first_start(SOMETHING, tmp_path, monkeypatch) as (app, pilot):
        await pilot.press(*"theme", "enter")
        await until(pilot, lambda: isinstance(app.screen, ThemeGallery) and "agent-light" in picture(app))
        await pilot.press(*"agent-light", "enter")
        await until(pilot, lambda: "Which model?" in picture(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.opened is not None)
        assert app.theme == "agent-light"
        assert 'theme = "agent-light"' in (tmp_path / "config.toml").read_text()


async def test_who_chooses_nothing_leaves_with_the_words_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with first_start(NOTHING, tmp_path, monkeypatch) as (app, pilot):
        assert "Esc leave" in picture(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.exit_text)
        assert "No model is chosen" in app.exit_text
