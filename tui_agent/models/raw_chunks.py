"""The provider's own chunks in litellm's stream, before it invents usage and ends for them.

Reads names that several kinds of chunks share; where a release of litellm has its stream elsewhere, nothing is
seen, and usage and end are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from tui_agent.models.carried import OwnFields
from tui_agent.models.usage import figures, is_sound


class RawChunks:
    """The provider's chunks as they pass: only they show real usage and a real end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._chunks = stream.__aiter__()
        self.with_choices = False
        self.finish_reason: str | None = None
        self.refusal = ""
        """What the model says instead of an answer, where the provider has a place of its own for it."""
        self.details: list[Mapping[str, Any]] = []
        """OpenRouter's `reasoning_details` in pieces. litellm drops those that come without a text: the signatures."""
        self.own = OwnFields()
        self.as_json = False
        """The answer was one piece of JSON, and no stream."""
        self.usage: dict[str, Any] = {}

    @classmethod
    def of_nothing(cls) -> RawChunks:
        """Chunks that nobody can see."""
        return cls(_Nothing())

    @classmethod
    def watch(cls, response: Any) -> RawChunks:
        """Stand in litellm's stream; without effect where a release has it elsewhere.

        For some providers litellm sends the request with the first read only.
        """
        inner: Any = getattr(response, "completion_stream", None)
        opens_later = getattr(response, "make_call", None)
        if inner is None and opens_later is not None:
            later = cls.of_nothing()

            async def opened(**arguments: Any) -> RawChunks:
                later._stream = await opens_later(**arguments)
                later._chunks = later._stream.__aiter__()
                return later

            response.make_call = opened
            return later
        if not hasattr(inner, "__aiter__"):
            return cls.of_nothing()
        watching = cls.of_nothing()
        if "Responses" in type(inner).__name__:
            # litellm leaves out what has no place in a chat reply.
            inner.streaming_response = _Refusals(inner.streaming_response, watching)
        watching._stream, watching._chunks = inner, inner.__aiter__()
        headers = getattr(getattr(inner, "response", None), "headers", None) or {}
        watching.as_json = str(headers.get("content-type", "")).startswith("application/json")
        response.completion_stream = watching
        return watching

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> RawChunks:
        return self

    async def __anext__(self) -> Any:
        chunk = await anext(self._chunks)
        self._look(chunk)
        return chunk

    def _look(self, chunk: Any) -> None:
        choices = _of(chunk, "choices")
        if choices:
            self.with_choices = True
            self.finish_reason = _of(choices[0], "finish_reason") or self.finish_reason
            delta = _of(choices[0], "delta")
            self.refusal += str(_of(delta, "refusal") or "")
            self.details += _of(delta, "reasoning_details") or ()
            self.own.add(delta)
        elif _of(chunk, "text") or _of(chunk, "tool_use") or _of(chunk, "is_finished"):
            self.with_choices = True
        usage = _of(chunk, "usage")
        if usage is not None:
            for name, value in figures(usage).items():
                # Providers that report as they go on repeat or raise their numbers.
                known = self.usage.get(name)
                both = isinstance(value, int) and isinstance(known, int)
                self.usage[name] = max(value, known) if both else value
            if not is_sound(usage):
                # litellm takes such a reply for broken.
                if isinstance(chunk, MutableMapping):
                    chunk["usage"] = None
                else:
                    chunk.usage = None


class _Refusals:
    """The events of OpenAI's responses as they pass, for the refusals among them."""

    def __init__(self, events: Any, chunks: RawChunks) -> None:
        self._source = events
        self._events = events.__aiter__()
        self._chunks = chunks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __aiter__(self) -> _Refusals:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self._events)
        kind = _of(event, "type")
        if getattr(kind, "value", kind) == "response.refusal.delta":
            self._chunks.refusal += str(_of(event, "delta") or "")
        return event


class _Nothing:
    """A stream that cannot be looked into."""

    def __aiter__(self) -> _Nothing:
        return self


def _of(chunk: Any, name: str) -> Any:
    return chunk.get(name) if isinstance(chunk, Mapping) else getattr(chunk, name, None)
