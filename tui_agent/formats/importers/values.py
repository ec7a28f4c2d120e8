"""Values of records read safely: these functions return the type that was asked for, or nothing.

Every format's module reads its records through here, so that a wrong type anywhere in a file never raises.
Text keeps its control characters, which are made safe when they are shown; only invalid Unicode is replaced.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

MAX_DEPTH = 48
"""Nesting of a tool's input that is kept; deeper parts are replaced (journals and screens recurse)."""

_LATEST = 32_503_680_000.0
"""The year 3000; later times are taken as milliseconds, or as nonsense."""


def clean(text: str) -> str:
    """`text` with lone surrogates replaced, so that it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def text_at(record: Any, *path: str) -> str:
    """The string at `path`, "" for anything else."""
    value = value_at(record, *path)
    return clean(value) if isinstance(value, str) else ""


def value_at(record: Any, *path: str) -> Any:
    """The value at `path` through nested objects; None if a part of the path is missing."""
    for key in path:
        if not isinstance(record, dict):
            return None
        record = record.get(key)
    return record


def object_at(record: Any, *path: str) -> dict[str, Any]:
    """The object at `path`, {} for anything else."""
    value = value_at(record, *path)
    return value if isinstance(value, dict) else {}


def list_at(record: Any, *path: str) -> list[Any]:
    """The list at `path`, [] for anything else."""
    value = value_at(record, *path)
    return value if isinstance(value, list) else []


def objects_at(record: Any, *path: str) -> list[dict[str, Any]]:
    """The objects in the list at `path`."""
    return [item for item in list_at(record, *path) if isinstance(item, dict)]


def number_at(record: Any, *path: str) -> float | None:
    """The finite number at `path`, None for anything else (booleans too)."""
    value = value_at(record, *path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def count_at(record: Any, *path: str) -> int | None:
    """The non-negative whole number at `path`, None for anything else or for an absurd one."""
    number = number_at(record, *path)
    return int(number) if number is not None and 0 <= number < 2**53 else None


def code_at(record: Any, *path: str) -> int | None:
    """The exit code at `path`; below 0 for a command that a signal ended."""
    number = number_at(record, *path)
    return int(number) if number is not None and abs(number) < 2**53 else None


def time_at(record: Any, *path: str) -> float | None:
    """The time at `path` in seconds since the epoch: ISO 8601 text (UTC if no zone is named) or a number."""
    value = value_at(record, *path)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            stamp = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
        return stamp if 0 <= stamp < _LATEST else None
    number = number_at(record, *path)
    if number is None or number < 0:
        return None
    if number >= _LATEST:
        number /= 1_000
    return number if number < _LATEST else None


def content_text(content: Any) -> str:
    """The text of a message's content: a string, content parts of any dialect, or JSON for anything else."""
    if isinstance(content, str):
        return clean(content)
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(part for part in map(_part_text, content) if part)
    if isinstance(content, dict):
        if isinstance(content.get("text"), str):
            return clean(content["text"])
        if isinstance(content.get("content"), str | list):
            return content_text(content["content"])
    return json_text(content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return clean(part)
    if isinstance(text := value_at(part, "text"), str):
        return clean(text)
    if isinstance(kind := value_at(part, "type"), str):
        return f"[{clean(kind[:40])}]"
    return json_text(part)


def joined(before: str, text: str) -> str:
    """Two parts of one message as paragraphs; a part may be empty."""
    return f"{before}\n\n{text}" if before and text else before or text


_encode = json.JSONEncoder(ensure_ascii=False).encode


def json_text(value: Any) -> str:
    """`value` as compact JSON; "" if it is nested too deeply to be written."""
    try:
        return clean(_encode(plain(value)))
    except (RecursionError, ValueError, TypeError):
        return ""


def plain(value: Any, depth: int = MAX_DEPTH) -> Any:
    """`value` as JSON for our events: valid Unicode, finite numbers, bounded nesting, string keys."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value) if value.bit_length() < 4_000 else "…"
    if depth == 0:
        return "… nested too deeply to be kept"
    if isinstance(value, dict):
        return {clean(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item, depth - 1) for item in value]
    return clean(str(value))


def parsed(text: str | bytes) -> Any:
    """The JSON value of a text, a line or a file; None for anything that is not one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_arguments(raw: str) -> dict[str, Any] | None:
    """A call's raw arguments as an object; None if they are not one. An empty text is an empty object."""
    value = parsed(raw) if raw.strip() else {}
    return plain(value) if isinstance(value, dict) else None


def equal_ones(before: Iterable[Any], after: Iterable[Any]) -> int:
    """How many of the first are the same."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
