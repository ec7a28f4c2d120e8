"""The route of a model's name: its provider, the address of its requests, and the client that makes them.
Data only; no litellm.

Models whose provider speaks OpenAI's chat protocol (`providers`), or whose server the operator gives an address of, are
called with the official OpenAI client; all others, and those that only the Responses API serves, with litellm.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from tui_agent.config.profiles import Client
from tui_agent.models import catalogue, prompt_cache
from tui_agent.models.fault_advice import CallFacts
from tui_agent.models.local_servers import is_nearby
from tui_agent.models.providers import OTHER_PROTOCOLS, OWN_SERVERS, PROVIDERS, name_on_the_wire
from tui_agent.models.server_window import server_window

_OLLAMAS = frozenset({"ollama", "ollama_chat"})
_OLLAMA = "http://localhost:11434"
_TABLES_ARE_OLD = frozenset({"deepseek", *_OLLAMAS})
"""Providers whose models the table knows less well than the provider's own answer does."""
_RESPONSES = "/responses/"
"""Within a name: the operator wants the Responses API."""


@dataclass(frozen=True)
class Route:
    """The route of a call: the name as the client wants it, and facts for messages."""

    name: str
    """As litellm spells it."""
    facts: CallFacts
    client: Client = "litellm"
    wire_name: str = ""
    """The model's name in a request of OpenAI's protocol."""
    api_base: str | None = None
    """The address that was given; None: the provider's."""
    address: str = ""
    """The address of its API, with OpenAI's protocol."""
    elsewhere: bool = False
    """A variable names that address in place of the provider's own."""
    api_key: str | None = None
    """That of the request's own variable, or a placeholder for servers that want none; None: the provider's."""
    lacks_key: bool = False
    own_server: bool = False
    """OpenAI's protocol, or that of a server for local models, at an address of one's own."""
    without_tools: bool = False
    """The table says that the model cannot call tools."""
    without_vision: bool = False
    """The table lists the model, and no sight."""
    responses: bool = False
    """Goes to OpenAI's responses, with a model that reasons."""
    nearby: bool = False
    """Its server is this machine's or one of its network."""


def client_for(model: str, api_base: str | None, wanted: Client | None = None) -> Client:
    """The client that calls a model: without a look at the table when its provider says it."""
    name, provider = _named(model, api_base)
    if wanted is not None:
        return wanted if wanted == "litellm" or provider in PROVIDERS else "litellm"
    if provider not in PROVIDERS or _RESPONSES in name:
        return "litellm"
    if provider == "openai" and api_base is None and _variable(PROVIDERS["openai"].base_variables) is None:
        return "litellm" if catalogue.facts(name, provider).get("mode") == "responses" else "openai"
    return "openai"


def route(
    model: str, api_base: str | None, key_variable: str | None = None, client: Client | None = None
) -> Route:
    """Find the way to a model by its name.

    A name without a provider goes, with an api base, to any server with OpenAI's protocol. `key_variable` is the
    variable with its key, if it is not the provider's own. `client`: the one that the operator wants.
    """
    name, provider = _named(model, api_base)
    known = PROVIDERS.get(provider)
    base = api_base
    if base and provider == "anthropic":
        base = base.rstrip("/").removesuffix("/v1")
    chosen = client_for(model, api_base, client)
    elsewhere = _variable(known.base_variables) if known is not None else None
    server = api_base or (elsewhere if provider in OWN_SERVERS else None)
    keys = (known.keys if known is not None else ()) if key_variable is None else (key_variable,)
    own_key, wanted = _variable(keys), keys[:1]
    missing = () if own_key or not wanted else wanted
    own_protocol = bool(api_base) and "api.openai.com" not in str(api_base) and provider in OWN_SERVERS
    row = {} if own_protocol else catalogue.facts(name, provider)
    placeholder = "none" if known is not None and (server or not known.keys) else None
    return Route(
        name,
        CallFacts(model, provider, api_base, missing if key_variable is None else wanted),
        chosen,
        name_on_the_wire(provider, name.removeprefix(f"{provider}/")),
        base,
        address=str(api_base or elsewhere or (known.base if known is not None else "")),
        elsewhere=api_base is None and elsewhere is not None,
        api_key=(own_key if chosen == "openai" or key_variable is not None else None)
        or (placeholder if missing or chosen == "openai" else None),
        lacks_key=bool(missing) and (key_variable is not None or not server),
        own_server=own_protocol,
        without_tools=provider not in _TABLES_ARE_OLD and row.get("supports_function_calling") is False,
        without_vision=bool(row) and provider not in _OLLAMAS and not row.get("supports_vision"),
        responses=_is_for_responses(name, provider),
        nearby=is_nearby(str(server or (_OLLAMA if provider in _OLLAMAS else ""))),
    )


def _named(model: str, api_base: str | None) -> tuple[str, str]:
    """The name with its provider, and the provider; empty: nobody knows it."""
    prefix, slash, _ = model.partition("/")
    if slash and (prefix in PROVIDERS or prefix in OTHER_PROTOCOLS):
        return model, prefix
    if api_base:
        return f"openai/{model}", "openai"
    if slash and prefix in catalogue.providers():
        return model, prefix
    provider = catalogue.provider_of(model)
    return (f"{provider}/{model}", provider) if provider in PROVIDERS else (model, provider)


def _variable(names: tuple[str, ...]) -> str | None:
    """The value of the first of these variables that is set."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def _is_for_responses(name: str, provider: str) -> bool:
    if provider not in {"openai", "azure"}:
        return False
    row = catalogue.facts(name.replace(_RESPONSES, "/"), provider)
    return bool(row.get("supports_reasoning")) and (_RESPONSES in name or row.get("mode") == "responses")


def look_up(name: str) -> tuple[bool, bool, tuple[str, ...]]:
    """Check `name`: is its provider known, does the table list the model, and which listed names are nearest."""
    _, provider = _named(name, None)
    if catalogue.facts(name, provider):
        return True, True, ()
    return bool(provider), False, catalogue.nearest(name, provider)


async def prompt_budget(at: Route) -> int | None:
    """Tokens that a prompt may have: the window less room for a reply; None if nobody knows the window.

    A server of one's own is asked first: it may run a model with less than the model could take.
    """
    row = catalogue.facts(at.name, at.facts.provider)
    window: Any = None
    address = at.api_base or (_OLLAMA if at.facts.provider in _OLLAMAS else None)
    if address and (at.own_server or at.facts.provider in _OLLAMAS):
        key = at.api_key or os.environ.get(f"{at.facts.provider.upper()}_API_KEY")
        window = await server_window(address, at.name.partition("/")[2], key)
    if window is None:
        window = row.get("max_input_tokens") or row.get("max_tokens")
    if not isinstance(window, int) or window <= 0:
        return None
    room = row.get("max_output_tokens")
    # A reply rarely needs all that it may use; more than a quarter of the window is not kept for it.
    return window - min(room if isinstance(room, int) else 4_096, window // 4)


def caches_by_marks(at: Route) -> bool:
    """True if the model wants marks for its prompt cache."""
    known = catalogue.facts(at.name, at.facts.provider).get("supports_prompt_caching")
    return prompt_cache.wants_marks(at.facts.provider, at.name, own_server=at.own_server, known=known)


def price(at: Route, usage: dict[str, Any]) -> float | None:
    """The cost of a call in USD; None if the model's price or the server behind a name is not known.

    `usage` is what the server reported, in OpenAI's form.
    """
    from tui_agent.models import prices

    if at.own_server:
        return None
    if at.facts.provider == "openrouter":
        # Prices differ by the provider behind it; what the call cost comes with the usage.
        cost = usage.get("cost")
        return float(cost) if isinstance(cost, int | float) else None
    return prices.cost_of(catalogue.facts(at.name, at.facts.provider), usage)
