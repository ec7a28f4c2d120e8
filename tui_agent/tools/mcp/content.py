"""Replies of a server as text: results of tools, resources, and the messages of prompts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

MOST_BLOCKS = 1_000


def result_text(result: Any) -> str:
    """The content of a `CallToolResult`: its texts, a note for each thing that is none, else its structured content."""
    text = joined(result.content)
    structured = result.structured_content
    if structured is not None and not any(block.type == "text" for block in result.content):
        text = f"{text}\n{json.dumps(structured, ensure_ascii=False, indent=1, default=str)}".lstrip("\n")
    return text


def joined(blocks: Iterable[Any]) -> str:
    """Blocks of content as one text."""
    blocks = list(blocks)
    lines = [block_text(block) for block in blocks[:MOST_BLOCKS]]
    if len(blocks) > MOST_BLOCKS:
        lines.append(f"[{len(blocks) - MOST_BLOCKS:,} more pieces are left out]")
    return "\n".join(lines)


def block_text(block: Any) -> str:
    """One block. Pictures, sound and binary data become a note with their kind and size."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_size(block.data)}: not shown]"
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.name} at {block.uri}{about}]"
        case "resource":
            return resource_text(block.resource)
        case kind:
            return f"[{kind}: not shown]"


def resource_text(resource: Any) -> str:
    """The contents of a resource."""
    text = getattr(resource, "text", None)
    if text is not None:
        return str(text)
    kind = resource.mime_type or "binary data"
    return f"[{resource.uri}: {kind}, {_size(getattr(resource, 'blob', ''))}: not shown]"


def prompt_text(messages: Iterable[Any]) -> str:
    """The messages of a prompt as one text; what the assistant is to have said is marked."""
    parts = []
    for message in messages:
        text = block_text(message.content)
        parts.append(text if message.role == "user" else f"[assistant] {text}")
    return "\n\n".join(parts)


def _size(base64: str) -> str:
    count = len(base64) * 3 // 4
    return f"{count:,} bytes" if count < 10_000 else f"{count // 1000:,} kB"
