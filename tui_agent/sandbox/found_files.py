"""Files that programs outside run or obey later, in the folders that commands may write, with the earlier
state of each.

A folder is looked into again when the time of its last change says so. What became of a file is judged in `watch`.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.sandbox.git_settings import is_include, read_settings
from tui_agent.sandbox.links_refused import FileState
from tui_agent.sandbox.named import Names, on_path, system_programs
from tui_agent.sandbox.obeyed import FOLDERS, OWN_RULES, is_obeyed_file, within_environment
from tui_agent.sandbox.run_later import GIT, GIT_FILES, HOOKS, Places
from tui_agent.sandbox.taken_back import Kind

MOST_FOLDERS = 20_000
"""Folders of a workspace that are looked into."""
_TICK = 20_000_000
"""Nanoseconds in which two changes may have the same time."""
UNKNOWN = (-1,)
"""A signature that is looked at again in any case."""
_MOST_FILES = 300
"""Files below one folder that are looked at."""
_DEEPEST = 6
"""Levels of folders within folders."""
_MOST_GITS = 500
"""Folders of git's that are looked at."""
_KINDS: dict[str, Kind] = {
    "config": "settings",
    "config.worktree": "settings",
    "commondir": "commondir",
    "objects/info/alternates": "alternates",
    "objects/info/http-alternates": "obeyed",
    "info/attributes": "obeyed",
    "rebase-merge/git-rebase-todo": "todo",
    "sequencer/todo": "todo",
    "lazygit.yml": "obeyed",
}


@dataclass
class Held:
    signature: tuple[int, ...]
    form: FileState


@dataclass
class FoundFiles:
    """Every file that is compared, and how it stood when it last was as it should be."""

    places: Places
    held: dict[Path, Held] = field(default_factory=dict)
    folders: dict[Path, int] = field(default_factory=dict)
    """By folder, the time of its last change."""
    kinds: dict[Path, Kind] = field(default_factory=dict)
    gits: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Folders of git's, by path, with device and inode: a renamed one is known again."""
    names: Names = field(default_factory=Names)
    """Files that git's settings, hooks and variables name, from before the commands that run."""

    def find(self, *, everywhere: bool) -> None:
        """Look into the folders that changed, those of `everywhere` or the roots, and into new ones."""
        queue = [*(self.folders if everywhere else ()), *self.places.roots]
        seen: set[Path] = set()
        for folder in queue:  # grows
            if folder in seen:
                continue
            seen.add(folder)
            signature = signature_of(folder)
            if not signature or not stat.S_ISDIR(signature[0]):
                self.folders.pop(folder, None)
            elif self.folders.get(folder) != signature[-1]:
                new = folder not in self.folders
                if new and len(self.folders) >= MOST_FOLDERS:
                    continue
                self.folders[folder] = lasting(signature)[-1]
                queue.extend(self._look_into(folder))
        for path in self.places.single:
            self.kinds.setdefault(path, "obeyed")

    def _look_into(self, folder: Path) -> list[Path]:
        """List the folders in it that were not known; what else is found there is noted."""
        new = []
        try:
            with os.scandir(folder) as entries:
                here = list(entries)
        except OSError:
            return []
        names = {entry.name for entry in here}
        installed = within_environment([*folder.parts, ""])
        if {"HEAD", "objects", "refs"} <= names:
            self.note_git(folder)
        for entry in here:
            name, path = entry.name.casefold(), folder / entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if name == GIT and is_folder:
                self.note_git(path)
            elif name == GIT:
                self.kinds[path] = "pointer"
            elif not installed and (
                (name in FOLDERS) if is_folder else is_obeyed_file(name, folder.name.casefold())
            ):
                self.kinds[path] = "rules" if path.name == OWN_RULES else "obeyed"
                trees = path / "worktrees"
                if is_folder and trees not in self.folders and trees.is_dir():
                    new.append(trees)
                if is_folder and FOLDERS[name] and path not in self.folders:
                    new.append(path)
            elif is_folder and path not in self.folders:
                new.append(path)
        return new

    def note_git(self, git: Path) -> None:
        """Compare a folder of git's from now on."""
        if git in self.gits or len(self.gits) >= _MOST_GITS:
            return
        with suppress(OSError):
            status = git.lstat()
            identity = (status.st_dev, status.st_ino)
            before = next((path for path, known in self.gits.items() if known == identity), None)
            self.gits[git] = identity
            if before is not None and not before.exists():
                # It was renamed, or a folder above it was.
                for path, held in list(self.held.items()):
                    if path.is_relative_to(before):
                        self.held[git / path.relative_to(before)] = Held(UNKNOWN, held.form)

    def files(self, protected: frozenset[Path]) -> Iterator[tuple[Path, Kind]]:
        """List every file that is compared, as things stand now, but for those that mounts protect."""
        for path, kind in list(self.kinds.items()):
            entries = (
                FOLDERS.get(path.name.casefold(), ()) if path.is_dir() and not path.is_symlink() else None
            )
            if entries is None:
                yield path, kind
            elif path not in protected:
                below = [path / entry for entry in entries] or [path]
                yield from ((file, kind) for place in below for file in _files(place))
        for git in list(self.gits):
            yield from self._of_git(git, 0, protected)
        yield from self._of_names(protected)

    def _of_names(self, protected: frozenset[Path]) -> Iterator[tuple[Path, Kind]]:
        for path in self.names.files:
            is_folder = path.is_dir() and not path.is_symlink()
            yield from ((file, "named") for file in (_files(path) if is_folder else (path,)))
        for path in self.names.settings:
            yield path, "settings"
        for folder in self.names.folders:
            if folder.is_symlink():
                yield folder, "named"
            elif folder not in protected:
                yield from ((file, "named") for file in _files(folder))
        for folder in on_path(self.places.roots):
            yield from (
                (file, "shadow") for file in _files(folder, deepest=1) if file.name in system_programs()
            )

    def _of_git(self, git: Path, depth: int, protected: frozenset[Path]) -> Iterator[tuple[Path, Kind]]:
        for name in GIT_FILES:
            yield git / name, _KINDS[name]
        for folder in self._hook_folders(git):
            if folder.is_symlink():
                yield folder, "hook"
            elif folder not in protected:
                yield from ((file, "hook") for file in _files(folder, deepest=1))
        if depth < _DEEPEST:
            for folder in _folders(git / "worktrees"):
                yield from self._of_git(folder, _DEEPEST, protected)
            for folder in _modules(git / "modules"):
                yield from self._of_git(folder, depth + 1, protected)

    def _hook_folders(self, git: Path) -> Iterator[Path]:
        """List the folders in which git looks for hooks: its own, and those of its settings that commands may
        write.

        Files that the settings include are noted on the way.
        """
        yield git / HOOKS
        held = self.held.get(git / "config")
        if held is None or not re.search(rb"(?i)hookspath|include", held.form.content):
            return
        for key, value in read_settings(held.form.content) or ():
            if key.lower() == "core.hookspath" and value:
                folder = Path(os.path.normpath(git.parent / value))
                if self.root(folder) is not None and folder != git / HOOKS:
                    yield folder
            elif is_include(key) and value:
                file = Path(os.path.normpath(git / value))
                if self.root(file) is not None:
                    self.kinds.setdefault(file, "settings")

    def root(self, path: Path) -> Path | None:
        """Find the folder that commands may write and that holds `path`; None if none does."""
        return next((root for root in self.places.roots if path != root and path.is_relative_to(root)), None)


def signature_of(path: Path) -> tuple[int, ...]:
    """Read by what a change is seen, the time of it last; () if nothing stands there."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def identity_of(path: Path) -> tuple[int, int] | None:
    """Read device and inode; None if nothing stands there."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def lasting(signature: tuple[int, ...]) -> tuple[int, ...]:
    """Keep the signature, unless the change is so new that another one may get the same time."""
    return signature if not signature or time.time_ns() - signature[-1] > _TICK else UNKNOWN


def _files(place: Path, deepest: int = _DEEPEST) -> Iterator[Path]:
    """List files and links below a folder, or the place itself if it is no folder. Bounded."""
    queue, count = [(place, 0)], 0
    for folder, depth in queue:  # grows
        try:
            with os.scandir(folder) as entries:
                here = sorted(entries, key=lambda entry: entry.name)
        except NotADirectoryError:
            yield folder
            continue
        except OSError:
            if folder == place:
                yield place
            continue
        for entry in here:
            count += 1
            if count > _MOST_FILES:
                return
            if not entry.is_dir(follow_symlinks=False):
                yield folder / entry.name
            elif depth + 1 < deepest and entry.name != "worktrees":
                queue.append((folder / entry.name, depth + 1))


def _folders(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            return [place / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)][
                :_MOST_GITS
            ]
    except OSError:
        return []


def _modules(place: Path) -> Iterator[Path]:
    """List folders of git's for submodules, whose names may have slashes."""
    queue = _folders(place)
    for folder in queue:  # grows
        if (folder / "HEAD").exists():
            yield folder
        elif len(queue) < _MOST_GITS and len(folder.relative_to(place).parts) < _DEEPEST:
            queue.extend(_folders(folder))


def digest(form: FileState) -> bytes:
    """Tell one content of a file from another."""
    return hashlib.blake2b(form.content, digest_size=16).digest()
