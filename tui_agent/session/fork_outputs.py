"""Whole outputs in a fork: long outputs that results only name are brought along, and the results name the new place.

A fork would otherwise send the model to files of its parent: outside what it may read, and gone with the parent. The
files are named by their content and never written again, so that both sessions can hold the same one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.core import events
from tui_agent.store.journal_index import JournalIndex

OUTPUT_FOLDER = "output"
_RESULTS = frozenset({"tool_succeeded", "tool_failed"})
_NONE = b'"output_file":""'


@dataclass(frozen=True)
class Outputs:
    """The files that results of a session name, if they are still there."""

    files: dict[str, Path]
    """By name."""
    recorded: tuple[str, ...] = ()
    """The folders that the results name for them."""

    def named_in(self, folder: Path, lines: Sequence[bytes]) -> list[bytes]:
        """The lines with `folder` in the place of those folders, in results as in what was said about them."""
        changed = list(lines)
        for recorded in self.recorded:
            spellings = zip(_spellings(recorded + os.sep), _spellings(str(folder) + os.sep), strict=True)
            for before, after in spellings:
                changed = [line.replace(before, after) if before in line else line for line in changed]
        return changed

    def put_into(self, folder: Path) -> None:
        """Link the files, or copy them if links cannot be made. Raises `OSError`."""
        if not self.files:
            return
        folder.mkdir(mode=0o700)
        for name, file in self.files.items():
            try:
                os.link(file, folder / name, follow_symlinks=False)
            except OSError:
                shutil.copyfile(file, folder / name, follow_symlinks=False)


def outputs_of(source: JournalIndex, seq: int, parent: Path) -> Outputs:
    """Files of the session in the folder `parent` that events 1 to `seq` name.

    Only files in an output folder of a session beside it count: a journal from elsewhere may name any file.
    """
    files: dict[str, Path] = {}
    recorded: list[str] = []
    for number in range(1, seq + 1):
        if source.kinds[number - 1] not in _RESULTS or _NONE in source.raw(number):
            continue
        event = source.event(number)
        name = event.output_file if isinstance(event, events.ToolSucceeded | events.ToolFailed) else ""
        found = _found(Path(name), parent) if name else None
        if found is not None:
            files[found.name] = found
            recorded.append(str(Path(name).parent))
    return Outputs(files, tuple(dict.fromkeys(recorded)))


def _found(named: Path, parent: Path) -> Path | None:
    beside = parent.resolve().parent
    for place in (parent.resolve() / OUTPUT_FOLDER / named.name, named):
        with contextlib.suppress(OSError, ValueError):
            inside = place.parent.name == OUTPUT_FOLDER and place.parent.resolve().parent.parent == beside
            if inside and place.is_file() and not place.is_symlink():
                return place
    return None


def _spellings(text: str) -> tuple[bytes, bytes, bytes]:
    """As a string of the journal has it, and as the arguments of a call have it, which are JSON in such a string."""
    return (
        _quoted(text).encode("utf-8", "surrogatepass"),
        _quoted(_quoted(text)).encode("utf-8", "surrogatepass"),
        _quoted(_quoted(text, plain=True)).encode("utf-8", "surrogatepass"),
    )


def _quoted(text: str, *, plain: bool = False) -> str:
    return json.dumps(text, ensure_ascii=plain)[1:-1]
