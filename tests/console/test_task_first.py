"""A console that is started with a task, and how early its model host begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from tests.console.terminal import Terminal
from tests.console.waiting import LIMIT, picture, until
from tests.scripted_model import scripted_model
from tui_agent.config.settings import Settings
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens import live
from tui_agent.console.screens.live import LiveScreen
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.models.protocol import Delta, ModelRequest, Reply


class Host:
    """In the place of the model host: notes whether the panes were there at each call."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._model = scripted_model(["First answer.", "Second answer."])
        self.panes: list[bool] = []
        self.answers = asyncio.Event()

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def context_tokens(self, *_: object) -> None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        assert isinstance(self._app.shown, LiveScreen)
        self.panes.append(self._app.shown.dashboard is not None)
        await self.answers.wait()
        async for part in self._model.stream(request):
            yield part


class HostedApp(ConsoleApp):
    """The program, with that host."""

    def __init__(self, arguments: ConsoleArguments, *, calls_first: bool) -> None:
        super().__init__(arguments)
        self.host = Host(self)
        self.said: list[str] = []
        self.attended = False
        self.calls_first = calls_first

    def host_for(self, settings: Settings) -> Host:
        return self.host

    def notify(self, message: str, **_: object) -> None:
        self.said.append(message)

    def attend(self, settings: Settings) -> None:
        super().attend(settings)
        self.attended = True


@pytest.mark.parametrize("first", [True, False])
async def test_a_client_that_is_there_at_once_is_called_before_the_panes_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    monkeypatch.setattr(live, "CALLED", LIMIT)
    overrides: dict[str, object] = {
        "state_dir": tmp_path / "state",
        "workspace": tmp_path,
        "model": "openai/x",
        "sandbox.mode": "off",
    }
    config = tmp_path / "config.toml"
    config.write_text("", encoding="utf-8")
    arguments = ConsoleArguments(overrides=overrides, config=config, task="Say hello.")
    app = HostedApp(arguments, calls_first=first)
    async with app.run_test(size=(110, 34)) as pilot:
        await pilot.press(*"next")
        await until(pilot, lambda: app.host.panes and app.attended)
        assert app.said == []
        app.host.answers.set()
        await until(pilot, lambda: "First answer." in picture(app))
        assert app.host.panes == [not first]
        await until(pilot, lambda: "next" in picture(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Second answer." in picture(app))
        assert app.host.panes == [not first, True]
        await app.close_sessions()


LOOKS = """
import os, sys
from pathlib import Path
def look(event, arguments):
    if event == "subprocess.Popen" and "tui_agent.models.host" in arguments[1]:
        Path(sys.argv[1]).write_text(str("pydantic" in sys.modules))
sys.addaudithook(look)
from tui_agent.cli import main
main(["--model", "openai/x"])
"""


@pytest.mark.process
def test_the_model_host_begins_before_settings_are_read(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    said = tmp_path / "said"
    terminal = start("-c", LOOKS, str(said), AGENT_TUI_HOST_MINUTES="0")
    terminal.until(said.exists)
    terminal.until(said.read_text)
    assert said.read_text() == "False"
