"""Whole outputs of a forked session: its own files, and results that name them."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.store.session_events import run_started, start, write_session
from tui_agent.core.events import (
    Event,
    Failure,
    FailureKind,
    ReplyFinished,
    ToolCall,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
)
from tui_agent.core.fold import fold
from tui_agent.session.forked_journal import fork
from tui_agent.store.journal import JOURNAL_NAME, read_journal
from tui_agent.tools.workspace import Workspace

LONG = "a long output\n" * 1000


def long_output(call: str, file: Path | str, *, fails: bool = False) -> Event:
    common = {"call_id": call, "tool": "bash", "input": {"command": "make"}, "output_file": str(file)}
    content = f"a long\n[the whole is in {file}]\noutput"
    if not fails:
        return ToolSucceeded(**common, content=content)
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=content, tool="bash", input={})
    return ToolFailed(**common, content=content, failure=failure)


def session_with(folder: Path, *files: Path | str) -> list[Event]:
    """A session whose results name these files, and whose model reads the first of them on."""
    arguments = json.dumps({"path": str(files[0])})
    reading = ToolCall(id="r", name="read_file", arguments=arguments)
    return write_session(
        folder,
        [
            start("parent"),
            run_started(),
            *(long_output(f"c{number}", file, fails=number % 2 == 1) for number, file in enumerate(files)),
            ReplyFinished(text=f"I read {files[0]}.", calls=(reading,)),
            ToolStarted(call_id="r", tool="read_file", input={"path": str(files[0])}),
        ],
    )


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    return tmp_path / 'the "sessions" of ü'


def kept(folder: Path, name: str) -> Path:
    (folder / "output").mkdir(parents=True, exist_ok=True)
    (folder / "output" / name).write_text(LONG + name)
    return folder / "output" / name


def test_a_fork_names_and_holds_files_of_its_own(sessions: Path):
    parent = sessions / "parent"
    files = [kept(parent, "bash-1.txt"), kept(parent, "bash-2.txt")]
    session_with(parent, *files)
    before = (parent / JOURNAL_NAME).read_bytes()
    child = fork(parent, sessions, "child", at=9.0)
    events = read_journal(child).events
    named = [event.output_file for event in events if isinstance(event, ToolSucceeded | ToolFailed)]
    assert named == [str(child / "output" / file.name) for file in files]
    for name in named:
        assert Path(name).read_text() == LONG + Path(name).name
        assert Workspace(sessions.parent / "w").resolve(name, also=child / "output") == Path(name).resolve()
    assert b"/parent/output" not in (child / JOURNAL_NAME).read_bytes()
    calls = [call for event in events if isinstance(event, ReplyFinished) for call in event.calls]
    assert json.loads(calls[0].arguments) == {"path": named[0]}
    assert (parent / JOURNAL_NAME).read_bytes() == before
    shutil.rmtree(parent)
    assert Path(named[1]).read_text() == LONG + "bash-2.txt"
    assert fold(read_journal(child).events).session.parent is not None


def test_only_what_the_fork_shares_comes_along(sessions: Path):
    parent = sessions / "parent"
    session_with(parent, kept(parent, "bash-1.txt"), kept(parent, "bash-2.txt"))
    child = fork(parent, sessions, "child", at=9.0, seq=3)
    assert [file.name for file in (child / "output").iterdir()] == ["bash-1.txt"]


def test_a_fork_of_a_fork_has_files_of_its_own_too(sessions: Path):
    parent = sessions / "parent"
    session_with(parent, kept(parent, "bash-1.txt"))
    child = fork(parent, sessions, "child", at=9.0)
    grandchild = fork(child, sessions, "grandchild", at=10.0)
    for folder in (parent, child):
        shutil.rmtree(folder)
    event = read_journal(grandchild).events[2]
    assert isinstance(event, ToolSucceeded)
    assert Path(event.output_file).parent == grandchild / "output"
    assert Path(event.output_file).read_text() == LONG + "bash-1.txt"


def test_a_session_that_was_moved_brings_its_files_along(sessions: Path):
    parent = sessions / "parent"
    kept(parent, "bash-1.txt")
    session_with(parent, "/where/it/was/sessions/parent/output/bash-1.txt")
    child = fork(parent, sessions, "child", at=9.0)
    event = read_journal(child).events[2]
    assert isinstance(event, ToolSucceeded)
    assert Path(event.output_file) == child / "output" / "bash-1.txt"
    assert Path(event.output_file).exists()


@pytest.mark.parametrize("place", ["elsewhere/secret.txt", "elsewhere/output/secret.txt", "linked"])
def test_files_that_are_no_output_of_a_session_are_never_brought_in(
    sessions: Path, tmp_path: Path, place: str
):
    secret = tmp_path / place if place != "linked" else sessions / "parent" / "output" / "secret.txt"
    secret.parent.mkdir(parents=True)
    if place == "linked":
        (tmp_path / "secret").write_text("secret")
        secret.symlink_to(tmp_path / "secret")
    else:
        secret.write_text("secret")
    session_with(sessions / "parent", secret)
    child = fork(sessions / "parent", sessions, "child", at=9.0)
    assert not (child / "output").exists()
    event = read_journal(child).events[2]
    assert isinstance(event, ToolSucceeded)
    assert event.output_file == str(secret)


def test_where_files_cannot_be_linked_they_are_copied(sessions: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    parent = sessions / "parent"
    file = kept(parent, "bash-1.txt")
    session_with(parent, file)
    child = fork(parent, sessions, "child", at=9.0)
    copy = child / "output" / "bash-1.txt"
    assert copy.read_text() == file.read_text()
    assert copy.stat().st_ino != file.stat().st_ino
