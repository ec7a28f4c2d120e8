"""The store: sessions are listed, found, named, thrown away and brought back, and the index may be lost."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.store.session_events import iteration, one_of_every_type, run_started, stamp, start, write_session
from tui_agent.core.events import (
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    ModelFaulted,
    Outcome,
    ReplyRejected,
    RunFinished,
    RunStarted,
    TitleChanged,
)
from tui_agent.core.fold import apply, fold
from tui_agent.core.state import RunState
from tui_agent.store.errors import SessionBusyError, SessionError
from tui_agent.store.journal import JOURNAL_NAME, Journal, read_journal
from tui_agent.store.redaction import Redactor
from tui_agent.store.session_index import INDEX_NAME
from tui_agent.store.session_store import SessionStore
from tui_agent.store.summary import _COUNTED, SessionRow

DAY = 86_400.0


def make(
    state_dir: Path, name: str, task: str = "Fix the tests", *, age: float = 0.0, workspace: str = "/w"
) -> None:
    events = [
        start(name, workspace),
        run_started(1, task),
        *iteration(1, fails="no such file: größe.py"),
        *iteration(2, call="c2"),
        RunFinished(outcome=Outcome.ANSWERED, answer="All tests are green."),
        run_started(2, "And now the docs"),
        *iteration(1, call="c3"),
    ]
    when = 1_700_000_000.0 - age
    write_session(state_dir / "sessions" / name, stamp(events, at=when), stamped=True)
    os.utime(state_dir / "sessions" / name / JOURNAL_NAME, (when, when))


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    for number in range(3):
        make(tmp_path, f"s{number}", f"Task number {number}", age=number * DAY, workspace=f"/w{number}")
    store = SessionStore(tmp_path)
    store.refresh()
    return store


def row(store: SessionStore, name: str) -> SessionRow:
    return next(row for row in store.rows() if row.id == name)


def test_a_row_tells_what_happened_in_the_session(store: SessionStore):
    found = row(store, "s1")
    assert (found.title, found.workspace, found.model, found.policy) == (
        "Task number 1",
        "/w1",
        "scripted/a",
        "combined",
    )
    assert (found.runs, found.iterations, found.tool_calls, found.tool_errors, found.recoveries) == (
        2,
        3,
        3,
        1,
        1,
    )
    assert found.failures == 1
    assert (found.cost, found.tokens, found.outcome, found.problem) == (pytest.approx(0.003), 135, "", "")
    assert found.size == (store.folder("s1") / JOURNAL_NAME).stat().st_size


def test_a_row_agrees_with_the_folded_state(store: SessionStore):
    events = read_journal(store.folder("s1")).events
    state = fold(events)
    found = row(store, "s1")
    assert found.cost == state.metrics.session_usage.cost
    assert (found.title, found.model) == (state.session.title, state.session.model)
    assert (found.started_at, found.ended_at, found.events) == (events[0].at, events[-1].at, len(events))


def test_what_a_row_sums_up_is_what_the_metrics_of_its_runs_say(tmp_path: Path):
    # Every type of event, so that none that counts is passed over unread.
    listed = [
        *one_of_every_type(),
        run_started(8),
        *iteration(1, fails="boom"),
        RunFinished(outcome=Outcome.PARTIAL),
    ]
    events = write_session(tmp_path / "sessions" / "s1", listed)
    totals = dict.fromkeys(_COUNTED, 0)
    state = RunState()
    for event in events:
        if isinstance(event, RunStarted):
            totals = {name: count + getattr(state.metrics, name) for name, count in totals.items()}
        state = apply(state, event)
    totals = {name: count + getattr(state.metrics, name) for name, count in totals.items()}
    store = SessionStore(tmp_path)
    store.refresh()
    assert {name: getattr(row(store, "s1"), name) for name in _COUNTED} == totals
    assert all(totals[name] for name in ("coherence_violations", "tool_errors", "failures", "escalations"))


def test_rates_are_of_what_there_was_and_unknown_where_there_was_nothing(tmp_path: Path):
    found = SessionRow(
        "s", tool_calls=4, tool_errors=1, failures=2, recovered_worked_round=1, endings=3, partial_answers=3
    )
    assert (found.error_rate, found.recovery_rate, found.partial_answer_rate) == (0.25, 0.5, 1.0)
    empty = SessionRow("s")
    assert (empty.error_rate, empty.recovery_rate, empty.partial_answer_rate) == (None, None, None)


def test_recoveries_are_counted_among_all_failures_not_those_of_tools_alone(tmp_path: Path):
    fault = Fault(kind=FaultKind.OVERLOADED, message="529")
    no_call = Failure(kind=FailureKind.NO_TOOL_CALL, message="no call")
    events = [
        start("s1"),
        run_started(),
        ModelFaulted(fault=fault, action="retry"),
        ModelFaulted(fault=fault, action="retry"),
        *iteration(1, fails="boom"),
        ReplyRejected(failure=no_call),
        RunFinished(outcome=Outcome.ANSWERED),
        run_started(2),
        ModelFaulted(fault=fault, action="stop"),
        RunFinished(outcome=Outcome.MODEL_FAILED),
    ]
    write_session(tmp_path / "sessions" / "s1", events)
    store = SessionStore(tmp_path)
    store.refresh()
    found = row(store, "s1")
    assert (found.tool_errors, found.failures, found.recoveries) == (1, 5, 2)


def test_an_index_of_an_older_version_is_made_anew(store: SessionStore):
    path = store.state_dir / INDEX_NAME
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE sessions DROP COLUMN failures")
        database.execute("PRAGMA user_version = 1")
    database.close()
    again = SessionStore(store.state_dir)
    assert again.refresh() == 3
    assert row(again, "s1").failures == 1


def test_a_list_before_any_index_shows_every_session(tmp_path: Path):
    make(tmp_path, "s1")
    store = SessionStore(tmp_path)
    assert [row.id for row in store.rows()] == ["s1"]
    assert store.stale() == 1
    assert store.refresh() == 1
    assert store.stale() == 0
    assert row(store, "s1").title == "Fix the tests"


def test_only_what_changed_is_read_again(store: SessionStore):
    assert store.refresh() == 0
    make(store.state_dir, "s1", "A longer task than before")
    reported: list[tuple[int, int]] = []
    assert store.refresh(lambda done, of: reported.append((done, of))) == 1
    assert reported == [(1, 1)]
    assert row(store, "s1").title == "A longer task than before"
    assert [hit.session_id for hit in store.search("longer")] == ["s1"]


@pytest.mark.parametrize("loss", ["deleted", "damaged", "other version", "a folder of rubbish"])
def test_losing_the_index_loses_nothing(store: SessionStore, loss: str):
    before = store.rows()
    hits = store.search("größe")
    path = store.state_dir / INDEX_NAME
    if loss == "other version":
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 999")
        database.close()
    else:
        for file in store.state_dir.glob(f"{INDEX_NAME}*"):
            file.unlink()
        if loss == "damaged":
            path.write_bytes(b"not a database" * 1000)
        elif loss == "a folder of rubbish":
            path.write_bytes(b"SQLite format 3\0" + os.urandom(4096))
    again = SessionStore(store.state_dir)
    again.refresh()
    assert again.rows() == before
    assert again.search("größe") == hits
    assert hits


def test_a_state_folder_that_takes_no_index_still_lists(store: SessionStore):
    before = store.rows()
    for file in store.state_dir.glob(f"{INDEX_NAME}*"):
        file.unlink()
    (store.state_dir / INDEX_NAME).mkdir()
    again = SessionStore(store.state_dir)
    again.refresh()
    assert again.rows() == before


def test_search_finds_what_was_said_failed_and_answered(store: SessionStore):
    assert {hit.session_id for hit in store.search("task number 1")} == {"s1"}
    found = store.search("file: GRÖSSE") + store.search("grosse")
    assert {hit.role for hit in found} <= {"error"}
    hit = store.search("green")[0]
    assert hit.role == "model"
    assert [hit.snippet[first:last] for first, last in hit.spans] == ["green"]
    event = read_journal(store.folder(hit.session_id)).events[hit.seq - 1]
    assert isinstance(event, RunFinished)


def test_the_last_word_may_be_unfinished(store: SessionStore):
    assert store.search("tests gre")
    assert not store.search("gre tests")


@pytest.mark.parametrize(
    "words", ["", "  ", '"', "a OR", "NEAR(", "*", "col:x", "\x00", "' ; DROP TABLE", "(", "-green"]
)
def test_no_search_is_a_syntax_error(store: SessionStore, words: str):
    store.search(words)
    assert store.search("green")


def test_hostile_text_cannot_forge_the_marks_of_a_snippet(tmp_path: Path):
    make(tmp_path, "s1", "x \x02fake\x03 green \x1b[31m")
    store = SessionStore(tmp_path)
    store.refresh()
    hit = next(hit for hit in store.search("green") if hit.role == "operator")
    assert [hit.snippet[first:last] for first, last in hit.spans] == ["green"]


@pytest.mark.parametrize(
    ("name", "expected"), [("s1", "s1"), ("Task number 2", "s2")], ids=["by id", "by title"]
)
def test_a_session_is_found(store: SessionStore, name: str, expected: str):
    assert store.find(name) == store.folder(expected)


def test_a_session_is_found_by_the_beginning_of_its_id_if_no_other_shares_it(tmp_path: Path):
    for name in ("20260101-a", "20260101-b", "20260202-c"):
        make(tmp_path, name)
    store = SessionStore(tmp_path)
    assert store.find("202602").name == "20260202-c"
    with pytest.raises(SessionError, match="More than one session"):
        store.find("20260101")
    for name in ("", "nothing", "../etc"):
        with pytest.raises(SessionError, match="There is no session"):
            store.find(name)


def test_the_newest_session_is_the_one_used_last(store: SessionStore):
    assert store.newest() == store.folder("s0")
    assert store.newest(Path("/w2")) == store.folder("s2")
    assert store.newest(Path("/elsewhere")) is None


async def test_a_title_is_an_event_of_the_session(store: SessionStore):
    redactor = Redactor({"KEY": "hunter2x"})
    await store.rename("s1", "  A better name hunter2x ", at=5.0, redactor=redactor)
    last = read_journal(store.folder("s1")).events[-1]
    assert isinstance(last, TitleChanged)
    assert row(store, "s1").title == last.title == "A better name [masked:KEY]"
    assert store.search("better name")[0].session_id == "s1"


async def test_an_open_session_is_neither_renamed_nor_deleted(store: SessionStore):
    journal = await Journal.open_to_append(store.folder("s1"))
    with pytest.raises(SessionBusyError):
        await store.rename("s1", "x", at=1.0)
    with pytest.raises(SessionBusyError):
        store.delete("s1", now=1.0)
    assert sorted(store.retire(1, now=1_800_000_000.0)) == ["s0", "s2"]
    await journal.close()
    assert [row.id for row in store.rows()] == ["s1"]


def test_a_deleted_session_is_in_the_trash_and_comes_back_as_it_was(store: SessionStore):
    before = store.rows()
    content = (store.folder("s1") / JOURNAL_NAME).read_bytes()
    store.delete("s1", now=1_700_000_500.0)
    assert [row.id for row in store.rows()] == ["s0", "s2"]
    assert store.search("number 1") == []
    thrown = store.trash()
    assert [(row.id, row.title, row.ended_at) for row in thrown] == [("s1", "Task number 1", 1_700_000_500.0)]
    store.restore("s1")
    assert store.rows() == before
    assert (store.folder("s1") / JOURNAL_NAME).read_bytes() == content
    assert store.trash() == []


def test_deleting_or_restoring_what_is_not_there_is_named(store: SessionStore):
    with pytest.raises(SessionError, match="does not exist"):
        store.delete("none", now=1.0)
    with pytest.raises(SessionError, match="not in the trash"):
        store.restore("none")


def test_the_trash_is_emptied_of_what_is_old(store: SessionStore):
    store.delete("s0", now=1_000.0)
    store.delete("s1", now=3_000.0)
    assert store.empty_trash(before=2_000.0) == ["s0"]
    assert [row.id for row in store.trash()] == ["s1"]


@pytest.mark.parametrize(("days", "retired"), [(0, []), (10, []), (1.5, ["s2"]), (0.5, ["s1", "s2"])])
def test_retention_moves_old_sessions_to_the_trash(store: SessionStore, days: float, retired: list[str]):
    assert sorted(store.retire(days, now=1_700_000_000.0)) == retired
    assert sorted(row.id for row in store.trash()) == retired
    assert len(store.rows()) == 3 - len(retired)


def test_disk_use_counts_what_is_there(store: SessionStore):
    used = store.disk_use()
    assert used.sessions == sum(row.size for row in store.rows())
    assert used.trash == 0
    assert used.index > 0
    store.delete("s1", now=1.0)
    assert store.disk_use().trash > 0
    assert store.disk_use().total >= used.total - 100_000


def test_a_session_that_cannot_be_read_is_listed_with_the_reason(store: SessionStore):
    (store.folder("s1") / JOURNAL_NAME).write_bytes(b"rubbish\n")
    store.folder("empty").mkdir()
    store.refresh()
    assert "is not a session of agent-tui" in row(store, "s1").problem
    assert [row.id for row in store.rows()] == ["s1", "s0", "s2"]


@pytest.mark.parametrize("line", [b"rubbish", b'{"seq":4,"at":3.0,"v":2,"type":"tool_failed","tool":7}'])
def test_a_session_that_is_damaged_inside_is_summed_up_as_far_as_it_can_be_read(
    store: SessionStore, line: bytes
):
    journal = store.folder("s1") / JOURNAL_NAME
    whole = row(store, "s1")
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join([*lines[:3], line, *lines[4:]]))
    store.refresh()
    damaged = row(store, "s1")
    assert damaged.problem.startswith("events.jsonl is damaged in line 4: ")
    assert (damaged.title, damaged.runs, damaged.events) == (whole.title, 1, 3)
    assert whole.events > 3


def test_a_session_that_was_only_opened_is_the_newest_where_there_is_no_other(store: SessionStore):
    write_session(store.folder("opened"), [start("opened", "/w9")])
    assert store.newest() == store.folder("s0")
    assert store.newest(Path("/w9")) == store.folder("opened")


def test_a_session_that_holds_nothing_is_never_the_newest(store: SessionStore):
    store.folder("s9").mkdir()
    (store.folder("s9") / JOURNAL_NAME).write_bytes(b'{"seq":1')
    assert store.newest() == store.folder("s0")
