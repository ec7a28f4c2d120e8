"""Changes of commands to the files that programs outside run or obey later, and taking them back.

Mounts protect existing files, if the mechanism has them. This looks at the rest: new files, and all of them
if there are no mounts. Only the few places of `run_later` are compared, folders by the time of their last
change.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

from tui_agent.sandbox.found_files import (
    UNKNOWN,
    FoundFiles,
    Held,
    digest,
    identity_of,
    lasting,
    signature_of,
)
from tui_agent.sandbox.left_behind import WorkspaceRecord
from tui_agent.sandbox.links_refused import NOTHING, FileState, form_of, move, put
from tui_agent.sandbox.may_stand import may_stand
from tui_agent.sandbox.named import names_in
from tui_agent.sandbox.obeyed import FOLDERS, OWN_RULES, is_obeyed_file, whose
from tui_agent.sandbox.run_later import Places
from tui_agent.sandbox.taken_back import WHY, Kind, OutOfTheWay, TakenBack, can_be_shown, new_line

QUICK = 2_000
"""So many are looked at before a command's result is given; of more, all but the uppermost afterwards."""
_BEING_WRITTEN = 100_000_000
"""Nanoseconds."""
_TIMES = 6
"""So often a look goes on with what the last one led to."""
_TOUCHED = frozenset({"obeyed", "rules", "hook", "named", "shadow"})
"""Kinds of files that somebody else may have written, or be writing still: a late change of one is left alone."""
_MAY_STAND: frozenset[Kind] = frozenset({"obeyed", "hook", "named", "shadow"})
"""Kinds that are files of their own, which the operator may let stand; rules are this program's own, and of
git's settings and instructions a part is taken out.
"""


@dataclass
class Watch:
    """Everything of the kind in the places that commands may write. Its methods block, and may be called from any
    thread.
    """

    places: Places
    keep: Path
    """The folder for copies of files that are taken back; made when there is one."""
    record: WorkspaceRecord | None = None
    """Of how things stood, while a command runs."""
    _unwritten: bool = True
    """True if that is another than the record has."""
    _until: int = 0
    """Nanoseconds since 1970 until which a killed program's commands may have written; 0: they run still."""
    _known: set[tuple[str, bytes]] = field(default_factory=set)
    _running: list[frozenset[Path]] = field(default_factory=list)
    """Of each command that runs, what a mount protects from it."""
    _looked: bool = False
    owed: bool = False
    """True if some folders are still to be looked at after a command."""
    _fresh: int = 0
    """Nanoseconds since 1970 from which on a change is too new to be judged; 0: all is judged."""
    _again: bool = False
    """True if there was a change that is too new."""
    _displaced: set[Path] = field(default_factory=set)
    """Names that were given to what stood in the place of a folder of git's."""
    _copies: int = 0
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def _found(self) -> FoundFiles:
        return FoundFiles(self.places)

    @property
    def gits(self) -> tuple[Path, ...]:
        """Folders of git's, and files that lead to one, the uppermost first."""
        pointers = (path for path, kind in self._found.kinds.items() if kind == "pointer")
        return tuple(sorted({*self._found.gits, *pointers}, key=lambda path: len(path.parts)))

    @property
    def named(self) -> tuple[Path, ...]:
        """Files and folders that something outside names, which programs outside run."""
        return (*self._found.names.files, *self._found.names.folders, *self._found.names.settings)

    def why_obeyed(self, path: Path) -> str:
        """Say what outside runs or obeys a file by itself; "" if nothing is known to."""
        said = self._found.names.about(path)
        root = self._found.root(path)
        program = whose(path.relative_to(root).as_posix()) if root is not None and not said else ""
        return said or (f"{program} obeys it by itself" if program else "")

    def recover(self) -> list[TakenBack]:
        """Take back what commands left that ran when this program was killed; before the first command."""
        taken: list[TakenBack] = []
        with self._lock:
            for left in self.record.left() if self.record is not None else ():
                self._found.held = {path: Held(UNKNOWN, form) for path, form in left.held.items()}
                self._known = {(path.name, digest(form)) for path, form in left.held.items()}
                self._looked, self._until = True, left.until
                taken += self._settle(everywhere=True)
            self._found.held, self._known, self._looked, self._until = {}, set(), False, 0
        return taken

    def look(self) -> None:
        """See how things stand before the first command."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        self._found.find(everywhere=len(self._found.folders) <= QUICK)
        self._found.names = names_in(self.places.roots, self.gits)
        self._looked = True
        for path, kind in self._found.files(self._protected()):
            self._accept(path, kind, None)

    def begin(self, mounted: Callable[[], Iterable[Path]] = tuple) -> tuple[frozenset[Path], list[TakenBack]]:
        """Expect a command, from which mounts protect what `mounted` then says. What changed since the last one ended
        was somebody else's doing. Returns what `end` wants, and what had to be taken back still.
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
        forms = {path: held.form for path, held in self._found.held.items() if held.form != NOTHING}
        self.record.begin(forms if self._unwritten else {}, changed=self._unwritten)
        self._unwritten = False

    def end(self, token: frozenset[Path]) -> list[TakenBack]:
        """Take back what a command that has ended may have put there."""
        with self._lock:
            taken = self._settle(everywhere=len(self._found.folders) <= QUICK)
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
        """Take a file as it is: this program itself wrote it, by leave of the operator."""
        with self._lock:
            kind = self._found.kinds.get(path, "obeyed")
            if self._looked and (path in self._found.held or self._is_obeyed(path)):
                self._accept(path, kind, None)
                if self._running:
                    self._write_down()

    def let_stand(self, file: OutOfTheWay) -> None:
        """Put a file back into the place in which a command left it, byte for byte, by the operator's leave.
        Raises `OSError`, also if something else stands there by now.
        """
        with self._lock:
            root = self._found.root(file.place)
            if root is None or form_of(root, file.place) != file.now:
                raise OSError(errno.EEXIST, "something else stands there by now")
            put(root, file.place, file.left)
            # Not what is there now is accepted, but what the operator was shown.
            self._found.held[file.place] = Held(UNKNOWN, file.left)
            self._unwritten = True
            if self._running:
                self._write_down()

    def _is_obeyed(self, path: Path) -> bool:
        return (
            is_obeyed_file(path.name.casefold(), path.parent.name.casefold())
            or any(part.casefold() in FOLDERS for part in path.parts)
            or bool(self._found.names.about(path))
        )

    def unsettled(self) -> bool:
        """Tell if something changed in the places that programs look at first. Quick; nothing is taken back."""
        if self._again:
            return True
        for root in self.places.roots:
            signature = signature_of(root)
            if not signature or signature[-1] != self._found.folders.get(root):
                return True
        for git in tuple(self._found.gits):
            for name in ("config", "commondir"):
                held = self._found.held.get(git / name)
                if signature_of(git / name) != (held.signature if held else ()):
                    return True
        return False

    def _put_back_gits(self) -> list[TakenBack]:
        """Put a folder of git's back that changed its place with something else: git would work with that."""
        taken: list[TakenBack] = []
        elsewhere = {identity: path for path in self._found.gits if (identity := identity_of(path))}
        for path, was in sorted(self._found.gits.items(), key=lambda item: len(item[0].parts)):
            now, root = identity_of(path), self._found.root(path)
            where = elsewhere.get(was)
            if now == was or where is None or where == path or root is None or not path.parent.is_dir():
                continue
            other_root = self._found.root(where)
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
            elsewhere[was] = path
            shown = path.relative_to(root) if root == self.places.roots[0] else path
            taken.append(TakenBack(str(shown), "git would work with another folder"))
        for gone in [git for git in self._found.gits if not identity_of(git)]:
            if gone in self._displaced:
                self._found.gits.pop(gone)
        return taken

    def _protected(self) -> frozenset[Path]:
        """List what mounts protect from every command that runs."""
        return frozenset.intersection(*self._running) if self._running else frozenset()

    def _settle(self, *, everywhere: bool) -> list[TakenBack]:
        if not self._looked:
            return []
        self.owed = not everywhere
        self._found.find(everywhere=everywhere)
        taken: list[TakenBack] = self._put_back_gits()
        protected = self._protected()
        looked: set[Path] = set()
        for _ in range(_TIMES):  # what is found may lead to more
            rest = [(path, kind) for path, kind in self._found.files(protected) if path not in looked]
            looked.update(path for path, _ in rest)
            for path, kind in rest:
                self._compare(path, kind, protected, taken)
            if not rest:
                break
        for path, held in list(self._found.held.items()):
            if path not in looked and held.form.kind != "nothing" and path.name == OWN_RULES:
                self._compare(path, "rules", protected, taken)
        return taken

    def _compare(self, path: Path, kind: Kind, protected: frozenset[Path], taken: list[TakenBack]) -> None:
        root = self._found.root(path)
        if root is None:
            return
        held = self._found.held.get(path) or Held(UNKNOWN, NOTHING)
        signature = signature_of(path)
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
        wanted = form if by_others else may_stand(path, kind, held.form, form, self._known, self._found)
        if wanted == form == NOTHING:
            # Should it come back while commands run, it is compared with what was there.
            self._found.held[path] = Held((), held.form)
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
        number, line = new_line(held.form, form)
        file = OutOfTheWay(path, form, wanted) if kind in _MAY_STAND and can_be_shown(form, wanted) else None
        taken.append(TakenBack(str(shown), self._why(path, kind), kept, line, number, file))
        # What is there by now may be something else again.
        self._found.held[path] = Held(UNKNOWN, wanted)

    def _why(self, path: Path, kind: Kind) -> str:
        return (self.why_obeyed(path) if kind in {"obeyed", "named"} else "") or WHY[kind]

    def _accept(self, path: Path, kind: Kind, seen: tuple[tuple[int, ...], FileState] | None) -> None:
        """Take it from now on to be as it should be."""
        root = self._found.root(path)
        if root is None:
            return
        if seen is None:
            signature = signature_of(path)
            held = self._found.held.get(path)
            if held is not None and held.signature == signature:
                return
            seen = (signature, form_of(root, path))
        signature, form = seen
        before = self._found.held.get(path)
        self._unwritten |= form != (NOTHING if before is None else before.form)
        self._found.held[path] = Held(lasting(signature), form)
        if form.kind == "file" and form.whole and kind in {"obeyed", "rules", "hook"}:
            self._known.add((path.name, digest(form)))

    def _copy(self, path: Path, form: FileState) -> str:
        """Keep a copy of a file that is about to be taken back. Gives its path."""
        if form.kind != "file" or not form.whole:
            return ""
        self._copies += 1
        self.keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy = self.keep / f"{self._copies}-{path.name}"
        copy.write_bytes(form.content)
        return os.fspath(copy)
