"""Models that can be used now: profiles, aliases, servers on this machine, and providers whose key is there.

For the list that `agent-tui models` prints and for pickers. No key leaves the process, litellm is not imported, and
nothing is contacted but this machine's usual ports and the servers of the configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_agent.config.errors import PROVIDER_KEYS
from tui_agent.config.profiles import Client
from tui_agent.models.catalogue import KnownModel, known, models_of
from tui_agent.models.local_servers import USUAL, ModelServer, find_servers
from tui_agent.models.routes import client_for

if TYPE_CHECKING:
    from tui_agent.config.profiles import Called
    from tui_agent.config.settings import Settings


@dataclass(frozen=True)
class NamedModel:
    """A profile or an alias: its model, and the variable that it lacks ("" if it can be used)."""

    name: str
    model: KnownModel
    api_base: str = ""
    lacks: str = ""
    client: Client = "openai"
    """The library that calls it."""


@dataclass(frozen=True)
class Provider:
    """A provider whose key is in the environment, under `variable`."""

    name: str
    variable: str
    client: Client
    models: tuple[KnownModel, ...]


@dataclass(frozen=True)
class Discovery:
    """All that was found."""

    chosen: NamedModel | None
    profiles: tuple[NamedModel, ...]
    aliases: tuple[NamedModel, ...]
    servers: tuple[ModelServer, ...]
    providers: tuple[Provider, ...]


async def discover(
    settings: Settings, environ: Mapping[str, str], usual: Mapping[str, str] = USUAL
) -> Discovery:
    """Look at everything, in `local_servers.PATIENCE` seconds at most beside reading the table."""
    bases = {settings.api_base, *(profile.api_base for profile in settings.profiles.values())}
    servers, found = await asyncio.gather(
        find_servers(sorted(base for base in bases if base), usual),
        asyncio.to_thread(known_by_name, settings, environ),
    )
    return replace(found, servers=tuple(servers))


def known_by_name(settings: Settings, environ: Mapping[str, str]) -> Discovery:
    """Look at the configuration and the table of models alone: no server is asked. Reads the disk."""
    named, providers = _from_table(settings, environ)
    return Discovery(
        named[settings.model] if settings.model else None,
        tuple(named[name] for name in settings.profiles),
        tuple(named[name] for name in settings.aliases),
        (),
        providers,
    )


def _from_table(
    settings: Settings, environ: Mapping[str, str]
) -> tuple[dict[str, NamedModel], tuple[Provider, ...]]:
    names = {settings.model, *settings.profiles, *settings.aliases}
    providers = tuple(
        Provider(provider, variable, client_for(f"{provider}/", None), tuple(models_of(provider)))
        for provider, variable in PROVIDER_KEYS.items()
        if environ.get(variable)
    )
    return {name: _named(name, settings.called(name), environ) for name in names if name}, providers


def _named(name: str, means: Called, environ: Mapping[str, str]) -> NamedModel:
    window = means.profile.context_tokens if means.profile is not None else None
    model = known(means.model) if means.api_base is None else KnownModel(means.model, window)
    if means.price is not None:
        price = means.price
        model = replace(model, input=price.prompt, output=price.completion, cached=price.cached)
    forced = means.profile.client if means.profile is not None else None
    client = client_for(means.model, means.api_base, forced)
    return NamedModel(name, model, means.api_base or "", missing_key(means, environ), client)


def missing_key(means: Called, environ: Mapping[str, str]) -> str:
    """The variable that a call needs and the environment lacks; "" for none."""
    own = means.profile.api_key_variable if means.profile is not None else None
    needed = own or (PROVIDER_KEYS.get(means.model.partition("/")[0]) if means.api_base is None else None)
    return "" if needed is None or environ.get(needed) else needed
