"""The playbook on the disk: a file for each workspace, and one for the user, in the state folder.

A file is read whole and replaced whole, under a lock, so that two processes lose nothing and a torn write leaves what
was there. What a file holds is checked when it is read; one that is no playbook is put aside when the next is written.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tui_agent.core.events import Suggestion
from tui_agent.disk import replace_whole
from tui_agent.playbook.book import Book
from tui_agent.playbook.lessons import Lesson, sign_of
from tui_agent.store.private import make_private, private, unblocked

logger = logging.getLogger(__name__)

FOLDER = "playbook"
LARGEST = 4_000_000
"""Bytes of a file that are read."""
LONGEST_WORDS = 300
_PATIENCE = 5.0
"""Seconds that a change waits for another process."""


class BookFile:
    """One book's file."""

    def __init__(self, path: Path, workspace: str = "") -> None:
        self.path = path
        self._workspace = workspace
        self._read: tuple[tuple[int, int, int] | None, Book] = (None, Book())

    def book(self) -> Book:
        """The book in the file now; an empty one if there is no file. Raises `OSError` if it cannot be read
        as one.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return Book(workspace=self._workspace)
        version = (found.st_mtime_ns, found.st_size, found.st_ino)
        if self._read[0] != version:
            self._read = (version, self._parsed())
        return self._read[1]

    def _parsed(self) -> Book:
        with open(self.path, "rb", opener=unblocked) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise OSError(f"{self.path} is larger than {LARGEST:,} bytes: delete it")
        try:
            return Book.model_validate_json(data).current
        except (ValueError, RecursionError) as error:
            first = str(error).partition("\n")[0][:200]
            raise OSError(f"{self.path} is no playbook ({first}): correct it, or delete it") from error

    def change(self, changed: Callable[[Book], Book]) -> bool:
        """Put the changed book in its place; False if it is the same. Raises `OSError`, also if it is in use
        for long, and `ValueError` for content that no book may hold.
        """
        make_private(self.path.parent)
        with self._locked():
            try:
                before = self.book()
            except OSError:
                aside = self.path.with_suffix(".damaged")
                self.path.replace(aside)
                logger.warning("%s was no playbook and is now %s", self.path, aside.name)
                before = Book(workspace=self._workspace)
            after = changed(before)
            if after is before:
                return False
            written = after.model_dump_json(indent=1, exclude_defaults=True)
            Book.model_validate_json(written)  # what would not be read again is not written
            replace_whole(self.path, written)
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.path.with_suffix(".lock"), "ab", opener=private) as file:
            ends = time.monotonic() + _PATIENCE
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > ends:
                        raise
                    time.sleep(0.01)
            yield


class Playbook:
    """The books of one workspace, and of the user in all of them. Blocking: not for an event loop's thread."""

    def __init__(self, state_dir: Path, workspace: Path) -> None:
        real = Path(os.path.realpath(workspace))
        name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
        self.name = name
        """Stands for the workspace."""
        self.workspace = BookFile(state_dir / FOLDER / f"{name}.json", str(real))
        self.user = BookFile(state_dir / FOLDER / "user.json")

    @property
    def files(self) -> Mapping[str, BookFile]:
        """Both books by their level."""
        return {"workspace": self.workspace, "user": self.user}

    def suggestion(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        message: str,
        now: float,
        elsewhere: bool = False,
    ) -> Suggestion | None:
        """Repairs of such a failure known here; with `elsewhere` those of other workspaces after them. A file
        that cannot be read counts as empty. `now`: seconds since the epoch.
        """
        sign = sign_of(tool, arguments, message)
        for level, file in self.files.items():
            if level == "user" and not elsewhere:
                continue
            with suppress(OSError):
                found = file.book().suggestion(sign, now, general=level == "user")
                if found is not None:
                    return found
        return None

    def learn(self, source: str, lessons: Iterable[Lesson], at: float) -> bool:
        """Count the lessons of a run that ended `at`, at both levels, once for each `source`, which names the
        run. False if it is known already, or taught nothing. Raises `OSError`.
        """
        kept = tuple(lessons)
        name = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:16]
        if not kept:
            return False
        new = self.workspace.change(lambda book: book.learned(name, kept, at, general=False))
        self.user.change(lambda book: book.learned(name, kept, at, general=True))
        return new

    def forget(self, wanted: str) -> bool:
        """Forget a repair by its id, at both levels, or "all" of this workspace. False if there is none.
        Raises `OSError`.
        """
        files = [self.workspace] if wanted == "all" else [self.workspace, self.user]
        return self._change(files, wanted, lambda book: book.without(wanted))

    def edit(self, wanted: str, words: str) -> bool:
        """Put the operator's own words for a repair, which are offered from then on. False if there is none.
        Raises `OSError`, and `ValueError` for words that are too long.
        """
        if len(words) > LONGEST_WORDS:
            raise ValueError(f"The words may have {LONGEST_WORDS} characters, and have {len(words)}.")
        return self._change([self.workspace, self.user], wanted, lambda book: book.edited(wanted, words))

    def _change(self, files: Iterable[BookFile], wanted: str, change: Callable[[Book], Book]) -> bool:
        found = False
        for file in files:
            if wanted == "all" or any(
                one.entry.id_of(one.repair) == wanted for one in file.book().offered(0.0)
            ):
                file.change(change)
                found = True
        return found
