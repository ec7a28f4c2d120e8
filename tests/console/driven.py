"""A console in the hands of a test: keys in, what is on the screen out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.pilot import Pilot

from tests.console.waiting import picture, until
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.live import LiveScreen


@dataclass
class DrivenConsole:
    """The program with one tab, and what moves it."""

    app: ConsoleApp
    pilot: Pilot[None]

    @property
    def screen(self) -> LiveScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, LiveScreen)
        return screen

    @property
    def prompt(self) -> str:
        return self.screen.prompt.text

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the screen settle until something holds."""
        await until(self.pilot, holds, self.remarks)

    async def opens(self, kind: type[Any]) -> Any:
        """The screen of this kind, once it is on top and has been drawn."""
        await self.until(lambda: isinstance(self.app.screen, kind) and self.app.screen.is_mounted)
        return self.app.screen

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def say(self, line: str) -> None:
        """Put a line into the prompt and send it."""
        self.screen.prompt.put(line)
        await self.press(*(["escape"] if line.startswith("/") else []), "enter")

    def remarks(self) -> str:
        """What stands in the remarks at the corner."""
        return "\n".join(remark.message for remark in self.app._notifications)

    def shown(self) -> str:
        """Everything on the screen as text."""
        return picture(self.app)
