"""Memory that makes a run fast without changing its results: states of the workspace, and commands that ran
before.

A command's result follows from the files of its small workspace, so one that ran really in this process gives its
recorded output and files back when it comes again over the same files. Checkpoints are compared in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent.store.checkpoints import Checkpoint, Checkpoints
from tui_agent.tools.errors import ToolError
from tui_agent.tools.shell import Bash
from tui_agent.tools.tool import ToolContext, ToolOutput

Files = Mapping[str, tuple[bytes, int]]
"""Content and mode by path."""


def files_of(workspace: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a workspace."""
    return {
        str(path.relative_to(workspace)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in sorted(workspace.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _put(workspace: Path, before: Files, after: Files) -> None:
    for name in before.keys() - after.keys():
        (workspace / name).unlink()
    for name, (content, mode) in after.items():
        if before.get(name) != (content, mode):
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)


class MemoryCheckpoints(Checkpoints):
    """Says which files have changed, as the store does, and keeps nothing to go back to."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace.parent, workspace, "bench")
        self._workspace = workspace
        self._saved: Files | None = None

    async def save(self, label: str, *, ignored: bool = False) -> Checkpoint:
        """See `Checkpoints.save`; the reference is the digest of the files."""
        now = files_of(self._workspace)
        before, self._saved = self._saved, now
        digest = hashlib.sha1(repr(sorted(now.items())).encode(), usedforsecurity=False).hexdigest()
        if before is None:
            return Checkpoint(digest)
        names = before.keys() | now.keys()
        return Checkpoint(digest, tuple(sorted(name for name in names if before.get(name) != now.get(name))))


class _Ran(NamedTuple):
    after: Files
    output: ToolOutput | ToolError


class RememberingBash(Bash):
    """`bash`, which carries a command out once for the same files."""

    ran: dict[tuple[str, str], _Ran] = {}
    """By command and digest of the files."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """See `Bash.run`."""
        workspace = context.workspace.root
        before = files_of(workspace)
        if arguments.get("background"):
            return await super().run(arguments, context)
        digest = hashlib.sha1(repr((str(workspace), before)).encode(), usedforsecurity=False).hexdigest()
        key = f"{arguments['command']}\0{arguments.get('timeout')}", digest
        known = self.ran.get(key)
        if known is None:
            try:
                # Without its pieces: how many there are is a matter of time.
                quiet = replace(context, progress=lambda _: None)
                output: ToolOutput | ToolError = await super().run(arguments, quiet)
            except ToolError as error:
                # Its traceback would keep the whole run in memory.
                output = error.with_traceback(None)
            known = self.ran[key] = _Ran(files_of(workspace), output)
        else:
            _put(workspace, before, known.after)
        if isinstance(known.output, ToolError):
            raise copy(known.output)
        return known.output
