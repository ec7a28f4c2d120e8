"""The state beside a long journal: it is the fold of the journal, or it is ignored."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.session_harness import replayed, start_session
from tests.store.session_events import (
    PIECES,
    iteration,
    one_of_every_type,
    run_started,
    stamp,
    start,
    write_session,
)
from tests.test_layers import imports, modules
from tui_agent.core.events import Event, Notice, Outcome, RunFinished, ToolStarted
from tui_agent.core.fold import fold
from tui_agent.core.state import RunState
from tui_agent.store import saved_state
from tui_agent.store.errors import JournalError
from tui_agent.store.journal import JOURNAL_NAME, JournalContents, read_journal
from tui_agent.store.saved_state import NOTHING, STATE_NAME, load, save

LOOKS = [{"calls": [{"tool": "list_dir", "args": {}}]}, "Done."]


@pytest.fixture(autouse=True)
def any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_state, "LONG", 0)
    monkeypatch.setattr(saved_state, "ITEMS", 3)


def a_run() -> list[Event]:
    failing = iteration(2, call="c2", fails="no such file: a.py")
    return [run_started(), *iteration(1), *failing, RunFinished(outcome=Outcome.ANSWERED, answer="done")]


def saved(folder: Path, events: list[Event]) -> RunState:
    """Write a session with its state; the state."""
    state = fold(write_session(folder, events))
    save(folder, state, read_journal(folder).end)
    return state


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.integers(0, 60))
def test_the_saved_state_and_what_came_after_it_are_the_fold_of_all(pieces: list[list[Event]], cut: int):
    events = stamp([start(), *(event for piece in pieces for event in piece)])
    cut = 1 + cut % len(events)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_session(folder, events[:cut], stamped=True)
        save(folder, fold(events[:cut]), read_journal(folder).end)
        write_session(folder, events, stamped=True)
        found = load(folder)
        rest = read_journal(folder, after=found.mark)
    assert (found.mark.seq, found.state) == (cut, fold(events[:cut]))
    assert rest.events == events[cut:]
    assert fold(rest.events, found.state) == fold(events)


def test_every_event_leaves_a_state_that_can_be_saved(tmp_path: Path):
    events = one_of_every_type()
    for count in range(1, len(events) + 1):
        assert saved(tmp_path, events[:count]) == load(tmp_path).state, type(events[count - 1])


async def test_a_closed_session_goes_on_from_its_saved_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = await start_session(tmp_path, LOOKS)
    await first.session.submit("look")
    await first.session.wait()
    await first.close()
    folder = first.session.folder
    assert load(folder).state == first.session.state == replayed(first.session)

    last = first.session.state.seq
    marks: list[int] = []

    def reading(path: Path, **options: Any) -> JournalContents:
        marks.append(options["after"].seq)
        return read_journal(path, **options)

    monkeypatch.setattr("tui_agent.store.journal.read_journal", reading)
    again = await start_session(tmp_path, LOOKS, resume=folder)
    await again.session.submit("look again")
    await again.session.wait()
    await again.close()
    assert marks == [last]
    assert load(folder).state == again.session.state == replayed(again.session)
    assert again.sent()[:3] == first.sent()[:3]


async def test_a_journal_that_was_damaged_is_refused_all_the_same(tmp_path: Path):
    live = await start_session(tmp_path, LOOKS)
    await live.session.submit("look")
    await live.session.wait()
    await live.close()
    journal = live.session.folder / JOURNAL_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], b"{" + lines[3], *lines[4:]]))
    with pytest.raises(JournalError, match="line 4"):
        await start_session(tmp_path, LOOKS, resume=live.session.folder)


async def test_a_journal_that_somebody_else_changed_meanwhile_is_what_counts(tmp_path: Path):
    live = await start_session(tmp_path, LOOKS)
    await live.session.submit("look")
    await live.session.wait()
    await live.session.recorder.barrier()
    journal = live.session.folder / JOURNAL_NAME
    changed = journal.read_bytes().replace(b'"task":"look"', b'"task":"talk"')
    with journal.open("r+b") as file:
        file.write(changed)
    await live.close()
    again = await start_session(tmp_path, LOOKS, resume=live.session.folder)
    assert again.session.state.run.task == "talk"
    await again.close()


async def test_what_others_saved_is_not_used(tmp_path: Path):
    foreign = tmp_path / "sent to me"
    state = saved(foreign, [start(workspace=str(tmp_path)), *a_run()])
    save(foreign, fold([Notice(text="never said").stamped(state.seq, 1.0)], state), read_journal(foreign).end)
    live = await start_session(tmp_path, LOOKS, resume=foreign)
    assert "never said" not in str(live.session.state.timeline.lines)
    await live.close()


def _other_code(folder: Path) -> None:
    head, body = (folder / STATE_NAME).read_bytes().split(b"\n", 1)
    (folder / STATE_NAME).write_bytes(json.dumps({**json.loads(head), "code": "x"}).encode() + b"\n" + body)


def _flip(name: str, place: int) -> Callable[[Path], None]:
    def flip(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[place] ^= 1
        (folder / name).write_bytes(data)

    return flip


def _cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-200]) and None


@pytest.mark.parametrize(
    "spoil",
    [
        _other_code,
        _flip(STATE_NAME, 5),
        _flip(STATE_NAME, -300),
        _flip(JOURNAL_NAME, 300),
        _cut(STATE_NAME),
        _cut(JOURNAL_NAME),
        lambda folder: (folder / STATE_NAME).write_bytes(b""),
        lambda folder: (folder / STATE_NAME).write_bytes(b"[" * 100_000),
        lambda folder: (folder / STATE_NAME).unlink(),
        lambda folder: (folder / JOURNAL_NAME).unlink(),
    ],
)
def test_what_does_not_fit_is_ignored(tmp_path: Path, spoil: Callable[[Path], object]):
    state = saved(tmp_path, [start(), *a_run()])
    assert load(tmp_path).state == state
    spoil(tmp_path)
    assert load(tmp_path) is NOTHING


def test_what_cannot_be_saved_is_not(tmp_path: Path):
    folder = tmp_path / "s1"
    state = saved(folder, [start()])
    mark = read_journal(folder).end
    odd = ToolStarted(call_id="c1", tool="t", input={"text": "\ud800"}).stamped(2, 1.0)
    begun = fold([*[event.stamped(2, 1.0) for event in iteration(1)[:5]], odd], state)
    before = (folder / STATE_NAME).read_bytes()
    save(folder, begun, mark)
    save(tmp_path / "missing", state, mark)
    assert [file.name for file in sorted(folder.iterdir())] == [JOURNAL_NAME, STATE_NAME]
    assert (folder / STATE_NAME).read_bytes() == before


@pytest.mark.parametrize("name", [STATE_NAME, f"{STATE_NAME}.part"])
def test_a_pipe_holds_nobody_up_and_a_link_is_not_followed(tmp_path: Path, name: str):
    events = [start(), *a_run()]
    write_session(tmp_path, events)
    os.mkfifo(tmp_path / name)
    assert load(tmp_path) is NOTHING
    assert saved(tmp_path, events) == load(tmp_path).state
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(other)
    saved(tmp_path, events)
    assert other.read_text() == "mine"


def test_a_short_journal_has_no_saved_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    saved(tmp_path, [start(), *a_run()])
    assert not (tmp_path / STATE_NAME).exists()


async def test_what_came_too_late_for_the_journal_is_not_in_the_state(tmp_path: Path):
    live = await start_session(tmp_path, LOOKS)
    closing = asyncio.ensure_future(live.close())
    await asyncio.sleep(0)
    while not closing.done():
        with suppress(RuntimeError):
            live.session.set_title("too late")
        await asyncio.sleep(0)
    assert live.session.state.session.title == "too late"
    assert load(live.session.folder).state == replayed(live.session)


async def test_a_last_line_without_its_break_and_a_torn_one_are_mended_before_the_state_is_saved(
    tmp_path: Path,
):
    live = await start_session(tmp_path, LOOKS)
    await live.session.submit("look")
    await live.session.wait()
    await live.close()
    journal = live.session.folder / JOURNAL_NAME
    for end in (journal.read_bytes()[:-1], journal.read_bytes() + b'{"seq":'):
        journal.write_bytes(end)
        again = await start_session(tmp_path, LOOKS, resume=live.session.folder)
        await again.close()
        found = load(live.session.folder)
        assert found.state == replayed(again.session)
        assert (found.mark.seq, found.mark.size) == (found.state.seq, journal.stat().st_size)


def test_a_change_of_any_code_that_a_fold_runs_is_another_code() -> None:
    reached, left = set[str](), ["tui_agent.core.fold"]
    while left:
        reached.add(name := left.pop())
        left += (imports(name) & modules().keys()) - reached
    assert "tui_agent.shell_syntax" in reached
    assert {modules()[name] for name in reached} <= set(saved_state.sources())
