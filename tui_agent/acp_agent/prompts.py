"""A client's prompt as a message: its blocks in the order in which they came."""

from __future__ import annotations

import base64
import binascii
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from acp import schema

from tui_agent.core.framed import framed, named
from tui_agent.disk import replace_whole
from tui_agent.store.private import make_private
from tui_agent.terminal_text import sanitize_paste

ATTACHED = "clipboard"
"""In a session's folder: images that came with a prompt."""
LONGEST_RESOURCE = 200_000
"""Characters of a file that a client sends along."""
_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}

Blocks = Sequence[
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
]


class PromptBlockError(ValueError):
    """A prompt cannot be sent; the message says why."""


class ClientMessage(NamedTuple):
    """The message, and the part of it that may name images and commands."""

    text: str
    typed: str


def message_of(blocks: Blocks, workspace: Path, folder: Path) -> ClientMessage:
    """Read a prompt, and keep its images in the session's `folder`. Writes to the disk. Raises `PromptBlockError`."""
    typed: list[str] = []
    attached: list[str] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                typed.append(sanitize_paste(block.text))
            case schema.ResourceContentBlock():
                typed.append(_link(block, workspace))
            case schema.ImageContentBlock():
                typed.append(f" {shlex.quote(str(_image(block, folder)))} ")
            case schema.EmbeddedResourceContentBlock():
                attached.append(_resource(block))
            case _:
                raise PromptBlockError("This agent takes text, files and images; sound was not announced.")
    said = "".join(typed).strip()
    text = "\n\n".join(filter(None, (said, *attached)))
    if not text:
        raise PromptBlockError("The prompt is empty; nothing was sent.")
    return ClientMessage(text, said)


def _link(block: schema.ResourceContentBlock, workspace: Path) -> str:
    """A file of the workspace by its path, as the operator would name it; anything else by its address."""
    parts = urlsplit(block.uri)
    if parts.scheme != "file":
        return f" {named(block.uri)} "
    path = Path(unquote(parts.path))
    try:
        return f" @{path.relative_to(workspace)} "
    except ValueError:
        return f" {shlex.quote(str(path))} "


def _resource(block: schema.EmbeddedResourceContentBlock) -> str:
    resource = block.resource
    if isinstance(resource, schema.TextResourceContents):
        return f"Contents of {named(resource.uri)}:{framed(resource.text, LONGEST_RESOURCE)}"
    return f"{named(resource.uri)} is attached, and its contents are no text."


def _image(block: schema.ImageContentBlock, folder: Path) -> Path:
    suffix = _SUFFIXES.get(block.mime_type)
    if suffix is None:
        raise PromptBlockError(f"An image is PNG, JPEG, GIF or WebP, not {named(block.mime_type)}.")
    try:
        data = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PromptBlockError(f"The image is no base64: {error}.") from error
    kept = folder / ATTACHED
    make_private(kept)
    file = kept / f"image-{sum(1 for _ in kept.iterdir()) + 1}{suffix}"
    replace_whole(file, data)
    return file
