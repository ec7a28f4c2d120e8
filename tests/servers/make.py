"""What every make of model server has in common: the same abstract reply goes in, its wire form comes out.

A make is data and three small functions (`stream`, `whole`, `fault`); the transport is `tests.openai_server`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tests.openai_server import Answer, OpenAIServer, Recorded, Step, json_answer, stream

FaultName = Literal["rate_limit", "overloaded", "overflow", "auth", "not_found", "no_tools", "cut", "empty"]
"""`empty`: status 200 and no byte. `cut`: the connection is lost in the middle of the reply."""

RETRY_AFTER = 3
"""Seconds that a rate limit asks for, where the make says it at all."""

WINDOW = 5_120
"""Tokens of every server's window: the tools and a task fit in, also with a few more tools."""

PROMPT = 6_000
"""Tokens of a prompt that is too long for it."""


@dataclass(frozen=True)
class Said:
    """What a model says, in no one's wire form."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    usage: tuple[int, int] = (11, 7)
    cached: tuple[int, int] = (0, 0)
    """Of the prompt's tokens: read from the cache, written to it."""
    refusal: str = ""
    fault: FaultName | None = None
    raw: bytes = b""
    """A stream of just that."""

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """The calls with their arguments as text."""
        return [(name, json.dumps(arguments)) for name, arguments in self.calls]


class Make:
    """One make of server."""

    name: ClassVar[str]
    model: ClassVar[str]
    """As litellm spells it."""
    base: ClassVar[str] = ""
    """What follows the host in the api base."""
    facts: ClassVar[Mapping[str, Any]] = {}
    """What it answers to other questions, by path."""
    retry_after: ClassVar[float | None] = RETRY_AFTER
    """What a rate limit tells, as it should reach the loop."""

    def stream(self, said: Said) -> list[bytes]:
        """The pieces of a streamed reply, its end included."""
        raise NotImplementedError

    def whole(self, said: Said) -> Any:
        """The body of a reply that is not streamed."""
        raise NotImplementedError

    def fault(self, name: FaultName) -> Answer | None:
        """The refusal of a request; None: this make knows no such thing."""
        raise NotImplementedError

    def streamed(self, request: Recorded) -> bool:
        """Whether the request asks for a stream."""
        return bool(request.body.get("stream"))

    def answer(self, said: Said, request: Recorded) -> Answer:
        """What goes over the wire."""
        if said.fault == "cut":
            pieces = self.stream(Said(text="It was about to say much more than this."))
            return stream(*pieces[: len(pieces) // 2], Step.CUT)
        if said.raw:
            return stream(said.raw)
        if said.fault == "empty":
            return stream() if self.streamed(request) else json_answer(self.whole(Said(text="late")))
        if said.fault is not None:
            refused = self.fault(said.fault)
            assert refused is not None, f"{self.name} knows no {said.fault}"
            return refused
        return stream(*self.stream(said)) if self.streamed(request) else json_answer(self.whole(said))


class ModelServer(OpenAIServer):
    """A server of any make. `say` sets what it says; the last of it is said for ever."""

    def __init__(self, make: Make, *said: Said) -> None:
        super().__init__()
        self.make = make
        self._said: list[Said] = list(said)

    def say(self, *said: Said, make: Make | None = None) -> None:
        """Forget the requests, be of this make, and say this from now on."""
        self.requests.clear()
        self.make = make or self.make
        self._said = list(said)

    @property
    def url(self) -> str:
        """The api base for the make as it is now."""
        return super().url.removesuffix("/v1") + self.make.base

    def respond(self, request: Recorded) -> Answer:
        """See `OpenAIServer`."""
        path = request.path.partition("?")[0]
        if request.method == "GET" or path in self.make.facts or path == "/api/show":
            known = self.make.facts.get(path)
            return json_answer(known) if known is not None else json_answer({"error": "not found"}, 404)
        self.requests.append(request)
        said = self._said.pop(0) if len(self._said) > 1 else self._said[0]
        return self.make.answer(said, request)


def event(data: Any, name: str | None = None) -> bytes:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def in_pieces(words: str, size: int = 9) -> Iterable[str]:
    """Text as a stream gives it."""
    return (words[at : at + size] for at in range(0, len(words), size))
