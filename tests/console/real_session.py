"""The console over a real session: scripted turns, real tools, a journal and checkpoints in a folder of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.console.driven import DrivenConsole
from tests.console.waiting import LIMIT
from tests.scripted_model import scripted_model
from tui_agent.config.settings import Settings
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.tabs.tab import Tab
from tui_agent.core.events import Approval
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.startup import Opened
from tui_agent.models.scripted import ScriptedModel
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session


class RealApp(ConsoleApp):
    """The program, with the model and the settings of the test."""

    def __init__(
        self, settings: Settings, model: ScriptedModel, overrides: dict[str, object], resume: Path | None
    ) -> None:
        super().__init__(ConsoleArguments(overrides=overrides))
        self._settings, self._model, self._resume = settings, model, resume

    async def _open(self, screen: Tab) -> None:
        if len(self.tabs) > 1:
            await super()._open(screen)
            return
        assert isinstance(screen, LiveScreen)
        await screen.complete()
        session = await open_session(self._settings, screen.live.operator, self._model, self._resume)
        screen.opened = Opened(session, self._settings)
        await screen.attach(session)


@dataclass
class RealConsole(DrivenConsole):
    """A console over the session and its workspace."""

    workspace: Path

    @property
    def session(self) -> Session:
        session = self.screen.live.session
        assert session is not None
        return session

    async def run(self, *tasks: str) -> None:
        """One run a task, each to its end."""
        for task in tasks:
            await self.session.submit(task)
            await asyncio.wait_for(self.session.wait(), LIMIT)


@asynccontextmanager
async def real_live(
    folder: Path,
    turns: Iterable[Mapping[str, Any] | str],
    *,
    size: tuple[int, int] = (120, 40),
    files: Mapping[str, str] | None = None,
    overrides: dict[str, object] | None = None,
    resume: Path | None = None,
) -> AsyncIterator[RealConsole]:
    """A console that is ready; nothing asks for approval."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    for name, text in (files or {}).items():
        (workspace / name).write_text(text)
    settings = Settings(
        workspace=workspace, state_dir=folder / "state", model="scripted", approve=Approval.ALL, sandbox="off"
    )
    app = RealApp(settings, scripted_model(turns), overrides or {}, resume)
    async with app.run_test(size=size, notifications=True) as pilot:
        made = RealConsole(app, pilot, workspace)
        await made.until(lambda: made.screen.live.session is not None and made.screen.status is not None)
        try:
            yield made
        finally:
            await app.close_sessions()
