"""Checkpoints: the workspace comes back byte for byte, and nothing of the user's is touched."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tui_agent.store import checkpoints as module
from tui_agent.store.checkpoints import Checkpoint, CheckpointLimits, Checkpoints
from tui_agent.store.errors import CheckpointError
from tui_agent.store.file_changes import FileChange
from tui_agent.store.shadow_git import ShadowGit

pytestmark = pytest.mark.skipif(not ShadowGit.installed(), reason="git is not installed")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` but git's own, links as their targets."""
    return {
        path.relative_to(folder).as_posix(): os.fsencode(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if ".git" not in path.relative_to(folder).parts and (path.is_symlink() or path.is_file())
    }


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_bytes(b"print(1)\r\n")
    (folder / "ü 1.bin").write_bytes(bytes(range(256)))
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "b.txt").write_text("b\n")
    (folder / ".gitignore").write_text("*.log\nout/\n")
    (folder / "x.log").write_text("ignored\n")
    return folder


@pytest.fixture
def checkpoints(tmp_path: Path, workspace: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "state", workspace, "s1")


async def test_files_come_back_as_they_were_and_forward_again(workspace: Path, checkpoints: Checkpoints):
    first = await checkpoints.save("before run 1")
    before = contents(workspace)
    (workspace / "a.py").write_bytes(b"print(2)\n")
    (workspace / "new.py").write_text("new\n")
    (workspace / "deep" / "er" / "b.txt").unlink()
    (workspace / "x.log").write_text("still ignored\n")
    after = contents(workspace)
    second = await checkpoints.save("iteration 1")
    assert second.files == ("a.py", "deep/er/b.txt", "new.py")
    assert await checkpoints.diff(first.ref) == [
        FileChange("change", "a.py"),
        FileChange("create", "deep/er/b.txt"),
        FileChange("delete", "new.py"),
    ]
    assert contents(workspace) == after
    restored = await checkpoints.restore(first.ref)
    assert contents(workspace) == before | {"x.log": b"still ignored\n"}
    assert [change.path for change in restored.changes] == ["a.py", "deep/er/b.txt", "new.py"]
    await checkpoints.restore(restored.undo_ref)
    assert contents(workspace) == after


async def test_what_was_never_checkpointed_is_kept_before_it_is_overwritten(
    workspace: Path, checkpoints: Checkpoints
):
    first = await checkpoints.save("")
    (workspace / "a.py").write_bytes(b"unsaved work\n")
    (workspace / "other.py").write_bytes(b"unsaved too\n")
    restored = await checkpoints.restore(first.ref)
    assert (workspace / "a.py").read_bytes() == b"print(1)\r\n"
    await checkpoints.restore(restored.undo_ref)
    assert (workspace / "a.py").read_bytes() == b"unsaved work\n"
    assert (workspace / "other.py").read_bytes() == b"unsaved too\n"


async def test_a_file_that_is_ignored_by_now_is_kept_before_it_is_overwritten(
    workspace: Path, checkpoints: Checkpoints
):
    (workspace / "notes.txt").write_text("old\n")
    first = await checkpoints.save("")
    (workspace / ".gitignore").write_text("*.log\nout/\nnotes.txt\n")
    (workspace / "notes.txt").unlink()
    await checkpoints.save("")
    (workspace / "notes.txt").write_text("mine\n")
    restored = await checkpoints.restore(first.ref)
    assert (workspace / "notes.txt").read_text() == "old\n"
    await checkpoints.restore(restored.undo_ref)
    assert (workspace / "notes.txt").read_text() == "mine\n"


async def test_links_modes_and_swapped_kinds_come_back(workspace: Path, checkpoints: Checkpoints):
    (workspace / "link").symlink_to("a.py")
    (workspace / "run.sh").write_text("#!/bin/sh\n")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "thing").write_text("a file\n")
    first = await checkpoints.save("")
    before = contents(workspace)
    (workspace / "link").unlink()
    (workspace / "link").write_text("a file now\n")
    (workspace / "run.sh").chmod(0o644)
    (workspace / "thing").unlink()
    (workspace / "thing").mkdir()
    (workspace / "thing" / "inside").write_text("x")
    (workspace / "thing" / "ignored.log").write_text("y")
    after = contents(workspace)
    restored = await checkpoints.restore(first.ref)
    assert contents(workspace) == before
    assert os.access(workspace / "run.sh", os.X_OK)
    await checkpoints.restore(restored.undo_ref)
    assert contents(workspace) == after


async def test_nothing_new_costs_no_new_checkpoint(workspace: Path, checkpoints: Checkpoints):
    first = await checkpoints.save("")
    again = await checkpoints.save("")
    assert (again.ref, again.files) == (first.ref, ())


def _git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=u", "-c", "user.email=u@localhost")
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _fingerprint(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in folder.rglob("*")
    }


async def test_the_users_own_repository_is_not_touched_and_its_hooks_and_filters_do_not_run(
    workspace: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    _git(workspace, "init", "-q")
    _git(workspace, "add", "-A")
    _git(workspace, "commit", "-qm", "one")
    trap = tmp_path / "trap"
    for name in ("post-commit", "pre-commit", "post-checkout", "post-index-change", "reference-transaction"):
        hook = workspace / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
        hook.chmod(0o755)
    (workspace / ".gitattributes").write_text("* text eol=crlf filter=evil ident\n")
    (workspace / "c.txt").write_bytes(b"line\n$Id$\n")
    for setting in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"):
        _git(workspace, "config", setting, f"touch {trap}; cat")
    hostile = tmp_path / "gitconfig"
    hostile.write_text(f'[core]\n\tfsmonitor = touch {trap}\n[filter "evil"]\n\tclean = touch {trap}; cat\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile))
    monkeypatch.setenv("GIT_DIR", str(workspace / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(workspace / ".git" / "index"))
    before = _fingerprint(workspace / ".git")
    first = await checkpoints.save("")
    kept = contents(workspace)
    (workspace / "c.txt").write_bytes(b"other\n")
    await checkpoints.save("")
    await checkpoints.restore(first.ref)
    assert contents(workspace) == kept
    assert _fingerprint(workspace / ".git") == before
    assert not trap.exists()


async def test_rules_of_an_enclosing_repository_hold(tmp_path: Path):
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    _git(tmp_path / "repo", "init", "-q")
    (tmp_path / "repo" / ".gitignore").write_text("big-data\n/sub/anchored\n")
    (tmp_path / "repo" / "sub" / "big-data").write_text("x")
    (tmp_path / "repo" / "sub" / "code.py").write_text("1\n")
    checkpoints = Checkpoints(tmp_path / "state", tmp_path / "repo" / "sub", "s1")
    first = await checkpoints.save("")
    (tmp_path / "repo" / "sub" / "big-data").write_text("y")
    (tmp_path / "repo" / "sub" / "code.py").write_text("2\n")
    assert [change.path for change in await checkpoints.diff(first.ref)] == ["code.py"]


async def test_what_is_left_out_is_said(tmp_path: Path, workspace: Path):
    checkpoints = Checkpoints(tmp_path / "state", workspace, "s1", CheckpointLimits(one_file=1000))
    (workspace / "grown.bin").write_bytes(b"small")
    first = await checkpoints.save("")
    (workspace / "large.bin").write_bytes(b"x" * 2000)
    (workspace / "grown.bin").write_bytes(b"y" * 2000)
    (workspace / "inner").mkdir()
    _git(workspace / "inner", "init", "-q")
    (workspace / "inner" / "f").write_text("x")
    kept = await checkpoints.save("")
    assert [remark.split(":")[0] for remark in kept.skipped] == ["grown.bin", "inner/", "large.bin"]
    restored = await checkpoints.restore(first.ref)
    assert (workspace / "grown.bin").read_bytes() == b"small"
    assert (workspace / "large.bin").read_bytes() == b"x" * 2000
    await checkpoints.restore(restored.undo_ref)
    assert (workspace / "grown.bin").read_bytes() == b"y" * 2000


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(CheckpointLimits(files=2), "5 new or changed"), (CheckpointLimits(total=100), "too large")],
)
async def test_a_workspace_that_is_too_large_is_skipped_with_the_reason(
    tmp_path: Path, workspace: Path, limits: CheckpointLimits, reason: str
):
    (workspace / "fill").write_bytes(b"x" * 200)
    checkpoints = Checkpoints(tmp_path / "state", workspace, "s1", limits)
    for _ in range(2):
        with pytest.raises(CheckpointError, match=reason if limits.total == 100 else "too large"):
            await checkpoints.save("")
    assert "too large" in str(checkpoints.unavailable)


def test_a_home_folder_and_what_holds_it_are_never_checkpointed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = tmp_path / "home" / "me"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for folder in (home, home.parent, Path("/")):
        assert "home folder" in str(Checkpoints(tmp_path / "state", folder, "s").unavailable)
    assert Checkpoints(tmp_path / "state", home / "project", "s").unavailable is None


async def test_without_git_the_reason_is_given(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    checkpoints = Checkpoints(tmp_path / "state", workspace, "s1")
    assert checkpoints.unavailable == "git is not installed"
    with pytest.raises(CheckpointError, match="git is not installed"):
        await checkpoints.save("")


async def test_two_sessions_on_one_workspace_take_turns(tmp_path: Path, workspace: Path):
    pair = [Checkpoints(tmp_path / "state", workspace, name) for name in ("s1", "s2")]
    kept = await asyncio.gather(*(checkpoints.save("") for checkpoints in pair * 3))
    assert len({checkpoint.ref for checkpoint in kept}) == 1


async def test_forgetting_a_session_keeps_what_others_hold(tmp_path: Path, workspace: Path):
    one, two = (Checkpoints(tmp_path / "state", workspace, name) for name in ("s1", "s2"))
    first = await one.save("")
    (workspace / "a.py").write_text("2\n")
    second = await two.save("")
    (workspace / "a.py").write_text("3\n")
    third = await two.save("")
    await one.forget()
    with pytest.raises(CheckpointError, match="is gone"):
        await one.diff(first.ref)
    assert await two.diff(second.ref) == [FileChange("change", "a.py")]
    assert await two.diff(third.ref) == []


@pytest.mark.parametrize("ref", ["", "HEAD", "--help", "0" * 40, "zz"])
async def test_an_unknown_checkpoint_is_named(checkpoints: Checkpoints, workspace: Path, ref: str):
    before = contents(workspace)
    with pytest.raises(CheckpointError, match="is gone"):
        await checkpoints.restore(ref)
    assert contents(workspace) == before


async def test_a_store_inside_the_workspace_does_not_keep_itself(workspace: Path):
    checkpoints = Checkpoints(workspace / "state", workspace, "s1")
    first = await checkpoints.save("")
    assert (await checkpoints.save("")).ref == first.ref


async def test_cancelling_ends_git_and_the_next_save_works(
    workspace: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    await checkpoints.save("")
    (workspace / "a.py").write_text("2\n")
    real = os.environ["PATH"]
    slow = tmp_path / "bin"
    slow.mkdir()
    os.mkfifo(tmp_path / "started")
    (slow / "git").write_text(f"#!/bin/sh\necho > {tmp_path}/started\nexec sleep 60\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}:{real}")
    saving = asyncio.ensure_future(checkpoints.save(""))
    await asyncio.to_thread((tmp_path / "started").read_bytes)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    monkeypatch.setenv("PATH", real)
    assert (await checkpoints.save("")).files == ("a.py",)


async def test_a_git_that_hangs_is_given_up(
    workspace: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("tui_agent.store.shadow_git.COMMAND_TIMEOUT", 0.01)
    with pytest.raises(CheckpointError, match="took longer than"):
        await checkpoints.save("")


def test_limits_are_generous_enough_for_real_projects():
    assert module.CheckpointLimits().files >= 20_000


async def test_a_repository_where_a_file_was_is_neither_obeyed_nor_destroyed(
    tmp_path: Path, workspace: Path, checkpoints: Checkpoints
):
    (workspace / "lib").write_text("a file")
    first = await checkpoints.save("")
    (workspace / "lib").unlink()
    inner = workspace / "lib"
    for arguments in (
        ("init", "-q", inner),
        ("-C", inner, "config", "core.fsmonitor", f"touch {tmp_path}/RAN"),
    ):
        subprocess.run(["git", *arguments], check=True)
    (inner / "work.txt").write_text("weeks of it")
    commit = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "core.fsmonitor=",
        "commit",
        "-q",
        "--allow-empty",
    )
    subprocess.run(["git", "-C", inner, *commit, "-m", "x"], check=True)
    await checkpoints.save("")
    await checkpoints.save("")
    for going_back in (checkpoints.diff, checkpoints.restore):
        with pytest.raises(CheckpointError, match="would delete the repository lib/"):
            await going_back(first.ref)
    assert (inner / "work.txt").read_text() == "weeks of it"
    assert (inner / ".git" / "HEAD").exists()
    assert not (tmp_path / "RAN").exists()


async def test_where_nothing_changed_git_is_asked_once_and_what_another_session_saved_is_seen(
    tmp_path: Path, workspace: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []
    run = ShadowGit.run

    async def counted(git: ShadowGit, *arguments: str, **how: Any) -> bytes:
        asked.append(arguments[0])
        return await run(git, *arguments, **how)

    monkeypatch.setattr(ShadowGit, "run", counted)
    first = await checkpoints.save("before run 1")
    asked.clear()
    assert (await checkpoints.save("iteration 1")) == Checkpoint(first.ref)
    assert asked == ["status"]
    (workspace / "a.py").write_text("print(3)\n")
    other = Checkpoints(tmp_path / "state", workspace, "s2")
    theirs = await other.save("iteration 2")
    assert theirs.files == ("a.py",)
    assert (await checkpoints.save("iteration 2")).ref == theirs.ref  # kept for both now
    await other.forget()
    assert await checkpoints.diff(theirs.ref) == []
    (workspace / "b.py").write_text("print(4)\n")
    assert (await checkpoints.save("iteration 3")).files == ("b.py",)
