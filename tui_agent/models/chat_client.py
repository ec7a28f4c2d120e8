"""The part that both clients share: a call is opened, its stream watched and read, and a reply or a typed
fault made of it.

Runs in the model host. A client adds its library: the sending of a request, and the places of a reply's
pieces.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Any

from tui_agent.config.profiles import REFERENCE
from tui_agent.core.names import FaultKind
from tui_agent.models import prompt_cache, routes
from tui_agent.models.exchange import Exchange
from tui_agent.models.faults import fault_from, made
from tui_agent.models.habits import Habits
from tui_agent.models.kept_habits import HabitBook, server_name
from tui_agent.models.known_servers import known_habits
from tui_agent.models.lessons import REASONING_PARAMETERS, Learning, about_template, takes_no_results
from tui_agent.models.outgoing import outgoing, sent
from tui_agent.models.prices import cache_tokens
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.models.routes import Route
from tui_agent.models.shape import fitted_tools
from tui_agent.models.watch import WHOLE, Watch

_CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
"""How providers say, in small letters, that a limit cut the reply."""
_FILTERED = (FaultKind.CONTENT_POLICY, "the provider's content filter stopped the reply")
_FAILED = {
    "content_filter": _FILTERED,
    "sensitive": _FILTERED,
    "insufficient_system_resource": (FaultKind.OVERLOADED, "the server ran out of resources in the reply"),
    "network_error": (FaultKind.SERVER, "the server lost its model in the middle of the reply"),
    "error": (FaultKind.SERVER, "the server ended the reply with an error that it does not name"),
}
"""Finish reasons that say, in small letters, that there is no whole reply (DeepSeek, Zhipu, OpenRouter)."""


class ChatClient:
    """Makes calls of one library. `book`: what is learnt of servers, shared by both clients."""

    def __init__(self, book: HabitBook) -> None:
        self._book = book

    # --- what a library is for ---

    def _exchange(self, request: ModelRequest, at: Route, watch: Watch, learning: Learning) -> Exchange:
        raise NotImplementedError

    async def _send(self, call: Exchange, arguments: dict[str, Any]) -> Any:
        """Send a request; the library's stream, or its whole reply when the arguments want no stream."""
        raise NotImplementedError

    def _own_arguments(
        self, request: ModelRequest, at: Route, habits: Habits, messages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Arguments that the library takes beside OpenAI's parameters."""
        raise NotImplementedError

    def refined(self, at: Route) -> Route:
        """The route with what only the library knows."""
        return at

    def _body(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that go over the wire."""
        return arguments

    def _mends(self, error: Exception) -> bool:
        """True if the error was the library's own, and something changed so that the call is worth another
        try.
        """
        return False

    # --- calls ---

    def habits(self, at: Route, folder: str | None) -> Habits:
        """The server's habits. `folder`: see `ModelRequest.state_folder`."""
        return self._book.of(*_server(at), folder)

    async def stream(self, request: ModelRequest, at: Route) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        if at.lacks_key:
            raise ModelFault(
                made(FaultKind.AUTH, f"{at.facts.key} is not set, and {request.model} needs it", at.facts)
            )
        if request.tools and at.without_tools and not request.native_calls:
            raise ModelFault(made(FaultKind.NO_TOOLS, f"{request.model} cannot call tools", at.facts))
        patience = request.prompt_timeout if at.nearby else None
        watch = Watch(request.silence_timeout, request.total_timeout, patience or request.silence_timeout)
        call = self._exchange(request, at, watch, self._learning(request, at))
        try:
            async with watch.until_content():
                await self._open(call)
            async for delta in self._deltas(call):
                yield delta
                # Pieces that are in the buffer already would not let any other task run.
                await asyncio.sleep(0)
            if call.said_nothing:
                async with watch.until_content():
                    watch.for_whole()
                    await self._take_whole(call)
            if call.as_json:
                # There is no stream if what came was called JSON.
                call.learning.habits = replace(call.learning.habits, stream=False)
            if call.whole is not None:
                yield call.whole
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

    async def _open(self, call: Exchange) -> None:
        """Send the request and wait for the first chunk; again in another form if it is refused."""
        while True:
            try:
                if not call.learning.habits.stream:
                    call.watch.for_whole()
                    await self._take_whole(call)
                else:
                    arguments = self._arguments(call.request, call.at, call.learning.habits)
                    await call.begin(await self._send(call, arguments))
            except Exception as error:
                await call.close()
                if not self._adapt(call, error):
                    raise
            else:
                return

    async def _deltas(self, call: Exchange) -> AsyncIterator[Delta]:
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

    async def _take_whole(self, call: Exchange) -> None:
        """Ask without streaming: a stream under status 200 that holds nothing hides a fault (an overflow, mostly)."""
        arguments = self._arguments(call.request, call.at, call.learning.habits)
        arguments.pop("stream_options", None)
        arguments["timeout"] *= WHOLE
        call.take_whole(await self._send(call, {**arguments, "stream": False}))

    def _learning(self, request: ModelRequest, at: Route) -> Learning:
        """The shapes that the call tries, beginning with the server's known habits."""

        def body(habits: Habits) -> dict[str, Any]:
            return self._body(self._arguments(request, at, habits))

        return Learning(
            self.habits(at, request.state_folder), body, lambda habits: sent(body(habits), request)
        )

    def _arguments(self, request: ModelRequest, at: Route, habits: Habits) -> dict[str, Any]:
        seen = habits.images and not at.without_vision
        messages, ephemeral = outgoing(request, at.facts.provider, habits, seen=seen)
        if request.prompt_caching == "on" or (
            request.prompt_caching == "auto" and routes.caches_by_marks(at)
        ):
            messages = prompt_cache.marked(messages, ephemeral)
        arguments: dict[str, Any] = {"messages": messages, "stream": habits.stream}
        if habits.usage and habits.stream:
            arguments["stream_options"] = {"include_usage": True}
        if request.tools:
            arguments["tools"] = fitted_tools(request.tools, habits)
            if at.own_server and habits.tool_choice:
                # Some take no choice for "none".
                arguments["tool_choice"] = "auto"
        return arguments | _parameters(request, habits) | self._own_arguments(request, at, habits, messages)

    def _adapt(self, call: Exchange, error: Exception) -> bool:
        """True if the call is worth another try, with a change that answers the error's complaint."""
        if self._mends(error):
            return True
        words = f"{error}\n{getattr(error, 'body', '')}"
        fault, status = fault_from(error, call.at.facts), getattr(error, "status_code", None)
        lasting = about_template(words) and (status is None or status >= 500)
        if call.learning.refused(words, status, guess=lasting or fault.kind is FaultKind.BAD_REQUEST):
            return True
        answered = fault.kind in {FaultKind.BAD_REQUEST, FaultKind.SERVER}
        if answered and takes_no_results(words, call.learning.sent):
            raise ModelFault(made(FaultKind.NO_TOOLS, fault.message, call.at.facts)) from error
        if lasting and fault.kind is FaultKind.SERVER:
            # The same request would fail for ever, so nobody should try it again.
            kept = made(FaultKind.BAD_REQUEST, fault.message, call.at.facts, status=fault.status)
            raise ModelFault(kept) from error
        return False

    def _reply(self, call: Exchange) -> Reply:
        """The complete reply. Raises `ModelFault` when the stream was no complete one."""
        assembler, at = call.assembler, call.at
        call.settle()
        finish = call.finish
        if not call.with_choices and assembler.empty and not call.refusal:
            raise ModelFault(made(FaultKind.BAD_OUTPUT, "the server's stream held no reply at all", at.facts))
        if finish is None:
            raise ModelFault(
                made(FaultKind.STREAM_CUT, "the stream ended before the reply was complete", at.facts)
            )
        if finish.lower() in _FAILED:
            raise ModelFault(made(*_FAILED[finish.lower()], at.facts))
        cut = finish.lower() in _CUT
        calls = assembler.calls.calls(cut=cut)
        text = assembler.text or ("" if calls else call.refusal)
        habits = call.learning.habits
        server, model, start = _server(at)
        self._book.learn(server, model, habits, start, call.request.state_folder)
        usage = call.usage
        cached, written = cache_tokens(usage)
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
            cost=routes.price(at, usage) if usage else None,
            left_out=tuple(name for name in call.request.parameters.given() if name in habits.refused)
            + (("images",) if call.has_images and not (habits.images and not at.without_vision) else ()),
            learnt=self._book.unsaid(),
            remarks=tuple(dict.fromkeys(call.remarks)),
            carried=call.pieces.carried(
                at.facts.provider,
                calls,
                assembler.calls.signatures(cut=cut),
                assembler.reasoning,
                details=call.details,
                own=call.own,
                own_server=at.own_server,
            ),
        )


def _server(at: Route) -> tuple[str, str, Habits]:
    """The address under which a call's habits are kept, and the habits from the start."""
    own = at.api_base or (at.address if at.elsewhere else None)
    return server_name(own, at.facts.provider), at.name, known_habits(at.facts.provider, own, at.name)


def _parameters(request: ModelRequest, habits: Habits) -> dict[str, Any]:
    """OpenAI's parameters as the operator chose them, without those that the model does not take."""
    without = habits.refused if habits.thinks else habits.refused | REASONING_PARAMETERS
    renamed, bounds = dict(habits.renamed), dict(habits.bounds)
    return {
        renamed.get(name, name): min(value, bounds[name]) if name in bounds else value
        for name, value in request.parameters.given().items()
        if name not in without
    }


def chosen_headers(request: ModelRequest, at: Route) -> dict[str, str]:
    """The operator's headers, with the variables that they name. Raises `ModelFault` if one is not set."""

    def of(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if not found:
            words = f"{match[1]} is not set, and the headers for {at.facts.model} need it"
            raise ModelFault(made(FaultKind.AUTH, words, at.facts, todo=f"Set {match[1]} and start again."))
        return found

    return {name: REFERENCE.sub(of, value) for name, value in request.extra_headers.items()}
