"""Forking from the console: the point that is shown, what can be different there, and the session that comes of it."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot

from tests.console.real_session import RealConsole, real_live
from tests.console.waiting import goes_to, picture, until
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import start_session
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.looks.option_row import OptionRow
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.fork import ForkScreen
from tui_agent.console.screens.replay import ReplayScreen
from tui_agent.core.events import (
    EscalationAnswered,
    EscalationRaised,
    Event,
    IterationFinished,
    IterationStarted,
    NotePrepared,
    Outcome,
    ParentPoint,
    Rewound,
    SessionStarted,
    ToolFailed,
)
from tui_agent.core.fold import fold
from tui_agent.core.state import RunState
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.runtime.operator import EscalationReply
from tui_agent.session.fork_point import ForkPoint, fork_point
from tui_agent.store.journal import read_journal

READ = {"calls": [{"tool": "read_file", "args": {"path": "missing.py"}}]}

FINISH = {"calls": [{"tool": "finish", "args": {"answer": "done"}}]}


Recorded = tuple[Path, list[Event]]
"""The folder of a session, and its events."""


async def record(folder: Path) -> None:
    """A run that failed three times, asked, was answered, and ended."""
    operator = ScriptedOperator()
    operator.answers.append(EscalationReply("answer", "Look at [b]other[/b].py"))
    live = await start_session(folder, [READ, READ, READ, FINISH], operator=operator)
    await live.run("read it")
    await live.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    asyncio.run(record(folder))
    return folder


@pytest.fixture
def recorded(template: Path, tmp_path: Path) -> Recorded:
    """The run of `record`, in a folder of the test's own."""
    shutil.copytree(template / "state", tmp_path / "state")
    [journal] = (tmp_path / "state" / "sessions").glob("*/events.jsonl")
    events = read_journal(journal.parent).events
    assert any(isinstance(event, EscalationAnswered) for event in events)
    return journal.parent, events


def seq_of(events: list[Event], kind: type[Event], last: bool = True) -> int:
    found = [event.seq for event in events if isinstance(event, kind)]
    return found[-1] if last else found[0]


@asynccontextmanager
async def card_body_over(
    path: Path, at: int, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[ConsoleApp, ForkScreen, Pilot[None]]]:
    """The replay at an event, and the card_body that `f` opens."""
    app = ConsoleApp(
        ConsoleArguments(overrides={"state_dir": path.parents[1]}, replay=str(path), at_event=at)
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = app.screen_stack[0]
        assert isinstance(screen, ReplayScreen)
        await until(pilot, lambda: screen.player is not None and screen.player.there)
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkScreen) and app.screen.focused is not None)
        card_body = app.screen
        assert isinstance(card_body, ForkScreen)
        yield app, card_body, pilot


async def write(pilot: Pilot[None], selector: str, text: str) -> None:
    await pilot.click(selector)
    await pilot.press(*["space" if char == " " else char for char in text])


async def forked(app: ConsoleApp, pilot: Pilot[None], path: Path) -> tuple[list[Event], RunState]:
    """Press Enter; the new session's events, and its state."""
    went = goes_to(app)
    await pilot.press("enter")
    await until(pilot, lambda: went)
    events = read_journal(path.parent / str(went[0].resume)).events
    return events, fold(events)


async def test_left_as_it_is_a_fork_shares_everything_up_to_the_event_shown(recorded: Recorded) -> None:
    path, events = recorded
    before = (path / "events.jsonl").read_bytes()
    at = seq_of(events, ToolFailed)
    async with card_body_over(path, at) as (app, _, pilot):
        assert f"After event {at} of {len(events)} · step 3 · tool failed: read_file" in picture(app)
        forked_events, state = await forked(app, pilot, path)
    assert forked_events[1:] == events[1:at]
    assert state.session.parent == ParentPoint(session_id=path.name, seq=at)
    assert (path / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize("kind", [EscalationRaised, EscalationAnswered, IterationStarted])
async def test_another_answer_is_given_where_the_question_was_open(
    recorded: Recorded, kind: type[Event]
) -> None:
    path, events = recorded
    raised = seq_of(events, EscalationRaised)
    async with card_body_over(path, seq_of(events, kind)) as (app, _, pilot):
        text = picture(app)
        assert "Your answer to" in text
        assert ("as it was: Look at [b]other[/b].py" in text) is (kind is not EscalationRaised)
        await write(pilot, "#answer", "Use src/ instead")
        await until(pilot, lambda: f"After event {raised} of" in picture(app))
        forked_events, state = await forked(app, pilot, path)
    assert len(forked_events) == raised + 2
    answered = forked_events[-1]
    assert isinstance(answered, EscalationAnswered)
    assert answered.text == "Use src/ instead"
    assert state.history.groups[-1].messages[0]["content"] == "Use src/ instead"


async def test_keys_that_come_at_once_act_in_their_order(recorded: Recorded) -> None:
    """As over a slow line: Enter forked without the answer, and what was typed after Tab stood before it."""
    path, events = recorded
    async with card_body_over(path, seq_of(events, EscalationRaised)) as (app, _, pilot):
        went = goes_to(app)
        for key in ("tab", "tab", *"first", "tab", *"second", "shift+tab", *"ly", "enter"):
            app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: went)
        state = fold(read_journal(path.parent / str(went[0].resume)).events)
    assert state.history.groups[-1].messages[0]["content"] == "firstly"
    assert state.note == "second"


@pytest.mark.parametrize(("typed", "note"), [("Think first.", "Think first."), ("drop", None)])
async def test_the_note_of_the_next_call_can_be_another_or_none(
    recorded: Recorded, typed: str, note: str | None
) -> None:
    path, events = recorded
    at = seq_of(events, NotePrepared, last=False)
    async with card_body_over(path, at) as (app, _, pilot):
        assert "Recovery note with the next model call" in picture(app)
        assert "⇧Enter new line" in picture(app)
        assert "PgDn" not in picture(app)
        await write(pilot, "#note", typed)
        forked_events, state = await forked(app, pilot, path)
    assert len(forked_events) == at + 2
    assert (state.note, state.note_edited) == (note, True)


async def test_a_long_note_can_be_read_to_its_end_in_a_small_terminal(recorded: Recorded) -> None:
    path, events = recorded
    longest = max(
        (event for event in events if isinstance(event, NotePrepared)),
        key=lambda event: len(event.text or ""),
    )
    said, long = longest.text or "", " ".join(f"sentence {number}." for number in range(60))
    journal = path / "events.jsonl"
    journal.write_text(journal.read_text("utf-8").replace(json.dumps(said)[1:-1], long), "utf-8")
    async with card_body_over(path, longest.seq, (80, 24)) as (app, card_body, pilot):
        end = long.split()[-1]
        pane = card_body.query_one(".of-note", CardBody)
        assert pane.unseen
        await until(pilot, lambda: "PgDn read on" in picture(app))
        for _ in range(10):
            await pilot.press("pagedown")
        assert pane.is_vertical_scroll_end
        assert end in picture(app)
        await pilot.press("pageup")
        assert not pane.is_vertical_scroll_end


async def test_policy_and_model_are_others_from_there_on(recorded: Recorded) -> None:
    path, events = recorded
    async with card_body_over(path, seq_of(events, IterationFinished, last=False)) as (app, _, pilot):
        await pilot.press("right", "right", "right", "right")
        await write(pilot, "#model", "openai/other")
        _, state = await forked(app, pilot, path)
    assert (state.run.policy, state.recovery.policy.name) == ("hpd", "hpd")
    assert state.run.model == "openai/other"


async def test_no_option_of_this_start_outweighs_what_was_chosen_for_the_fork(tmp_path: Path) -> None:
    options: dict[str, object] = {"policy": "gigi", "model": "first", "theme": "agent-dark"}
    async with real_live(tmp_path, ["done"], overrides=options) as live:
        await live.run("go")
        await live.say("/fork")
        await live.opens(ForkScreen)
        await live.press("right")
        went = goes_to(live.app)
        await live.press("enter")
        await live.until(lambda: went)
        assert went[0].overrides == {"model": "first", "theme": "agent-dark"}
        child = live.session.folder.parent / str(went[0].resume)
    assert fold(read_journal(child).events).session.policy == "forge"


async def test_a_finished_run_is_offered_neither_answer_nor_note(recorded: Recorded) -> None:
    path, events = recorded
    async with card_body_over(path, len(events)) as (app, card_body, _):
        assert not card_body.query("#answer, #note")
        assert "Policy" in picture(app)


async def test_a_secret_in_an_answer_never_reaches_the_disk(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2hunter2")
    path, events = recorded
    async with card_body_over(path, seq_of(events, EscalationRaised)) as (app, _, pilot):
        await write(pilot, "#answer", "use hunter2hunter2")
        _, state = await forked(app, pilot, path)
    assert "hunter2hunter2" not in (path.parent / state.session.id / "events.jsonl").read_text()


async def test_escape_forks_nothing(recorded: Recorded) -> None:
    path, events = recorded
    async with card_body_over(path, len(events)) as (app, card_body, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not card_body)
    assert len(app.tabs) == 1
    assert [folder.name for folder in path.parent.iterdir() if folder.is_dir()] == [path.name]


@pytest.mark.parametrize("action", ["fork", "inbox"])
async def test_a_key_that_is_pressed_twice_at_once_opens_one_screen(recorded: Recorded, action: str) -> None:
    path, events = recorded
    async with card_body_over(path, len(events)) as (app, card_body, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not card_body)
        replay = app.screen
        for _ in range(2):
            replay.commands.run(action)
        await until(pilot, lambda: app.screen is not replay and app.screen.is_mounted)
        await until(pilot, lambda: sum(not worker.is_finished for worker in app.workers) == 1)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is replay)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_all_fields_and_keys_are_in_sight(recorded: Recorded, size: tuple[int, int]) -> None:
    path, events = recorded
    async with card_body_over(path, seq_of(events, EscalationAnswered), size) as (app, card_body, pilot):
        text = picture(app)
        for part in ("After event", "combined (as it is)", "hpd", "Model", "Your answer to", "Recovery note"):
            assert part in text
        assert "Enter fork and open it" in text
        order = []
        for _ in range(4):
            order.append(card_body.focused.id if card_body.focused is not None else None)
            await pilot.press("tab")
        assert order == [None, "model", "answer", "note"]


async def test_what_is_typed_while_the_point_is_read_goes_to_the_screen_that_opens(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, events = recorded
    reading, read = threading.Event(), threading.Event()

    def slowly(*given: Any) -> ForkPoint:
        reading.set()
        assert read.wait(20)
        return fork_point(*given)

    monkeypatch.setattr("tui_agent.session.fork.fork_point", slowly)
    at = seq_of(events, EscalationAnswered)
    app = ConsoleApp(
        ConsoleArguments(overrides={"state_dir": path.parents[1]}, replay=str(path), at_event=at)
    )
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen_stack[0]
        assert isinstance(screen, ReplayScreen)
        await until(pilot, lambda: screen.player is not None and screen.player.there)
        await pilot.press("f")
        await until(pilot, reading.is_set)
        await pilot.press("left", "left")
        assert app.screen is screen
        read.set()
        await until(
            pilot,
            lambda: (
                isinstance(app.screen, ForkScreen) and app.screen.query_one(OptionRow).value == "funnelcanary"
            ),
        )
        assert screen.player is not None
        assert screen.player.position == at


async def asked(live: RealConsole) -> None:
    await live.session.submit("go")
    await live.until(lambda: live.session.state.escalation)


async def test_a_live_session_is_forked_with_another_answer_and_its_run_goes_on(tmp_path: Path) -> None:
    asking = {"calls": [{"tool": "ask_operator", "args": {"question": "which file?"}}]}
    async with real_live(tmp_path, [asking, "done"]) as live:
        await asked(live)
        sessions = live.session.folder.parent
        live.screen.commands.run("fork")
        await live.opens(ForkScreen)
        await live.until(lambda: "which file?" in live.shown())
        await write(live.pilot, "#answer", "the second")
        went = goes_to(live.app)
        await live.press("enter")
        await live.until(lambda: went)
        assert live.session.running
        child = sessions / str(went[0].resume)
    state = fold(read_journal(child).events)
    assert state.escalation is None
    assert state.answer is not None
    assert state.answer.text == "the second"
    async with real_live(tmp_path, [asking, "gone on"], resume=child) as live:
        live.screen.commands.run("auto")
        await live.until(lambda: live.session.state.run.outcome is Outcome.ANSWERED)
        assert live.session.state.run.answer == "gone on"


async def test_the_files_of_the_workspace_go_back_with_the_fork(tmp_path: Path) -> None:
    turns = [
        {"calls": [{"tool": "write_file", "args": {"path": "a.py", "content": text}}]}
        for text in ("1\n", "2\n")
    ]
    async with real_live(tmp_path, [*turns, FINISH]) as live:
        await live.run("write twice")
        path = live.session.folder
    (tmp_path / "workspace" / "mine.txt").write_text("written by hand")
    at = seq_of(read_journal(path).events, IterationFinished, last=False)
    async with card_body_over(path, at) as (app, _, pilot):
        assert "stay as they are" in picture(app)
        assert "Going back: ~ a.py, - mine.txt" in picture(app)
        await pilot.press(*["tab"] * 4, "right")
        events, state = await forked(app, pilot, path)
    assert [file.name for file in (tmp_path / "workspace").iterdir()] == ["a.py"]
    assert (tmp_path / "workspace" / "a.py").read_text() == "1\n"
    rewound = events[-1]
    assert isinstance(rewound, Rewound)
    assert (rewound.scope, rewound.to_seq, rewound.files) == ("files", at, ("a.py", "mine.txt"))
    assert "went back to an earlier state: a.py, mine.txt" in state.conversation.entries[-1].text
    told = fold(events[:at]).history.groups
    assert state.history.groups == told, "the model knows the files as they are again"


async def test_a_fork_leaves_the_files_alone_unless_they_are_to_go_back(tmp_path: Path) -> None:
    turn = {"calls": [{"tool": "write_file", "args": {"path": "a.py", "content": "1\n"}}]}
    async with real_live(tmp_path, [turn, FINISH]) as live:
        await live.run("write")
        path = live.session.folder
    (tmp_path / "workspace" / "a.py").write_text("2\n")
    async with card_body_over(path, seq_of(read_journal(path).events, IterationFinished)) as (app, _, pilot):
        assert "Going back: ~ a.py" in picture(app)
        events, _ = await forked(app, pilot, path)
    assert (tmp_path / "workspace" / "a.py").read_text() == "2\n"
    assert not any(isinstance(event, Rewound) for event in events)
    child = path.parent / next(event.session_id for event in events if isinstance(event, SessionStarted))
    async with real_live(tmp_path, [], resume=child) as live:
        assert live.screen.standing().title == f"fork @{len(events)} write"
