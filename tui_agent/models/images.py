"""Images of the operator's messages as the parts of a request: read from their copies when the call goes out.

The history names them beside the message (key `images`, each with the `path` of its copy); no server sees that key.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from typing import Any

_REFUSED = re.compile(
    r"(image|vision|multi-?modal|mmproj).{0,120}"
    r"(not supported|n.t support|unsupported|not enabled|only supported|not allowed|unknown variant)"
    r"|(not support|unsupported|not a|no endpoints|only supports? text|unknown variant|invalid content type)"
    r".{0,120}(image|vision|multi-?modal|mmproj)"
    r"|content(\W|_)+must be a string|expected a string",
    re.IGNORECASE | re.DOTALL,
)


def refuses_images(message: str) -> bool:
    """True if a server's error says that its model takes no images at all (and not that one of them is no
    good).
    """
    return _REFUSED.search(message) is not None


def with_images(message: dict[str, Any], *, seen: bool) -> dict[str, Any]:
    """The message as a provider takes it: its text and its images as parts, or their names if the model does
    not see them (`seen`).
    """
    if "images" not in message:
        return message
    images = message["images"]
    plain = {key: value for key, value in message.items() if key != "images"}
    parts: list[dict[str, Any]] = []
    text = str(message.get("content") or "")
    for image in images:
        url = _data_url(image) if seen else None
        if url is None:
            why = "its copy is gone" if seen else "this model cannot see images"
            text += f"\n[The image {image['name']} is not here: {why}.]"
        else:
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return {**plain, "content": [{"type": "text", "text": text}, *parts] if parts else text}


def _data_url(image: dict[str, Any]) -> str | None:
    """The copy as a data URL; None if it is not there any more, or is another."""
    try:
        descriptor = os.open(image["path"], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(image["size"] + 1)
    except (OSError, KeyError):
        return None
    if hashlib.sha256(data).hexdigest() != image["sha256"]:
        return None
    return f"data:{image['media']};base64,{base64.b64encode(data).decode()}"
