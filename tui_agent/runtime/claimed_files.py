"""Files that an answer tells about although no call has looked at anything: which are there, and which are not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tui_agent.tools.hints import nearest_paths
from tui_agent.tools.workspace import Workspace


class Unseen(NamedTuple):
    """Names as the answer has them."""

    missing: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def unseen(workspace: Path, names: Iterable[str]) -> Unseen:
    """Which of the files are in the workspace and which are not; names that may be of something else are left out.

    A missing file counts where its folder is there, and one without a folder where a file of nearly that name is.
    """
    missing, unread = [], []
    for name in names:
        place = workspace / name
        if ".." in place.parts:
            continue
        try:
            if place.is_file():
                unread.append(name)
            elif not os.path.lexists(place) and _is_meant(workspace, name):
                missing.append(name)
        except (OSError, ValueError):
            continue
    return Unseen(tuple(missing), tuple(unread))


def _is_meant(workspace: Path, name: str) -> bool:
    if "/" in name:
        return (workspace / name).parent.is_dir()
    suffix = PurePosixPath(name).suffix
    return any(PurePosixPath(near).suffix == suffix for near in nearest_paths(Workspace(workspace), name))
