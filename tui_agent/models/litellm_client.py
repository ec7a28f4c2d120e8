"""One model call through litellm: its stream read piece by piece, watched, and closed in every case.

Runs in the model host. litellm reports streams that were cut or empty as successes and invents usage for
them, so the raw chunks are looked at on their way through; what goes wrong becomes a typed fault (`faults`).
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tui_agent.core.events import FaultKind
from tui_agent.models import litellm_setup
from tui_agent.models.assembly import ReplyAssembler
from tui_agent.models.faults import fault_from, made
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.models.raw_chunks import RawChunks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from tui_agent.models.litellm_setup import Route

_CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
"""How providers say, in small letters, that a limit cut the reply."""

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
"""What providers refuse in the name of a call, also of one that a model invented."""


class LitellmClient:
    """Makes calls with the litellm that it is given (`litellm_setup.load`)."""

    def __init__(self, litellm: Any) -> None:
        self._litellm = litellm
        self._private: dict[str, Any] = {"_skip_mcp_handler": True}
        """Without it a call with tools wants a package for MCP. Left out once a release refuses it."""
        self._no_usage: set[tuple[str, str | None]] = set()
        """Servers that refuse `stream_options`."""

    def context_tokens(self, model: str, api_base: str | None = None) -> int | None:
        """See `protocol.Model`."""
        return litellm_setup.prompt_budget(
            self._litellm, litellm_setup.route(self._litellm, model, api_base).name
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        at = litellm_setup.route(self._litellm, request.model, request.api_base)
        if at.lacks_key:
            raise ModelFault(
                made(FaultKind.AUTH, f"{at.facts.key} is not set, and {request.model} needs it", at.facts)
            )
        watch = _Watch(request.silence_timeout, request.total_timeout)
        assembler = ReplyAssembler()
        response: Any = None
        try:
            async with watch.until_content():
                response = await self._open(request, at)
            raw = RawChunks.watch(response)
            async for delta in _deltas(response, assembler, watch):
                yield delta
                # Pieces that are in the buffer already would not let any other task run.
                await asyncio.sleep(0)
            yield self._reply(response, assembler, raw, at)
        except ModelFault:
            raise
        except TimeoutError as error:
            if not watch.expired:
                raise ModelFault(fault_from(error, at.facts)) from error
            raise ModelFault(made(FaultKind.TIMEOUT, watch.words, at.facts)) from error
        except Exception as error:
            raise ModelFault(fault_from(error, at.facts)) from error
        finally:
            if response is not None:
                with suppress(Exception):
                    await response.aclose()

    async def _open(self, request: ModelRequest, at: Route) -> Any:
        """Send the request; once more without what the server or the library refuses."""
        for _ in range(4):
            try:
                return await self._litellm.acompletion(**self._arguments(request, at))
            except Exception as error:
                if not self._adapt(str(error), at):
                    raise
        return await self._litellm.acompletion(**self._arguments(request, at))

    def _arguments(self, request: ModelRequest, at: Route) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            **self._private,
            "model": at.name,
            "messages": [_sendable(message) for message in request.messages],
            "stream": True,
            # Retries are the policy's; only here, on each call, do these take effect.
            "max_retries": 0,
            "num_retries": 0,
            # On each read, and later than the watch, which knows content from keep-alives.
            "timeout": request.silence_timeout + 30.0,
        }
        if (at.name, at.api_base) not in self._no_usage:
            arguments["stream_options"] = {"include_usage": True}
        if request.tools:
            arguments["tools"] = request.tools
        if at.api_base:
            arguments["api_base"] = at.api_base
        if at.api_key:
            arguments["api_key"] = at.api_key
        return arguments

    def _adapt(self, message: str, at: Route) -> bool:
        """Whether the call is worth another try, with something changed that the error complained about."""
        if "stream_options" in message and (at.name, at.api_base) not in self._no_usage:
            self._no_usage.add((at.name, at.api_base))
            return True
        if "_skip_mcp_handler" in message and self._private:
            self._private = {}
            return True
        if "No module named 'mcp" in message:
            return litellm_setup.do_without_mcp_gateway()
        return False

    def _reply(self, response: Any, assembler: ReplyAssembler, raw: RawChunks, at: Route) -> Reply:
        """The complete reply. Raises `ModelFault` when the stream was no complete one."""
        finish = raw.finish_reason or getattr(response, "received_finish_reason", None)
        if not raw.with_choices and assembler.empty:
            raise ModelFault(made(FaultKind.BAD_OUTPUT, "the server's stream held no reply at all", at.facts))
        if finish is None:
            raise ModelFault(
                made(FaultKind.STREAM_CUT, "the stream ended before the reply was complete", at.facts)
            )
        cut = finish.lower() in _CUT
        calls = assembler.calls(cut=cut)
        if finish == "content_filter" and assembler.empty:
            raise ModelFault(
                made(FaultKind.CONTENT_POLICY, "the provider's content filter stopped the reply", at.facts)
            )
        if cut and not calls and not assembler.text.strip():
            raise ModelFault(
                made(
                    FaultKind.BAD_OUTPUT,
                    "the reply reached its length limit before it said anything",
                    at.facts,
                    todo="Let the model think less, or choose one that may write more.",
                )
            )
        usage = raw.usage
        return Reply(
            text=assembler.text,
            reasoning=assembler.reasoning,
            calls=calls,
            finish_reason="length" if cut else finish,
            model=at.facts.model,
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            cached_tokens=_cached_tokens(usage),
            cost=litellm_setup.price(self._litellm, at, usage) if usage else None,
        )


async def _deltas(response: Any, assembler: ReplyAssembler, watch: _Watch) -> AsyncIterator[Delta]:
    """Read the stream to its end, one content chunk after another, each within the watch's time."""
    chunks = response.__aiter__()
    while True:
        try:
            async with watch.until_content():
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        choices = getattr(chunk, "choices", None)
        delta = getattr(choices[0], "delta", None) if choices else None
        if delta is None:
            continue
        text = getattr(delta, "content", None) or ""
        reasoning = getattr(delta, "reasoning_content", None) or ""
        calls = getattr(delta, "tool_calls", None) or ()
        for call in calls:
            function = getattr(call, "function", None)
            assembler.add_call(
                getattr(call, "index", None),
                getattr(call, "id", None),
                getattr(function, "name", None),
                getattr(function, "arguments", None),
            )
        if text or reasoning or calls:
            watch.content()
        text, reasoning = assembler.add(text, reasoning)
        if text or reasoning:
            yield Delta(text=text, reasoning=reasoning)


class _Watch:
    """The longest silence between content, and the longest call. Seconds."""

    def __init__(self, silence: float, total: float) -> None:
        self._silence = silence
        self._total = total
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + total
        self._last = self._clock()

    def until_content(self) -> asyncio.Timeout:
        """Raises `TimeoutError` inside when the time is over."""
        return asyncio.timeout_at(min(self._last + self._silence, self._end))

    def content(self) -> None:
        """Something came."""
        self._last = self._clock()

    @property
    def expired(self) -> bool:
        """The time is over (and a `TimeoutError` is therefore the watch's own)."""
        return self._clock() >= min(self._last + self._silence, self._end)

    @property
    def words(self) -> str:
        """What happened, when it is over."""
        if self._clock() >= self._end:
            return f"the reply was not complete after {self._total:g} s"
        return f"the model was silent for {self._silence:g} s"


def _cached_tokens(usage: dict[str, Any]) -> int | None:
    """In OpenAI's form or in Anthropic's."""
    details = usage.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, dict) else None
    return usage.get("cache_read_input_tokens") if found is None else found


def _sendable(message: dict[str, Any]) -> dict[str, Any]:
    """The message with every call's arguments as a JSON object, and a name that can be one.

    The history keeps what the model wrote, broken or not; many servers check it again and refuse the request.
    """
    calls = message.get("tool_calls")
    if not calls:
        return message
    return {**message, "tool_calls": [{**call, "function": _as_function(call["function"])} for call in calls]}


def _as_function(written: dict[str, Any]) -> dict[str, Any]:
    name, arguments = written["name"], written["arguments"]
    return {
        **written,
        "name": _NO_NAME.sub("_", name)[:64] or "unnamed",
        "arguments": arguments if _is_object(arguments) else json.dumps({"not_json": arguments}),
    }


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
