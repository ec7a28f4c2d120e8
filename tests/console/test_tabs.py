"""Several sessions in tabs: runs that go on at once, one inbox for all that waits, and how all are left."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from tests.console.waiting import picture, until
from tests.store.session_events import iteration, run_started, start, write_session
from tui_agent.console.cards.approval import ApprovalCard
from tui_agent.console.panes.conversation import ConversationPane
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.ask import LeaveScreen
from tui_agent.console.screens.inbox import InboxScreen
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.screens.sessions import SessionsScreen
from tui_agent.console.tabs.inbox import Item
from tui_agent.console.tabs.tab import Standing, Tab
from tui_agent.console.tabs.tab_row import tab_parts
from tui_agent.core.events import ApprovalAnswered, ApprovalAsked, EscalationRaised, Outcome, RunFinished
from tui_agent.core.fold import fold
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.commands import dispatch
from tui_agent.frontend.lines.styled import text_of
from tui_agent.frontend.operator import ApprovalQuestion, EscalationQuestion
from tui_agent.store.journal import read_journal

ASKING = """
task = "x"
[pace]
pause = 0.0
interval = 0.0
[[turns]]
when = { user = "badge" }
calls = [{ tool = "bash", args = { command = "echo badge-made > badge.txt" } }]
[[turns]]
when = { earlier = "badge" }
text = "The badge is there."
[[turns]]
calls = [{ tool = "list_dir", args = { path = "." } }]
next = "turning"
[[turns]]
label = "turning"
calls = [{ tool = "bash", args = { command = "sleep 0.05; date +%N" } }]
next = "turning"
"""


class Console:
    """Keys in, the screens of the tabs out."""

    def __init__(self, app: ConsoleApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def until(self, holds: object) -> None:
        await until(self.pilot, holds)

    def tab(self, number: int) -> LiveScreen:
        screen = self.app.tabs[number - 1]
        assert isinstance(screen, LiveScreen)
        return screen

    async def ready(self, number: int) -> LiveScreen:
        await self.until(lambda: len(self.app.tabs) >= number and self.app.tabs[number - 1].status)
        await self.until(lambda: self.tab(number).live.session is not None)
        return self.tab(number)

    async def say(self, text: str) -> None:
        screen = self.app.shown
        assert isinstance(screen, LiveScreen)
        if text.startswith("/"):
            invocation = dispatch.parse(text)
            screen.commands.run(invocation.command.name, invocation.argument)
        else:
            await screen.commands.submit(text)


async def test_the_inbox_names_the_call_that_a_question_is_about() -> None:
    call = {"tool": "bash", "input": {"command": "make test"}}
    raised = EscalationRaised(id="e", question="bash has failed 3 times", source="attempts", **call)
    item = Item(Tab(ConsoleArguments(), "tab-1", lambda _: None), EscalationQuestion(raised), 0.0)
    assert item.asks == ("answer", "bash has failed 3 times: make test")


async def test_the_inbox_names_the_sub_agent_that_asks() -> None:
    tab = Tab(ConsoleArguments(), "tab-1", lambda _: None)
    raised = EscalationRaised(id="e", question="Which one?", source="attempts", lane="look")
    asked = ApprovalAsked(id="a", call_id="c", tool="bash", input={"command": "make"}, lane="look")
    assert Item(tab, EscalationQuestion(raised), 0.0).asks == ("answer", "look › Which one?")
    assert Item(tab, ApprovalQuestion(asked), 0.0).asks == ("approve", "look › bash make")


async def test_two_runs_at_once_an_inbox_and_one_way_out(tmp_path: Path) -> None:
    workspace, scenario = tmp_path / "w", tmp_path / "s.toml"
    workspace.mkdir()
    scenario.write_text(ASKING)
    written: list[str] = []
    overrides = {
        "state_dir": tmp_path / "state",
        "workspace": workspace,
        "model": f"scripted:{scenario}",
        "sandbox": "off",
        "max_iterations": 5000,
    }
    app = ConsoleApp(ConsoleArguments(overrides=overrides))
    app.write_terminal = written.append
    now = 100.0
    app.clock = lambda: now
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        console = Console(app, pilot)
        first = await console.ready(1)
        assert "^L inbox" not in picture(app)

        # A run in the first tab; a second tab, whose run asks for an approval, is opened and left.
        await console.say("/approve all")
        await console.say("turn round and round")
        await console.until(lambda: first.running)
        await console.say("/new make the badge")
        second = await console.ready(2)
        await console.until(lambda: second.questions)
        await console.until(lambda: "turn round" in picture(app) and "make the" in picture(app))
        card_host = second.card_host
        assert card_host is not None
        await pilot.press("ctrl+n")
        assert app.shown is first
        before = first.live.session.state.seq if first.live.session else 0
        await console.until(lambda: "● 1" in picture(app))
        assert "^N next tab  ^L inbox" in picture(app)
        await console.until(lambda: first.state is not None and first.state.seq > before + 20)
        assert any("● needs you — approve bash" in title for title in written)

        # What is typed here answers nothing there; the inbox leads to the card, and Enter once too often is no yes.
        await pilot.press("y", "backspace")
        assert second.questions
        await pilot.press("f8")
        await console.until(
            lambda: isinstance(app.screen, InboxScreen) and "bash echo badge-made" in picture(app)
        )
        assert "tab 2 · make the badge" in picture(app)
        await pilot.press("enter", "enter")
        await console.until(lambda: app.shown is second and isinstance(card_host.card, ApprovalCard))
        assert second.questions
        now += 10.0  # the clock of cards, which only this test turns
        card_host.settle()
        await console.until(lambda: card_host.card is not None and card_host.card.armed)
        await pilot.press("enter")
        await console.until(lambda: second.state and second.state.run.outcome is Outcome.ANSWERED)
        assert (workspace / "badge.txt").read_text() == "badge-made\n"
        assert first.running

        # A tab that is not shown draws nothing.
        drawn: list[str] = []
        first.draw = lambda: drawn.append("drawn")
        seen = first.state.seq if first.state else 0
        await console.until(lambda: first.state and first.state.seq > seen + 20)
        assert drawn == []
        del first.draw

        # The browser knows what is open, goes to its tab, and opens others; a tab with a run asks before it closes.
        await console.say("/sessions")
        await console.until(lambda: isinstance(app.screen, SessionsScreen) and "open here" in picture(app))
        await pilot.press(*"turn")
        await console.until(lambda: "1 of" not in picture(app) and "» you" in picture(app))
        await pilot.press("enter")
        await console.until(lambda: app.shown is first)
        await console.say("/close")
        await console.until(lambda: isinstance(app.screen, LeaveScreen))
        await pilot.press("s", "enter")
        await console.until(lambda: app.screen is first)
        await pilot.press("ctrl+t")
        third = await console.ready(2)
        assert app.tabs == [first, third, second]
        await console.say("/close")
        await console.until(lambda: app.tabs == [first, second])
        await console.say("/tab 2")
        await console.until(lambda: app.shown is second)

        # One way out for all: asked once, each run ended in good order.
        await pilot.press("ctrl+q")
        await console.until(lambda: isinstance(app.screen, LeaveScreen))
        await pilot.press("q", "enter")
        await console.until(lambda: app.return_code is not None)
    assert app.return_code == 0
    ids = [tab.session_id for tab in (first, second)]
    for session_id, outcome, title in zip(
        ids, ("interrupted", "answered"), ("turn round and round", "make the badge"), strict=True
    ):
        lines = app.resume_text.splitlines()
        place = next(number for number, line in enumerate(lines) if session_id in line)
        assert lines[place - 1] == f"  {title} · {outcome}"
        assert lines[place].startswith(f"    agent-tui resume {session_id} --state-dir")
        assert lines[place].endswith("/state"), "nothing but the command stands on its line"
        contents = read_journal(tmp_path / "state" / "sessions" / session_id)
        assert contents.dropped_bytes == 0
        assert str(fold(contents.events).run.outcome) == outcome
    answers = read_journal(tmp_path / "state" / "sessions" / ids[1]).events
    assert sum(isinstance(event, ApprovalAnswered) for event in answers) == 1


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("count", [2, 5, 30])
def test_the_row_of_tabs_fits_and_always_shows_the_one_on_the_screen(width: int, count: int) -> None:
    standings = [Standing(f"the title of session {number}", "▶", "ok") for number in range(1, count + 1)]
    for shown in (0, count // 2, count - 1):
        parts = tab_parts(standings, shown, width)
        assert sum(cell_len(text_of(part)) for part in parts) <= width
        assert f" {shown + 1} ▶ the title" in text_of(parts[shown])


async def test_a_hit_of_the_browser_is_shown_where_it_stands(tmp_path: Path) -> None:
    workspace, scenario = tmp_path / "w", tmp_path / "s.toml"
    workspace.mkdir()
    scenario.write_text(ASKING)
    error = "first line\n" + "a line between\n" * 20 + "the purple widget is missing"
    steps = [iteration(number, fails=error if number == 7 else "") for number in range(1, 41)]
    folder = tmp_path / "state" / "sessions" / "saved"
    finished = RunFinished(outcome=Outcome.ANSWERED, answer="All is done.")
    write_session(
        folder,
        [start("saved", str(workspace)), run_started(), *(each for one in steps for each in one), finished],
    )
    overrides = {"state_dir": tmp_path / "state", "workspace": workspace, "model": f"scripted:{scenario}"}
    app = ConsoleApp(ConsoleArguments(overrides=overrides))
    async with app.run_test(size=(80, 30), notifications=True) as pilot:
        console = Console(app, pilot)
        await console.ready(1)
        for number in (1, 2):  # once to open it, once to go there in its tab
            await console.say("/sessions")
            await console.until(lambda: isinstance(app.screen, SessionsScreen))
            await pilot.press(*"purple")
            await console.until(lambda: "✗ error" in picture(app))
            await pilot.press("enter")
            await console.until(lambda: app.shown.session_id == "saved" and app.screen is app.shown)
            await console.until(lambda: "the purple widget is missing" in picture(app))
            screen = console.tab(1)
            assert app.focused is screen.prompt
            assert "All is done." not in picture(app)
            if number == 1:
                pane = screen.query_one(ConversationPane)
                pane.follow()
                await console.until(lambda: "All is done." in picture(app))


async def test_a_new_session_has_the_model_and_the_server_of_the_one_it_was_opened_from(
    tmp_path: Path,
) -> None:
    workspace, scenario, other = tmp_path / "w", tmp_path / "s.toml", tmp_path / "other.toml"
    workspace.mkdir()
    scenario.write_text(ASKING)
    other.write_text(ASKING)
    overrides = {"state_dir": tmp_path / "state", "workspace": workspace, "model": f"scripted:{scenario}"}
    app = ConsoleApp(ConsoleArguments(overrides=overrides))
    async with app.run_test(size=(80, 24)) as pilot:
        console = Console(app, pilot)
        first = await console.ready(1)
        session = first.live.session
        assert session is not None
        session.set_model(f"scripted:{other}")
        session.settings = session.settings.replaced(api_base="http://127.0.0.1:9/v1")
        await console.say("/new")
        second = await console.ready(2)
        assert second.live.session is not None
        settings = second.live.session.settings
        assert (settings.model, settings.api_base) == (f"scripted:{other}", "http://127.0.0.1:9/v1")
        await app.close_sessions()


def hosts() -> list[str]:
    """Process ids of the model hosts that this process has started."""
    own = [
        pid
        for found in Path(f"/proc/{os.getpid()}/task").glob("*/children")
        for pid in found.read_text().split()
    ]
    return [pid for pid in own if b"tui_agent.models.host" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
async def test_all_tabs_have_one_model_host_which_a_closed_tab_leaves_to_the_others(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    overrides = {
        "state_dir": tmp_path / "state",
        "workspace": workspace,
        "model": "openai/some",
        "api_base": "http://127.0.0.1:9/v1",
    }
    app = ConsoleApp(ConsoleArguments(overrides=overrides))
    before = set(hosts())
    async with app.run_test(size=(80, 24)) as pilot:
        console = Console(app, pilot)
        await console.ready(1)
        await console.say("/new")
        second = await console.ready(2)

        def warm() -> bool:
            return not any(task.get_name() == "warm-up" for task in asyncio.all_tasks())

        await console.until(warm)
        started = set(hosts()) - before
        assert len(started) == 1
        app.close_tab(second)
        await console.until(lambda: len(app.tabs) == 1)
        assert set(hosts()) - before == started
        await app.close_sessions()
        assert set(hosts()) == before
