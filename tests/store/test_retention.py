"""What is done when sessions close, are forked and go for good: the list, retention, the checkpoints."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.store.session_events import run_started, start, write_session
from tui_agent.core.events import CheckpointSaved, Event, Outcome, RunFinished
from tui_agent.session.forked_journal import fork
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import CheckpointError
from tui_agent.store.lock import SessionLock
from tui_agent.store.retention import adopt_checkpoints, apply_retention, empty_trash, put_away
from tui_agent.store.session_store import SessionStore
from tui_agent.store.shadow_git import ShadowGit

DAY = 86_400.0
NOW = 1_800_000_000.0

needs_git = pytest.mark.skipif(not ShadowGit.installed(), reason="git is not installed")


def session(state: Path, name: str, *events: Event, age: float = 0.0, workspace: Path = Path("/w")) -> Path:
    folder = state / "sessions" / name
    write_session(folder, [start(name, str(workspace)), run_started(), *events])
    os.utime(folder / "events.jsonl", (NOW - age, NOW - age))
    return folder


async def test_a_session_that_closed_is_in_the_list_as_it_ended(tmp_path: Path):
    session(tmp_path, "s1", RunFinished(outcome=Outcome.ANSWERED))
    await put_away(tmp_path, "s1", None, NOW)
    store = SessionStore(tmp_path)
    assert store.stale() == 0
    assert [(row.id, row.outcome) for row in store.rows()] == [("s1", "answered")]


async def test_nothing_goes_where_no_retention_is_set(tmp_path: Path):
    session(tmp_path, "old", age=1000 * DAY)
    session(tmp_path, "s1")
    await put_away(tmp_path, "s1", None, NOW)
    assert {row.id for row in SessionStore(tmp_path).rows()} == {"old", "s1"}


async def test_old_sessions_go_to_the_trash_and_from_there_for_good(tmp_path: Path):
    session(tmp_path, "old", age=40 * DAY)
    busy = session(tmp_path, "busy", age=40 * DAY)
    session(tmp_path, "s1")
    lock = SessionLock.acquire(busy)
    await put_away(tmp_path, "s1", 30, NOW)
    lock.release()
    store = SessionStore(tmp_path)
    assert {row.id for row in store.rows()} == {"busy", "s1"}
    assert [row.id for row in store.trash()] == ["old"]
    assert await apply_retention(store, 30, NOW + 29 * DAY) == ["busy"]
    assert {row.id for row in store.trash()} == {"old", "busy"}
    await apply_retention(store, 30, NOW + 31 * DAY)
    assert "old" not in {row.id for row in store.trash()}


async def test_a_state_folder_that_refuses_keeps_nobody_from_leaving(tmp_path: Path):
    (tmp_path / "state").write_text("a file where a folder should be")
    await put_away(tmp_path / "state", "s1", 30, NOW)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("1\n")
    return folder


async def kept(state: Path, workspace: Path, name: str) -> tuple[Path, str]:
    """A session with one checkpoint of the workspace as it is; its folder and the checkpoint."""
    saved = await Checkpoints(state, workspace, name).save("before run 1")
    event = CheckpointSaved(ref=saved.ref, iteration=1, before="run 1")
    return session(state, name, event, workspace=workspace), saved.ref


def objects(state: Path) -> int:
    (store,) = (state / "checkpoints").iterdir()
    counted = subprocess.run(
        ["git", "count-objects", "-v"],
        env={**os.environ, "GIT_DIR": str(store)},
        capture_output=True,
        check=True,
    )
    counts = dict(line.split(": ") for line in counted.stdout.decode().splitlines())
    return int(counts["count"]) + int(counts["in-pack"])


@needs_git
async def test_a_fork_keeps_the_checkpoints_it_shares_when_its_parent_goes(tmp_path: Path, workspace: Path):
    state = tmp_path / "state"
    parent, first = await kept(state, workspace, "parent")
    (workspace / "a.py").write_text("2\n")
    second = (await Checkpoints(state, workspace, "parent").save("iteration 1")).ref
    child = fork(parent, state / "sessions", "child", at=9.0)
    await adopt_checkpoints(child)
    store = SessionStore(state)
    store.delete("parent", NOW)
    assert await empty_trash(store, NOW + 1) == ["parent"]
    own = Checkpoints(state, workspace, "child")
    assert [change.path for change in await own.diff(first)] == ["a.py"]
    (workspace / "a.py").write_text("3\n")
    await own.save("iteration 2")
    await own.forget()
    for ref in (first, second):
        with pytest.raises(CheckpointError, match="is gone"):
            await own.diff(ref)


@needs_git
@pytest.mark.parametrize("gone", [False, True])
async def test_a_session_that_leaves_the_trash_takes_its_checkpoints_along(
    tmp_path: Path, workspace: Path, gone: bool
):
    state = tmp_path / "state"
    await kept(state, workspace, "s1")
    store = SessionStore(state)
    store.delete("s1", NOW)
    assert objects(state) > 0
    if gone:
        shutil.rmtree(workspace)
    await empty_trash(store, NOW + 1)
    assert objects(state) == 0
    if not gone:
        again = await Checkpoints(state, workspace, "s2").save("")
        assert await Checkpoints(state, workspace, "s2").diff(again.ref) == []


@needs_git
async def test_checkpoints_that_are_gone_or_no_names_at_all_are_not_adopted(tmp_path: Path, workspace: Path):
    state = tmp_path / "state"
    _, ref = await kept(state, workspace, "parent")
    wrong = ["--help", "0" * 40, "zz", "f" * 40 + "\nupdate refs/heads/newest " + ref]
    events = [CheckpointSaved(ref=name) for name in [*wrong, ref]]
    await adopt_checkpoints(session(state, "child", *events, workspace=workspace))
    await Checkpoints(state, workspace, "parent").forget()
    assert await Checkpoints(state, workspace, "child").diff(ref) == []


async def test_a_session_without_checkpoints_makes_no_store(tmp_path: Path, workspace: Path):
    await adopt_checkpoints(session(tmp_path / "state", "child", workspace=workspace))
    assert not (tmp_path / "state" / "checkpoints").exists()
