"""Forking from the console: the point that is shown, what can be different there, and the session that comes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.agent.flight import take_off
from tests.agent.scripted import ScriptedOperator
from tests.console.real_flight import RealFlight, real_flight
from tui_agent import events as e
from tui_agent.agent.operator import EscalationReply
from tui_agent.console.arguments import ConsoleArguments
from tui_agent.console.cards.sheet import Sheet
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.fork import ForkScreen
from tui_agent.console.screens.leave import LeaveScreen
from tui_agent.console.screens.replay import ReplayScreen
from tui_agent.sessions.journal import read_journal
from tui_agent.state import RunState, fold

READ = {"calls": [{"tool": "read_file", "args": {"path": "missing.py"}}]}

FINISH = {"calls": [{"tool": "finish", "args": {"answer": "done"}}]}


async def recorded(folder: Path) -> tuple[Path, list[e.Event]]:
    """A run that failed three times, asked, was answered, and ended."""
    operator = ScriptedOperator()
    operator.answers.append(EscalationReply("answer", "Look at [b]other[/b].py"))
    flight = await take_off(folder, [READ, READ, READ, FINISH], operator=operator)
    await flight.run("read it")
    path = flight.session.folder
    await flight.close()
    events = read_journal(path).events
    assert any(isinstance(event, e.EscalationAnswered) for event in events)
    return path, events


def seq_of(events: list[e.Event], kind: type[e.Event], last: bool = True) -> int:
    found = [event.seq for event in events if isinstance(event, kind)]
    return found[-1] if last else found[0]


@asynccontextmanager
async def sheet_over(
    path: Path, at: int, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[ConsoleApp, ForkScreen, Pilot[None]]]:
    """The replay at an event, and the sheet that `f` opens."""
    app = ConsoleApp(ConsoleArguments(overrides={"state_dir": path.parents[1]}, replay=path, replay_at=at))
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = app.screen_stack[0]
        assert isinstance(screen, ReplayScreen)
        await until(pilot, lambda: screen.player is not None and screen.player.there)
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkScreen) and app.screen.focused is not None)
        sheet = app.screen
        assert isinstance(sheet, ForkScreen)
        yield app, sheet, pilot


async def until(pilot: Pilot[None], holds: Any) -> None:
    for _ in range(800):
        await pilot.pause(0.005)
        if holds():
            return
    raise AssertionError(f"it never came to that:\n{shown(pilot.app)}")


def shown(app: Any) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def write(pilot: Pilot[None], selector: str, text: str) -> None:
    await pilot.click(selector)
    await pilot.press(*["space" if char == " " else char for char in text])


async def forked(app: ConsoleApp, pilot: Pilot[None], path: Path) -> tuple[list[e.Event], RunState]:
    """Press Enter; the new session's events, and its state."""
    await pilot.press("enter")
    await until(pilot, lambda: app.next is not None)
    assert app.next is not None
    events = read_journal(path.parent / str(app.next.resume)).events
    return events, fold(events)


async def test_left_as_it_is_a_fork_shares_everything_up_to_the_event_shown(tmp_path: Path) -> None:
    path, events = await recorded(tmp_path)
    before = (path / "events.jsonl").read_bytes()
    at = seq_of(events, e.ToolFailed)
    async with sheet_over(path, at) as (app, _, pilot):
        assert f"After event {at} of {len(events)} · iteration 3 · tool failed: read_file" in shown(app)
        forked_events, state = await forked(app, pilot, path)
    assert forked_events[1:] == events[1:at]
    assert state.session.parent == e.ParentPoint(session_id=path.name, seq=at)
    assert (path / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize("kind", [e.EscalationRaised, e.EscalationAnswered, e.IterationStarted])
async def test_another_answer_is_given_where_the_question_was_open(
    tmp_path: Path, kind: type[e.Event]
) -> None:
    path, events = await recorded(tmp_path)
    raised = seq_of(events, e.EscalationRaised)
    async with sheet_over(path, seq_of(events, kind)) as (app, _, pilot):
        text = shown(app)
        assert "Your answer to" in text
        assert ("as it was: Look at [b]other[/b].py" in text) is (kind is not e.EscalationRaised)
        await write(pilot, "#answer", "Use src/ instead")
        await until(pilot, lambda: f"After event {raised} of" in shown(app))
        forked_events, state = await forked(app, pilot, path)
    assert len(forked_events) == raised + 1
    answered = forked_events[-1]
    assert isinstance(answered, e.EscalationAnswered)
    assert answered.text == "Use src/ instead"
    assert state.history.groups[-1].messages[0]["content"] == "Use src/ instead"


@pytest.mark.parametrize(("typed", "note"), [("Think first.", "Think first."), ("drop", None)])
async def test_the_note_of_the_next_call_can_be_another_or_none(
    tmp_path: Path, typed: str, note: str | None
) -> None:
    path, events = await recorded(tmp_path)
    at = seq_of(events, e.NotePrepared, last=False)
    async with sheet_over(path, at) as (app, _, pilot):
        assert "Recovery note with the next model call" in shown(app)
        await write(pilot, "#note", typed)
        forked_events, state = await forked(app, pilot, path)
    assert len(forked_events) == at + 1
    assert (state.note, state.note_edited) == (note, True)


async def test_a_long_note_can_be_read_to_its_end_in_a_small_terminal(tmp_path: Path) -> None:
    path, events = await recorded(tmp_path)
    async with sheet_over(path, seq_of(events, e.EscalationAnswered), (80, 24)) as (app, sheet, pilot):
        note = next(
            event.text for event in reversed(events) if isinstance(event, e.NotePrepared) and event.text
        )
        end = note.split()[-1]
        pane = sheet.query_one(".of-note", Sheet)
        assert pane.overflows
        for _ in range(10):
            await pilot.press("pagedown")
        assert pane.is_vertical_scroll_end
        assert end in shown(app)
        await pilot.press("pageup")
        assert not pane.is_vertical_scroll_end


async def test_policy_and_model_are_others_from_there_on(tmp_path: Path) -> None:
    path, events = await recorded(tmp_path)
    async with sheet_over(path, seq_of(events, e.IterationFinished, last=False)) as (app, _, pilot):
        await pilot.press("right", "right", "right", "right")
        await write(pilot, "#model", "openai/other")
        _, state = await forked(app, pilot, path)
    assert (state.run.policy, state.recovery.policy.name) == ("hpd", "hpd")
    assert state.run.model == "openai/other"


async def test_no_option_of_this_start_outweighs_what_was_chosen_for_the_fork(tmp_path: Path) -> None:
    options: dict[str, object] = {"policy": "gigi", "model": "first", "theme": "agent-dark"}
    async with real_flight(tmp_path, ["done"], overrides=options) as flight:
        await flight.run("go")
        await flight.command("/fork")
        await flight.opens(ForkScreen)
        await flight.press("right")
        await flight.press("enter")
        await flight.until(lambda: flight.app.next is not None)
        assert flight.app.next is not None
        assert flight.app.next.overrides == {"model": "first", "theme": "agent-dark"}
        child = flight.session.folder.parent / str(flight.app.next.resume)
    assert fold(read_journal(child).events).session.policy == "forge"


async def test_a_finished_run_is_offered_neither_answer_nor_note(tmp_path: Path) -> None:
    path, events = await recorded(tmp_path)
    async with sheet_over(path, len(events)) as (app, sheet, _):
        assert not sheet.query("#answer, #note")
        assert "Policy" in shown(app)


async def test_a_secret_in_an_answer_never_reaches_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2hunter2")
    path, events = await recorded(tmp_path)
    async with sheet_over(path, seq_of(events, e.EscalationRaised)) as (app, _, pilot):
        await write(pilot, "#answer", "use hunter2hunter2")
        _, state = await forked(app, pilot, path)
    assert "hunter2hunter2" not in (path.parent / state.session.id / "events.jsonl").read_text()


async def test_escape_forks_nothing(tmp_path: Path) -> None:
    path, events = await recorded(tmp_path)
    async with sheet_over(path, len(events)) as (app, sheet, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not sheet)
    assert app.next is None
    assert [folder.name for folder in path.parent.iterdir() if folder.is_dir()] == [path.name]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_all_fields_and_keys_are_in_sight(tmp_path: Path, size: tuple[int, int]) -> None:
    path, events = await recorded(tmp_path)
    async with sheet_over(path, seq_of(events, e.EscalationAnswered), size) as (app, sheet, pilot):
        text = shown(app)
        for part in ("After event", "combined (as it is)", "hpd", "Model", "Your answer to", "Recovery note"):
            assert part in text
        assert "Enter fork and go over" in text
        order = []
        for _ in range(4):
            order.append(sheet.focused.id if sheet.focused is not None else None)
            await pilot.press("tab")
        assert order == [None, "model", "answer", "note"]


async def asked(flight: RealFlight) -> None:
    await flight.session.submit("go")
    await flight.until(lambda: flight.session.state.escalation)


async def test_a_live_session_is_forked_with_another_answer_and_goes_over_when_it_may(tmp_path: Path) -> None:
    asking = {"calls": [{"tool": "ask_operator", "args": {"question": "which file?"}}]}
    async with real_flight(tmp_path, [asking, "done"]) as flight:
        await asked(flight)
        sessions = flight.session.folder.parent
        await flight.screen.run_command("fork")
        await flight.opens(ForkScreen)
        await flight.until(lambda: "which file?" in flight.shown())
        await write(flight.pilot, "#answer", "the second")
        await flight.press("enter")
        await flight.opens(LeaveScreen)
        await flight.press("q")
        await flight.until(lambda: flight.app.next is not None)
        assert flight.app.next is not None
        child = sessions / str(flight.app.next.resume)
    state = fold(read_journal(child).events)
    assert state.escalation is None
    assert state.history.results[0].content == "the second"
    async with real_flight(tmp_path, [asking, "gone on"], resume=child) as flight:
        await flight.screen.run_command("auto")
        await flight.until(lambda: flight.session.state.run.outcome is e.Outcome.ANSWERED)
        assert flight.session.state.run.answer == "gone on"
