"""The console with another agent in it, a process of its own: the screen when it works, and when it does not."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.console.driven import DrivenConsole
from tui_agent.config.settings import Settings
from tui_agent.console.cards.card import Card
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.tabs.tab import Tab
from tui_agent.core.events import Outcome
from tui_agent.core.state import RunState
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.startup import Opened, _agent_finder
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session

AGENT = Path(__file__).with_name("agent_process.py")


class AgentApp(ConsoleApp):
    """The program with an agent that does as its argument says."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(ConsoleArguments())
        self._settings = settings
        self.time = 1_000.0
        self.clock = lambda: self.time

    async def _open(self, screen: Tab) -> None:
        assert isinstance(screen, LiveScreen)
        await screen.complete()
        finder = await _agent_finder(self._settings)
        session = await open_session(self._settings, screen.live.operator, agent=finder)
        screen.opened = Opened(session, self._settings)
        await screen.attach(session)


class AgentConsole(DrivenConsole):
    """A console over that session."""

    @property
    def session(self) -> Session:
        session = self.screen.live.session
        assert session is not None
        return session

    @property
    def state(self) -> RunState:
        return self.session.state

    def card(self) -> Card | None:
        return next(iter(self.app.screen.query(Card)), None)

    async def grace_passes(self) -> None:
        """Enough time goes on for a card to have the keys."""
        assert isinstance(self.app, AgentApp)
        self.app.time += 2.0
        assert self.screen.card_host is not None
        self.screen.card_host.settle()
        await self.pilot.pause()

    async def ended(self, outcome: Outcome) -> None:
        await self.until(lambda: self.state.run.outcome is outcome)


@asynccontextmanager
async def console(folder: Path, does: str) -> AsyncIterator[AgentConsole]:
    (folder / "work").mkdir()
    command = (sys.executable, "-S", str(AGENT), does)
    settings = Settings(
        workspace=folder / "work",
        state_dir=folder / "state",
        sandbox={"mode": "off"},
        mcp=False,
        agent="probe",
        agents={"probe": {"command": command}},
        recovery={"backoff_base": 0.0},
    )
    app = AgentApp(settings)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        made = AgentConsole(app, pilot)
        await made.until(lambda: made.screen.live.session is not None and made.screen.status is not None)
        try:
            yield made
        finally:
            await app.close_sessions()


async def test_its_words_calls_options_and_a_permission_card_are_on_the_screen(tmp_path: Path) -> None:
    async with console(tmp_path, "works") as made:
        made.session.warm_up()
        await made.until(lambda: made.state.session.offered.commands)
        await made.say("/mode plan")
        await made.until(lambda: "The agent's mode is Plan from now on" in made.remarks())
        await made.say("fix it")
        await made.until(lambda: made.card() is not None and "make all" in made.shown())
        await made.grace_passes()
        await made.press("y", "enter")
        await made.ended(Outcome.ANSWERED)
        await made.until(lambda: "All is well in plan." in made.shown())
        assert "no rule to make all" in made.shown()


async def test_a_run_is_stopped_in_mid_tool_and_the_next_message_goes_to_the_same_agent(
    tmp_path: Path,
) -> None:
    async with console(tmp_path, "sleeps") as made:
        await made.say("fix it")
        await made.until(lambda: "sleep 600" in made.shown())
        await made.say("/stop")
        await made.ended(Outcome.INTERRUPTED)
        await made.say("and now?")
        await made.until(lambda: "Prompt 2 was heard." in made.shown())


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("dies", "no key for the model"),
        ("newer", "speaks version 7 of the Agent Client Protocol"),
        ("rubbish", "Still here."),
        ("floods", "Still here."),
        ("login", "wants you to log in"),
        ("missing", "does not speak the Agent Client Protocol"),
    ],
)
async def test_an_agent_that_misbehaves_is_told_of_in_words_and_the_session_is_kept(
    tmp_path: Path, does: str, said: str
) -> None:
    async with console(tmp_path, does) as made:
        await made.say("fix it")
        await made.until(lambda: said in " ".join(made.shown().split()) or said in made.state.run.reason)
        if (question := next(iter(made.screen.live.operator.questions), None)) is not None:
            assert said in str(question.asked)
        shown = made.shown()
        assert "Traceback" not in shown
        await made.session.stop()
        assert made.state.run.outcome is not None
        folder = made.session.folder
    assert (folder / "events.jsonl").read_text().count('"run_finished"') == 1


async def test_an_agent_that_says_nothing_at_its_start_can_be_stopped(tmp_path: Path) -> None:
    async with console(tmp_path, "hangs") as made:
        await made.say("fix it")
        await made.until(lambda: made.session.running)
        await made.until(lambda: made.state.run.iteration == 1)
        await made.say("/stop")
        await made.ended(Outcome.INTERRUPTED)
        assert "Traceback" not in made.shown()
