"""A disk that refuses or loses what is kept beside a run costs that, is said once, and never ends the run as a bug."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import pkgutil
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.session_harness import LiveSession, start_session
from tui_agent.core.events import CheckpointSaved, Notice, Outcome
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import CheckpointError, JournalError, SessionError
from tui_agent.store.lock import SessionLock
from tui_agent.store.session_store import SessionStore
from tui_agent.store.shadow_git import ShadowGit

needs_git = pytest.mark.skipif(not ShadowGit.installed(), reason="git is not installed")

WRITE = {"calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": "x"}}]}


def refusing(fault: int) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(fault, os.strerror(fault))

    return refuse


def no_lock(patch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "agent-tui.lock":
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        real(descriptor, operation)

    patch.setattr("fcntl.flock", flock)


def no_room_for_the_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tui_agent.store.shadow_git.make_private", refusing(errno.ENOSPC))


def no_room_for_its_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pathlib.Path.write_text", refusing(errno.ENOSPC))


def no_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tui_agent.processes.start", refusing(errno.EAGAIN))


def a_fault_in_the_pipe(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tui_agent.processes.Child.output", refusing(errno.EIO))


def a_fault_in_letting_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pathlib.Path.unlink", refusing(errno.EIO))


FAULTS = [
    no_lock,
    no_room_for_the_store,
    no_room_for_its_files,
    no_process,
    a_fault_in_the_pipe,
    a_fault_in_letting_go,
]


async def closed(live: LiveSession) -> None:
    """Close it, and see that model and lock are free."""
    await live.session.close()
    assert not SessionLock.held(live.session.folder)


@needs_git
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_checkpoint_that_cannot_be_kept_is_said_once_and_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
):
    live = await start_session(tmp_path, [WRITE, WRITE, "done"])
    fault(monkeypatch)
    finished = await live.run()
    assert (finished.outcome, finished.answer) == (Outcome.ANSWERED, "done")
    notices = [event.text for event in live.of(Notice)]
    assert len(notices) == 1
    assert "Rewinding will not bring files back" in notices[0]
    assert live.of(CheckpointSaved) == []
    await closed(live)


@needs_git
async def test_a_disk_that_fills_up_after_the_first_checkpoint_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    live = await start_session(tmp_path, [WRITE, WRITE, "done"])
    live.session.subscribe(
        lambda event, _: no_process(monkeypatch) if isinstance(event, CheckpointSaved) else None
    )
    assert (await live.run()).outcome is Outcome.ANSWERED
    await closed(live)


CALLS = [
    *("os.open", "os.close", "fcntl.flock", "tui_agent.processes.start", "asyncio.to_thread"),
    *(f"pathlib.Path.{name}" for name in ("mkdir", "exists", "unlink", "is_dir", "write_text", "read_text")),
    *("pathlib.Path.replace", "pathlib.Path.resolve", "pathlib.Path.lstat"),
]
"""What checkpoints ask of the operating system."""


CLOSE = os.close


class RefusesOnce:
    """Lets `number - 1` calls from the modules of checkpoints through and refuses the next one."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int) -> None:
        self.left = number
        for name in CALLS:
            patch.setattr(name, self._instead_of(pkgutil.resolve_name(name)))

    def _instead_of(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            module = sys._getframe(1).f_globals["__name__"]
            if module in {
                "tui_agent.store.checkpoints",
                "tui_agent.store.shadow_git",
                "tui_agent.store.private",
            }:
                self.left -= 1
                if self.left == 0:
                    if real is CLOSE:  # a descriptor is closed even where that fails
                        real(*arguments)
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments, **options)

        return call


@needs_git
async def test_whatever_the_system_refuses_at_any_step_is_a_checkpoint_error_and_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for number in itertools.count(1):
        state, work = tmp_path / f"state{number}", tmp_path / f"work{number}"
        work.mkdir()
        (work / "a.txt").write_text("1")
        with monkeypatch.context() as patch:
            once = RefusesOnce(patch, number)
            checkpoints = Checkpoints(state, work, "s")
            for question in (checkpoints.save(""), checkpoints.forget()):
                with contextlib.suppress(CheckpointError):
                    await question
        # What was half made then is made whole now.
        await Checkpoints(state, work, "s").save("")
        (store,) = (state / "checkpoints").iterdir()
        assert "filter" in (store / "info" / "attributes").read_text()
        assert "__pycache__/" in (store / "info" / "exclude").read_text()
        if once.left > 0:
            break
    assert number > 30


async def test_a_sessions_folder_that_is_deleted_is_noticed_and_the_run_does_not_claim_to_be_kept(
    tmp_path: Path,
):
    live = await start_session(tmp_path, [WRITE, WRITE, "done"])
    live.session.subscribe(
        lambda event, _: (
            shutil.rmtree(tmp_path / "state", ignore_errors=True) if event.type == "tool_succeeded" else None
        )
    )
    finished = await live.run()
    assert finished.outcome is Outcome.ERROR
    assert "deleted while the session was open" in finished.reason
    assert [event.severity for event in live.of(Notice) if "deleted while" in event.text] == ["error"]
    with pytest.raises(JournalError, match="deleted while the session was open"):
        await live.session.close()


async def test_a_folder_deleted_after_the_last_event_is_noticed_on_closing(tmp_path: Path):
    live = await start_session(tmp_path, ["done"])
    assert (await live.run()).outcome is Outcome.ANSWERED
    shutil.rmtree(live.session.folder)
    with pytest.raises(JournalError, match="deleted while the session was open"):
        await live.session.close()


@pytest.mark.parametrize("mask", [0o022, 0o000])
async def test_nothing_of_a_session_can_be_read_by_others(tmp_path: Path, mask: int):
    before = os.umask(mask)
    try:
        loud = {"calls": [{"tool": "bash", "args": {"command": "seq 100000"}}]}
        live = await start_session(tmp_path, [WRITE, loud, "done"])
        await live.run()
        await live.session.close()
        SessionStore(tmp_path / "state").refresh()
    finally:
        os.umask(before)
    state = tmp_path / "state"
    open_to_others = [
        str(path.relative_to(state))
        for path in (state, *state.rglob("*"))
        if "checkpoints" not in path.relative_to(state).parts[:1] and path.stat().st_mode & 0o077
    ]
    assert open_to_others == []
    assert list(state.glob("sessions/*/output/*.txt"))
    assert all(not folder.stat().st_mode & 0o077 for folder in state.glob("checkpoints"))


def test_an_index_that_others_could_read_is_closed_to_them(tmp_path: Path):
    store = SessionStore(tmp_path)
    store.refresh()
    index = tmp_path / "index.sqlite3"
    index.chmod(0o644)
    store.refresh()
    assert index.stat().st_mode & 0o777 == 0o600


def test_a_damaged_index_that_cannot_be_replaced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = SessionStore(tmp_path)
    (tmp_path / "index.sqlite3").write_bytes(b"no database at all " * 100)
    monkeypatch.setattr("pathlib.Path.unlink", refusing(errno.EROFS))
    with pytest.raises(SessionError, match="index of the sessions cannot be used"):
        store.rows()
