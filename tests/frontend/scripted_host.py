"""A host of commands without a console: what commands say and show is kept, what they ask is answered by a script."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tui_agent.frontend.commands.dispatch import Dispatcher
from tui_agent.frontend.commands.host import Report, Waiting
from tui_agent.frontend.commands.shown import ShownSession
from tui_agent.frontend.lines.styled import text_of
from tui_agent.session.session import Session


class ScriptedHost(Dispatcher):
    """Over a session. `answers` are given one after another to whatever is asked: a row, a plan, True, a key."""

    on_screen = False
    now = 1_000.0
    asked_about = 0, ""
    own_run = None

    def __init__(self, session: Session, *answers: Any) -> None:
        super().__init__(self, self.say, self.say, self._keep)
        self.session = session
        self.shown = ShownSession(lambda: session)
        self.answers = deque(answers)
        self.said: list[str] = []
        self.reports: dict[str, list[str]] = {}
        self.prompt = ""
        self._work: list[Coroutine[Any, Any, None]] = []

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Answer what is asked: `choose_rewind`, `confirm`, `secret`, …"""
        if name not in {
            "choose",
            "choose_background",
            "choose_fork",
            "choose_rewind",
            "choose_session",
            "confirm",
            "secret",
        }:
            raise AttributeError(name)

        async def answered(*_: Any) -> Any:
            return self.answers.popleft()

        return answered

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        self._work.append(work)

    async def typed(self, line: str) -> list[str]:
        """Carry out a line to its end, and give what was said."""
        self.said.clear()
        self.run_line(line)
        while self._work:
            await self._work.pop(0)
        return [text for text in self.said if text]

    def when_open(self, act: Callable[[], None]) -> None:
        act()

    def say(self, text: str) -> None:
        self.said.append(text)

    async def show_report(self, title: str, draw: Report, columns: int = 80, *, moves: bool = False) -> None:
        self.reports[title] = [text_of(line) for line in draw(columns)]

    @property
    def queue(self) -> Sequence[Waiting]:
        return [Waiting(message.id, message.text) for message in self.session.state.queue]

    def put_in_prompt(self, text: str, *, instead: bool = False, restored: bool = False) -> None:
        self.prompt = text if instead else text + self.prompt
