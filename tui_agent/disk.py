"""Paths as people write them, and files that are replaced whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def with_home(text: str) -> str:
    """The text with the home folder in the place of `~` or `~name`; a name that nobody has stays as it is written."""
    return os.path.expanduser(text)  # noqa: PTH111 - that of pathlib raises for such a name, and tidies the text up


def user_path(text: str | Path) -> Path:
    """The path, with `~` and `~name` for home folders; a name that nobody has stays as it is written."""
    with suppress(ValueError):  # a name with NUL or half a character
        return Path(with_home(str(text)))
    return Path(text)


def replace_whole(path: Path, content: str | bytes, *, mode: int = 0o600) -> None:
    """Put `content` into the place of the file at `path`, on the disk: all of it, or what was there stays.

    A new file has `mode` (less the umask), one that is there keeps its own. Half characters become question marks.
    Raises `OSError`; nothing is left beside the file then.
    """
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    try:
        beside.unlink(missing_ok=True)  # one that was left behind, or a pipe that would be waited for
        with open(
            beside, "xb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, mode)
        ) as file:
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
