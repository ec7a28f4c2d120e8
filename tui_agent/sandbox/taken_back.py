"""What commands changed of the files that programs outside run or obey later, and taking it back.

Mounts protect what exists, where the mechanism has them. This looks at the rest: what came to be, and everything where
there are no mounts. Only the few places of `run_later` are compared, folders by the time of their last change.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Literal

from tui_agent.sandbox.git_settings import is_include, read_settings, without_harm
from tui_agent.sandbox.left_behind import WorkspaceRecord
from tui_agent.sandbox.links_refused import NOTHING, FileState, form_of, move, put
from tui_agent.sandbox.named import Names, names_in, on_path, system_programs
from tui_agent.sandbox.obeyed import ENDINGS, FILES, FOLDERS, OWN_RULES, whose, within_environment
from tui_agent.sandbox.run_later import GIT, GIT_FILES, HOOKS, Places
from tui_agent.terminal_text import revealed_line

Kind = Literal[
    "obeyed", "rules", "pointer", "settings", "commondir", "alternates", "todo", "hook", "named", "shadow"
]

MOST_FOLDERS = 20_000
"""Folders of a workspace that are looked into."""
QUICK = 2_000
"""So many are looked at before a command's result is given; of more, all but the uppermost afterwards."""
_TICK = 20_000_000
"""Nanoseconds in which two changes may have the same time."""
_UNKNOWN = (-1,)
"""A signature that is looked at again in any case."""
_BEING_WRITTEN = 100_000_000
"""Nanoseconds."""
_MOST_FILES, _DEEPEST, _MOST_GITS = 300, 6, 500
_KINDS: dict[str, Kind] = {
    "config": "settings",
    "config.worktree": "settings",
    "commondir": "commondir",
    "objects/info/alternates": "alternates",
    "objects/info/http-alternates": "obeyed",
    "info/attributes": "obeyed",
    "rebase-merge/git-rebase-todo": "todo",
    "sequencer/todo": "todo",
}
_WHY: dict[Kind, str] = {
    "obeyed": "a program outside runs or obeys it by itself",
    "rules": "it holds the rules of this workspace",
    "pointer": "git would work with another folder",
    "settings": "git would run what they name, or look elsewhere",
    "commondir": "git would take its settings from another folder",
    "alternates": "git would look for objects elsewhere",
    "todo": "git would run the commands in it",
    "hook": "git would run it",
    "named": "a program outside runs it",
    "shadow": "it would run in the place of a program of the system, by PATH",
}
_TOUCHED = frozenset({"obeyed", "rules", "hook", "named", "shadow"})
"""What is nobody's work in progress: it may have been written by somebody else, or be written still."""
_FIRST_LINE = 120
"""Characters of what a file would have done that are shown."""
_MAY_STAND: frozenset[Kind] = frozenset({"obeyed", "hook", "named", "shadow"})
"""What is a file of its own, which the operator may let stand; rules are this program's own, and of git's settings and
instructions a part is taken out."""
_SHOWN_WHOLE = 100_000
"""Bytes of a file up to which it can be shown, and so be asked about."""
_RUNS = re.compile(rb"^\s*(?:x|exec)\s.*\n?", re.MULTILINE)


@dataclass(frozen=True)
class OutOfTheWay:
    """A file as a command left it: text that can be shown whole, and be put there again."""

    place: Path
    left: FileState
    now: FileState
    """What stands there instead."""


@dataclass(frozen=True)
class TakenBack:
    """One thing that a command put somewhere, and that is as it was before."""

    path: str
    why: str
    kept: str = ""
    """Where a copy of it is."""
    line: str = ""
    """The first line of it that is new,"""
    number: int = 0
    """and which line of it that is."""
    file: OutOfTheWay | None = None
    """What the operator may let stand after all."""

    def __str__(self) -> str:
        said = f": `{self.line}`" if self.line else ""
        return f"{self.path} ({self.why}{said}{f'; a copy is {self.kept}' if self.kept else ''})"


@dataclass
class _Held:
    signature: tuple[int, ...]
    form: FileState


@dataclass
class Watch:
    """Everything of the kind in the places that commands may write. Its methods block, and may be called from any
    thread.
    """

    places: Places
    keep: Path
    """Where copies of what is taken back go; made when there is one."""
    record: WorkspaceRecord | None = None
    """Of how things stood, while a command runs."""
    _unwritten: bool = True
    """Whether that is another than the record has."""
    _until: int = 0
    """Nanoseconds since 1970 until which a killed program's commands may have written; 0: they run still."""
    _held: dict[Path, _Held] = field(default_factory=dict)
    _folders: dict[Path, int] = field(default_factory=dict)
    _found: dict[Path, Kind] = field(default_factory=dict)
    _gits: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Folders of git's, by path, with device and inode: a renamed one is known again."""
    _names: Names = field(default_factory=Names)
    """What git's settings, hooks and variables name, from before the commands that run."""
    _known: set[tuple[str, bytes]] = field(default_factory=set)
    _running: list[frozenset[Path]] = field(default_factory=list)
    """Of each command that runs, what a mount protects from it."""
    _looked: bool = False
    owed: bool = False
    """Whether some folders are still to be looked at after a command."""
    _fresh: int = 0
    """Nanoseconds since 1970 from which on a change is too new to be judged; 0: all is judged,"""
    _again: bool = False
    """and whether there was such a change."""
    _displaced: set[Path] = field(default_factory=set)
    """Names that were given to what stood in the place of a folder of git's."""
    _copies: int = 0
    _lock: Lock = field(default_factory=Lock)

    @property
    def gits(self) -> tuple[Path, ...]:
        """Folders of git's, and files that say where one is, the uppermost first."""
        pointers = (path for path, kind in self._found.items() if kind == "pointer")
        return tuple(sorted({*self._gits, *pointers}, key=lambda path: len(path.parts)))

    @property
    def named(self) -> tuple[Path, ...]:
        """Files and folders that something outside names, which programs outside run."""
        return (*self._names.files, *self._names.folders, *self._names.settings)

    def why_obeyed(self, path: Path) -> str:
        """What outside runs or obeys a file by itself; "" if nothing is known to."""
        said = self._names.about(path)
        root = self._root(path)
        program = whose(path.relative_to(root).as_posix()) if root is not None and not said else ""
        return said or (f"{program} obeys it by itself" if program else "")

    def recover(self) -> list[TakenBack]:
        """Before the first command: take back what those left that ran when this program was killed."""
        taken: list[TakenBack] = []
        with self._lock:
            for left in self.record.left() if self.record is not None else ():
                self._held = {path: _Held(_UNKNOWN, form) for path, form in left.held.items()}
                self._known = {(path.name, _digest(form)) for path, form in left.held.items()}
                self._looked, self._until = True, left.until
                taken += self._settle(everywhere=True)
            self._held, self._known, self._looked, self._until = {}, set(), False, 0
        return taken

    def look(self) -> None:
        """See how things stand before the first command."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        self._find(everywhere=len(self._folders) <= QUICK)
        self._names = names_in(self.places.roots, self.gits)
        self._looked = True
        for path, kind in self._all():
            self._accept(path, kind, None)

    def begin(self, mounted: Callable[[], Iterable[Path]] = tuple) -> tuple[frozenset[Path], list[TakenBack]]:
        """A command is about to start, from which mounts protect what `mounted` then says. What changed since the last
        one ended was somebody else's doing. Returns what `end` wants, and what had to be taken back still.
        """
        with self._lock:
            taken = self._settle(everywhere=True) if self.owed else []
            if not self._running:
                self._look()
            token = frozenset(mounted())
            self._running.append(token)
            self._write_down()
            return token, taken

    def _write_down(self) -> None:
        if self.record is None:
            return
        if not self._running:
            self.record.rest()
            return
        forms = {path: held.form for path, held in self._held.items() if held.form != NOTHING}
        self.record.begin(forms if self._unwritten else {}, changed=self._unwritten)
        self._unwritten = False

    def end(self, token: frozenset[Path]) -> list[TakenBack]:
        """A command has ended: take back what it may have put there."""
        with self._lock:
            taken = self._settle(everywhere=len(self._folders) <= QUICK)
            self._running.remove(token)
            self._write_down()
            return taken

    def settle(self, *, everywhere: bool = True, live: bool = False) -> list[TakenBack]:
        """Take back what is there now, in the uppermost folders alone or in all. `live`: a command runs, and a file
        that was only just touched may still be being written: it is looked at again a moment later.
        """
        with self._lock:
            self._fresh = time.time_ns() - _BEING_WRITTEN if live else 0
            self._again = False
            try:
                return self._settle(everywhere=everywhere)
            finally:
                self._fresh = 0
                self._write_down()
                if self.record is not None:
                    self.record.lives()

    def accept(self, path: Path) -> None:
        """This program itself wrote a file, by leave of the operator."""
        with self._lock:
            kind = self._found.get(path, "obeyed")
            if self._looked and (path in self._held or self._is_obeyed(path)):
                self._accept(path, kind, None)
                if self._running:
                    self._write_down()

    def let_stand(self, file: OutOfTheWay) -> None:
        """Put a file where a command left it, byte for byte: the operator says so. Raises `OSError`, also where
        something else stands there by now.
        """
        with self._lock:
            root = self._root(file.place)
            if root is None or form_of(root, file.place) != file.now:
                raise OSError(errno.EEXIST, "something else stands there by now")
            put(root, file.place, file.left)
            # Not what is there now is accepted, but what the operator was shown.
            self._held[file.place] = _Held(_UNKNOWN, file.left)
            self._unwritten = True
            if self._running:
                self._write_down()

    def _is_obeyed(self, path: Path) -> bool:
        return (
            path.name.casefold() in FILES
            or path.name.endswith(ENDINGS)
            or any(part.casefold() in FOLDERS for part in path.parts)
            or bool(self._names.about(path))
        )

    def unsettled(self) -> bool:
        """Whether something changed in the places that programs look at first. Quick; nothing is taken back."""
        if self._again:
            return True
        for root in self.places.roots:
            signature = _signature(root)
            if not signature or signature[-1] != self._folders.get(root):
                return True
        for git in tuple(self._gits):
            for name in ("config", "commondir"):
                held = self._held.get(git / name)
                if _signature(git / name) != (held.signature if held else ()):
                    return True
        return False

    # --- finding ---------------------------------------------------------------------------------------------

    def _find(self, *, everywhere: bool) -> None:
        """Look into the folders that changed, those of `everywhere` or the roots, and into new ones."""
        queue = [*(self._folders if everywhere else ()), *self.places.roots]
        seen: set[Path] = set()
        for folder in queue:  # grows
            if folder in seen:
                continue
            seen.add(folder)
            signature = _signature(folder)
            if not signature or not stat.S_ISDIR(signature[0]):
                self._folders.pop(folder, None)
            elif self._folders.get(folder) != signature[-1]:
                new = folder not in self._folders
                if new and len(self._folders) >= MOST_FOLDERS:
                    continue
                self._folders[folder] = _lasting(signature)[-1]
                queue.extend(self._look_into(folder))
        for path in self.places.single:
            self._found.setdefault(path, "obeyed")

    def _look_into(self, folder: Path) -> list[Path]:
        """The folders in it that were not known; what else is found there is noted."""
        new = []
        try:
            with os.scandir(folder) as entries:
                here = list(entries)
        except OSError:
            return []
        names = {entry.name for entry in here}
        installed = within_environment([*folder.parts, ""])
        if {"HEAD", "objects", "refs"} <= names:
            self._note_git(folder)
        for entry in here:
            name, path = entry.name.casefold(), folder / entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if name == GIT and is_folder:
                self._note_git(path)
            elif name == GIT:
                self._found[path] = "pointer"
            elif not installed and (
                (name in FOLDERS) if is_folder else (name in FILES or name.endswith(ENDINGS))
            ):
                self._found[path] = "rules" if path.name == OWN_RULES else "obeyed"
                trees = path / "worktrees"
                if is_folder and trees not in self._folders and trees.is_dir():
                    new.append(trees)
                if is_folder and FOLDERS[name] and path not in self._folders:
                    new.append(path)
            elif is_folder and path not in self._folders:
                new.append(path)
        return new

    def _note_git(self, git: Path) -> None:
        if git in self._gits or len(self._gits) >= _MOST_GITS:
            return
        with suppress(OSError):
            status = git.lstat()
            identity = (status.st_dev, status.st_ino)
            before = next((path for path, known in self._gits.items() if known == identity), None)
            self._gits[git] = identity
            if before is not None and not before.exists():
                # It was renamed, or a folder above it was.
                for path, held in list(self._held.items()):
                    if path.is_relative_to(before):
                        self._held[git / path.relative_to(before)] = _Held(_UNKNOWN, held.form)

    def _put_back_gits(self) -> list[TakenBack]:
        """A folder of git's that changed its place with something else is put back: git would work with that."""
        taken: list[TakenBack] = []
        elsewhere = {identity: path for path in self._gits if (identity := _identity(path))}
        for path, identity in sorted(self._gits.items(), key=lambda item: len(item[0].parts)):
            now, root = _identity(path), self._root(path)
            where = elsewhere.get(identity)
            if now == identity or where is None or where == path or root is None or not path.parent.is_dir():
                continue
            other_root = self._root(where)
            if other_root is None or (now is None and where not in self._displaced):
                continue
            try:
                if now is not None:
                    aside = where.with_name(f"{path.name}.{secrets.token_hex(4)}")
                    move(root, path, aside)
                    elsewhere[now] = aside
                    self._displaced.add(aside)
                move(root, where, path)
            except (OSError, ValueError):
                continue
            elsewhere[identity] = path
            shown = path.relative_to(root) if root == self.places.roots[0] else path
            taken.append(TakenBack(str(shown), "git would work with another folder"))
        for gone in [git for git in self._gits if not _identity(git)]:
            if gone in self._displaced:
                self._gits.pop(gone)
        return taken

    def _all(self) -> Iterator[tuple[Path, Kind]]:
        """Every file that is compared, as things stand now."""
        for path, kind in list(self._found.items()):
            entries = (
                FOLDERS.get(path.name.casefold(), ()) if path.is_dir() and not path.is_symlink() else None
            )
            if entries is None:
                yield path, kind
            elif path not in self._protected():
                below = [path / entry for entry in entries] or [path]
                yield from ((file, kind) for place in below for file in _files(place))
        for git in list(self._gits):
            yield from self._of_git(git, 0)
        yield from self._of_names()

    def _of_names(self) -> Iterator[tuple[Path, Kind]]:
        protected = self._protected()
        for path in self._names.files:
            is_folder = path.is_dir() and not path.is_symlink()
            yield from ((file, "named") for file in (_files(path) if is_folder else (path,)))
        for path in self._names.settings:
            yield path, "settings"
        for folder in self._names.folders:
            if folder.is_symlink():
                yield folder, "named"
            elif folder not in protected:
                yield from ((file, "named") for file in _files(folder))
        for folder in on_path(self.places.roots):
            yield from (
                (file, "shadow") for file in _files(folder, deepest=1) if file.name in system_programs()
            )

    def _of_git(self, git: Path, depth: int) -> Iterator[tuple[Path, Kind]]:
        for name in GIT_FILES:
            yield git / name, _KINDS[name]
        for folder in self._hook_folders(git):
            if folder.is_symlink():
                yield folder, "hook"
            elif folder not in self._protected():
                yield from ((file, "hook") for file in _files(folder, deepest=1))
        if depth < _DEEPEST:
            for folder in _folders(git / "worktrees"):
                yield from self._of_git(folder, _DEEPEST)
            for folder in _modules(git / "modules"):
                yield from self._of_git(folder, depth + 1)

    def _hook_folders(self, git: Path) -> Iterator[Path]:
        """Where git looks for hooks: in its folder, and where its settings say so within the places that are written.
        Files that the settings include are noted on the way.
        """
        yield git / HOOKS
        held = self._held.get(git / "config")
        if held is None or not re.search(rb"(?i)hookspath|include", held.form.content):
            return
        for key, value in read_settings(held.form.content) or ():
            if key.lower() == "core.hookspath" and value:
                folder = Path(os.path.normpath(git.parent / value))
                if self._root(folder) is not None and folder != git / HOOKS:
                    yield folder
            elif is_include(key) and value:
                file = Path(os.path.normpath(git / value))
                if self._root(file) is not None:
                    self._found.setdefault(file, "settings")

    def _protected(self) -> frozenset[Path]:
        """What mounts protect from every command that runs."""
        return frozenset.intersection(*self._running) if self._running else frozenset()

    # --- comparing -------------------------------------------------------------------------------------------

    def _settle(self, *, everywhere: bool) -> list[TakenBack]:
        if not self._looked:
            return []
        self.owed = not everywhere
        self._find(everywhere=everywhere)
        taken: list[TakenBack] = self._put_back_gits()
        protected = self._protected()
        looked: set[Path] = set()
        for _ in range(_DEEPEST):  # what is found may lead to more
            rest = [(path, kind) for path, kind in self._all() if path not in looked]
            looked.update(path for path, _ in rest)
            for path, kind in rest:
                self._compare(path, kind, protected, taken)
            if not rest:
                break
        for path, held in list(self._held.items()):
            if path not in looked and held.form.kind != "nothing" and path.name == OWN_RULES:
                self._compare(path, "rules", protected, taken)
        return taken

    def _compare(self, path: Path, kind: Kind, protected: frozenset[Path], taken: list[TakenBack]) -> None:
        root = self._root(path)
        if root is None:
            return
        held = self._held.get(path) or _Held(_UNKNOWN, NOTHING)
        signature = _signature(path)
        if signature == held.signature:
            return
        if self._until and signature and signature[-1] > self._until and kind in _TOUCHED:
            return  # somebody else's, after the kill
        form = form_of(root, path)
        new = self._fresh and signature and signature[-1] > self._fresh
        if new and (kind in _TOUCHED - {"rules"} or (form.kind == "file" and not form.content)):
            self._again = True
            return
        by_others = any(path.is_relative_to(place) for place in protected)
        wanted = form if by_others else self._judged(path, kind, held.form, form)
        if wanted == form == NOTHING:
            # Should it come back while commands run, it is compared with what was there.
            self._held[path] = _Held((), held.form)
            return
        if wanted == form:
            self._accept(path, kind, (signature, form))
            return
        shown = path.relative_to(self.places.roots[0]) if root == self.places.roots[0] else path
        try:
            kept = self._copy(path, form)
            put(root, path, wanted)
        except OSError as error:
            taken.append(
                TakenBack(str(shown), f"{self._why(path, kind)}; it could not be undone: {error.strerror}")
            )
            return
        number, line = _new_line(held.form, form)
        file = OutOfTheWay(path, form, wanted) if kind in _MAY_STAND and _can_be_shown(form, wanted) else None
        taken.append(TakenBack(str(shown), self._why(path, kind), kept, line, number, file))
        # What is there by now may be something else again.
        self._held[path] = _Held(_UNKNOWN, wanted)

    def _why(self, path: Path, kind: Kind) -> str:
        return (self.why_obeyed(path) if kind in {"obeyed", "named"} else "") or _WHY[kind]

    def _judged(self, path: Path, kind: Kind, before: FileState, form: FileState) -> FileState:
        """What may stand there: `form` where that is harmless."""
        if form.kind == "nothing":
            return before if kind == "rules" else form
        if form.kind == "other" and stat.S_ISDIR(form.mode):
            return form
        if kind == "shadow" and before.kind != "nothing":
            return form
        if form == before or (form.kind == "file" and (path.name, _digest(form)) in self._known):
            return form
        match kind:
            case "hook" if path.suffix == ".sample":
                return form
            case "settings" if form.kind == "file" and form.whole:
                settings = read_settings(before.content) or () if before.kind == "file" else ()
                clean = without_harm(form.content, settings, lambda value: self._leads_inside(path, value))
                return form if clean is None else FileState("file", clean, form.mode)
            case "todo" if form.kind == "file" and form.whole:
                left = Counter(_RUNS.findall(before.content))
                runs = Counter(_RUNS.findall(form.content)) - left
                return FileState("file", _RUNS.sub(b"", form.content), form.mode) if runs else form
            case "pointer":
                return form if self._points_inside(path, before, form) else before
            case "commondir":
                git = path.parent
                inside = _resolved(git, form.content) == os.path.realpath(git.parent.parent)
                return form if form.kind == "file" and git.parent.name == "worktrees" and inside else before
            case "alternates" if form.kind == "file" and form.whole:
                lines = [line for line in form.content.splitlines() if line and not line.startswith(b"#")]
                inside = all(self._root(Path(_resolved(path.parents[1], line))) is not None for line in lines)
                return form if inside else before
        return before

    def _leads_inside(self, settings: Path, value: str) -> bool:
        return self._root(Path(_resolved(settings.parent, os.fsencode(value)))) is not None

    def _points_inside(self, path: Path, before: FileState, form: FileState) -> bool:
        """Whether a `.git` that is a file or a link leads to a folder of git's that is compared from now on."""
        said = form.content.strip()
        if form.kind == "file":
            if not said.startswith(b"gitdir:"):
                return True  # git refuses it
            said = said.removeprefix(b"gitdir:").strip()
        git = Path(_resolved(path.parent, said))
        if self._root(git) is None:
            return False
        if before.kind != "nothing":
            was = Path(_resolved(path.parent, before.content.strip().removeprefix(b"gitdir:")))
            return any(git.is_relative_to(one) and was.is_relative_to(one) for one in self._gits)
        if not any(git.is_relative_to(one) for one in self._gits):
            self._note_git(git)
        return True

    def _accept(self, path: Path, kind: Kind, seen: tuple[tuple[int, ...], FileState] | None) -> None:
        """From now on it is as it should be."""
        root = self._root(path)
        if root is None:
            return
        if seen is None:
            signature = _signature(path)
            held = self._held.get(path)
            if held is not None and held.signature == signature:
                return
            seen = (signature, form_of(root, path))
        signature, form = seen
        before = self._held.get(path)
        self._unwritten |= form != (NOTHING if before is None else before.form)
        self._held[path] = _Held(_lasting(signature), form)
        if form.kind == "file" and form.whole and kind in {"obeyed", "rules", "hook"}:
            self._known.add((path.name, _digest(form)))

    def _root(self, path: Path) -> Path | None:
        return next((root for root in self.places.roots if path != root and path.is_relative_to(root)), None)

    def _copy(self, path: Path, form: FileState) -> str:
        """Keep what is about to be taken back; where the copy is."""
        if form.kind != "file" or not form.whole:
            return ""
        self._copies += 1
        self.keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy = self.keep / f"{self._copies}-{path.name}"
        copy.write_bytes(form.content)
        return os.fspath(copy)


def _signature(path: Path) -> tuple[int, ...]:
    """By which a change is seen, the time of it last; () where nothing stands there."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _new_line(before: FileState, form: FileState) -> tuple[int, str]:
    """The first line of a file that did not stand in it before, for people to read, and its number. "" of what is no
    text; comments only where there is nothing else.
    """
    if form.kind == "link":
        return 0, revealed_line(f"a link to {os.fsdecode(form.content)}", _FIRST_LINE)
    if form.kind != "file" or not form.whole or b"\0" in form.content[:1000]:
        return 0, ""
    known = set(before.content.splitlines())
    lines = enumerate(form.content.splitlines(), 1)
    new = [(number, line.strip()) for number, line in lines if line not in known]
    telling = [(number, line) for number, line in new if line and line != b"{" and not line.startswith(b"#!")]
    acting = (one for one in telling if not one[1].startswith(b"#"))
    number, said = next(acting, telling[0] if telling else (0, b""))
    return number, revealed_line(said.decode("utf-8", "replace").replace("`", "'"), _FIRST_LINE)


def _can_be_shown(form: FileState, before: FileState) -> bool:
    """Whether an operator can be shown what would stand there. What a link leads to may change later."""
    if form.kind != "file" or not form.whole or len(form.content) > _SHOWN_WHOLE or b"\0" in form.content:
        return False
    try:
        form.content.decode()
    except UnicodeDecodeError:
        return False
    return before.kind in {"nothing", "file"} and before.whole


def _lasting(signature: tuple[int, ...]) -> tuple[int, ...]:
    """The signature, unless the change is so new that another one may get the same time."""
    return signature if not signature or time.time_ns() - signature[-1] > _TICK else _UNKNOWN


def _digest(form: FileState) -> bytes:
    return hashlib.blake2b(form.content, digest_size=16).digest()


def _resolved(folder: Path, said: bytes) -> str:
    return os.path.realpath(folder / os.fsdecode(said.strip().replace(b"\0", b"")))


def _files(place: Path, deepest: int = _DEEPEST) -> Iterator[Path]:
    """Files and links below a folder, or the place itself where it is no folder. Bounded."""
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
    """Folders of git's for submodules, whose names may have slashes."""
    queue = _folders(place)
    for folder in queue:  # grows
        if (folder / "HEAD").exists():
            yield folder
        elif len(queue) < _MOST_GITS and len(folder.relative_to(place).parts) < _DEEPEST:
            queue.extend(_folders(folder))
