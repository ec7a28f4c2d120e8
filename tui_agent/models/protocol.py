"""The model as the loop sees it: a request goes in, deltas come out, and a reply or a typed fault ends them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from pydantic import BaseModel

from tui_agent.config.profiles import Client, ModelParameters, PromptCaching
from tui_agent.core.values import Carried, Fault, ToolCall
from tui_agent.models.usage import TokenCount, Usd


class ModelRequest(BaseModel, frozen=True, extra="forbid"):
    """One model call. `messages` and `tools` are in OpenAI's chat form; the system prompt comes first.

    An assistant message may have the key `carried` (see `carried.restored`), one of the user's `images` (`images`).
    """

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = []
    native_calls: bool = False
    """Send the tools even if it is known that the model cannot call them."""
    api_base: str | None = None
    api_key_variable: str | None = None
    """The environment variable that holds the key; None: the provider's own."""
    client: Client | None = None
    """The library that makes the call; None: the one that its server needs."""
    ephemeral: int = 0
    """How many messages at the end no later request will hold; a prompt cache ends before them."""
    prompt_caching: PromptCaching = "auto"
    parameters: ModelParameters = ModelParameters()
    """Of those that the loop sets, `max_tokens` bounds what is configured; all others are the configuration's."""
    reply_room: int | None = None
    """Tokens that the reply must be allowed, even if `parameters` allow fewer; None: as they say."""
    extra_headers: dict[str, str] = {}
    """`${NAME}` in a value is the environment's variable of that name."""
    extra_body: dict[str, Any] = {}
    silence_timeout: float = 120.0
    """Longest silence in seconds before and between content chunks; keep-alives do not count."""
    prompt_timeout: float | None = None
    """Longest wait in seconds for the first content of a server nearby, which may need that long for a prompt (see
    `local_servers.is_nearby`); None: `silence_timeout`."""
    total_timeout: float = 1_800.0
    state_folder: str | None = None
    """The folder in which what is learnt of servers is kept; None: nowhere."""


class Delta(BaseModel, frozen=True, extra="forbid"):
    """A piece of a reply as it streams. Calls are shown only when complete, in the reply."""

    text: str = ""
    reasoning: str = ""


class Reply(BaseModel, frozen=True, extra="forbid"):
    """A reply that ended. Numbers are None if the provider did not give them; `cost` in USD."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    """`length`, whatever the provider calls it, if the reply was cut by a limit; else the provider's own
    word.
    """
    model: str = ""
    prompt_tokens: TokenCount = None
    completion_tokens: TokenCount = None
    cached_tokens: TokenCount = None
    """How many of the prompt's tokens were read from the provider's cache."""
    cache_write_tokens: TokenCount = None
    """How many of them were written to it."""
    cost: Usd = None
    carried: Carried | None = None
    """Fields that the provider wants back with this reply."""
    left_out: tuple[str, ...] = ()
    """Parameters of the request that the model does not take and did not get."""
    learnt: tuple[str, ...] = ()
    """Sentences for the operator: what was just learnt of the server."""
    remarks: tuple[str, ...] = ()
    """Oddities in the way in which the reply came, in words for the operator."""


class ModelFault(Exception):
    """A model call failed; `fault` says how. Text streamed before it is the caller's to show as partial."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class Model(Protocol):
    """Two implementations: the clients in their host process (`hosted`), and scenarios as data (`scripted`)."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Deltas, then exactly one `Reply`, last. Raises `ModelFault`. Closing it cancels the call."""

    async def start(self) -> None:
        """Get ready ahead of the first call (which would do it by itself). Raises `ModelFault`."""

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """Budget of the model's prompt in tokens (its window less room for the reply); None if unknown."""

    async def close(self) -> None:
        """End whatever the model holds (a child process, connections). May be called twice."""
