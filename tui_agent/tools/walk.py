"""Walking a directory tree in a stable order, leaving out what `.gitignore` does. No link is followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tui_agent.tools.ignore import IgnoreChain
from tui_agent.tools.workspace import Workspace


@dataclass(frozen=True)
class WalkedPath:
    """A regular file or a directory that was met; `path` is relative to the top, with "/"."""

    path: str
    is_dir: bool


def chain_at(top: Path, start: str) -> IgnoreChain | None:
    """The rules in force inside the directory `start` ("" is the top); None when `start` itself is
    ignored.
    """
    chain = IgnoreChain().entering("", top)
    path = ""
    for part in start.split("/") if start else ():
        path = f"{path}/{part}" if path else part
        if chain.ignores(path, directory=True):
            return None
        chain = chain.entering(f"{path}/", top / path)
    return chain


def walk(top: Path, start: str = "") -> Iterator[WalkedPath]:
    """Files and directories below `start`, each directory before what it holds, sorted by name (bytes).

    An ignored `start` is walked all the same, by its own rules: whoever names it wants it.
    """
    chain = chain_at(top, start)
    if chain is None:
        for entry in walk(top / start):
            yield WalkedPath(f"{start}/{entry.path}", entry.is_dir)
        return
    prefix = f"{start}/" if start else ""
    workspace = Workspace(top)
    stack = [(_entries(workspace, start, prefix, chain), chain)]
    while stack:
        entries, chain = stack[-1]
        found = next(entries, None)
        if found is None:
            stack.pop()
            continue
        yield found
        if found.is_dir:
            deeper = chain.entering(f"{found.path}/", top / found.path)
            stack.append((_entries(workspace, found.path, f"{found.path}/", deeper), deeper))


def _entries(workspace: Workspace, directory: str, prefix: str, chain: IgnoreChain) -> Iterator[WalkedPath]:
    """Entries of `directory` that are not ignored; none if it cannot be read, or a link has taken its place."""
    found: list[WalkedPath] = []
    try:
        with workspace.scan(workspace.root / directory) as scan:
            for item in scan:
                is_dir = item.is_dir(follow_symlinks=False)
                if not is_dir and not item.is_file(follow_symlinks=False):
                    continue
                if not chain.ignores(prefix + item.name, directory=is_dir):
                    found.append(WalkedPath(prefix + item.name, is_dir))
    except OSError:
        return
    found.sort(key=lambda entry: os.fsencode(entry.path))
    yield from found
