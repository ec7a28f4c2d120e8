"""The pieces of a chat in a stream, whatever form a server gives them, and a plain stream made of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tui_agent.models.event_stream import DONE, events
from tui_agent.models.fault_words import is_error
from tui_agent.models.http_errors import AnsweredWithError

ENDED = "server_ended"
"""Field of a chunk that stands for a server's `[DONE]`, which libraries keep to themselves."""


class Deltas:
    """Finds the delta of each choice in a stream: also in a whole message, and in a text that is completed."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {"content": [], "reasoning_content": []}
        self._seen = False
        """Pieces came as deltas, so that a message among them is the whole."""

    def of(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """The delta of the next chunk's choice."""
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(message, Mapping) and not (isinstance(delta, Mapping) and delta):
            delta = self._rest_of(message)
        elif isinstance(delta, Mapping):
            self._seen = True
        else:
            text = choice.get("text")  # of servers that complete a text
            delta = {"content": text} if isinstance(text, str) else {}
        for name, pieces in self._said.items():
            if isinstance(piece := delta.get(name), str):
                pieces.append(piece)
        return delta

    def _rest_of(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """The new part of a message: it may come as a piece, or as all that there is so far."""
        rest = dict(message)
        for name, pieces in self._said.items():
            known, found = "".join(pieces), message.get(name)
            if isinstance(found, str) and known and found.startswith(known):
                rest[name] = found[len(known) :]
            elif isinstance(found, str) and self._seen and known:
                del rest[name]
        return rest


def checked(data: str, name: str = "") -> Any:
    """The value of an event. Raises `AnsweredWithError` if it is an error, and `ValueError` if it is no JSON."""
    value = json.loads(data)
    if name == "error" or is_error(value):
        raise AnsweredWithError(200, {}, value)
    return value


async def plain_events(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body as a stream of events without names, each with deltas; an answer that is no stream becomes one too.

    Raises `AnsweredWithError` for an event that is an error.
    """
    deltas = Deltas()
    async for event in events(body):
        data = event.data.strip()
        if data == DONE:
            yield _line({"object": "chat.completion.chunk", "choices": [], ENDED: True}) + b"data: [DONE]\n\n"
            continue
        try:
            value = checked(data, event.name)
        except ValueError:
            yield b"data: " + data.encode() + b"\n\n"
            continue
        choices = value.get("choices") if isinstance(value, Mapping) else None
        if isinstance(choices, list):
            value = {
                **value,
                "object": "chat.completion.chunk",
                "choices": [
                    _plain(choice, deltas) if isinstance(choice, Mapping) else choice for choice in choices
                ],
            }
        yield _line(value)


def _plain(choice: Mapping[str, Any], deltas: Deltas) -> Mapping[str, Any]:
    if choice.get("index") or (isinstance(choice.get("delta"), Mapping) and choice["delta"]):
        return choice
    delta = dict(deltas.of(choice))
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        numbered = [{"index": at, **call} for at, call in enumerate(calls) if isinstance(call, Mapping)]
        delta["tool_calls"] = numbered
    rest = {name: value for name, value in choice.items() if name not in {"message", "text"}}
    return {**rest, "delta": delta}


def _line(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
