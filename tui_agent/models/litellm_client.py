"""Model calls through litellm, for providers with a protocol of their own and for OpenAI's responses.

litellm reports streams that were cut or empty as successes and invents usage for them, so the provider's own chunks are
looked at on their way through (`raw_chunks`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from tui_agent.models import litellm_setup
from tui_agent.models.carried import of
from tui_agent.models.chat_client import ChatClient, chosen_headers
from tui_agent.models.exchange import Exchange
from tui_agent.models.habits import Habits
from tui_agent.models.kept_habits import HabitBook
from tui_agent.models.lessons import Learning
from tui_agent.models.outgoing import without_nulls
from tui_agent.models.protocol import ModelRequest
from tui_agent.models.raw_chunks import RawChunks
from tui_agent.models.routes import Route
from tui_agent.models.watch import Watch

_TOOLS_WITH_CALLS = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai"})
"""Providers that refuse a history with calls if the request has no tools."""

_PLAIN_BODY = frozenset({"anthropic", "bedrock", "gemini", "vertex_ai", "vertex_ai_beta"})
"""Providers for which litellm takes further fields of the body one by one."""

_ENDED_EARLY = "Stream ended before a finish_reason"


class LitellmClient(ChatClient):
    """Makes calls with the litellm that it is given (`litellm_setup.load`)."""

    def __init__(self, litellm: Any, book: HabitBook) -> None:
        super().__init__(book)
        self._litellm = litellm
        self._private: dict[str, Any] = {"_skip_mcp_handler": True}
        """Without it a call with tools wants a package for MCP. Left out once a release refuses it."""

    def refined(self, at: Route) -> Route:
        """The route with what only litellm knows: the provider's own name, and which keys are missing."""
        if at.facts.provider and at.facts.key_variables:
            return at
        provider, missing = litellm_setup.provider_and_missing_keys(self._litellm, at.name)
        facts = replace(at.facts, provider=at.facts.provider or provider, key_variables=missing)
        return replace(at, facts=facts, lacks_key=bool(missing) and not at.api_base)

    def _exchange(self, request: ModelRequest, at: Route, watch: Watch, learning: Learning) -> Exchange:
        return _LitellmStream(request, at, watch, learning)

    async def _send(self, call: Exchange, arguments: dict[str, Any]) -> Any:
        return await self._litellm.acompletion(**self._private, **arguments)

    def _own_arguments(
        self, request: ModelRequest, at: Route, habits: Habits, messages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        own: dict[str, Any] = {
            "model": at.name,
            # Retries are the policy's; only here, on each call, do these take effect.
            "max_retries": 0,
            "num_retries": 0,
            # On each read, and later than the watch, which knows content from keep-alives.
            "timeout": max(request.silence_timeout, request.prompt_timeout or 0.0) + 30.0,
        }
        if not request.tools and at.facts.provider in _TOOLS_WITH_CALLS:
            own |= _tools_of(messages)
        if at.responses and habits.encrypted:
            own["include"] = ["reasoning.encrypted_content"]
        if at.api_base:
            own["api_base"] = at.api_base
        if at.api_key:
            own["api_key"] = at.api_key
        if request.extra_headers:
            own["extra_headers"] = chosen_headers(request, at)
        if request.extra_body and at.facts.provider in _PLAIN_BODY:
            own |= request.extra_body
        elif request.extra_body:
            own["extra_body"] = request.extra_body
        return own

    def _body(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return without_nulls(arguments)

    def _mends(self, error: Exception) -> bool:
        """See `ChatClient`: arguments and modules that only some releases know."""
        message = str(error)
        if "_skip_mcp_handler" in message and self._private:
            self._private = {}
            return True
        return "No module named 'mcp" in message and litellm_setup.do_without_mcp_gateway()


class _LitellmStream(Exchange):
    """A call whose stream consists of litellm's chunks."""

    ends_with_content = False

    def watched(self, stream: Any) -> AsyncIterator[Any]:
        """See `Exchange`."""
        RawChunks.watch(stream, self)
        return aiter(stream)

    def read(self, chunk: Any) -> Any:
        """See `Exchange`."""
        choices = of(chunk, "choices")
        return of(choices[0], "delta") if choices else None

    async def next_chunk(self, chunks: AsyncIterator[Any]) -> Any:
        """See `Exchange`. Newer releases raise an error if a stream ends without a finish; here it just ends."""
        try:
            return await anext(chunks)
        except StopAsyncIteration:
            raise
        except Exception as error:
            if _ENDED_EARLY in str(error):
                raise StopAsyncIteration from error
            raise

    def settle(self) -> None:
        """See `Exchange`. Some releases keep the real finish reason to themselves."""
        self.finish = self.finish or of(self._stream, "received_finish_reason")
        super().settle()


def _tools_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The tools that a history calls, offered so that none is to be called; nothing if it calls none."""
    names = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    parameters = {"type": "object", "properties": {}}
    tools = [
        {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}
        for name in sorted(names)
    ]
    return {"tools": tools, "tool_choice": "none"} if tools else {}
