"""All sessions under the state folder: listed, found, renamed, deleted and restored.

One folder a session under `sessions/`; deleted ones are under `trash/` until it is emptied. The index beside
them (`session_index`) only makes lists and searches fast. Methods block on the disk: call them in a thread if
a screen waits; `rename`, which writes a journal, is a coroutine.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.disk import user_path
from tui_agent.store.errors import SessionError, disk_error
from tui_agent.store.journal import JOURNAL_NAME, Journal, sessions_folder
from tui_agent.store.lines import decode
from tui_agent.store.lock import SessionLock
from tui_agent.store.private import make_private, unblocked
from tui_agent.store.redaction import Redactor
from tui_agent.store.session_index import INDEX_NAME, Hit, SessionIndex
from tui_agent.store.summary import SessionRow, summarise

TRASH_FOLDER = "trash"
_DAY = 86_400.0
_BATCH = 50


@dataclass(frozen=True)
class DiskUse:
    """Bytes by purpose."""

    sessions: int = 0
    trash: int = 0
    checkpoints: int = 0
    index: int = 0

    @property
    def total(self) -> int:
        return self.sessions + self.trash + self.checkpoints + self.index


class SessionStore:
    """The sessions under `state_dir`. Raises `SessionError` if the disk refuses."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.sessions_dir = sessions_folder(state_dir)
        self.trash_dir = state_dir / TRASH_FOLDER
        try:
            make_private(self.sessions_dir)
        except OSError as fault:
            raise disk_error("Sessions cannot be kept", self.sessions_dir, fault) from fault
        self._index = SessionIndex(state_dir)

    def folder(self, session_id: str) -> Path:
        """The folder of the session of this id, whether it is there or not."""
        return self.sessions_dir / session_id

    # --- listing and finding ---------------------------------------------------------------------------------

    def rows(self, workspace: Path | None = None) -> list[SessionRow]:
        """All sessions as last indexed, the newest first. What changed since is brought in by `refresh`.

        Sessions that are not indexed yet come as rows with nothing but id, size and time.
        """
        there = self._journals()
        rows = [row for row in self._index.rows() if row.id in there]
        missing = there.keys() - {row.id for row in rows}
        rows += [
            SessionRow(name, title="…", size=there[name][0], ended_at=there[name][1] / 1e9)
            for name in missing
        ]
        if workspace is not None:
            rows = [row for row in rows if row.workspace == str(workspace)]
        return sorted(rows, key=lambda row: (row.ended_at, row.id), reverse=True)

    def stale(self) -> int:
        """How many sessions `refresh` would read or drop."""
        changed, gone = self._changes()
        return len(changed) + len(gone)

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Bring the index up to date with the journals; how many sessions were read. `progress`: done, all."""
        changed, gone = self._changes()
        self._index.drop(gone)
        for start in range(0, len(changed), _BATCH):
            batch = changed[start : start + _BATCH]
            self._index.put([summarise(self.folder(name)) for name in batch])
            if progress is not None:
                progress(start + len(batch), len(changed))
        return len(changed)

    def update(self, session_id: str) -> None:
        """Bring one session's row up to date (when it closes)."""
        self._index.put([summarise(self.folder(session_id))])

    def search(self, words: str, limit: int = 50) -> list[Hit]:
        """Places in the conversations that hold all of `words`, the best first."""
        return self._index.search(words, limit)

    def found(self, words: str, limit: int = 200) -> list[Hit]:
        """The best place of each session whose conversation holds all of `words` in one place."""
        return self._index.found(words, limit)

    def newest(self, workspace: Path | None = None) -> Path | None:
        """The folder of the session that was used last (in `workspace`); None if there is none.

        One that was only opened counts if there is no other.
        """
        by_age = sorted(self._journals().items(), key=lambda item: -item[1][1])
        opened: Path | None = None
        for name, _ in by_age:
            folder = self.folder(name)
            started = _beginning(folder)
            if started is None or (workspace is not None and started.workspace != str(workspace)):
                continue
            if _was_used(folder):
                return folder
            opened = opened or folder
        return opened

    def find(self, name: str) -> Path:
        """A session's folder by its id, by a beginning of it that no other shares, or by its exact title."""
        there = self._journals()
        if name in there:
            return self.folder(name)
        found = [other for other in there if name and other.startswith(name)]
        if not found:
            self.refresh()
            found = [row.id for row in self._index.rows() if row.title == name and row.id in there]
        if len(found) == 1:
            return self.folder(found[0])
        if found:
            shown = ", ".join(sorted(found)[:5])
            raise SessionError(
                f"More than one session is called {name!r}", shown, "Name it by more of its id."
            )
        raise SessionError(
            f"There is no session {name!r}",
            f"none of the {len(there)} in {self.sessions_dir} has this id or title",
            "`agent-tui sessions` lists them.",
        )

    def resolve(self, wanted: str | None) -> Path:
        """The path that a person means by SESSION or FILE: a file or folder, the finding of `find`, or (None)
        the newest session.

        Raises `SessionError`.
        """
        if wanted is not None:
            path = user_path(wanted)
            return path if path.exists() else self.find(wanted)
        newest = self.newest()
        if newest is None:
            raise SessionError(
                "There is no session to open",
                f"none is saved under {self.sessions_dir} yet",
                "`agent-tui demo` makes one without a key.",
            )
        return newest

    # --- changing --------------------------------------------------------------------------------------------

    async def rename(self, session_id: str, title: str, at: float, redactor: Redactor | None = None) -> None:
        """Give a closed session another title, by an event in its journal. `SessionBusyError` for an open one."""
        journal = await Journal.open_to_append(self.folder(session_id))
        try:
            event = events.TitleChanged(title=title.strip()).stamped(len(journal.contents.events) + 1, at)
            journal.write(event if redactor is None else redactor.redact(event))
        finally:
            await journal.close()
        self.update(session_id)

    def delete(self, session_id: str, now: float) -> None:
        """Move a closed session to the trash, from which `restore` brings it back."""
        folder = self.folder(session_id)
        with self._alone(folder):
            self._move(folder, self.trash_dir / session_id)
        with contextlib.suppress(OSError):
            os.utime(self.trash_dir / session_id, (now, now))
        self._index.drop([session_id])

    def trash(self) -> list[SessionRow]:
        """Sessions in the trash, the last deleted first; `ended_at` is the time of the deletion."""
        found = [
            evolve(summarise(folder)[0], ended_at=changed) for folder, changed in _folders(self.trash_dir)
        ]
        return sorted(found, key=lambda row: (row.ended_at, row.id), reverse=True)

    def restore(self, session_id: str) -> Path:
        """Bring a session back from the trash."""
        source = self.trash_dir / session_id
        if not (source / JOURNAL_NAME).exists():
            raise SessionError(
                f"Session {session_id} is not in the trash",
                "it was never deleted, or the trash was emptied since",
                "`agent-tui sessions` lists those that are there.",
            )
        self._move(source, self.folder(session_id))
        self.update(session_id)
        return self.folder(session_id)

    def empty_trash(self, before: float) -> list[str]:
        """Remove for good what was deleted before that time (seconds since the epoch)."""
        old = [folder for folder, changed in _folders(self.trash_dir) if changed < before]
        for folder in old:
            try:
                shutil.rmtree(folder)
            except OSError as fault:
                raise disk_error("The trash cannot be emptied", folder, fault) from fault
        return [folder.name for folder in old]

    def retire(self, days: float, now: float) -> list[str]:
        """Retention: closed sessions untouched for `days` go to the trash, what is there as long is removed.

        0 days keeps everything. Returns the ids that went to the trash.
        """
        if days <= 0:
            return []
        limit = now - days * _DAY
        self.empty_trash(limit)
        retired = []
        for name, (_, changed_ns) in self._journals().items():
            if changed_ns / 1e9 < limit and not SessionLock.held(self.folder(name)):
                self.delete(name, now)
                retired.append(name)
        return retired

    def disk_use(self) -> DiskUse:
        """The size of all of it in bytes."""
        index = sum(_size(path) for path in self.state_dir.glob(f"{INDEX_NAME}*"))
        return DiskUse(
            _size(self.sessions_dir), _size(self.trash_dir), _size(self.state_dir / "checkpoints"), index
        )

    # --- the folders -----------------------------------------------------------------------------------------

    def _journals(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of every session's journal."""
        found: dict[str, tuple[int, int]] = {}
        try:
            with os.scandir(self.sessions_dir) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        journal = Path(entry.path, JOURNAL_NAME).stat()
                        found[entry.name] = (journal.st_size, journal.st_mtime_ns)
        except OSError as fault:
            raise disk_error("The sessions cannot be listed", self.sessions_dir, fault) from fault
        return found

    def _changes(self) -> tuple[list[str], list[str]]:
        """Sessions whose journal differs from what was indexed, the newest first, and those that are gone."""
        there, known = self._journals(), self._index.known()
        changed = [name for name, facts in there.items() if known.get(name) != facts]
        changed.sort(key=lambda name: -there[name][1])
        return changed, [name for name in known if name not in there]

    @contextlib.contextmanager
    def _alone(self, folder: Path) -> Iterator[None]:
        """While nobody writes the session. Raises `SessionBusyError`."""
        if not folder.is_dir():
            raise disk_error("The session cannot be deleted", folder, FileNotFoundError(2, "missing"))
        lock = SessionLock.acquire(folder)
        try:
            yield
        finally:
            lock.release()

    def _move(self, source: Path, target: Path) -> None:
        try:
            make_private(target.parent)
            if target.exists():
                raise SessionError(
                    f"Session {source.name} cannot be moved",
                    f"{target} is there already",
                    "Remove one of the two.",
                )
            source.rename(target)
        except OSError as fault:
            raise disk_error(f"Session {source.name} cannot be moved", target, fault) from fault


def _beginning(folder: Path) -> events.SessionStarted | None:
    """The first event of a session, from its first line alone; None if there is none."""
    try:
        with open(folder / JOURNAL_NAME, "rb", opener=unblocked) as file:
            event = decode(file.readline(1_000_000))
    except (OSError, ValueError):
        return None
    return event if isinstance(event, events.SessionStarted) else None


def _was_used(folder: Path) -> bool:
    """True if the operator did something in the session: only a few settings come before that."""
    with contextlib.suppress(OSError), open(folder / JOURNAL_NAME, "rb", opener=unblocked) as file:
        return any(kind in line for line in itertools.islice(file, 1_000) for kind in _USES)
    return False


_USES = (b'"type":"run_started"', b'"type":"own_command_ended"')


def _folders(parent: Path) -> list[tuple[Path, float]]:
    """The folders in `parent` with the times of their changes; none if it cannot be read."""
    found: list[tuple[Path, float]] = []
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_dir():
                    found.append((Path(entry.path), entry.stat().st_mtime))
    return found


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{folder}/{name}").st_size
    return total
