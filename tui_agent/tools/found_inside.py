"""Second look at the findings of a search: each has to be in a file of the workspace that no link leads to.

A search goes through the tree by names, and a command in the background may put a link in the place of a folder that
it is about to enter. What it then reads outside is left out: every file is opened again, step by step without a link.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from tui_agent.tools.encoding import SAMPLE, detect
from tui_agent.tools.errors import ToolError
from tui_agent.tools.workspace import Workspace

_PIECE = 1 << 20
"""Characters of a line that are compared."""


def files_inside(root: Path, names: Iterable[str]) -> list[str]:
    """Those names that are of regular files; relative to `root`, or absolute for another place."""
    workspace = Workspace(root)
    return [name for name in names if _is_file(workspace, root / name)]


def _is_file(workspace: Workspace, path: Path) -> bool:
    try:
        return stat.S_ISREG(workspace.status(path).st_mode)
    except OSError:
        return False


def lines_inside(root: Path, name: str, numbers: Iterable[int]) -> dict[int, str]:
    """These lines of a file, by their numbers from 1, up to `_PIECE` characters each."""
    wanted = set(numbers)
    with suppress(OSError, ToolError), Workspace(root).open(root / name) as stream:
        return _lines(stream, wanted)
    return {}


def _lines(stream: BinaryIO, wanted: set[int]) -> dict[int, str]:
    encoding = detect(stream.read(SAMPLE)).searched()
    stream.seek(len(encoding.mark))
    found: dict[int, str] = {}
    with io.TextIOWrapper(stream, encoding.codec, encoding.errors, newline="\n") as text:
        number, begins = 1, True
        while len(found) < len(wanted) and (piece := text.readline(_PIECE)):
            if begins and number in wanted:
                found[number] = piece.removesuffix("\n").removesuffix("\r")
            begins = piece.endswith("\n")
            number += begins
    return found


def same(shown: str, there: str | None) -> bool:
    """True if a line that was found is the one that stands there."""
    if there is None:
        return False
    long = len(there) >= _PIECE - len("\r\n")
    shown, there = shown.removeprefix("\ufeff"), there.removeprefix("\ufeff")
    return shown.startswith(there) if long else shown == there
