"""The provider's own chunks in litellm's stream, before it invents usage and ends for them.

Reads names that several kinds of chunks share; where a release of litellm has its stream elsewhere, nothing is
seen, and usage and end are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RawChunks:
    """The provider's chunks as they pass: only they show real usage and a real end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._chunks = stream.__aiter__()
        self.with_choices = False
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] = {}

    @classmethod
    def watch(cls, response: Any) -> RawChunks:
        """Stand in litellm's stream; without effect where a release has it elsewhere."""
        inner = getattr(response, "completion_stream", None)
        if not hasattr(inner, "__aiter__"):
            return cls(_Nothing())
        watching = cls(inner)
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
        elif _of(chunk, "text") or _of(chunk, "tool_use") or _of(chunk, "is_finished"):
            self.with_choices = True
        usage = _of(chunk, "usage")
        if usage is not None:
            found = usage if isinstance(usage, Mapping) else usage.model_dump(exclude_none=True)
            for name, value in found.items():
                # Providers that report as they go on repeat or raise their numbers.
                known = self.usage.get(name)
                both = isinstance(value, int) and isinstance(known, int)
                self.usage[name] = max(value, known) if both else value


class _Nothing:
    """A stream that cannot be looked into."""

    def __aiter__(self) -> _Nothing:
        return self


def _of(chunk: Any, name: str) -> Any:
    return chunk.get(name) if isinstance(chunk, Mapping) else getattr(chunk, name, None)
