"""Git as a store of workspace snapshots, apart from the user's own history.

Runs git commands on a repository of our own whose work tree is the workspace. No configuration, hook, attribute
or filter of the user or of the workspace takes effect, the user's `.git` is never read or written, and files
come back byte for byte. What is saved, and when, is decided in `checkpoints`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tui_agent import processes, untrusted_files
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.run_later import Places
from tui_agent.store.errors import CheckpointError, disk_error
from tui_agent.store.private import make_private, private

COMMAND_TIMEOUT = 60.0
"""Seconds for one git command; a workspace that needs longer is too large to be saved at every change."""
LOCK_TIMEOUT = 30.0
"""Seconds to wait for another session that uses the same workspace."""

_LARGEST_RULES = 4 << 20
"""Bytes of a file of rules of what is left out."""
_LOCK_STEP = 0.02
_GRACE = 2.0
"""Seconds in which git may end by itself when it is not waited for any more."""

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
"""Folders that tools create again by themselves, left out even if no .gitignore names them."""


class ShadowGit:
    """One repository for one workspace; commands are cancellable, and one process at a time uses it."""

    def __init__(self, store: Path, workspace: Path, not_saved: Sequence[Path] = ()) -> None:
        """`not_saved`: folders of our own, left out if they are inside the workspace."""
        self.store = store
        self.workspace = workspace
        self.sandbox = Sandbox()
        """Git runs in the sandbox if a folder of the workspace may become a link meanwhile."""
        self._not_saved = (store, *not_saved)

    @staticmethod
    def installed() -> bool:
        """True if there is a git to call."""
        return processes.own_program("git") is not None

    async def run(
        self, *arguments: str, stdin: bytes | None = None, sandboxed: bool = False, index: Path | None = None
    ) -> bytes:
        """The command's standard output. Raises `CheckpointError`; when cancelled, git has ended too. `index`: another
        one than that of the checkpoints.
        """
        argv = [processes.own_program("git", self.workspace) or "/usr/bin/git", *arguments]
        try:
            child = await processes.start(
                self._inside(argv) if sandboxed else argv,
                cwd=self.workspace,
                env=self._environment() | ({"GIT_INDEX_FILE": os.fspath(index)} if index else {}),
                stdin=processes.DEVNULL if stdin is None else processes.PIPE,
            )
        except OSError as fault:
            raise CheckpointError(
                "The workspace cannot be checkpointed",
                f"git cannot be run ({fault})",
                "Check that git is installed and the workspace is there.",
            ) from fault
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT):
                out, errors = await child.output(stdin or b"")
        except TimeoutError:
            raise CheckpointError(
                "The workspace cannot be checkpointed",
                f"git {arguments[0]} took longer than {COMMAND_TIMEOUT:.0f} s",
                "Name large folders in .gitignore, or choose a smaller workspace.",
            ) from None
        finally:
            # Asked before it is killed, git removes its own lock files.
            await child.end(_GRACE)
        if child.code:
            raise _failed(arguments, errors)
        return out

    def _inside(self, argv: Sequence[str]) -> Sequence[str]:
        """The command line that reaches of the machine what commands reach, and writes the workspace and the store."""
        policy = self.sandbox.policy
        if policy is None:
            return argv
        ours = replace(
            policy,
            network=False,
            hidden=tuple(
                path
                for path in policy.hidden
                if not policy.within(path) and not self.store.is_relative_to(path)
            ),
            writable=(*policy.writable, self.store),
            places=Places(),
        )
        return replace(self.sandbox, policy=ours).wrap(argv, ())

    @contextlib.asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Hold the store alone; make it if it is missing.

        Whatever the operating system refuses until the store is free again is a `CheckpointError`.
        """
        with self.refusals():
            make_private(self.store)
            descriptor = private(self.store / "agent-tui.lock", os.O_RDWR | os.O_CREAT)
            try:
                await _acquire(descriptor)
                # Left by a process that was killed: nobody else holds the store now.
                for name in ("index.lock", "ignored.index.lock", "config.lock", "HEAD.lock"):
                    (self.store / name).unlink(missing_ok=True)
                if not self._excludes.exists():
                    self._create()
                yield
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def refusals(self) -> Iterator[None]:
        """Turn every `OSError` inside into a `CheckpointError`."""
        try:
            yield
        except OSError as fault:
            error = disk_error("Checkpoints cannot be kept", self.store, fault)
            raise CheckpointError(error.what, error.why, error.todo) from fault

    @property
    def _excludes(self) -> Path:
        """Written last, and whole: if it is there, the store is complete."""
        return self.store / "info" / "exclude"

    def _create(self) -> None:
        """Make what `git init` makes, in a tenth of its time."""
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", self._excludes.parent.name):
            (self.store / folder).mkdir(parents=True, exist_ok=True)
        (self.store / "HEAD").write_text("ref: refs/heads/newest\n", "utf-8")
        (self.store / "config").write_text(_CONFIG, "utf-8")
        (self._excludes.parent / "attributes").write_text(_ATTRIBUTES, "utf-8")
        unfinished = self._excludes.with_name("exclude.part")
        unfinished.write_text("\n".join([*_ALWAYS_EXCLUDED, *self._other_excludes()]) + "\n", "utf-8")
        unfinished.replace(self._excludes)

    def _other_excludes(self) -> list[str]:
        """Rules from outside the workspace: the enclosing repository's, and those for our own folders."""
        workspace = self.workspace.resolve()
        own = [folder.resolve() for folder in self._not_saved]
        lines = [
            "/" + folder.relative_to(workspace).as_posix() + "/"
            for folder in own
            if folder != workspace and folder.is_relative_to(workspace)
        ]
        for folder in (workspace, *workspace.parents):
            if folder != workspace:
                # Rules with a slash are anchored to their folder and would mean something else here.
                rules = _lines_of(folder / ".gitignore")
                lines += [rule for rule in rules if "/" not in rule.rstrip("/")]
            if (folder / ".git").exists():
                lines += _lines_of(folder / ".git" / "info" / "exclude") if folder == workspace else []
                return lines
        # No repository around it: .gitignore files further up do not apply.
        return [line for line in lines if line.startswith("/")]

    def _environment(self) -> dict[str, str]:
        given = processes.without_secrets(os.environ)
        kept = {name: value for name, value in given.items() if not name.startswith("GIT_")}
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


async def _acquire(descriptor: int) -> None:
    """Lock by polling: a `flock` that waits in a thread could not be cancelled."""
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


def _lines_of(path: Path) -> list[str]:
    try:
        return (
            untrusted_files.content(path, _LARGEST_RULES, path.parent).decode("utf-8", "replace").splitlines()
        )
    except OSError:
        return []
