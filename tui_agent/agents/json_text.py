"""Small changes to a JSON file that somebody else keeps: what is not changed stays as it is written, comments too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\]}/]+")
_DEEPEST = 200


class JsonTextError(ValueError):
    """The text is no JSON (with comments), or not of the shape that is asked for; the message names the
    place.
    """


@dataclass
class _Value:
    """A value's place in the text: `parts` are the members of an object by their keys, or the items of an array."""

    start: int
    end: int = 0
    kind: str = ""
    """`{`, `[`, or "" for a single value."""
    parts: list[tuple[str, int, _Value]] = field(default_factory=list)
    """Key ("" for an item), the beginning of the part, and its value."""


def add(text: str, keys: Sequence[str], item: Any) -> str:
    """`text` with `item` at the end of the array at `keys`, which is made if it is missing.

    Raises `JsonTextError`.
    """
    text = text if text.strip() else "{}\n"
    value = _read(text)
    for place, key in enumerate(keys):
        if value.kind != "{":
            raise JsonTextError(f"{'.'.join(keys[:place]) or 'the whole'} is no object")
        found = next((part for name, _, part in value.parts if name == key), None)
        if found is None:
            missing: Any = [item]
            for inner in reversed(keys[place + 1 :]):
                missing = {inner: missing}
            return _with_part(text, value, f"{json.dumps(key)}: ", missing, place)
        value = found
    if value.kind != "[":
        raise JsonTextError(f"{'.'.join(keys)} is no array")
    return _with_part(text, value, "", item, len(keys))


def put(text: str, key: str, value: Any) -> str:
    """`text` with the value at `key` of its object, unless it has one. Raises `JsonTextError`."""
    text = text if text.strip() else "{}\n"
    whole = _read(text)
    if whole.kind != "{":
        raise JsonTextError("the whole is no object")
    if any(name == key for name, _, _ in whole.parts):
        return text
    return _with_part(text, whole, f"{json.dumps(key)}: ", value, 0)


def remove(text: str, keys: Sequence[str], unwanted: Callable[[str], bool]) -> str:
    """`text` without the items of the array at `keys` whose text is unwanted; what is empty then goes with them.

    Raises `JsonTextError`.
    """
    while True:
        chain = [_read(text)]
        for key in keys:
            found = next((part for name, _, part in chain[-1].parts if name == key), None)
            if found is None:
                return text
            chain.append(found)
        place = next(
            (n for n, (_, _, one) in enumerate(chain[-1].parts) if unwanted(text[one.start : one.end])), None
        )
        if place is None:
            return text
        owner = len(chain) - 1
        while owner > 0 and len(chain[owner].parts) == 1:
            inner, owner = chain[owner], owner - 1
            place = next(n for n, (_, _, one) in enumerate(chain[owner].parts) if one is inner)
        text = _without_part(text, chain[owner], place)


def _with_part(text: str, owner: _Value, head: str, value: Any, depth: int) -> str:
    step = _indent(text)
    inside = "\n" + step * (depth + 1)
    written = head + json.dumps(value, ensure_ascii=False)
    if owner.parts:
        end = owner.parts[-1][2].end
        return f"{text[:end]},{inside}{written}{text[end:]}"
    closing = "\n" + step * depth
    return f"{text[: owner.start + 1]}{inside}{written}{closing}{text[owner.end - 1 :]}"


def _without_part(text: str, owner: _Value, place: int) -> str:
    _, start, value = owner.parts[place]
    if place:
        return text[: owner.parts[place - 1][2].end] + text[value.end :]
    if len(owner.parts) > 1:
        return text[:start] + text[owner.parts[1][1] :]
    return text[: owner.start + 1] + text[owner.end - 1 :]


def _indent(text: str) -> str:
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match else "  "


def _read(text: str) -> _Value:
    at = _past(text, 0)
    value = _value(text, at, 0)
    if _past(text, value.end) != len(text):
        raise JsonTextError(f"line {_line(text, value.end)}: there is more than one value")
    return value


def _value(text: str, at: int, depth: int) -> _Value:
    kind = text[at : at + 1]
    if depth > _DEEPEST:
        raise JsonTextError("it is nested too deeply")
    if kind not in ("{", "["):
        match = _STRING.match(text, at) or _SCALAR.match(text, at)
        if match is None:
            raise JsonTextError(f"line {_line(text, at)}: a value is expected")
        return _Value(at, match.end())
    made = _Value(at, kind=kind)
    close = "}" if kind == "{" else "]"
    at = _past(text, at + 1)
    while text[at : at + 1] != close:
        start, key = at, ""
        if kind == "{":
            match = _STRING.match(text, at)
            if match is None:
                raise JsonTextError(f"line {_line(text, at)}: a name in quotes is expected")
            key, at = json.loads(match[0], strict=False), _past(text, match.end())
            if text[at : at + 1] != ":":
                raise JsonTextError(f"line {_line(text, at)}: a colon is expected")
            at = _past(text, at + 1)
        value = _value(text, at, depth + 1)
        made.parts.append((key, start, value))
        at = _past(text, value.end)
        if text[at : at + 1] == ",":
            at = _past(text, at + 1)
        elif text[at : at + 1] != close:
            raise JsonTextError(f"line {_line(text, at)}: a comma is expected")
    made.end = at + 1
    return made


def _past(text: str, at: int) -> int:
    """Past space and comments."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
