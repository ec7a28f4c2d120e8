"""Files that others write, read so that none of them holds us up: the one way in for whoever reads such a file.

Sessions and settings of other agents, what a checkout brings, an image that a message names: whoever wrote them may put
a named pipe, a device, a link or ten gigabytes in the place of a file. Here such a thing is told by its descriptor and
refused; what is read has a bound in bytes and in time, and no link is followed out of the folder that is looked in.
Files that we keep ourselves are opened in other ways (`store/private.py`).
"""

from __future__ import annotations

import errno
import io
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BUFFER = 1 << 18
_READING = 20.0
"""Seconds that reads of one file may wait for its file system in all."""
_ENTRIES = 200_000
"""Names that one search looks at."""
_SEARCHING = 5.0
"""Seconds for one search."""
_DEEPEST = 16
_LARGEST_DATABASE = 4 << 30
_LARGEST_VALUE = 64 << 20
"""Bytes of a value in a database, and of a row."""
_ASKING = 10.0
"""Seconds for the questions to a database that is opened once."""
_LOCKED = 1.0
"""Seconds for its writer to let us read."""
_STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock."""

KINDS: Mapping[int, str] = MappingProxyType(
    {
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFLNK: "a symbolic link",
    }
)
"""Names of things that are no file, by their kind."""


class UnusableFileError(OSError):
    """The path holds no file that may be read; `strerror` says why."""


def opened(path: Path, within: Path | None = None, *, own: bool = False) -> io.BufferedReader:
    """A regular file, up to the size that it has now. Nothing waits for a writer, and nothing is made.

    `within`: the folder that no link may lead out of; None: somebody named the file, and its links are followed. `own`:
    it has to be this user's, root's, or of the owner of `within`. Raises `OSError`.
    """
    descriptor = _descriptor(path, within)
    try:
        state = os.fstat(descriptor)
        _require_file(state, _owners(within) if own else None)
        return io.BufferedReader(_Snapshot(descriptor, state.st_size), _BUFFER)
    except BaseException:
        os.close(descriptor)
        raise


def content(path: Path, limit: int, within: Path | None = None, *, own: bool = False) -> bytes:
    """The whole file. Raises as `opened`, and `UnusableFileError` if it has more than `limit` bytes."""
    with opened(path, within, own=own) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise UnusableFileError(errno.EFBIG, f"it is larger than {limit:,} bytes")
    return data


def head(path: Path, size: int, within: Path | None = None) -> bytes:
    """The first `size` bytes. Raises as `opened`."""
    with opened(path, within) as file:
        return file.read(size)


def tail(path: Path, size: int, within: Path | None = None) -> bytes:
    """The last `size` bytes. Raises as `opened`."""
    with opened(path, within) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        return file.read(size)


def is_file(path: Path, within: Path | None = None) -> bool:
    """True if a regular file is there that `opened` would not refuse for its kind or its place."""
    with suppress(OSError, ValueError):
        return stat.S_ISREG(path.stat().st_mode) and (within is None or _inside(path, within) is not None)
    return False


def is_folder(path: Path, within: Path | None = None) -> bool:
    """True if a folder is there, in `within` if that is given."""
    with suppress(OSError, ValueError):
        return stat.S_ISDIR(path.stat().st_mode) and (within is None or _inside(path, within) is not None)
    return False


def descriptor_beneath(root: Path, path: Path) -> int:
    """A descriptor of what stands at `path`, reached from `root` step by step without following any link; both are
    real paths. Raises `OSError`.
    """
    parts = path.relative_to(root).parts
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        return os.open(parts[-1] if parts else ".", _FILE | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def _descriptor(path: Path, within: Path | None) -> int:
    try:
        if within is None:
            _require_file(path.stat())  # so that no device is opened, and no writer of a pipe is woken
            return os.open(path, _FILE)
        real = _inside(path, within)
        if real is None:
            raise UnusableFileError(errno.EXDEV, "it is a link that leads out of its folder")
        _require_file(real.lstat())
        return descriptor_beneath(Path(os.path.realpath(within)), real)
    except ValueError as error:  # a name with NUL or half a character
        raise UnusableFileError(errno.EINVAL, str(error)) from error


def _inside(path: Path, within: Path) -> Path | None:
    """The real path, if it is in the folder."""
    real = Path(os.path.realpath(path))
    return real if real.is_relative_to(os.path.realpath(within)) else None


def _require_file(state: os.stat_result, owners: set[int] | None = None) -> None:
    """Raises `IsADirectoryError`, and `UnusableFileError` for what is neither file nor folder, or somebody else's."""
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(state.st_mode):
        kind = KINDS.get(stat.S_IFMT(state.st_mode), "a special file")
        raise UnusableFileError(errno.EINVAL, f"it is {kind}, not a file")
    if owners is not None and state.st_uid not in owners:
        raise UnusableFileError(errno.EACCES, "it belongs to another user")


def _owners(within: Path | None) -> set[int]:
    owners = {0, os.geteuid()}
    if within is not None:
        with suppress(OSError):
            owners.add(within.stat().st_uid)
    return owners


class _Snapshot(io.FileIO):
    """A file up to the size that it had: files of /proc that never end have none."""

    def __init__(self, descriptor: int, size: int) -> None:
        super().__init__(descriptor, "rb")
        self._size = size
        self._left = _READING

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        room = min(len(buffer), self._size - self.tell())
        if room <= 0:
            return 0
        begun = time.monotonic()
        count = super().readinto(memoryview(buffer)[:room]) or 0
        self._left -= time.monotonic() - begun
        if self._left < 0:
            raise UnusableFileError(errno.ETIMEDOUT, "its file system is too slow")
        return count

    def readall(self) -> bytes:
        pieces = bytearray()
        piece = bytearray(_BUFFER)
        while count := self.readinto(piece):
            pieces += piece[:count]
        return bytes(pieces)

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            position, whence = self._size + position, os.SEEK_SET
        return super().seek(position, whence)


# --- searches ---------------------------------------------------------------------------------------------------------


def found(root: Path, pattern: str, *, folders: bool = False, own: bool = False) -> Iterator[Path]:
    """Files below `root` (or `folders`), by a pattern whose parts are names with `*`, or `**` for folders at any depth.

    A link is followed if it stays in `root`, and a folder is entered once, so that a circle ends. If a tree
    is too large or a file system too slow, the rest is left out. `own`: as for `opened`.
    """
    search = _Search(root, _owners(root) if own else None)
    yield from search.below(root, tuple(pattern.split("/")), folders, 0)


class _Search:
    """One search, with its bounds."""

    def __init__(self, root: Path, owners: set[int] | None) -> None:
        self._root = Path(os.path.realpath(root))
        self._owners = owners
        self._left = _ENTRIES
        self._ends = time.monotonic() + _SEARCHING
        self._entered: set[tuple[int, int, tuple[str, ...]]] = set()

    def below(self, folder: Path, parts: tuple[str, ...], folders: bool, depth: int) -> Iterator[Path]:
        """The files in one folder and below it."""
        first, rest = parts[0], parts[1:]
        entries = self._entries(folder, parts) if depth <= _DEEPEST else []
        if first == "**":
            if rest:
                yield from self._matching(folder, entries, rest, folders, depth)
            deeper = parts
        else:
            yield from self._matching(folder, entries, parts, folders, depth)
            return
        for name in entries:
            if self._is(folder / name, folder=True):
                yield from self.below(folder / name, deeper, folders, depth + 1)

    def _matching(
        self, folder: Path, entries: list[str], parts: tuple[str, ...], folders: bool, depth: int
    ) -> Iterator[Path]:
        first, rest = parts[0], parts[1:]
        for name in entries:
            if not fnmatchcase(name, first) or (name.startswith(".") and not first.startswith(".")):
                continue
            path = folder / name
            if not rest:
                if self._is(path, folder=folders):
                    yield path
            elif self._is(path, folder=True):
                yield from self.below(path, rest, folders, depth + 1)

    def _entries(self, folder: Path, parts: tuple[str, ...]) -> list[str]:
        """The names in a folder, the last first: names mostly tell when they were made. None if it was
        entered already, or the search has used up its bounds.
        """
        names: list[str] = []
        with suppress(OSError):
            state = folder.stat()
            if (mark := (state.st_dev, state.st_ino, parts)) in self._entered:
                return []
            self._entered.add(mark)
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0 or time.monotonic() > self._ends:
                        break
                    names.append(entry.name)
        return sorted(names, reverse=True)

    def _is(self, path: Path, *, folder: bool) -> bool:
        if time.monotonic() > self._ends:
            return False
        with suppress(OSError, ValueError):
            state = path.lstat()
            if stat.S_ISLNK(state.st_mode):
                if not Path(os.path.realpath(path)).is_relative_to(self._root):
                    return False
                state = path.stat()
            right = stat.S_ISDIR(state.st_mode) if folder else stat.S_ISREG(state.st_mode)
            return right and (self._owners is None or state.st_uid in self._owners)
        return False


# --- databases --------------------------------------------------------------------------------------------------------


@contextmanager
def database(path: Path, within: Path | None = None) -> Iterator[sqlite3.Connection]:
    """An SQLite database that somebody else writes, for reading alone: it is not made, and nothing in it can run for
    longer than its time, read another file, or give a value that fills the memory.

    Raises `OSError` if it is no file, and `sqlite3.Error`.
    """
    import sqlite3

    with opened(path, within) as file:
        if file.seek(0, os.SEEK_END) > _LARGEST_DATABASE:
            raise UnusableFileError(errno.EFBIG, f"it is larger than {_LARGEST_DATABASE:,} bytes")
    for beside in (
        "-wal",
        "-shm",
        "-journal",
    ):  # SQLite opens these too, and would wait for a writer of a pipe
        with suppress(FileNotFoundError), opened(path.with_name(path.name + beside), within):
            pass
    uri = f"{Path(os.path.realpath(path)).as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=_LOCKED, check_same_thread=False)
    try:
        ends = time.monotonic() + _ASKING
        connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
            connection.execute(f"PRAGMA {pragma}").close()
        reads = {
            sqlite3.SQLITE_SELECT,
            sqlite3.SQLITE_READ,
            sqlite3.SQLITE_FUNCTION,
            sqlite3.SQLITE_RECURSIVE,
        }
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in reads else sqlite3.SQLITE_DENY
        )
        yield connection
    finally:
        connection.close()
