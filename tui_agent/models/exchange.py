"""One model call under way: its stream read piece by piece, and what makes a reply whole.

A reply that came whole is taken, however oddly the stream ends; the oddity becomes a remark. The two clients
differ in the source of pieces: `read` of each subclass looks at its own library's objects.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Any

from tui_agent.models.assembly import ReplyAssembler
from tui_agent.models.carried import CarriedPieces, OwnFields, of, split_id
from tui_agent.models.lessons import Learning
from tui_agent.models.protocol import Delta, ModelRequest
from tui_agent.models.routes import Route
from tui_agent.models.usage import figures
from tui_agent.models.watch import GRACE, LONG_GRACE, Watch

_NO_FINISH = frozenset({"", "null", "none"})
_REASONING = ("reasoning_content", "reasoning", "thinking")
"""Fields in which servers send the thoughts of a model."""


class Exchange:
    """A request and what has been read of its reply."""

    ends_with_content = True
    """A finish reason beside content is believed: not of libraries that invent it, nor of servers that repeat it."""

    def __init__(self, request: ModelRequest, at: Route, watch: Watch, learning: Learning) -> None:
        self.request = request
        self.at = at
        self.learning = learning
        tools = [str(tool.get("function", {}).get("name")) for tool in request.tools]
        self.assembler = ReplyAssembler(tools)
        self.pieces = CarriedPieces()
        self.usage: dict[str, Any] = {}
        self.refusal = ""
        """The model's refusal to answer, if the provider has a place of its own for it."""
        self.details: list[Mapping[str, Any]] = []
        """Pieces of `reasoning_details`."""
        self.own = OwnFields()
        self.with_choices = False
        self.finish: str | None = None
        """Why the reply ended, as the provider says; None: it did not say."""
        self.done = False
        """The server said that the stream is over."""
        self.ends_with_usage = False
        """The last that came was the usage alone, which servers send behind a reply."""
        self.whole: Delta | None = None
        """The text of a reply that was not streamed, to be shown at once."""
        self.as_json = False
        """The answer was one piece of JSON, and no stream."""
        self.remarks: list[str] = []
        """Oddities of a reply that was taken all the same."""
        self.watch = watch
        self._grace: float | None = None
        """Seconds for what follows the reply's end; None while it has none."""
        self._stream: Any = None
        self._chunks: AsyncIterator[Any] | None = None
        self._first: list[Any] = []

    # --- what a client's library gives ---

    def watched(self, stream: Any) -> AsyncIterator[Any]:
        """The chunks of the stream that the library returned."""
        return aiter(stream)

    def read(self, chunk: Any) -> Any:
        """The delta of a chunk, or None; notes what else it says."""
        raise NotImplementedError

    # --- reading ---

    async def begin(self, stream: Any) -> None:
        """Take the library's stream and wait for its first chunk."""
        self._stream = stream
        self._chunks = self.watched(stream)
        with suppress(StopAsyncIteration):
            self._first = [await self.next_chunk(self._chunks)]

    async def next_chunk(self, chunks: AsyncIterator[Any]) -> Any:
        """The next chunk. Raises `StopAsyncIteration` at the end."""
        return await anext(chunks)

    @property
    def over(self) -> bool:
        """The reply has its end; only its usage and the end of the stream may follow."""
        return self._grace is not None

    async def deltas(self) -> AsyncIterator[Delta]:
        """Read the stream to its end, one content chunk after another, each within the watch's time."""
        while self._chunks is not None and not (self.done and self.over):
            try:
                async with self.watch.until_content(self._grace):
                    chunk = self._first.pop() if self._first else await self.next_chunk(self._chunks)
                delta = self.read(chunk)
            except StopAsyncIteration:
                return
            except Exception as error:
                if not self.over:
                    raise
                late = isinstance(error, TimeoutError)
                how = "the server left the stream open" if late else "the stream broke"
                self.remarks.append(f"{how} after the reply's end")
                return
            piece = self.take(delta) if delta is not None else Delta()
            if piece.text or piece.reasoning:
                yield piece

    def ended(self, reason: str | None, *, with_content: bool) -> None:
        """Note the finish reason of a chunk, if it has one."""
        if reason is not None:
            self.finish = reason
            if not with_content or self.ends_with_content:
                self._grace = LONG_GRACE if with_content else GRACE
                self.watch.end()

    def saw_choice(self, choice: Any, delta: Any) -> None:
        """Note what a choice of the provider's own chunk says beside its words."""
        self.with_choices = True
        self.ends_with_usage = False
        with_content = any(
            of(delta, name) for name in ("content", "tool_calls", "function_call", *_REASONING)
        )
        if with_content and self.over:
            self.ends_with_content, self._grace = False, None
        self.ended(finish_of(choice), with_content=with_content)
        if delta is not None:
            self.refusal += str(of(delta, "refusal") or "")
            details = of(delta, "reasoning_details")
            self.details += details if isinstance(details, list) else ()
            self.own.add(delta)

    def saw_usage(self, usage: Any, *, alone: bool) -> None:
        """Note the figures of a chunk; `alone`: it has nothing else."""
        self.ends_with_usage = alone
        for name, count in figures(usage).items():
            # Providers that report as they go on repeat or raise their numbers.
            known = self.usage.get(name)
            both = isinstance(count, int) and isinstance(known, int)
            self.usage[name] = max(count, known) if both else count

    def settle(self) -> None:
        """The stream is over: find out if a reply without a finish reason is whole all the same."""
        if self.finish is not None or self.assembler.empty:
            return
        calls = self.assembler.calls
        ended = self.done or (self.usage and self.ends_with_usage)
        if calls.complete or (ended and calls.are_whole):
            self.finish = "tool_calls" if calls else "stop"
            self.remarks.append("the server gave no finish reason")

    @property
    def said_nothing(self) -> bool:
        """The stream ended well and held nothing at all, not even an empty choice."""
        return not self.with_choices and self.assembler.empty and not self.refusal

    def take_whole(self, response: Any) -> None:
        """Take a reply that was not streamed."""
        choices = of(response, "choices")
        usage = of(response, "usage")
        if usage is not None:
            self.usage = figures(usage)
        if not choices:
            return
        self.with_choices = True
        self.finish = finish_of(choices[0]) or self.finish or "stop"
        message = of(choices[0], "message")
        self.refusal = str(of(message, "refusal") or "")
        self.details = list(of(message, "reasoning_details") or ())
        self.own.add(message)
        piece = self.take(message)
        self.whole = piece if piece.text or piece.reasoning else None

    def take(self, delta: Any) -> Delta:
        """A delta, or a whole message, put to what is there."""
        text, thoughts = texts(of(delta, "content"))
        for name in _REASONING:
            found = of(delta, name)
            if isinstance(found, str) and found:
                thoughts += found
                break
        calls = list(_calls(delta))
        for at, call in enumerate(calls):
            self._take_call(call, at if len(calls) > 1 else None)
        self.pieces.add(delta)
        if text or thoughts or calls:
            self.watch.content()
        text, reasoning = self.assembler.add(text, thoughts)
        return Delta(text=text, reasoning=reasoning)

    def _take_call(self, call: Any, place: int | None) -> None:
        """A piece of a call. `place`: among those of its chunk, for servers that number none."""
        function = of(call, "function") or call
        own_id, hidden = split_id(str(of(call, "id") or ""))
        own = of(call, "provider_specific_fields") or {}
        arguments = of(function, "arguments")
        index = of(call, "index")
        if isinstance(index, str) and index.isdecimal():
            index = int(index)
        self.assembler.add_call(
            index if isinstance(index, int) else place,
            own_id,
            str(of(function, "name") or ""),
            arguments if isinstance(arguments, str) else _as_text(arguments),
            hidden or str(of(own, "thought_signature") or ""),
        )

    # --- what was asked ---

    @property
    def has_images(self) -> bool:
        return any(message.get("images") for message in self.request.messages)

    async def close(self) -> None:
        """End the stream, whatever it is in the middle of."""
        stream, self._stream, self._chunks = self._stream, None, None
        if stream is not None:
            with suppress(Exception):
                await stream.aclose()


def finish_of(choice: Any) -> str | None:
    """A choice's finish reason; None for what says nothing."""
    found = of(choice, "finish_reason")
    return found if isinstance(found, str) and found.lower() not in _NO_FINISH else None


def _calls(delta: Any) -> Iterator[Any]:
    """The pieces of calls in a delta, in today's form and in that of older servers."""
    found = of(delta, "tool_calls")
    if isinstance(found, list | tuple):
        yield from (call for call in found if call is not None)
    elif isinstance(found, Mapping):
        yield found
    old = of(delta, "function_call")
    if old and not found:
        yield {"function": old}


def texts(content: Any) -> tuple[str, str]:
    """Text and thoughts in a content, which is a text or a list of typed parts."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list | tuple):
        return "", ""
    text = thoughts = ""
    for part in content:
        if isinstance(part, str):
            text += part
            continue
        inner = of(part, "thinking")
        if inner is None and of(part, "type") in {"thinking", "reasoning"}:
            inner = of(part, "text")
        if inner is not None:
            both = texts(inner)
            thoughts += both[0] + both[1]
        else:
            text += str(of(part, "text") or "")
    return text, thoughts


def _as_text(arguments: Any) -> str:
    """Arguments that a server sends as an object; nothing for what is none."""
    return json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else ""
