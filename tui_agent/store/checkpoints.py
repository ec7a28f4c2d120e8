"""Checkpoints of the workspace: saved before a run's first write and after each iteration that changed files.

They are in a shadow git store beside the sessions, one for each workspace, so that unchanged files are
neither read nor stored again. Conversations are not handled here; `rewind` joins the two.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tui_agent import untrusted_files
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.store.errors import CheckpointError
from tui_agent.store.file_changes import FileChange
from tui_agent.store.ignored_files import IgnoredFiles
from tui_agent.store.shadow_git import ShadowGit

CHECKPOINTS_FOLDER = "checkpoints"


@dataclass(frozen=True)
class CheckpointLimits:
    """Bounds of a checkpoint. Sizes in bytes; `files` and `total` count additions since the last one."""

    files: int = 50_000
    total: int = 1024**3
    one_file: int = 32 * 1024**2
    ignored_files: int = 5_000
    """Of what git ignores, which is saved before a run's first change: so many, in total, and each."""
    ignored_total: int = 128 * 1024**2
    ignored_file: int = 8 * 1024**2


@dataclass(frozen=True)
class Checkpoint:
    """A saved state. `files` changed since the one before; `skipped` says what is not in it, and why."""

    ref: str
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restored:
    """Files were restored; `undo_ref` is the state just before."""

    undo_ref: str
    changes: tuple[FileChange, ...]


_REF = "[0-9a-f]{40,64}"
_ACTIONS: dict[bytes, Literal["create", "change", "delete"]] = {b"A": "create", b"D": "delete"}


class Checkpoints:
    """The checkpoints of one session's workspace. Methods raise `CheckpointError` and can be cancelled."""

    def __init__(
        self,
        state_dir: Path,
        workspace: Path,
        session_id: str,
        limits: CheckpointLimits | None = None,
        secrets: Iterable[bytes] = (),
    ) -> None:
        """A file that holds one of `secrets` is left out."""
        try:
            workspace = workspace.resolve()
            self._reason = _unfit(workspace)
        except (OSError, RuntimeError) as fault:  # RuntimeError: links in a circle, no home folder
            self._reason = f"{workspace} cannot be looked at ({fault})"
        name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
        self._git = ShadowGit(state_dir / CHECKPOINTS_FOLDER / name, workspace, (state_dir,))
        self._session = session_id
        self._limits = limits or CheckpointLimits()
        self._secrets = tuple(secrets)
        self._ignored = IgnoredFiles(
            self._git,
            session_id,
            self._limits.ignored_files,
            self._limits.ignored_total,
            self._limits.ignored_file,
            self._left_out,
        )
        self._kept = ""
        """The newest checkpoint, if it is this session's as well."""

    def inside(self, sandbox: Sandbox) -> None:
        """From now on files of the workspace are read and written in this sandbox."""
        self._git.sandbox = sandbox

    @property
    def unavailable(self) -> str | None:
        """The reason why there can be no checkpoints here; None if there can."""
        return self._reason

    async def save(self, label: str, *, ignored: bool = False) -> Checkpoint:
        """Save the workspace as it is now. If nothing changed, the newest checkpoint is returned again.
        `ignored`: with small files that git ignores, which `restore` brings back if they are gone or changed.
        """
        self._check()
        async with self._git.locked():
            if not ignored:
                return await self._save(label)
            # Both only look at the workspace at first, and the index of the ignored is one of its own.
            saved, kept = await asyncio.gather(self._save(label), self._ignored.saved())
            return await self._with_ignored(saved, kept, label)

    async def _with_ignored(self, saved: Checkpoint, kept: str, label: str) -> Checkpoint:
        """The checkpoint with which these ignored files go: another one if others go with it already."""
        if kept and not saved.files and await self._ignored.of(saved.ref) not in {None, kept}:
            again = await self._commit(f"{saved.ref}^{{tree}}", f"{label}, {kept}")
            saved = replace(saved, ref=again.ref)
            self._kept = saved.ref
        await self._ignored.belongs(kept, saved.ref)
        return saved

    async def diff(self, ref: str) -> list[FileChange]:
        """Changes that `restore(ref)` would make now; asking changes nothing."""
        self._check()
        async with self._git.locked():
            await self._known(ref)
            tree, _ = await self._tree()
            changes = [*await self._changes(tree, ref), *await self._ignored.changes(ref)]
            await asyncio.to_thread(self._spare_repositories, changes)
            return changes

    async def patch(self, ref: str, to: str = "") -> str:
        """Changes in the workspace since `ref`, or from there to the checkpoint `to`, as git's patch."""
        self._check()
        async with self._git.locked():
            await self._known(ref)
            if to:
                await self._known(to)
            tree = to or (await self._tree())[0]
            options = ("-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
            out = await self._git.run("-c", "core.quotePath=false", "diff-tree", *options, ref, tree)
        return out.decode("utf-8", "replace")

    async def restore(self, ref: str) -> Restored:
        """Bring the workspace back to `ref`. The state before is saved first and can be restored in its turn.

        Files that were left out of the checkpoint (too large, ignored and not saved) stay as they are.
        """
        self._check()
        async with self._git.locked():
            await self._known(ref)
            ignored, kept = await self._ignored.changes(ref), await self._ignored.of(ref)
            undo = await self._save(f"before the rewind to {ref[:10]}")
            if ignored:
                undo = await self._with_ignored(undo, await self._ignored.saved(), "before a rewind")
            changes = await self._changes(undo.ref, ref)
            await asyncio.to_thread(self._spare_repositories, changes)
            in_the_way = await asyncio.to_thread(self._overwritten, changes)
            if in_the_way:
                # Ignored now, but saved then: the file that is there now must be in the undo state.
                await self._add(in_the_way)
                undo = await self._commit(await self._write_tree(), "before a rewind")
                changes = await self._changes(undo.ref, ref)
            await self._git.run("read-tree", "--reset", "-u", ref, sandboxed=True)
            await self._git.run("update-ref", "refs/heads/newest", ref)
            await self._ignored.restore(kept, ignored)
            return Restored(undo.ref, (*changes, *ignored))

    async def adopt(self, refs: Sequence[str]) -> None:
        """Reference another session's checkpoints as well, as a fork does; those that are gone are left out."""
        self._check()
        asked = "".join(f"{ref}^{{tree}}\n" for ref in refs if re.fullmatch(_REF, ref))
        async with self._git.locked():
            found = await self._git.run("cat-file", "--batch-check", stdin=asked.encode())
            answers = zip(asked.splitlines(), found.splitlines(), strict=True)
            there = [ref.partition("^")[0] for ref, answer in answers if answer.split()[1:2] == [b"tree"]]
            updates = "".join(f"update refs/sessions/{self._session}/{ref} {ref}\n" for ref in there)
            await self._git.run("update-ref", "--stdin", stdin=updates.encode())
            for ref in there:
                await self._ignored.belongs(await self._ignored.of(ref) or "", ref)

    async def forget(self) -> None:
        """Drop this session's checkpoints and free what only they need. The workspace itself may be gone."""
        with self._git.refusals():
            if not (self._git.store / "HEAD").exists():
                return
            there = self._git.workspace.is_dir()
        git = self._git if there else ShadowGit(self._git.store, self._git.store)
        async with git.locked():
            refs = (await git.run("for-each-ref", "--format=%(refname)", "refs/sessions")).splitlines()
            own = f"refs/sessions/{self._session}/".encode()
            going = [ref for ref in refs if ref.startswith(own)]
            if len(going) == len(refs):
                # No other session has any, so nothing will be compared with the newest state or its index.
                going.append(b"refs/heads/newest")
                (git.store / "index").unlink(missing_ok=True)
            deletions = b"".join(b"delete " + ref + b"\n" for ref in going)
            await git.run("update-ref", "--stdin", stdin=deletions)
            await git.run("gc", "--quiet", "--prune=now")

    def _check(self) -> None:
        if self._reason is not None:
            raise CheckpointError(
                "The workspace is not checkpointed", self._reason, "Only the conversation rewinds."
            )

    async def _known(self, ref: str) -> None:
        gone = CheckpointError(
            f"Checkpoint {ref[:10]} is gone", "the store does not hold it", "Choose another one."
        )
        if not re.fullmatch(_REF, ref):
            raise gone
        try:
            await self._git.run("cat-file", "-e", f"{ref}^{{tree}}")
        except CheckpointError as error:
            raise gone from error

    async def _save(self, label: str) -> Checkpoint:
        status = await self._status()
        newest = await self._newest()
        if not status and newest == self._kept:  # neither the index differs from it nor a file from the index
            return Checkpoint(self._kept)
        tree, skipped = await self._tree(status)
        if newest is not None:
            changes = await self._changes(newest, tree)
            if not changes:
                await self._git.run("update-ref", f"refs/sessions/{self._session}/{newest}", newest)
                self._kept = newest
                return Checkpoint(newest, (), skipped)
            files = tuple(change.path for change in changes)
        else:
            files = ()
        saved = await self._commit(tree, label)
        self._kept = saved.ref
        return Checkpoint(saved.ref, files, skipped)

    async def _commit(self, tree: str, label: str) -> Checkpoint:
        out = await self._git.run("commit-tree", "-m", label or "checkpoint", tree)
        ref = out.decode().strip()
        updates = f"update refs/heads/newest {ref}\nupdate refs/sessions/{self._session}/{ref} {ref}\n"
        await self._git.run("update-ref", "--stdin", stdin=updates.encode())
        return Checkpoint(ref)

    async def _newest(self) -> str | None:
        with suppress(OSError, ValueError):
            named = (self._git.store / "refs" / "heads" / "newest").read_text("ascii").strip()
            if re.fullmatch(_REF, named):
                return named
        if not (self._git.store / "packed-refs").exists():
            return None
        out = await self._git.run("for-each-ref", "--format=%(objectname)", "refs/heads/newest")
        return out.decode().strip() or None

    async def _status(self) -> bytes:
        """How the files differ from the index, and the index from the newest checkpoint."""
        return await self._git.run(
            *(
                "status",
                "--porcelain=v1",
                "-z",
                "--untracked-files=all",
                "--no-renames",
                "--ignore-submodules=all",
            )
        )

    async def _tree(self, status: bytes | None = None) -> tuple[str, tuple[str, ...]]:
        """The workspace as it is now, as a tree, and what was left out."""
        out = await self._status() if status is None else status
        paths = [entry[3:] for entry in out.split(b"\0") if entry and entry[1:2] != b" "]
        wanted, left_out, reasons, total = await asyncio.to_thread(self._fitting, paths)
        if len(wanted) > self._limits.files or total > self._limits.total:
            self._reason = (
                f"it is too large: {len(wanted):,} new or changed files with {total // 2**20:,} MiB "
                f"(limits {self._limits.files:,}, {self._limits.total // 2**20:,} MiB)"
            )
            self._check()
        if wanted:
            await self._add(wanted)
        if left_out:
            # It may have been saved when it was smaller; that must not be restored as its content.
            await self._git.run("update-index", "--force-remove", "-z", "--stdin", stdin=_listed(left_out))
        return await self._write_tree(), reasons

    async def _add(self, paths: list[str]) -> None:
        await self._git.run(
            *("update-index", "--add", "--remove", "--replace", "-z", "--stdin"),
            stdin=_listed(paths),
            sandboxed=True,
        )

    async def _write_tree(self) -> str:
        return (await self._git.run("write-tree")).decode().strip()

    async def _changes(self, before: str, after: str) -> list[FileChange]:
        out = await self._git.run("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, after)
        fields = out.split(b"\0")
        return [
            FileChange(_ACTIONS.get(status, "change"), os.fsdecode(path))
            for status, path in zip(fields[0::2], fields[1::2], strict=False)
            if status
        ]

    def _spare_repositories(self, changes: Sequence[FileChange]) -> None:
        """Refuse to put a file in the place of a repository: no checkpoint holds one, so nothing could bring
        it back.
        """
        for change in changes:
            full = self._git.workspace / change.path
            if (
                change.action == "create"
                and not full.is_symlink()
                and full.is_dir()
                and _holds_repository(full)
            ):
                raise CheckpointError(
                    f"The rewind would delete the repository {change.path}/",
                    f"{change.path} was a file then, and checkpoints do not hold repositories inside the workspace",
                    "Move it out of the workspace first, or go back in the conversation alone.",
                )

    def _overwritten(self, changes: Sequence[FileChange]) -> list[str]:
        """Files that stand in the way of others to be created, and that the undo state does not hold."""
        found: list[str] = []
        for change in changes:
            full = self._git.workspace / change.path
            if change.action != "create" or not os.path.lexists(full):
                continue
            if full.is_symlink() or not full.is_dir():
                found.append(change.path)
                continue
            for folder, _, names in os.walk(full):
                inside = Path(folder).relative_to(self._git.workspace)
                found += [str(inside / name) for name in names]
        return found

    def _fitting(self, paths: list[bytes]) -> tuple[list[str], list[str], tuple[str, ...], int]:
        """Those of `paths` that can be saved, those that cannot, the reasons, and the bytes to read."""
        wanted: list[str] = []
        left_out: list[str] = []
        reasons: list[str] = []
        total = 0
        for raw in paths:
            path = os.fsdecode(raw)
            if path.endswith("/"):
                reasons.append(f"{path}: a repository of its own")
                continue
            full = self._git.workspace / path
            try:
                found = full.lstat()
            except OSError:
                wanted.append(path)  # gone: its removal is saved
                continue
            if stat.S_ISDIR(found.st_mode):
                # Added, a repository would become a submodule, and git would obey its configuration.
                left_out.append(path)
                continue
            why = self._left_out(full, found)
            if why:
                left_out.append(path)
                reasons.append(f"{path}: {why}")
            else:
                wanted.append(path)
                total += found.st_size
        return wanted, left_out, tuple(reasons), total

    def _left_out(self, full: Path, found: os.stat_result) -> str:
        """The reason why a file is not saved; "" if it is."""
        if found.st_size > self._limits.one_file:
            return f"larger than {self._limits.one_file // 2**20} MiB"
        if not stat.S_ISREG(found.st_mode):
            return ""
        try:
            data = untrusted_files.content(full, self._limits.one_file) if self._secrets else b""
        except OSError:
            return "not readable"
        if any(secret in data for secret in self._secrets):
            return "holds a secret of this environment"
        return "" if os.access(full, os.R_OK) else "not readable"


def _holds_repository(folder: Path) -> bool:
    return any(".git" in (*folders, *files) for _, folders, files in os.walk(folder))


def _listed(paths: list[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _unfit(workspace: Path) -> str | None:
    if not ShadowGit.installed():
        return "git is not installed"
    home = Path.home().resolve()
    if workspace == home or workspace in home.parents:
        return f"{workspace} is a home folder or holds one"
    return None if workspace.is_dir() else f"{workspace} is not a folder"
