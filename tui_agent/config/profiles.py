"""Model profiles: a model with its server and its parameters under a name, and what any name stands for.

A name is a profile's (`[profiles.NAME]`), an alias (`[aliases]`), or a model's as litellm spells it. Values of
secrets stand in no file: a profile names the variable that holds its key, and headers refer to variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, JsonValue, StringConstraints, field_validator

from tui_agent.core.names import FaultKind, ReasoningEffort
from tui_agent.secret_names import named_like_a_secret

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PromptCaching = Literal["auto", "on", "off"]
Client = Literal["openai", "litellm"]
"""The library that makes the calls: the official OpenAI client, or litellm."""
ShortName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""Of a profile or an alias: no slash and no colon, which names of models and scenarios have."""

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""How a header's value refers to a variable of the environment."""

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = {"model", "messages", "tools", "stream"}


Usd = Annotated[float, Field(ge=0, le=1_000_000)]


class Price(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The price of a model in USD per million tokens (`[prices."MODEL"]`, `price` in profiles)."""

    prompt: Usd
    """Tokens of the prompt."""
    completion: Usd
    """Tokens of the reply."""
    cached: Usd | None = None
    """Tokens of the prompt that were read from the server's cache; left out: as `prompt`."""


class ModelParameters(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Parameters of model calls (`[parameters]`, and in profiles); None: the provider's default."""

    reasoning_effort: ReasoningEffort | None = None
    """How much the model thinks before it answers."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """How freely tokens are chosen, 0 to 2."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the likeliest tokens to choose from, above 0 to 1."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Longest reply in tokens."""
    seed: int | None = None
    """The same seed gives the same replies if the provider supports it."""

    def given(self) -> dict[str, Any]:
        """Those that are set, by their names in OpenAI's protocol."""
        return {
            name: value for name in ModelParameters.model_fields if (value := getattr(self, name)) is not None
        }


class ModelProfile(ModelParameters, frozen=True):
    """A model with its server and parameters (`[profiles.NAME]`). What is left out is as for every model."""

    model: Annotated[str, Field(min_length=1)]
    """Name of the model, as litellm spells it, or `scripted:NAME`."""
    api_base: str | None = None
    """Address of its server; left out: the general `api_base`; empty: the provider's own."""
    api_key_variable: VariableName | None = None
    """The environment variable that holds its key; left out: the provider's own."""
    client: Client | None = None
    """The library that calls it; left out: openai for servers with OpenAI's protocol, litellm for all others."""
    context_tokens: Annotated[int, Field(ge=256)] | None = None
    """Budget of its window in tokens; left out: the model's own, less room for the reply."""
    model_timeout: Seconds | None = None
    """Longest silence of a call in seconds; left out: the general `model_timeout`."""
    total_timeout: Seconds | None = None
    """Longest whole call in seconds; left out: 1800, or `model_timeout` if that is longer."""
    price: Price | None = None
    """Its price: `{ prompt = 0.2, completion = 0.8 }`; left out: `[prices]`, then litellm's table."""
    prompt_caching: PromptCaching = "auto"
    """Marks for the prompt cache. auto: for Claude, which needs them; on, off: whatever the model is called."""
    extra_headers: dict[str, str] = {}
    """Further headers; `${NAME}` in a value is the variable of that name."""
    extra_body: dict[str, JsonValue] = {}
    """Further fields of the request's body, as the provider documents them."""

    @field_validator("api_base")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        return value if not value else address(value)

    @field_validator("extra_headers")
    @classmethod
    def _are_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not _HEADER.fullmatch(name) or any(ord(character) < 32 for character in text):
                raise ValueError("must be names and values as HTTP allows them, each on one line")
            if is_secret_header(name) and REFERENCE.search(text) is None:
                raise ValueError(
                    f"must not hold the value of {name}, which is a secret: "
                    f'name a variable that holds it, {name} = "${{MY_TOKEN}}"'
                )
        return value

    @field_validator("extra_body")
    @classmethod
    def _leaves_the_request_whole(cls, value: dict[str, Any]) -> dict[str, Any]:
        ours = sorted(_OURS & value.keys())
        if ours:
            raise ValueError(f"must not replace {', '.join(ours)}, which agent-tui writes itself")
        return value


def address(value: str) -> str:
    """The address of a server, checked. Raises `ValueError`."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an address as http://127.0.0.1:8080/v1")
    return value


def is_secret_header(name: str) -> bool:
    """True if a header of this name carries a secret."""
    return name.lower() in {"authorization", "proxy-authorization", "cookie"} or named_like_a_secret(
        name.replace("-", "_")
    )


def names_of(value: Any) -> Any:
    """A list of names; text is split at commas."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


class FallbackSettings(BaseModel, frozen=True, extra="forbid"):
    """Models to try by the kind of a fault (`[fallbacks]`), before `fallback_models`."""

    rate_limit: tuple[str, ...] = ()
    """Too many requests, when the tries are used up."""
    usage_limit: tuple[str, ...] = ()
    """A limit of use by the hour, day or week is reached, unless it is waited for: at once."""
    overloaded: tuple[str, ...] = ()
    """The provider is overloaded, when the tries are used up."""
    connection: tuple[str, ...] = ()
    """The server cannot be reached, when the waits are used up."""
    server: tuple[str, ...] = ()
    """The server fails or restarts, when the waits are used up."""
    timeout: tuple[str, ...] = ()
    """No reply in time, when the tries are used up."""
    stream_cut: tuple[str, ...] = ()
    """The reply broke off, when the tries are used up."""
    bad_output: tuple[str, ...] = ()
    """Empty or malformed output, when the tries are used up."""
    unknown: tuple[str, ...] = ()
    """An answer that no rule knows, when the tries are used up."""
    context_overflow: tuple[str, ...] = ()
    """The prompt is too long: at once, before the request is shortened."""
    auth: tuple[str, ...] = ()
    """The key is missing or wrong: at once."""
    permission: tuple[str, ...] = ()
    """The key may not use the model: at once."""
    quota: tuple[str, ...] = ()
    """The account is empty: at once."""
    not_found: tuple[str, ...] = ()
    """There is no such model: at once."""
    bad_request: tuple[str, ...] = ()
    """The provider refuses the request: at once."""
    content_policy: tuple[str, ...] = ()
    """The provider's content filter refuses: at once."""
    no_tools: tuple[str, ...] = ()
    """The model cannot call tools, and `tool_calls = "native"` forbids calls as text: at once."""

    @field_validator("*", mode="before")
    @classmethod
    def _split_at_commas(cls, value: Any) -> Any:
        return names_of(value)

    def by_kind(self) -> dict[str, tuple[str, ...]]:
        """Those that are set, by `FaultKind`."""
        return {kind.value: names for kind in FaultKind if (names := getattr(self, kind.value))}


class Called(NamedTuple):
    """The model, server and parameters that a name stands for in a call."""

    model: str
    api_base: str | None
    parameters: ModelParameters
    profile: ModelProfile | None = None
    price: Price | None = None
    """By the configuration; None: by litellm's table if the server is the provider's own."""


def called(
    name: str,
    profiles: Mapping[str, ModelProfile],
    aliases: Mapping[str, str],
    parameters: ModelParameters,
    api_base: str | None,
    prices: Mapping[str, Price],
) -> Called:
    """Resolve `name`; `parameters` and `api_base` are those of every model, `prices` go by models' names."""
    name = behind(name, aliases)
    profile = profiles.get(name)
    if profile is None:
        return Called(name, api_base, parameters, price=prices.get(name))
    base = api_base if profile.api_base is None else profile.api_base or None
    given = ModelParameters(**{**parameters.given(), **profile.given()})
    return Called(profile.model, base, given, profile, profile.price or prices.get(profile.model))


def behind(name: str, aliases: Mapping[str, str]) -> str:
    """The name that an alias stands for, through all aliases; a circle ends at the name that it began with."""
    seen = {name}
    while (following := aliases.get(name)) is not None and following not in seen:
        name = following
        seen.add(name)
    return name
