"""Model calls through the official OpenAI client, for every server that speaks OpenAI's chat protocol.

The stream is read from the response's own bytes (`event_stream`), so that unknown fields, errors in a stream and the
last words before a break are seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from tui_agent.models import http_guard
from tui_agent.models.chat_client import ChatClient, chosen_headers
from tui_agent.models.chat_events import Deltas, checked
from tui_agent.models.event_stream import DONE, Event, events
from tui_agent.models.exchange import Exchange
from tui_agent.models.habits import Habits
from tui_agent.models.heavy_import import as_if_missing, imported, packages_when_asked
from tui_agent.models.http_errors import AnsweredWithError
from tui_agent.models.kept_habits import HabitBook
from tui_agent.models.lessons import Learning
from tui_agent.models.protocol import ModelRequest
from tui_agent.models.routes import Route
from tui_agent.models.watch import Watch

_OPENAI = "api.openai.com"
_MOST_CLIENTS = 32


class OpenAIClient(ChatClient):
    """Makes calls with the package `openai` that it is given."""

    def __init__(self, openai: Any, book: HabitBook) -> None:
        super().__init__(book)
        self._openai = openai
        self._clients: dict[tuple[str, str], Any] = {}

    def _exchange(self, request: ModelRequest, at: Route, watch: Watch, learning: Learning) -> Exchange:
        return _StreamedEvents(request, at, watch, learning)

    async def _send(self, call: Exchange, arguments: dict[str, Any]) -> Any:
        """See `ChatClient`."""
        sending = self._client(call.at).chat.completions.with_streaming_response.create(**arguments)
        opened = _Opened(sending, await sending.__aenter__())
        if arguments["stream"]:
            return opened
        try:
            return _answer(await opened.whole())
        finally:
            await opened.aclose()

    def _client(self, at: Route) -> Any:
        """One for each address and key, so that its connections are used again."""
        place = (at.address, at.api_key or "")
        if place not in self._clients:
            if len(self._clients) >= _MOST_CLIENTS:
                self._clients.pop(next(iter(self._clients)))
            # What is not encrypted needs no certificates, and reading them takes a while.
            http = self._openai.DefaultAsyncHttpxClient(
                follow_redirects=False, verify=not at.address.startswith("http:")
            )
            client = self._openai.AsyncOpenAI(
                api_key=place[1],
                base_url=at.address or None,
                max_retries=0,
                http_client=http_guard.reads_as_sent(http),
            )
            if _OPENAI not in at.address:
                # The environment names them for OpenAI alone.
                client.organization = client.project = None
            self._clients[place] = client
        return self._clients[place]

    def _own_arguments(
        self, request: ModelRequest, at: Route, habits: Habits, messages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        own: dict[str, Any] = {
            "model": at.wire_name,
            # On each read, and later than the watch, which knows content from keep-alives.
            "timeout": max(request.silence_timeout, request.prompt_timeout or 0.0) + 30.0,
        }
        body: dict[str, Any] = dict(request.extra_body)
        if at.facts.provider == "openrouter":
            body.setdefault("usage", {"include": True})  # with what the call cost
        if body:
            own["extra_body"] = body
        if request.extra_headers:
            own["extra_headers"] = chosen_headers(request, at)
        return own


def load() -> Any:
    """The package `openai`, with its HTTP library guarded. Raises `ImportError` when missing.

    A chat needs a sixth of the types that the package imports, and not its other HTTP library: a sixth of the time.
    """
    with packages_when_asked("openai.types"), as_if_missing("aiohttp"):
        openai = imported(_import)
    http_guard.install()
    return openai


def _import() -> Any:
    import openai
    import openai.resources.chat  # otherwise the first call imports it

    return openai


class _Opened:
    """A response whose body is read piece by piece."""

    def __init__(self, sending: Any, response: Any) -> None:
        self._sending = sending
        self._response = response
        self.is_json = "application/json" in response.headers.get("content-type", "")

    def __aiter__(self) -> AsyncIterator[Event]:
        return events(self._response.iter_bytes())

    async def whole(self) -> str:
        """The body as text."""
        body = b"".join([piece async for piece in self._response.iter_bytes()])
        return body.decode("utf-8", "replace")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._sending.__aexit__(None, None, None)


class _StreamedEvents(Exchange):
    """A call whose stream consists of events."""

    def __init__(self, request: ModelRequest, at: Route, watch: Watch, learning: Learning) -> None:
        super().__init__(request, at, watch, learning)
        self._deltas = Deltas()

    def watched(self, stream: Any) -> AsyncIterator[Any]:
        """See `Exchange`."""
        self.as_json = stream.is_json
        return self._body(stream) if stream.is_json else aiter(stream)

    @staticmethod
    async def _body(stream: Any) -> AsyncIterator[Event]:
        """A server that does not stream answers with one JSON object."""
        yield Event(await stream.whole())

    def read(self, chunk: Event) -> Any:
        """See `Exchange`."""
        data = chunk.data.strip()
        if data == DONE:
            self.done = True
            return None
        if not data:
            return None
        value = checked(data, chunk.name)
        if not isinstance(value, Mapping):
            return None
        usage = value.get("usage")
        choice = _first_choice(value.get("choices"))
        if isinstance(usage, Mapping):
            self.saw_usage(usage, alone=choice is None)
        if choice is None:
            return None
        if choice.get("error"):
            raise AnsweredWithError(200, {}, choice)
        if choice.get("finish_reason") == "error" and choice.get("native_finish_reason"):
            words = f"the provider ended the reply: {choice['native_finish_reason']}"
            raise AnsweredWithError(200, {}, {"error": {"message": words}})
        delta = self._deltas.of(choice)
        self.saw_choice(choice, delta)
        return delta


def _first_choice(choices: Any) -> Mapping[str, Any] | None:
    """The choice that was asked for; None if the chunk has nothing of it."""
    listed = [choices] if isinstance(choices, Mapping) else choices if isinstance(choices, list) else []
    found = (each for each in listed if isinstance(each, Mapping) and each.get("index") in {0, None, "0"})
    return next(found, None)


def _answer(text: str) -> Any:
    """The body of a reply that was not streamed. Raises `ValueError` for what is no JSON."""
    value = checked(text)
    return value if isinstance(value, Mapping) else {}
