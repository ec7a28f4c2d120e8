"""Attacks by the repository of a checkout: code that git would run by itself, and contents made to break snapshots."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.runtime.session_harness import start_session
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import CheckpointError


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    return folder


def configured(*pairs: tuple[str, str]) -> Callable[[Path, str], None]:
    """A repository whose own configuration runs RUN."""

    def make(folder: Path, run: str) -> None:
        for name, value in pairs:
            git(folder, "config", name, value.replace("RUN", run))

    return make


def hooks(folder: Path, run: str) -> None:
    names = "pre-commit post-commit post-checkout post-index-change pre-auto-gc post-rewrite reference-transaction"
    for name in names.split():
        hook = folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{run}\n")
        hook.chmod(0o755)


def filters(folder: Path, run: str) -> None:
    configured(("filter.x.clean", "RUN; cat"), ("filter.x.smudge", "RUN; cat"), ("filter.x.process", "RUN"))(
        folder, run
    )
    (folder / ".gitattributes").write_text(
        "* filter=x diff=x merge=x\n*.txt text eol=crlf working-tree-encoding=UTF-16\n"
    )


def include(folder: Path, run: str) -> None:
    (folder / "evil.config").write_text(f'[core]\n\tfsmonitor = "{run}"\n\tpager = "{run}"\n')
    git(folder, "config", "include.path", "../evil.config")


def elsewhere(folder: Path, run: str) -> None:
    hostile = repository(folder.parent / "hostile")
    hooks(hostile, run)
    configured(("core.fsmonitor", "RUN"))(hostile, run)
    subprocess.run(["rm", "-rf", folder / ".git"], check=True)
    (folder / ".git").write_text(f"gitdir: {hostile}/.git\n")


def bare_inside(folder: Path, run: str) -> None:
    """A folder that git takes for a repository without being told."""
    git(folder, "init", "-q", "--bare", "sub")
    configured(("core.fsmonitor", "RUN"), ("core.bare", "false"), ("core.worktree", ".."))(
        folder / "sub", run
    )
    (folder / "sub" / "hooks").mkdir(exist_ok=True)
    (folder / "sub" / "hooks" / "post-index-change").write_text(f"#!/bin/sh\n{run}\n")
    (folder / "sub" / "hooks" / "post-index-change").chmod(0o755)


def own_names(folder: Path, run: str) -> None:
    for name in ("-rf", "--upload-pack=" + "x", "a\nb", "\x1b[2J", ":(glob)*", "..a", "@{-1}", "HEAD"):
        (folder / name).write_text("x\n")


def submodule(folder: Path, run: str) -> None:
    inner = repository(folder / "inner")
    hooks(inner, run)
    configured(("core.fsmonitor", "RUN"))(inner, run)
    (folder / ".gitmodules").write_text(
        f'[submodule "inner"]\n\tpath = inner\n\turl = ext::sh -c "{run}"\n\tupdate = !{run}\n'
    )


@attacks(
    Attack(
        "fsmonitor",
        "core.fsmonitor names a program",
        "It does not run",
        value=configured(("core.fsmonitor", "RUN")),
    ),
    Attack("hooks", "Hooks of every kind", "None runs", value=hooks),
    Attack(
        "hooks_path",
        "core.hooksPath leads into the checkout",
        "None runs",
        slow=True,
        value=configured(("core.hooksPath", ".git/hooks")),
    ),
    Attack(
        "filters",
        "Filters, encodings and line ends by .gitattributes",
        "None runs, files come back byte for byte",
        value=filters,
    ),
    Attack(
        "helpers",
        "External diff, pager, editor, ssh command, credential helper, signing program",
        "None runs",
        value=configured(
            ("diff.external", "RUN"),
            ("core.pager", "RUN"),
            ("core.editor", "RUN"),
            ("core.sshCommand", "RUN"),
            ("credential.helper", "!RUN"),
            ("gpg.program", "RUN"),
            ("commit.gpgSign", "true"),
            ("core.askPass", "RUN"),
            ("diff.x.textconv", "RUN"),
            ("core.alternateRefsCommand", "RUN"),
            ("uploadpack.packObjectsHook", "RUN"),
        ),
    ),
    Attack(
        "include",
        "A configuration that takes in a file of the checkout",
        "Not read",
        slow=True,
        value=include,
    ),
    Attack(
        "gitdir_elsewhere",
        "A `.git` file that leads to a hostile repository",
        "Nothing of it runs",
        value=elsewhere,
    ),
    Attack(
        "bare_inside",
        "A bare repository inside with a worktree and hooks of its own",
        "Nothing of it runs",
        slow=True,
        value=bare_inside,
    ),
    Attack(
        "submodule", "A submodule with hooks and an update command", "Nothing of it runs", value=submodule
    ),
    Attack(
        "names_as_options",
        "Files named like options, revisions and path magic",
        "Saved and restored by name",
        value=own_names,
    ),
)
async def test_code_of_a_checkout(row: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "RAN"
    workspace = repository(tmp_path / "workspace")
    row.value(workspace, f"touch {ran}")
    for name in ("GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT"):
        monkeypatch.setenv(name, "1" if name.endswith("COUNT") else f"touch {ran}")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {ran}")
    before = {path: path.read_bytes() for path in workspace.iterdir() if path.is_file()}
    checkpoints = Checkpoints(tmp_path / "state", workspace, "s1")
    first = await checkpoints.save("")
    (workspace / "a.txt").write_text("changed\r\n")
    await checkpoints.save("")
    await checkpoints.diff(first.ref)
    await checkpoints.restore(first.ref)
    assert {path: path.read_bytes() for path in workspace.iterdir() if path.is_file()} == before
    assert not ran.exists()


def fifo(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")


def sockets(workspace: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(workspace / "s"))


def sparse(workspace: Path) -> None:
    (workspace / "huge").touch()
    os.truncate(workspace / "huge", 5 << 30)


def links(workspace: Path) -> None:
    (workspace / "self").symlink_to("self")
    (workspace / "out").symlink_to("/etc/passwd")
    (workspace / ".gitignore").symlink_to("/dev/zero")
    (workspace / ".gitattributes").symlink_to("/dev/zero")


def deep(workspace: Path) -> None:
    here = workspace
    for _ in range(60):
        here = here / ("d" * 20)
    here.mkdir(parents=True)
    (here / "f").write_text("x")


@attacks(
    Attack("pipe", "A named pipe in the workspace", "Checkpoints go on without it", value=fifo),
    Attack(
        "socket_file", "A socket in the workspace", "Checkpoints go on without it", slow=True, value=sockets
    ),
    Attack(
        "sparse_5_gb",
        "A sparse file of 5 GB",
        "Left out or refused with the reason, within seconds",
        value=sparse,
    ),
    Attack(
        "links_to_devices",
        "`.gitignore` and `.gitattributes` that lead to /dev/zero",
        "Not followed",
        value=links,
    ),
    Attack(
        "deep_paths", "Paths of 1,300 characters", "Saved or refused with the reason", slow=True, value=deep
    ),
)
async def test_contents_that_break_snapshots(row: Attack, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    row.value(tmp_path / "workspace")
    live = await start_session(
        tmp_path,
        [{"calls": [{"tool": "write_file", "args": {"path": "f.txt", "content": "x\n"}}]}, "done"],
        sandbox="auto",
    )
    async with asyncio.timeout(60):
        finished = await live.run()
    await live.close()
    assert finished.outcome == "answered"
    assert (tmp_path / "workspace" / "f.txt").read_text() == "x\n"


@attack(
    "A file that was saved is replaced by a repository of the same name; then the file is restored",
    "Refused, with the reason, and the repository stays; or it can be brought back whole",
    fell="its `.git` was gone, and the plan spoke of one file",
)
async def test_repository_in_the_place_of_a_file(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "workspace")
    (workspace / "lib").write_text("file\n")
    checkpoints = Checkpoints(tmp_path / "state", workspace, "s1")
    first = await checkpoints.save("")
    (workspace / "lib").unlink()
    repository(workspace / "lib")
    git(
        workspace / "lib",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "precious",
    )
    with suppress(CheckpointError):
        await checkpoints.restore(first.ref)
    log = subprocess.run(
        ["git", "-C", workspace / "lib", "log", "--format=%s"], capture_output=True, check=False
    ).stdout
    assert b"precious" in log
