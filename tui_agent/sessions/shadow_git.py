"""Git as a store of workspace snapshots, apart from the user's own history.

Runs git commands on a repository of ours whose work tree is the workspace. No configuration, hook, attribute
or filter of the user or of the workspace has a say, the user's `.git` is never read or written, and what
comes back from the store is byte for byte what went in. What is kept when is decided in `checkpoints`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
from typing import TYPE_CHECKING

from tui_agent.sessions.errors import CheckpointError, disk_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

COMMAND_TIMEOUT = 60.0
"""Seconds for one git command; a workspace that needs longer is too large for a checkpoint at every change.
"""
LOCK_TIMEOUT = 30.0
"""Seconds to wait for another session that uses the same workspace."""

_LOCK_STEP = 0.02

_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tautocrlf = false
\tsafecrlf = false
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = true
\tquotePath = false
\tcompression = 1
\tlogAllRefUpdates = false
[index]
\tversion = 4
[status]
\tshowUntrackedFiles = all
[gc]
\tauto = 0
[commit]
\tgpgSign = false
"""

# Highest in precedence: a workspace's .gitattributes can neither convert line ends nor call filters.
_ATTRIBUTES = "* -text -ident -filter -working-tree-encoding\n"

_ALWAYS_EXCLUDED = (
    *("node_modules/", "__pycache__/", ".venv/", ".tox/", ".nox/"),
    *(".mypy_cache/", ".pytest_cache/", ".ruff_cache/"),
)
"""Folders that tools make again by themselves, left out also where no .gitignore names them."""


class ShadowGit:
    """One repository for one workspace; commands are cancellable, and one process at a time uses it."""

    def __init__(self, store: Path, workspace: Path) -> None:
        self.store = store
        self.workspace = workspace

    @staticmethod
    def installed() -> bool:
        """Whether there is a git to call."""
        return shutil.which("git") is not None

    async def run(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        """The command's standard output. Raises `CheckpointError`; when cancelled, git has ended too."""
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *arguments,
                cwd=self.workspace,
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as fault:
            raise CheckpointError(
                "The workspace cannot be checkpointed", f"git cannot be run ({fault})", "Install git."
            ) from fault
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT):
                out, errors = await process.communicate(stdin)
        except TimeoutError:
            raise CheckpointError(
                "The workspace cannot be checkpointed",
                f"git {arguments[0]} took longer than {COMMAND_TIMEOUT:.0f} s",
                "Name large folders in .gitignore, or choose a smaller workspace.",
            ) from None
        finally:
            await _ended(process)
        if process.returncode:
            raise _failed(arguments, errors)
        return out

    @contextlib.asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Hold the store alone, made where it is missing."""
        try:
            self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.store / "agent-tui.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise _unwritable(self.store, fault) from fault
        try:
            await _acquire(descriptor)
            # Whoever made it is gone: we alone hold the store.
            (self.store / "index.lock").unlink(missing_ok=True)
            if not (self.store / "HEAD").exists():
                await self._create()
            yield
        finally:
            os.close(descriptor)

    async def _create(self) -> None:
        await self.run("init", "--quiet", "--template=", "--initial-branch=newest")
        info = self.store / "info"
        try:
            info.mkdir(exist_ok=True)
            (self.store / "config").write_text(_CONFIG, "utf-8")
            (info / "attributes").write_text(_ATTRIBUTES, "utf-8")
            (info / "exclude").write_text(
                "\n".join([*_ALWAYS_EXCLUDED, *self._other_excludes()]) + "\n", "utf-8"
            )
        except OSError as fault:
            raise _unwritable(info, fault) from fault

    def _other_excludes(self) -> list[str]:
        """Rules that git would take from outside the workspace: of the enclosing repository, and our own
        store."""
        lines: list[str] = []
        workspace = self.workspace.resolve()
        if self.store.resolve().is_relative_to(workspace):
            lines.append("/" + self.store.resolve().relative_to(workspace).as_posix() + "/")
        for folder in (workspace, *workspace.parents):
            if folder != workspace:
                # Rules with a slash are anchored to their folder and would mean something else here.
                rules = _lines_of(folder / ".gitignore")
                lines += [rule for rule in rules if "/" not in rule.rstrip("/")]
            if (folder / ".git").exists():
                lines += _lines_of(folder / ".git" / "info" / "exclude") if folder == workspace else []
                return lines
        # No repository around: the files named .gitignore further up are none of ours.
        return lines[:1] if lines and lines[0].startswith("/") else []

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return kept | {
            "GIT_DIR": str(self.store),
            "GIT_WORK_TREE": str(self.workspace),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "agent-tui",
            "GIT_AUTHOR_EMAIL": "agent-tui@localhost",
            "GIT_COMMITTER_NAME": "agent-tui",
            "GIT_COMMITTER_EMAIL": "agent-tui@localhost",
            "LC_ALL": "C",
        }


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Make sure that git is gone. Asked first, since it then removes its own lock files."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(2):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _acquire(descriptor: int) -> None:
    """Lock without blocking the event loop, which a waiting `flock` in a thread could not be called back
    from."""
    for _ in range(round(LOCK_TIMEOUT / _LOCK_STEP)):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        await asyncio.sleep(_LOCK_STEP)
    raise CheckpointError(
        "The workspace cannot be checkpointed",
        "another session on this workspace is busy with its own checkpoint",
        "Try again when it is done.",
    )


def _failed(arguments: Sequence[str], errors: bytes) -> CheckpointError:
    said = errors.decode("utf-8", "replace").strip().splitlines()
    why = said[-1] if said else "it gave no reason"
    todo = "Free some space." if b"No space left" in errors else "Rewinding files is not possible here."
    return CheckpointError(f"git {arguments[0]} failed on the workspace's checkpoints", why, todo)


def _unwritable(path: Path, fault: OSError) -> CheckpointError:
    error = disk_error("Checkpoints cannot be kept", path, fault)
    return CheckpointError(error.what, error.why, error.todo)


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
