"""The journal of a session: `events.jsonl`, which only ever grows, and its reader.

What an event means is not decided here. Writing never blocks its caller: a thread writes the lines, those of
`GATHERED` seconds together. What is promised: whatever was written before a `barrier` that returned is on the
disk and outlives the machine; after `sync_soon` that is on its way; any other line is with the operating system,
and so outlives this process, as soon as it was gathered and written. A fault of the disk loses nothing: lines
stay in memory, in order, and are written when that is possible again.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import aiofiles
from pydantic import ValidationError

from tui_agent.core.events import Event, SessionStarted
from tui_agent.processes import uncancelled
from tui_agent.store.errors import JournalError, disk_error
from tui_agent.store.lines import MAX_LINE_BYTES, decode, encode
from tui_agent.store.lock import SessionLock
from tui_agent.store.private import make_private, private, unblocked
from tui_agent.store.upgrade import UnknownVersionError

if TYPE_CHECKING:
    from aiofiles.threadpool.binary import AsyncFileIO

JOURNAL_NAME = "events.jsonl"
GATHERED = 0.01
"""Seconds for which lines are gathered if nobody waits for them, so that events that come together are one
write.
"""


@dataclass(frozen=True)
class Mark:
    """A place in a journal behind a whole event: that event's number, and size and SHA-256 of the bytes up to there."""

    seq: int = 0
    size: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)


BEGINNING = Mark()


@dataclass(frozen=True)
class JournalContents:
    """The part of a journal behind the mark from which it was read. `end` is behind the last whole event."""

    events: list[Event] = field(default_factory=list)
    """Empty if `take` got them."""
    end: Mark = BEGINNING
    dropped_bytes: int = 0
    """Length of a torn last line, which is no part of `events`."""
    unterminated: bool = False
    """The last event is whole, and only its line break is missing."""


def sessions_folder(state_dir: Path) -> Path:
    """The folder of the sessions, one folder each."""
    return state_dir / "sessions"


def journal_path(path: Path) -> Path:
    """The file of events: `path` itself, or the one in the session folder `path`."""
    return path / JOURNAL_NAME if path.is_dir() else path


def read_journal(
    path: Path,
    *,
    after: Mark = BEGINNING,
    take: Callable[[Event], object] | None = None,
) -> JournalContents:
    """All events of a journal (a file, or a session's folder), or those behind a mark.

    `take` gets each as it is read, and none is kept: together they take more memory than what they are folded into. A
    torn last line is left out and counted. Anything else that is wrong raises `JournalError` with its line.
    """
    path = journal_path(path)
    events: list[Event] = []
    take = events.append if take is None else take
    number, size, digest = after.seq, after.size, after.digest.copy()
    torn = b""
    try:
        with open(path, "rb", opener=unblocked) as file:
            file.seek(size)
            for line in _lines(file):
                if not line.endswith(b"\n"):
                    torn = line
                    break
                take(check_line(path, line, number + 1))
                number, size = number + 1, size + len(line)
                digest.update(line)
    except OSError as fault:
        raise disk_error("The session cannot be read", path, fault) from fault
    last = check_torn(path, torn, number + 1)
    if last is None:
        return JournalContents(events, Mark(number, size, digest), dropped_bytes=len(torn))
    take(last)
    digest.update(torn)
    return JournalContents(events, Mark(number + 1, size + len(torn), digest), unterminated=True)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line


def check_torn(path: Path, torn: bytes, number: int) -> Event | None:
    """The end of a file behind its last line break: a whole event, or None for a torn one or nothing.

    Raises `JournalError` if it is no end that a kill can leave, or if nothing came before it.
    """
    if len(torn) > MAX_LINE_BYTES:
        raise _too_long(path, number)
    try:
        event = check_line(path, torn, number) if torn else None
    except JournalError as fault:
        if isinstance(fault.__cause__, UnknownVersionError):
            raise
        event = None
    if event is None and number == 1:
        raise JournalError(
            f"{path} holds no session",
            "there is no whole event in it" if torn else "the file is empty",
            "Its process ended before it wrote anything; the session can be deleted.",
        )
    return event


def check_line(path: Path, line: bytes, number: int) -> Event:
    """The event of line `number`. Raises `JournalError` that names the line for anything else."""
    if len(line) > MAX_LINE_BYTES:
        raise _too_long(path, number)
    try:
        event = decode(line)
    except UnknownVersionError as fault:
        raise JournalError(
            f"{path} was written by a newer agent-tui",
            f"line {number} has {fault}",
            "Update agent-tui to open this session; nothing was changed.",
            number,
        ) from fault
    except (ValueError, RecursionError) as fault:
        if number == 1:
            raise _no_journal(path) from fault
        raise _damaged(path, number, _reason(fault)) from fault
    if number == 1 and not isinstance(event, SessionStarted):
        raise _no_journal(path)
    if event.seq != number:
        raise _damaged(path, number, f"event {number} is expected there, and it is event {event.seq}")
    return event


def _reason(fault: Exception) -> str:
    if isinstance(fault, ValidationError):
        first = fault.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{first['msg']} ({where})" if where else first["msg"]
    return str(fault) or type(fault).__name__


def _damaged(path: Path, number: int, why: str) -> JournalError:
    return JournalError(
        f"{path} is damaged in line {number}",
        why,
        f"Nothing was changed. Fork the session at event {number - 1} to go on with what comes before it, "
        "or put the file back from a backup.",
        number,
    )


def _too_long(path: Path, number: int) -> JournalError:
    return _damaged(path, number, f"it is longer than {MAX_LINE_BYTES // 2**20} MiB")


def _no_journal(path: Path) -> JournalError:
    return JournalError(
        f"{path} is not a session of agent-tui",
        "its first line is not the start of a session",
        "Name a session's folder or its events.jsonl; for other programs' files use "
        "`agent-tui sessions import`.",
        1,
    )


class Journal:
    """The one writer of a session. Made by `create` or `open_to_append`, used from one event loop.

    `error` is set while the disk takes nothing; `on_error` is called once as that begins.
    """

    def __init__(self, folder: Path, lock: SessionLock, file: AsyncFileIO, contents: JournalContents) -> None:
        self.folder = folder
        self.path = folder / JOURNAL_NAME
        self.contents = contents
        """The events that the journal held when it was opened."""
        self._lines = contents.end.seq - contents.unterminated
        self._size, self._digest = contents.end.size, contents.end.digest.copy()
        self.error: JournalError | None = None
        self.on_error: Callable[[JournalError], None] | None = None
        self._lock = lock
        self._file = file
        self._pending: deque[bytes] = deque()
        self._sync = False
        """Written lines are to be brought to the disk."""
        self._gathering: asyncio.TimerHandle | None = None
        self._drain: asyncio.Task[None] | None = None
        self._draining = True
        """The newest drain has begun: what comes now is for another one."""
        self._closed = False

    @classmethod
    async def create(cls, folder: Path) -> Journal:
        """A new, empty journal in `folder` (made if it is missing). Raises `JournalError`,
        `SessionBusyError`.
        """
        try:
            await asyncio.to_thread(make_private, folder)
        except OSError as fault:
            raise disk_error("The session's folder cannot be made", folder, fault) from fault
        lock = SessionLock.acquire(folder)
        try:
            file = await aiofiles.open(folder / JOURNAL_NAME, "xb", buffering=0, opener=private)
            await asyncio.to_thread(sync_folder, folder)
        except FileExistsError as fault:
            lock.release()
            raise JournalError(
                f"Session {folder.name} exists already",
                f"{folder / JOURNAL_NAME} is there",
                "Resume it, or start a session of another name; nothing was overwritten.",
            ) from fault
        except OSError as fault:
            lock.release()
            raise disk_error("The session's journal cannot be made", folder / JOURNAL_NAME, fault) from fault
        return cls(folder, lock, file, JournalContents())

    @classmethod
    async def open_to_append(
        cls,
        folder: Path,
        *,
        after: Mark = BEGINNING,
        take: Callable[[Event], object] | None = None,
    ) -> Journal:
        """An existing journal, locked, read as by `read_journal` and rid of a torn last line.

        Raises `SessionBusyError`, or `JournalError` for what `read_journal` refuses; nothing is altered then.
        """
        path = folder / JOURNAL_NAME
        if not path.is_file():
            raise disk_error("The session cannot be opened", path, FileNotFoundError(2, "missing"))
        lock = SessionLock.acquire(folder)
        try:
            contents = await asyncio.to_thread(read_journal, path, after=after, take=take)
            file = await aiofiles.open(path, "ab", buffering=0, opener=private)
            if contents.dropped_bytes:
                await file.truncate(contents.end.size)
            if contents.unterminated:
                await file.write(b"\n")
        except OSError as fault:
            lock.release()
            raise disk_error("The session cannot be opened for writing", path, fault) from fault
        except BaseException:
            lock.release()
            raise
        journal = cls(folder, lock, file, contents)
        if contents.unterminated:
            journal._wrote(b"\n")
        return journal

    @property
    def end(self) -> Mark:
        """The end of the journal, as it was written here."""
        return Mark(self._lines, self._size, self._digest)

    def write(self, event: Event) -> None:
        """Queue one event, in order. Never blocks, never raises for the disk; call it inside the event loop."""
        if self._closed:
            raise RuntimeError("the journal is closed")
        self._pending.append(encode(event))
        self._drain_soon()

    def sync_soon(self) -> None:
        """Bring all that was written to the disk without waiting for it; a fault is announced by `on_error`."""
        self._sync = True
        self._drain_soon()

    async def barrier(self) -> None:
        """Wait until all written lines are on the disk. Raises `JournalError` if the disk refuses."""
        self._sync = True
        await asyncio.shield(self._start_drain())
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        """Write what is left, free the lock. Raises `JournalError` when something could not be written."""
        if self._closed:
            return
        self._closed = True
        await uncancelled(self._write_and_close())  # a thread that has begun to write needs the file
        if self.error is not None:
            raise self.error

    async def _write_and_close(self) -> None:
        try:
            await self._start_drain()
            with contextlib.suppress(OSError):  # some file systems have no fsync; the lines are written
                await asyncio.to_thread(os.fsync, self._file.fileno())
        finally:
            await self._file.close()
            self._lock.release()

    def _drain_soon(self) -> None:
        if self._gathering is None and self._draining and not self._closed:
            self._gathering = asyncio.get_running_loop().call_later(GATHERED, self._start_drain)

    def _start_drain(self) -> asyncio.Task[None]:
        """A drain that writes all that waits now. Who waits for it may be cancelled; the writing must not be."""
        if self._drain is None or self._draining:
            self._draining = False
            self._drain = asyncio.get_running_loop().create_task(
                self._write_after(self._drain), name="journal"
            )
        return self._drain

    async def _write_after(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await earlier
        self._draining = True
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        sync, self._sync = self._sync, False
        left = len(self._pending)
        while True:
            chunk = b"".join(islice(self._pending, left))
            written, fault = await asyncio.to_thread(_store, self._file.fileno(), chunk, sync)
            self._wrote(chunk[:written])
            for _ in range(left if written else 0):
                self._pending.popleft()
            if fault is not None:
                self._failed(fault)
                return
            if written == len(chunk):
                break
            # The rest of a line must follow its beginning before anything else does.
            self._pending.appendleft(chunk[written:])
            left = 1
        self.error = None

    def _wrote(self, data: bytes) -> None:
        self._lines += data.count(b"\n")
        self._size += len(data)
        self._digest.update(data)

    def _failed(self, fault: OSError) -> None:
        news = self.error is None
        self.error = disk_error("The session's journal cannot be written", self.path, fault)
        if news and not self._closed and self.on_error is not None:
            self.on_error(self.error)


def _store(descriptor: int, chunk: bytes, sync: bool) -> tuple[int, OSError | None]:
    """Write and, with `sync`, bring all to the disk, in one step of one thread; how many bytes, and what went wrong."""
    written, fault = 0, None
    try:
        written = os.write(descriptor, chunk) if chunk else 0
        if sync and written == len(chunk):
            os.fsync(descriptor)
        if not os.fstat(descriptor).st_nlink:  # a deleted file takes everything and keeps nothing
            fault = OSError(errno.ESTALE, os.strerror(errno.ESTALE))
    except OSError as raised:
        fault = raised
    return written, fault


def sync_folder(folder: Path) -> None:
    """Make the new name durable, if folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
