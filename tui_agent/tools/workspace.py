"""Which file a path of the model's names, and whether it may be touched.

Every file that a tool opens, replaces or lists goes through here. That keeps the file tools inside the
workspace; they are no sandbox for commands, which the operator approves. Nothing here decides what a tool
says.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tui_agent import untrusted_files
from tui_agent.permissions.rules import GUARDED
from tui_agent.terminal_text import escaped_line
from tui_agent.tools.errors import ToolError

_TRANSIENT = frozenset({
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    errno.ESTALE, errno.EAGAIN,
})  # fmt: skip
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WallError(ToolError):
    """A path that is refused; the message says why."""


_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LONGEST_SHOWN = 240
_LONGEST_PATH = 4_096
"""Bytes with the NUL at the end: Linux' PATH_MAX."""


def quoted(name: str) -> str:
    """A path or name as error messages show it: exact between quotation marks, cut in the middle when very
    long.
    """
    text = escaped_line(name)
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[:150]}[... {len(text) - 220} characters ...]{text[-70:]}"
    return f"'{text}'"


def either(names: Iterable[str]) -> str:
    """`'a', 'b' or 'c'`."""
    items = [quoted(name) for name in names]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}" if items else ""


def os_failure(error: OSError, doing: str) -> ToolError:
    """The tool's failure for an error of the system; `doing` is "read 'a.txt'". A full or broken disk is
    transient.
    """
    reason = os.strerror(error.errno) if error.errno else str(error)
    advice = {
        errno.ENOSPC: " The disk is full: this is not the call's fault; space must be made first.",
        errno.EROFS: " The file system is read-only.",
        errno.EACCES: " The permissions do not allow it.",
        errno.EPERM: " The permissions do not allow it.",
        errno.EISDIR: " It is a directory: name a file in it, or use list_dir.",
        errno.ENOTDIR: " A part of the path is a file, not a directory.",
        errno.ENAMETOOLONG: " Choose a shorter name.",
        errno.ENXIO: " It is a socket or a device, not a file.",
        errno.ELOOP: " A part of the path is a symbolic link that changed or goes round in a circle.",
    }.get(error.errno or 0, "")
    return ToolError(f"Could not {doing}: {reason}.{advice}", transient=error.errno in _TRANSIENT)


def is_directory(path: Path) -> bool:
    """True if there is a directory; False for places that may not be looked at and for names that no file
    system takes.
    """
    with suppress(OSError, ValueError):
        return path.is_dir()
    return False


class Workspace:
    """The directory in which the file tools live.

    A path is taken relative to `root`. An absolute path is accepted when it is inside. The end of a path
    counts, after every `..` and symbolic link is followed: inside is allowed, anywhere else is refused.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def resolve(self, path: str, also: Path | None = None) -> Path:
        """The real path that `path` names, existing or not; links followed. `also` is a second root, for
        reading.

        Raises `WallError`: empty, NUL, unencodable, a home shorthand, or leads out of the workspace.
        """
        if not path:
            raise WallError(
                "The path is empty. Give a path relative to the workspace, or '.' for the workspace itself."
            )
        if "\0" in path:
            raise WallError(f"The path {quoted(path)} holds a NUL character, which no file name can.")
        if path == "~" or path.startswith("~/"):
            raise WallError(f"{quoted(path)} is in the home directory, outside the workspace. {_ADVICE}")
        try:
            real = os.path.realpath(self._joined(path))
            again = os.path.realpath(real)
            length = len(os.fsencode(real))
        except (OSError, ValueError) as error:
            raise WallError(f"The path {quoted(path)} is not one the system can hold: {error}.") from None
        if length >= _LONGEST_PATH:
            raise WallError(
                f"The path {quoted(path)} is longer than the {_LONGEST_PATH - 1:,} bytes that a path can have."
            )
        if again != real:
            # With links that go round, `realpath` gives up half-way and later links would stay unresolved.
            raise WallError(f"{quoted(path)} goes through symbolic links that go round in a circle.")
        resolved = Path(real)
        if resolved.is_relative_to(self.root) or (also is not None and resolved.is_relative_to(_real(also))):
            return resolved
        raise WallError(f"{quoted(path)} leads out of the workspace{self._how(path)}. {self._inside(path)}")

    def resolve_for_writing(self, path: str) -> Path:
        """Like `resolve`, and not a guarded file. Raises `WallError`."""
        resolved = self.resolve(path)
        parts = resolved.relative_to(self.root).parts
        if not parts:
            raise WallError(f"{quoted(path)} is the workspace itself, a directory. Name a file in it.")
        if any(_as_file_systems_may(part) in GUARDED for part in parts):
            raise WallError(
                f"{quoted(path)} is not written by this tool, because it holds settings that run commands. "
                "Use git through bash for git's own files; ask the operator to change agent-tui's."
            )
        return resolved

    def named(self, path: Path) -> str:
        """`path` as it is recorded: relative with `/`, absolute outside; `shown` if its bytes are not UTF-8."""
        inside = path.is_relative_to(self.root)
        name = path.relative_to(self.root).as_posix() if inside else path.as_posix()
        return escaped_line(name) if _SURROGATE.search(name) else name

    def shown(self, path: Path) -> str:
        """The same as the model should name it: on one line."""
        return escaped_line(self.named(path))

    def open(self, path: Path) -> BinaryIO:
        """Open a resolved path for reading, if it is a regular file.

        No link is followed any more, so a link put there since is refused. Raises `WallError`, `OSError`.
        """
        root = self.root if path.is_relative_to(self.root) else path.parent
        descriptor = untrusted_files.descriptor_beneath(root, path)
        try:
            self.only_regular(os.fstat(descriptor).st_mode, path)
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def status(self, path: Path) -> os.stat_result:
        """The file at a resolved path, reached without following any link. Raises `OSError`."""
        with self._parent(path) as (directory, name):
            return os.stat(name, dir_fd=directory, follow_symlinks=False)

    @contextmanager
    def scan(self, path: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of a resolved directory, opened without following any link. Raises `OSError`."""
        with self._parent(path) as (parent, name):
            descriptor = os.open(
                name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
            )
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            os.close(descriptor)

    def replace(self, path: Path, data: bytes) -> None:
        """Put `data` in the place of a resolved path, whole or not at all; parents are made, the mode is
        kept.

        Raises `WallError` for what is not a regular file, `OSError` for the rest.
        """
        with self._parent(path, create=True) as (directory, name):
            previous = _status(name, directory)
            if previous is not None:
                self.only_regular(previous.st_mode, path)
                if not os.access(name, os.W_OK, dir_fd=directory):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            temporary = f".agent-tui-{secrets.token_hex(6)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=directory)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    if previous is not None:
                        with suppress(PermissionError):
                            os.fchown(descriptor, previous.st_uid, previous.st_gid)
                        os.fchmod(descriptor, stat.S_IMODE(previous.st_mode))
                    os.fsync(descriptor)
                os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=directory)
                raise

    def remove(self, path: Path) -> None:
        """Take away what stands at a resolved path, reached without following any link; what is not there is no error.

        Raises `OSError`.
        """
        with suppress(FileNotFoundError), self._parent(path) as (directory, name):
            os.unlink(name, dir_fd=directory)

    @contextmanager
    def _parent(self, path: Path, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """A descriptor of the directory of a resolved path, reached step by step without following any
        link.
        """
        inside = path.is_relative_to(self.root)
        base = self.root if inside else path.parent
        parts = path.relative_to(base).parts
        descriptor = os.open(base, _DIRECTORY)
        try:
            for part in parts[:-1]:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                deeper = os.open(part, _DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor, parts[-1] if parts else "."
        finally:
            os.close(descriptor)

    def only_regular(self, mode: int, path: Path) -> None:
        """Raises `WallError` for a special file, which could block its reader; `OSError` for a directory."""
        if stat.S_ISREG(mode):
            return
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        kind = untrusted_files.KINDS.get(stat.S_IFMT(mode), "a special file")
        raise WallError(
            f"{quoted(self.shown(path))} is {kind}, not a file. Only regular files are read and written."
        )

    def _joined(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.root}/{path}"

    def _how(self, path: str) -> str:
        """How a refused path leads out, for the message."""
        lexical = os.path.normpath(self._joined(path))
        if Path(lexical).is_relative_to(self.root):
            return " through a symbolic link"
        return " (an absolute path)" if path.startswith("/") else " (by '..')"

    def _inside(self, path: str) -> str:
        """Advice on a path that leads out: the file inside that it probably means, if one exists."""
        parts = [part for part in path.split("/") if part not in ("", ".", "..")][-_TRIED_PARTS:]
        for first in range(len(parts)):
            candidate = self.root.joinpath(*parts[first:])
            with suppress(OSError, ValueError):
                if candidate.exists() and Path(os.path.realpath(candidate)).is_relative_to(self.root):
                    return f"Did you mean {quoted('/'.join(parts[first:]))}, inside it?"
        return _ADVICE


_TRIED_PARTS = 20
_ADVICE = "The file tools reach only what is inside the workspace: give a path relative to it."


_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that HFS+ leaves out when it compares names."""


def _as_file_systems_may(name: str) -> str:
    """A name as file systems see it that know no letter case, or leave characters out."""
    return _IGNORED.sub("", name).casefold().rstrip(". ")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _status(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
