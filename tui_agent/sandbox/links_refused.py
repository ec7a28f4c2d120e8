"""Reading and replacing files below a folder that others change meanwhile: no link below it is ever followed.

What a sandboxed command may have put there is looked at from outside, with all rights of the user. A link that takes
the place of a folder in between must not lead this program elsewhere.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LARGEST = 1_000_000
"""Bytes of a file that are read."""
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class FileState:
    """The thing under a name: a file with its bytes, a link with its target, nothing, or something else."""

    kind: Literal["nothing", "file", "link", "other"] = "nothing"
    content: bytes = b""
    mode: int = 0
    whole: bool = True
    """True if all of a file was read; else the size counts as its content."""


NOTHING = FileState()


@contextmanager
def _parent(root: Path, path: Path) -> Iterator[tuple[int, str]]:
    """The folder that holds `path`, open, and the name in it. Raises `OSError`, also for a link on the way."""
    *folders, name = path.relative_to(root).parts
    folder = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in folders:
            within = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = within
        yield folder, name
    finally:
        os.close(folder)


def form_of(root: Path, path: Path) -> FileState:
    """The thing under this name now."""
    try:
        with _parent(root, path) as (folder, name):
            status = os.lstat(name, dir_fd=folder)
            if stat.S_ISLNK(status.st_mode):
                return FileState("link", os.fsencode(os.readlink(name, dir_fd=folder)))
            if not stat.S_ISREG(status.st_mode):
                return FileState("other", mode=stat.S_IFMT(status.st_mode))
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
                opened = os.fstat(file.fileno())
                content = file.read(LARGEST + 1)
            mode = stat.S_IMODE(opened.st_mode)
            if len(content) > LARGEST:
                return FileState("file", f"{opened.st_size} {opened.st_mtime_ns}".encode(), mode, whole=False)
            return FileState("file", content, mode)
    except FileNotFoundError:
        return NOTHING
    except OSError:
        return FileState("other")


def put(root: Path, path: Path, form: FileState) -> None:
    """Make a file or a link stand there, or nothing. A folder is left alone. Raises `OSError`, also if not
    all of the file was read.
    """
    if not form.whole:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    with _parent(root, path) as (folder, name):
        if form.kind not in {"file", "link"}:
            with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                os.unlink(name, dir_fd=folder)
            return
        new = f".{secrets.token_hex(8)}"
        if form.kind == "link":
            os.symlink(os.fsdecode(form.content), new, dir_fd=folder)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(new, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(form.content)
                os.fchmod(file.fileno(), form.mode or 0o644)
        try:
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with suppress(OSError):
                os.unlink(new, dir_fd=folder)
            raise


def move(root: Path, path: Path, to: Path) -> None:
    """Rename below a root what stands under a name, to one under which nothing stands. Raises `OSError`."""
    with _parent(root, path) as (folder, name), _parent(root, to) as (other, new):
        try:
            os.lstat(new, dir_fd=other)
        except FileNotFoundError:
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=other)
        else:
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
