"""Files of the workspace that a task names and nothing has shown the model, and those that an answer says were written:
which are there, and which are not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tui_agent import untrusted_files
from tui_agent.core.recovery.claims import files_made
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.state import RunState
from tui_agent.tools.hints import nearest_paths
from tui_agent.tools.walk import walk
from tui_agent.tools.workspace import Workspace

_LOOKED_AT = 4_000
"""Bytes of a file's beginning that are looked for in the task."""
_WALKED = 20_000
"""Entries of a workspace among which a file is looked for."""
_TELLING = 12
"""Characters of a line that is known again."""


class Unseen(NamedTuple):
    """Names as the task has them."""

    missing: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def unseen(workspace: Path, state: RunState, claimed: Collection[str]) -> Unseen:
    """Which files of the run's task are in the workspace and were not shown; of the `claimed`, which are not there.

    A missing file counts if its folder is there, and one without a folder if a file of nearly that name is.
    Files that the instructions name or that the task itself holds count as shown.
    """
    missing, unread = [], []
    for name in state.recovery.of(ImplicitFailures).unshown:
        place = workspace / name
        if ".." in place.parts:
            continue
        try:
            if place.is_file():
                if not _is_known(state, name, workspace):
                    unread.append(name)
            elif name in claimed and not os.path.lexists(place) and _is_meant(workspace, name):
                missing.append(name)
        except (OSError, ValueError):
            continue
    return Unseen(tuple(missing), tuple(unread))


def absent(workspace: Path, names: Sequence[str]) -> tuple[str, ...]:
    """These `names`, if no file of any of them is in the workspace; none if it is too large to tell."""
    wanted = {PurePosixPath(name).name for name in names}
    if not wanted or any(os.path.lexists(workspace / name) for name in names):
        return ()
    for walked, entry in enumerate(walk(workspace)):
        if walked >= _WALKED or PurePosixPath(entry.path).name in wanted:
            return ()
    return tuple(names)


def unwritten(workspace: Path, state: RunState, answer: str) -> tuple[str, ...]:
    """The files that an answer says were written, without a result that shows it, and that are not in the workspace;
    and those that are there and hold nothing.
    """
    implicit = state.recovery.of(ImplicitFailures)
    if any(_ELSEWHERE.search(command) for command in implicit.evidence.ran):
        return ()
    found = []
    for name in files_made(answer):
        try:
            place = workspace / name
            if ".." in place.parts:
                continue
            if place.is_file():
                if not place.stat().st_size and place.name not in _EMPTY and "empty" not in answer:
                    found.append(name)
            elif (
                not os.path.lexists(place) and _should_be_here(implicit, name) and absent(workspace, (name,))
            ):
                found.append(name)
        except (OSError, ValueError):
            continue
    return tuple(found)


_ELSEWHERE = re.compile(
    r"\b(?:docker|podman|ssh|scp|kubectl|vagrant|chroot|git (?:clone|worktree))\b|\bcd\s+(?:~|\$|\.\.)"
)
"""Commands after which files may be written where nobody looks here."""
_EMPTY = ("__init__.py", "py.typed")
"""Files that are there to hold nothing."""


def _should_be_here(implicit: ImplicitFailures, name: str) -> bool:
    """Nothing shows that it was written, or could have been by something unknown in a folder that is ignored."""
    base = PurePosixPath(name).name
    unknown = implicit.evidence.unknown and base == name
    return not (unknown or base in implicit.written or implicit.evidence.removed(base))


def _is_known(state: RunState, name: str, workspace: Path) -> bool:
    place = workspace / name
    if name in state.known_files or place.name in state.run.system_prompt:
        return True
    begins = untrusted_files.head(place, _LOOKED_AT, workspace).decode("utf-8", "replace")
    return any(
        len(line) >= _TELLING and line in state.run.task for line in map(str.strip, begins.splitlines())
    )


def _is_meant(workspace: Path, name: str) -> bool:
    if "/" in name:
        return (workspace / name).parent.is_dir()
    suffix = PurePosixPath(name).suffix
    return any(PurePosixPath(near).suffix == suffix for near in nearest_paths(Workspace(workspace), name))
