"""Server-sent events as model servers send them: read leniently, with all that they hold.

Lines end as they like, events may lack the empty line between them or at the end, JSON may come without `data:`, and
bytes that are no UTF-8 become question marks. Comments are kept from the loop; an event's name comes with its data.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"
DONE = "[DONE]"


@dataclass(frozen=True)
class Event:
    """An event: its name, which is mostly empty, and its data."""

    data: str
    name: str = ""


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """The events in a body, each as soon as it is whole; raises what `chunks` raises, behind the last of them."""
    data: list[str] = []
    name = ""
    async for line in _lines(chunks):
        if isinstance(line, Exception):
            if data and _is_whole("\n".join(data)):
                yield Event("\n".join(data), name)
            raise line
        field, _, value = line.partition(":")
        if field in {"data", "event"}:
            value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            if data and _is_whole("\n".join(data)):
                yield Event("\n".join(data), name)
                data = []
            data.append(value)
        elif line.startswith(("{", "[")) and not data:
            yield Event(line, name)
        elif not line:
            if data:
                yield Event("\n".join(data), name)
            data, name = [], ""
    if data and _is_whole("\n".join(data)):
        # Half an event at the end is a stream that was cut, and no event.
        yield Event("\n".join(data), name)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str | Exception]:
    """The lines without their ends, and last the error with which the body broke; what stands behind the last end is a
    line too.
    """
    held = bytearray()
    first = True
    broken: Exception | None = None
    while broken is None:
        try:
            chunk = await anext(chunks)
        except StopAsyncIteration:
            break
        except Exception as error:  # noqa: BLE001  # it is raised by `events`, behind what came before it
            broken = error
            break
        held += chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            continue
        # A carriage return at the end may be half of a line's end.
        ready = len(held) - 1 if held.endswith(b"\r") else len(held)
        *lines, rest = _LINE_END.split(bytes(held[:ready]))
        held = bytearray(rest) + held[ready:]
        for line in lines:
            yield _text(line, first=first)
            first = False
    for line in _LINE_END.split(bytes(held)):
        yield _text(line, first=first)
        first = False
    if broken is not None:
        yield broken


def _text(line: bytes, *, first: bool) -> str:
    return (line.removeprefix(_MARK) if first else line).decode("utf-8", "replace")


def _is_whole(data: str) -> bool:
    """The data so far is a JSON value or the end, so that another `data:` line is another event."""
    if data == DONE:
        return True
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
