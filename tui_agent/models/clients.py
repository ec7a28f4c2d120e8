"""The two clients behind one door: a request goes to the one that its model needs, which is loaded when first needed.

Runs in the model host.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from tui_agent.config.profiles import Client
from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault
from tui_agent.keychain import stored
from tui_agent.models import routes
from tui_agent.models.chat_client import ChatClient
from tui_agent.models.kept_habits import HabitBook
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.models.routes import Route

Loader = Callable[[HabitBook], ChatClient]


def _openai(book: HabitBook) -> ChatClient:
    from tui_agent.models import openai_client

    return openai_client.OpenAIClient(openai_client.load(), book)


def _litellm(book: HabitBook) -> ChatClient:
    from tui_agent.models import litellm_setup
    from tui_agent.models.litellm_client import LitellmClient

    return LitellmClient(litellm_setup.load(), book)


_LOADERS: Mapping[Client, Loader] = {"openai": _openai, "litellm": _litellm}


class Clients:
    """Makes calls. A client is loaded when it is first needed, in a thread: its library may take seconds."""

    def __init__(self) -> None:
        self._book = HabitBook()
        self._one_at_a_time = asyncio.Lock()
        """Two threads that import parts of the same library may find half of it."""
        self._loading: dict[Client, asyncio.Task[ChatClient]] = {}
        self._looked_for: set[str] = set()
        """Variables whose keys the keyring was asked for."""

    def begin(self, client: Client) -> asyncio.Task[ChatClient]:
        """Load a client, if nobody did."""
        if client not in self._loading:
            self._loading[client] = asyncio.ensure_future(self._load(client))
        return self._loading[client]

    def close(self) -> None:
        """Wait for no import any more."""
        for task in self._loading.values():
            task.cancel()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        named = request.model, request.api_base, request.api_key_variable, request.client
        at, client = await self._way(*named)
        async with aclosing(client.stream(request, at)) as stream:
            async for piece in stream:
                yield piece

    async def context_tokens(
        self, model: str, api_base: str | None, api_key_variable: str | None
    ) -> int | None:
        """See `protocol.Model`. A client that loads is waited for, since asking imports an HTTP library too."""
        if not self._loading:
            self.begin(routes.client_for(model, api_base))
        await asyncio.shield(next(iter(self._loading.values())))
        at = await self._with_stored_key(routes.route(model, api_base, api_key_variable), api_key_variable)
        return await routes.prompt_budget(at)

    def sees(self, name: str, api_base: str | None) -> bool:
        """False for a model that is known to see no images: by the table, or because its server refused some."""
        at = routes.route(name, api_base)
        loaded = self._loading.get(at.client)
        known = loaded is not None and loaded.done() and not loaded.cancelled() and loaded.exception() is None
        taken = loaded is None or not known or loaded.result().habits(at, None).images
        return taken and not at.without_vision

    async def _way(
        self, model: str, api_base: str | None, variable: str | None, wanted: Client | None
    ) -> tuple[Route, ChatClient]:
        at = routes.route(model, api_base, variable, wanted)
        client = await asyncio.shield(self.begin(at.client))
        at = client.refined(at)
        before = at.facts.key_variables
        if before and await self._find_keys(before):
            at = client.refined(routes.route(model, api_base, variable, wanted))
        return at, client

    async def _with_stored_key(self, at: Route, variable: str | None) -> Route:
        if at.facts.key_variables and await self._find_keys(at.facts.key_variables):
            return routes.route(at.facts.model, at.facts.api_base, variable)
        return at

    async def _find_keys(self, variables: tuple[str, ...]) -> bool:
        """Take keys that the environment lacks from the keyring, asked once for each; whether one was there."""
        found = False
        for name in variables:
            if name not in os.environ and name not in self._looked_for:
                self._looked_for.add(name)
                key = await asyncio.to_thread(stored, name)
                if key is not None:
                    os.environ[name] = key
                    found = True
        return found

    async def _load(self, client: Client) -> ChatClient:
        """In a thread, so that commands and heartbeats go on meanwhile. Raises `ModelFault`."""
        try:
            async with self._one_at_a_time:
                return await asyncio.to_thread(_LOADERS[client], self._book)
        except Exception as error:
            raise ModelFault(
                Fault(
                    kind=FaultKind.BAD_REQUEST,
                    message=f"{client} cannot be loaded: {type(error).__name__}: {error}",
                    advice="Install agent-tui again, with its dependencies, into a fresh environment.",
                )
            ) from error
