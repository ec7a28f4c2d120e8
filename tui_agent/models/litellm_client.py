"""One model call through litellm: its stream read piece by piece, watched, and closed in every case.

Runs in the model host. litellm reports streams that were cut or empty as successes and invents usage for
them, so the raw chunks are looked at on their way through; what goes wrong becomes a typed fault (`faults`).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tui_agent.config.profiles import REFERENCE
from tui_agent.core.names import FaultKind
from tui_agent.models import litellm_setup, prompt_cache
from tui_agent.models.assembly import ReplyAssembler
from tui_agent.models.carried import CarriedPieces, split_id
from tui_agent.models.faults import fault_from, made
from tui_agent.models.habits import Habits
from tui_agent.models.kept_habits import HabitBook, server_name
from tui_agent.models.keychain import stored
from tui_agent.models.known_servers import known_habits
from tui_agent.models.lessons import REASONING_PARAMETERS, Learning, about_template, takes_no_results
from tui_agent.models.litellm_setup import Route
from tui_agent.models.outgoing import outgoing, sent, without_nulls
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.models.raw_chunks import RawChunks
from tui_agent.models.shape import fitted_tools
from tui_agent.models.usage import figures

_CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
"""How providers say, in small letters, that a limit cut the reply."""

_TOOLS_WITH_CALLS = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai"})
"""Providers that refuse a history with calls where the request has no tools."""

_PLAIN_BODY = frozenset({"anthropic", "bedrock", "gemini", "vertex_ai", "vertex_ai_beta"})
"""Providers for which litellm takes further fields of the body one by one."""


WHOLE = 5
"""How many times as long as the first piece of a stream a whole reply may take."""
_ENDED_EARLY = "Stream ended before a finish_reason"


class LitellmClient:
    """Makes calls with the litellm that it is given (`litellm_setup.load`)."""

    def __init__(self, litellm: Any) -> None:
        self._litellm = litellm
        self._private: dict[str, Any] = {"_skip_mcp_handler": True}
        """Without it a call with tools wants a package for MCP. Left out once a release refuses it."""
        self._book = HabitBook()
        self._looked_for: set[str] = set()
        """Variables whose keys the keyring was asked for."""

    def look_up(self, name: str) -> tuple[bool, bool, tuple[str, ...]]:
        """See `litellm_setup.look_up`."""
        return litellm_setup.look_up(self._litellm, name)

    def sees(self, name: str, api_base: str | None) -> bool:
        """False for a model that is known to see no images: by litellm's tables, or because its server refused some."""
        at = litellm_setup.route(self._litellm, name, api_base)
        return self._habits(at, None).images and not at.without_vision

    def _habits(self, at: Route, folder: str | None) -> Habits:
        return self._book.of(*_server(at), folder)

    async def find_key(self, model: str, api_base: str | None, variable: str | None) -> None:
        """Take a key that the environment lacks from the keyring, which is asked once for each."""
        at = litellm_setup.route(self._litellm, model, api_base, variable)
        for name in at.facts.key_variables:
            if name not in os.environ and name not in self._looked_for:
                self._looked_for.add(name)
                key = await asyncio.to_thread(stored, name)
                if key is not None:
                    os.environ[name] = key

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """See `protocol.Model`."""
        at = litellm_setup.route(self._litellm, model, api_base, api_key_variable)
        return await litellm_setup.prompt_budget(self._litellm, at)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        at = litellm_setup.route(self._litellm, request.model, request.api_base, request.api_key_variable)
        if at.lacks_key:
            raise ModelFault(
                made(FaultKind.AUTH, f"{at.facts.key} is not set, and {request.model} needs it", at.facts)
            )
        if request.tools and at.without_tools and not request.native_calls:
            raise ModelFault(made(FaultKind.NO_TOOLS, f"{request.model} cannot call tools", at.facts))
        patience = request.prompt_timeout if at.nearby else None
        watch = _Watch(request.silence_timeout, request.total_timeout, patience or request.silence_timeout)
        call = _Call(request, at, watch, self._learning(request, at))
        try:
            async with watch.until_content():
                await self._open(call)
            async for delta in self._deltas(call):
                yield delta
                # Pieces that are in the buffer already would not let any other task run.
                await asyncio.sleep(0)
            if call.said_nothing:
                async with watch.until_content():
                    await self._ask_once_more(call)
                call.learn_no_stream()
            if call.whole:
                whole = Delta(text=call.assembler.text, reasoning=call.assembler.reasoning)
                if whole.text or whole.reasoning:
                    yield whole
            yield self._reply(call)
        except ModelFault:
            raise
        except TimeoutError as error:
            if not watch.expired:
                raise ModelFault(fault_from(error, at.facts)) from error
            raise ModelFault(made(FaultKind.TIMEOUT, watch.words, at.facts)) from error
        except Exception as error:
            raise ModelFault(fault_from(error, at.facts)) from error
        finally:
            await call.close()

    async def _open(self, call: _Call) -> None:
        """Send the request and wait for the first chunk; again in another form if it is refused as it is."""
        while True:
            try:
                if call.learning.habits.stream:
                    arguments = self._arguments(call.request, call.at, call.learning.habits)
                    await call.begin(await self._litellm.acompletion(**arguments))
                else:
                    call.watch.for_whole()
                    await self._ask_once_more(call)
            except Exception as error:
                await call.close()
                if not self._adapt(call, error):
                    raise
            else:
                return

    async def _deltas(self, call: _Call) -> AsyncIterator[Delta]:
        """Read the stream; another one in another form if it is refused before it says anything."""
        while True:
            try:
                async for delta in call.deltas():
                    yield delta
            except Exception as error:
                if not call.assembler.empty or not self._adapt(call, error):
                    raise
                await call.close()
                async with call.watch.until_content():
                    await self._open(call)
            else:
                return

    async def _ask_once_more(self, call: _Call) -> None:
        """Without streaming: a stream under status 200 that holds nothing hides a fault (an overflow, mostly)."""
        arguments = self._arguments(call.request, call.at, call.learning.habits)
        arguments.pop("stream_options", None)
        arguments["timeout"] *= WHOLE
        call.take_whole(await self._litellm.acompletion(**{**arguments, "stream": False}))

    def _learning(self, request: ModelRequest, at: Route) -> Learning:
        """What the call tries, beginning with the habits that the server is known to have."""

        def body(habits: Habits) -> dict[str, Any]:
            return without_nulls(self._arguments(request, at, habits))

        return Learning(
            self._habits(at, request.state_folder), body, lambda habits: sent(body(habits), request)
        )

    def _arguments(self, request: ModelRequest, at: Route, habits: Habits) -> dict[str, Any]:
        seen = habits.images and not at.without_vision
        messages, ephemeral = outgoing(request, at.facts.provider, habits, seen=seen)
        if request.prompt_caching == "on" or (
            request.prompt_caching == "auto" and litellm_setup.caches_by_marks(self._litellm, at)
        ):
            messages = prompt_cache.marked(messages, ephemeral)
        arguments: dict[str, Any] = {
            **self._private,
            "model": at.name,
            "messages": messages,
            "stream": habits.stream,
            # Retries are the policy's; only here, on each call, do these take effect.
            "max_retries": 0,
            "num_retries": 0,
            # On each read, and later than the watch, which knows content from keep-alives.
            "timeout": max(request.silence_timeout, request.prompt_timeout or 0.0) + 30.0,
        }
        if habits.usage and habits.stream:
            arguments["stream_options"] = {"include_usage": True}
        if request.tools:
            arguments["tools"] = fitted_tools(request.tools, habits)
            if at.own_server and habits.tool_choice:
                # Some take no choice for "none".
                arguments["tool_choice"] = "auto"
        elif at.facts.provider in _TOOLS_WITH_CALLS:
            arguments.update(_tools_of(messages))
        if at.responses and habits.encrypted:
            arguments["include"] = ["reasoning.encrypted_content"]
        if at.api_base:
            arguments["api_base"] = at.api_base
        if at.api_key:
            arguments["api_key"] = at.api_key
        return arguments | _chosen_arguments(request, at, habits)

    def _adapt(self, call: _Call, error: Exception) -> bool:
        """Whether the call is worth another try, with something changed that the error complained about."""
        message = str(error)
        if "_skip_mcp_handler" in message and self._private:
            self._private = {}
            return True
        if "No module named 'mcp" in message:
            return litellm_setup.do_without_mcp_gateway()
        words = f"{message}\n{getattr(error, 'body', '')}"
        fault, status = fault_from(error, call.at.facts), getattr(error, "status_code", None)
        lasting = about_template(words) and (status is None or status >= 500)
        if call.learning.refused(words, status, guess=lasting or fault.kind is FaultKind.BAD_REQUEST):
            return True
        if fault.kind in {FaultKind.BAD_REQUEST, FaultKind.SERVER} and takes_no_results(
            words, call.learning.sent
        ):
            raise ModelFault(made(FaultKind.NO_TOOLS, fault.message, call.at.facts)) from error
        if lasting and fault.kind is FaultKind.SERVER:
            # The same request would fail for ever, so nobody should try it again.
            kept = made(FaultKind.BAD_REQUEST, fault.message, call.at.facts, status=fault.status)
            raise ModelFault(kept) from error
        return False

    def _reply(self, call: _Call) -> Reply:
        """The complete reply. Raises `ModelFault` when the stream was no complete one."""
        assembler, raw, at = call.assembler, call.raw, call.at
        finish = call.finish_reason
        if not raw.with_choices and assembler.empty and not raw.refusal:
            raise ModelFault(made(FaultKind.BAD_OUTPUT, "the server's stream held no reply at all", at.facts))
        if finish is None:
            raise ModelFault(
                made(FaultKind.STREAM_CUT, "the stream ended before the reply was complete", at.facts)
            )
        if finish == "content_filter":
            raise ModelFault(
                made(FaultKind.CONTENT_POLICY, "the provider's content filter stopped the reply", at.facts)
            )
        cut = finish.lower() in _CUT
        calls = assembler.calls(cut=cut)
        text = assembler.text or ("" if calls else raw.refusal)
        if cut and not calls and not text.strip():
            raise ModelFault(
                made(
                    FaultKind.BAD_OUTPUT,
                    "the reply reached its length limit before it said anything",
                    at.facts,
                    todo="Let the model think less, or choose one that may write more.",
                )
            )
        habits = call.learning.habits
        server, model, start = _server(at)
        self._book.learn(server, model, habits, start, call.request.state_folder)
        usage = raw.usage
        cached, written = _cached(usage)
        return Reply(
            text=text,
            reasoning=assembler.reasoning,
            calls=calls,
            finish_reason="length" if cut else finish,
            model=at.facts.model,
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            cached_tokens=cached,
            cache_write_tokens=written,
            cost=litellm_setup.price(self._litellm, at, usage) if usage else None,
            left_out=tuple(name for name in call.request.parameters.given() if name in habits.refused)
            + (("images",) if call.has_images and not (habits.images and not at.without_vision) else ()),
            learnt=self._book.unsaid(),
            carried=call.pieces.carried(
                at.facts.provider,
                calls,
                assembler.signatures(cut=cut),
                assembler.reasoning,
                details=call.raw.details,
                own=call.raw.own,
                own_server=at.own_server,
            ),
        )


class _Call:
    """One call under way: its stream and what has been read of it."""

    def __init__(self, request: ModelRequest, at: Route, watch: _Watch, learning: Learning) -> None:
        self.request = request
        self.at = at
        self.learning = learning
        self.assembler = ReplyAssembler()
        self.pieces = CarriedPieces()
        self.raw = RawChunks.of_nothing()
        self.watch = watch
        self.whole = False
        """The reply came at once, not in a stream."""
        self._response: Any = None
        self._chunks: AsyncIterator[Any] | None = None
        self._first: list[Any] = []
        self._finish: str | None = None

    async def begin(self, response: Any) -> None:
        """Take litellm's stream and wait for its first chunk."""
        self._response = response
        self.raw = RawChunks.watch(response)
        self._chunks = response.__aiter__()
        with suppress(StopAsyncIteration):
            self._first = [await self._next(self._chunks)]

    @property
    def has_images(self) -> bool:
        return any(message.get("images") for message in self.request.messages)

    @property
    def said_nothing(self) -> bool:
        """The stream ended well and held nothing at all, not even an empty choice."""
        return not self.raw.with_choices and self.assembler.empty and not self.raw.refusal

    @property
    def finish_reason(self) -> str | None:
        """As the provider says; None: the reply is not complete."""
        return (
            self._finish or self.raw.finish_reason or getattr(self._response, "received_finish_reason", None)
        )

    async def deltas(self) -> AsyncIterator[Delta]:
        """Read the stream to its end, one content chunk after another, each within the watch's time."""
        if self._chunks is None:
            return
        while True:
            try:
                async with self.watch.until_content():
                    chunk = self._first.pop() if self._first else await self._next(self._chunks)
            except StopAsyncIteration:
                return
            choices = getattr(chunk, "choices", None)
            delta = getattr(choices[0], "delta", None) if choices else None
            if delta is not None:
                piece = self._take(delta)
                if piece.text or piece.reasoning:
                    yield piece

    @staticmethod
    async def _next(chunks: AsyncIterator[Any]) -> Any:
        """The next chunk. Newer releases raise an error where a stream ends without a finish; here it just ends."""
        try:
            return await anext(chunks)
        except StopAsyncIteration:
            raise
        except Exception as error:
            if _ENDED_EARLY in str(error):
                raise StopAsyncIteration from error
            raise

    def learn_no_stream(self) -> None:
        """A stream of nothing whose request is answered without one: there is none if what came was called JSON."""
        if self.raw.as_json:
            self.learning.habits = replace(self.learning.habits, stream=False)

    def take_whole(self, response: Any) -> None:
        """A reply that was not streamed."""
        self.whole = True
        usage = getattr(response, "usage", None)
        self.raw.usage = figures(usage)
        choices = getattr(response, "choices", None)
        if choices:
            self.raw.with_choices = True
            self._finish = getattr(choices[0], "finish_reason", None)
            message = choices[0].message
            self.raw.refusal = str(getattr(message, "refusal", None) or "")
            self.raw.details = list(getattr(message, "reasoning_details", None) or ())
            self.raw.own.add(message)
            self._take(message)

    def _take(self, delta: Any) -> Delta:
        """A delta, or a whole message, put to what is there."""
        text = getattr(delta, "content", None) or ""
        reasoning = getattr(delta, "reasoning_content", None) or ""
        calls = getattr(delta, "tool_calls", None) or ()
        for at, call in enumerate(calls):
            function = getattr(call, "function", None)
            own_id, hidden = split_id(getattr(call, "id", None) or "")
            own = getattr(call, "provider_specific_fields", None) or {}
            index = getattr(call, "index", None)
            self.assembler.add_call(
                at if index is None and len(calls) > 1 else index,
                own_id,
                getattr(function, "name", None),
                getattr(function, "arguments", None),
                hidden or str(own.get("thought_signature") or ""),
            )
        self.pieces.add(delta)
        if text or reasoning or calls:
            self.watch.content()
        text, reasoning = self.assembler.add(text, reasoning)
        return Delta(text=text, reasoning=reasoning)

    async def close(self) -> None:
        """End the stream, whatever it is in the middle of."""
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            with suppress(Exception):
                await response.aclose()


class _Watch:
    """The longest silence before and between content, and the longest call. Seconds."""

    def __init__(self, silence: float, total: float, first: float) -> None:
        """`first`: the longest silence before any content."""
        self._silence = silence
        self._allowed = first
        self._whole = WHOLE * first
        self._total = total
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + total
        self._last = self._clock()
        self._limit: asyncio.Timeout | None = None

    def until_content(self) -> asyncio.Timeout:
        """Raises `TimeoutError` inside when the time is over."""
        self._limit = asyncio.timeout_at(min(self._last + self._allowed, self._end))
        return self._limit

    def for_whole(self) -> None:
        """Allow more time for content: a reply that does not stream is silent to its end."""
        self._allowed = self._whole
        if self._limit is not None:
            self._limit.reschedule(min(self._last + self._allowed, self._end))

    def content(self) -> None:
        """Something came."""
        self._last = self._clock()
        self._allowed = self._silence

    @property
    def expired(self) -> bool:
        """The time is over (and a `TimeoutError` is therefore the watch's own)."""
        return self._clock() >= min(self._last + self._allowed, self._end)

    @property
    def words(self) -> str:
        """What happened, when it is over."""
        if self._clock() >= self._end:
            return f"the reply was not complete after {self._total:g} s"
        if self._allowed != self._silence:
            return f"no word of a reply came within {self._allowed:g} s"
        return f"the model was silent for {self._silence:g} s"


def _server(at: Route) -> tuple[str, str, Habits]:
    """Where a call goes, as its habits are kept, and those from the start."""
    base = at.api_base
    if base is None and at.facts.provider == "openai":
        base = os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    return server_name(base, at.facts.provider), at.name, known_habits(at.facts.provider, base, at.name)


def _chosen_arguments(request: ModelRequest, at: Route, habits: Habits) -> dict[str, Any]:
    """What the operator chose for the model, as litellm takes it. Raises `ModelFault`."""
    without = habits.refused if habits.thinks else habits.refused | REASONING_PARAMETERS
    names = dict(habits.renamed)
    given = request.parameters.given().items()
    chosen = {names.get(name, name): value for name, value in given if name not in without}
    if request.extra_headers:
        chosen["extra_headers"] = {
            name: _with_variables(value, at) for name, value in request.extra_headers.items()
        }
    if request.extra_body and at.facts.provider in _PLAIN_BODY:
        chosen |= request.extra_body
    elif request.extra_body:
        chosen["extra_body"] = request.extra_body
    return chosen


def _with_variables(value: str, at: Route) -> str:
    """A header's value with the variables that it names. Raises `ModelFault` where one is not set."""

    def of(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if not found:
            words = f"{match[1]} is not set, and the headers for {at.facts.model} need it"
            raise ModelFault(made(FaultKind.AUTH, words, at.facts, todo=f"Set {match[1]} and start again."))
        return found

    return REFERENCE.sub(of, value)


def _cached(usage: dict[str, Any]) -> tuple[int | None, int | None]:
    """Tokens read from the provider's cache and written to it, in the words of OpenAI, Anthropic and DeepSeek."""
    found = usage.get("prompt_tokens_details")
    details = found if isinstance(found, dict) else {}

    def first(*counts: Any) -> int | None:
        return next((count for count in counts if count is not None), None)

    read = first(
        details.get("cached_tokens"),
        usage.get("cache_read_input_tokens"),
        usage.get("prompt_cache_hit_tokens"),
    )
    return read, first(details.get("cache_creation_tokens"), usage.get("cache_creation_input_tokens"))


def _tools_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The tools that a history calls, offered so that none is to be called; nothing where it calls none."""
    names = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    parameters = {"type": "object", "properties": {}}
    tools = [
        {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}
        for name in sorted(names)
    ]
    return {"tools": tools, "tool_choice": "none"} if tools else {}
