"""The files: two processes, torn and hostile content, and what is put aside."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from tests.playbook.test_book import TEST, lesson
from tui_agent.playbook.store import LARGEST, Playbook


def learn(state: Path, workspace: Path, first: int, count: int) -> None:
    playbook = Playbook(state, workspace)
    for number in range(first, first + count):
        playbook.learn(f"run {number}", [lesson((TEST, True))], 1_000.0)


@pytest.mark.process
def test_two_processes_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=learn, args=(tmp_path, tmp_path, first, 20)) for first in (0, 20)]
    for one in others:
        one.start()
    for one in others:
        one.join()
    ((_, repair, _),) = Playbook(tmp_path, tmp_path).workspace.book().offered(1_000.0)
    assert repair.worked == 40


def test_a_change_of_another_process_is_seen(tmp_path: Path) -> None:
    mine, other = Playbook(tmp_path, tmp_path), Playbook(tmp_path, tmp_path)
    call = ("bash", {"command": "pytest"}, "pytest: not found", 1_000.0)
    assert mine.suggestion(*call) is None
    for number in range(3):
        other.learn(str(number), [lesson((TEST, True))], 1_000.0)
    found = mine.suggestion(*call)
    assert found is not None
    assert found.repair == "bin/test"


def test_workspaces_know_nothing_of_each_other(tmp_path: Path) -> None:
    learn(tmp_path, tmp_path / "one", 0, 5)
    other = Playbook(tmp_path, tmp_path / "other")
    assert other.suggestion("bash", {"command": "pytest"}, "pytest: not found", 1_000.0) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"entries": [{"exact": "a"',
        b"[]",
        b'{"entries": [{"exact": "a", "repairs": [{"form": "rm -rf", "name": "x"}]}]}',
        b'{"entries": [{"exact": "a", "seen": 1e999}]}',
        b'{"entries": [{"exact": "a", "seen": -1}]}',
        b'{"entries": [{"exact": "' + b"a" * 10_000 + b'"}]}',
        b'{"surprise": 1}',
        b"[" * 100_000,
        b"\xff\xfe",
        b" " * (LARGEST + 1),
    ],
)
def test_a_file_that_is_no_playbook_knows_nothing_is_named_and_put_aside(
    tmp_path: Path, content: bytes
) -> None:
    playbook = Playbook(tmp_path, tmp_path)
    playbook.workspace.path.parent.mkdir()
    playbook.workspace.path.write_bytes(content)
    assert playbook.suggestion("bash", {"command": "pytest"}, "pytest: not found", 0.0) is None
    with pytest.raises(OSError, match=r"playbook|larger"):
        playbook.workspace.book()
    learn(tmp_path, tmp_path, 0, 3)
    assert len(playbook.workspace.book().entries) == 1
    assert playbook.workspace.path.with_suffix(".damaged").read_bytes() == content


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path, tmp_path)
    playbook.workspace.path.parent.mkdir()
    os.mkfifo(playbook.workspace.path)
    assert playbook.suggestion("bash", {"command": "pytest"}, "pytest: not found", 0.0) is None


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    learn(tmp_path / "state", tmp_path, 0, 1)
    folder = tmp_path / "state" / "playbook"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert json.loads(next(folder.glob("[0-9a-f]*.json")).read_text())["workspace"] == str(tmp_path)
