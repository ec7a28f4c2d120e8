"""The provider's own chunks in litellm's stream, before it invents usage and ends for them.

Reads names that several kinds of chunks share; if a release of litellm has its stream elsewhere, nothing is
seen, and usage and end are unknown.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from tui_agent.models.carried import of
from tui_agent.models.chat_events import ENDED
from tui_agent.models.exchange import texts
from tui_agent.models.usage import is_sound

if TYPE_CHECKING:
    from tui_agent.models.exchange import Exchange


class RawChunks:
    """The provider's chunks as they pass: only they show real usage and a real end, which go to the exchange."""

    def __init__(self, stream: Any, call: Exchange) -> None:
        self._stream = stream
        self._chunks = stream.__aiter__()
        self._call = call

    @classmethod
    def watch(cls, response: Any, call: Exchange) -> None:
        """Stand in litellm's stream; without effect if a release has it elsewhere.

        For some providers litellm sends the request with the first read only.
        """
        inner: Any = getattr(response, "completion_stream", None)
        opens_later = getattr(response, "make_call", None)
        if inner is None and opens_later is not None:

            async def opened(**arguments: Any) -> RawChunks:
                return cls(await opens_later(**arguments), call)

            response.make_call = opened
        elif hasattr(inner, "__aiter__"):
            if "Responses" in type(inner).__name__:
                # litellm leaves out what has no place in a chat reply.
                inner.streaming_response = _Refusals(inner.streaming_response, call)
            headers = of(of(inner, "response"), "headers") or {}
            call.as_json = str(headers.get("content-type", "")).startswith("application/json")
            response.completion_stream = cls(inner, call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> RawChunks:
        return self

    async def __anext__(self) -> Any:
        chunk = await anext(self._chunks)
        while _is_of_another_choice(chunk):
            chunk = await anext(self._chunks)
        self._look(chunk)
        return chunk

    def _look(self, chunk: Any) -> None:
        call = self._call
        choices = of(chunk, "choices")
        call.done = call.done or of(chunk, ENDED) is True
        if choices:
            delta = of(choices[0], "delta")
            call.saw_choice(choices[0], delta)
            _plain_content(delta)
        elif of(chunk, "text") or of(chunk, "tool_use") or of(chunk, "is_finished"):
            call.with_choices = True
        usage = of(chunk, "usage")
        if usage is not None:
            call.saw_usage(usage, alone=not choices)
            if not is_sound(usage):
                # litellm takes such a reply for broken.
                if isinstance(chunk, MutableMapping):
                    chunk["usage"] = None
                else:
                    chunk.usage = None


def _is_of_another_choice(chunk: Any) -> bool:
    """True if all of the chunk belongs to a choice that nobody asked for: litellm would join it to the first."""
    choices = of(chunk, "choices")
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(isinstance(index := of(choice, "index"), int) and index > 0 for choice in choices)
        and of(chunk, "usage") is None
    )


def _plain_content(delta: Any) -> None:
    """Put a content of typed parts as litellm reads it: a text, and the thoughts beside it."""
    content = of(delta, "content")
    if not isinstance(content, list):
        return
    text, thoughts = texts(content)
    for name, value in (("content", text), ("reasoning_content", thoughts)):
        if isinstance(delta, MutableMapping):
            delta[name] = value or None
        else:
            setattr(delta, name, value or None)


class _Refusals:
    """The events of OpenAI's responses as they pass, for the refusals among them."""

    def __init__(self, events: Any, call: Exchange) -> None:
        self._source = events
        self._events = events.__aiter__()
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __aiter__(self) -> _Refusals:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self._events)
        kind = of(event, "type")
        if getattr(kind, "value", kind) == "response.refusal.delta":
            self._call.refusal += str(of(event, "delta") or "")
        return event
