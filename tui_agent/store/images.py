"""Images that the operator names in a message: found in its text, checked, and copied into the session's folder.

A message names one by `@path` in the workspace, or by a path that begins with `/`, `~/`, `./`, `../` or `file://`, as
terminals paste them. What is sent is the copy, also after a resume, and whatever becomes of the file.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import imagesize

from tui_agent import untrusted_files
from tui_agent.core.events import Image
from tui_agent.disk import replace_whole, user_path
from tui_agent.store.errors import SessionError, disk_error
from tui_agent.store.private import make_private

IMAGES_FOLDER = "images"
LARGEST = 3_900_000
"""Bytes: 5 MB in base64, which every provider takes."""
WIDEST = 8_000
"""Pixels a side."""
MOST = 10
"""Images in a message."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MEDIA = {
    b"\x89PNG\r\n\x1a\n": ("image/png", ".png"),
    b"\xff\xd8\xff": ("image/jpeg", ".jpg"),
    b"GIF87a": ("image/gif", ".gif"),
    b"GIF89a": ("image/gif", ".gif"),
}
_COPY = re.compile(r"[0-9a-f]{16}\.(png|jpg|gif|webp)")
_WORD = re.compile(r"""(?<!\S)(@?)(?:"([^"\n]+)"|'([^'\n]+)'|((?:\\.|[^\s\\])+))""")
_BEGINS = ("/", "~/", "./", "../", "file://")


def may_name_images(text: str) -> bool:
    """True if it holds the name of a kind of image at all; only the disk knows if such a file is there."""
    return any(suffix in text.lower() for suffix in SUFFIXES)


def names_images(text: str, workspace: Path) -> bool:
    """True if it names an image that is there. Reads the disk."""
    return next(_named(text, workspace), None) is not None


def keep_images(text: str, workspace: Path, folder: Path) -> tuple[Image, ...]:
    """The images that `text` names, each copied into `folder` once. Raises `SessionError` for one that is no good."""
    named = dict(_named(text, workspace))
    if len(named) > MOST:
        raise SessionError(
            "The message was not sent", f"it names {len(named)} images; {MOST} go at most", "Name fewer."
        )
    return tuple(_kept(name, path, folder) for name, path in named.items())


def _named(text: str, workspace: Path) -> Iterator[tuple[str, Path]]:
    """Image files that are there: their names in the text, and their paths."""
    for at, double, single, plain in _WORD.findall(text):
        word = double or single or re.sub(r"\\(.)", r"\1", plain)
        if not word.lower().endswith(SUFFIXES):
            word = word.rstrip(".,;:!?)]}")
        if not word.lower().endswith(SUFFIXES) or not (at or word.startswith(_BEGINS)):
            continue
        place = unquote(urlsplit(word).path) if word.startswith("file://") else word
        try:
            path = workspace / user_path(place)
            there = path.is_file()
        except (OSError, ValueError, RuntimeError):
            continue
        if there:
            yield word, path


def _kept(name: str, path: Path, folder: Path) -> Image:
    def refused(why: str, todo: str) -> SessionError:
        return SessionError(f"The image {name} was not sent", why, todo)

    try:
        data = untrusted_files.head(path, LARGEST + 1)
    except OSError as fault:
        raise refused(
            f"it cannot be read ({fault.strerror})", "Nothing else of the message was sent."
        ) from fault
    if len(data) > LARGEST:
        size = path.stat().st_size / 1e6
        raise refused(f"it has {size:.1f} MB; {LARGEST / 1e6:.1f} MB go at most", "Make it smaller.")
    known = next((known for begin, known in _MEDIA.items() if data.startswith(begin)), None)
    if known is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        known = ("image/webp", ".webp")
    width, height = _pixels(data) if known is not None else (0, 0)
    if known is None or width <= 0 or height <= 0:
        raise refused("it is no PNG, JPEG, GIF or WebP image", "Name it without @ to speak about the file.")
    if max(width, height) > WIDEST:
        raise refused(f"it has {width}×{height} pixels; {WIDEST} a side go at most", "Make it smaller.")
    digest = hashlib.sha256(data).hexdigest()
    copy = folder / f"{digest[:16]}{known[1]}"
    try:
        if not copy.is_file():
            make_private(folder)
            replace_whole(copy, data)
    except OSError as fault:
        raise disk_error(f"The image {name} cannot be kept", folder, fault) from fault
    return Image(
        name=name,
        file=copy.name,
        sha256=digest,
        media=known[0],
        width=width,
        height=height,
        size=len(data),
    )


def _pixels(data: bytes) -> tuple[int, int]:
    """Width and height in pixels; (-1, -1) if the data does not say."""
    try:
        width, height = imagesize.get(io.BytesIO(data))
    except (ValueError, OSError, IndexError, KeyError, OverflowError):
        return -1, -1
    return int(width), int(height)


def share_images(parent: Path, fork: Path) -> None:
    """Link the copies of a session into its fork, or copy them if links cannot be made. Raises `OSError`."""
    folder = parent / IMAGES_FOLDER
    if folder.is_symlink() or not folder.is_dir():
        return
    for file in folder.iterdir():
        if _COPY.fullmatch(file.name) and file.is_file() and not file.is_symlink():
            make_private(fork / IMAGES_FOLDER)
            try:
                os.link(file, fork / IMAGES_FOLDER / file.name, follow_symlinks=False)
            except OSError:
                shutil.copyfile(file, fork / IMAGES_FOLDER / file.name, follow_symlinks=False)
