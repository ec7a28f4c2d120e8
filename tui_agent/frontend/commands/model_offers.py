"""The models that can be used now, as rows to pick from."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.frontend import preferences
from tui_agent.frontend.lines.passages import Row
from tui_agent.models import discovery
from tui_agent.quantities import compact

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.models.catalogue import KnownModel
    from tui_agent.models.discovery import Discovery

DEMO, THEME = "demo", "theme"
"""Further offers of a first start."""


class Offer(NamedTuple):
    """A model by the name that settings take, and the address that it needs ("" for none)."""

    model: str
    api_base: str = ""


async def found_now(settings: Settings) -> list[Row]:
    """Servers and keys of this machine and its environment."""
    return list(offers(await discovery.discover(settings, os.environ)))


async def known_at_once(settings: Settings) -> list[Row]:
    """The same without servers: none is asked."""
    return list(offers(await asyncio.to_thread(discovery.known_by_name, settings, os.environ)))


def offers(found: Discovery) -> Iterator[Row]:
    """Profiles and aliases, then servers on this machine, then providers whose key is there."""
    for named in (*found.profiles, *found.aliases):
        if not named.lacks:
            yield Row(named.name, f"{named.model.name}  {_facts(named.model)}".strip(), Offer(named.name))
    for server in found.servers:
        for served in server.models:
            window = f"window {compact(served.window)}" if served.window else ""
            about = " · ".join(part for part in (f"{server.make} on this machine", window) if part)
            yield Row(served.name, about, Offer(served.name, server.api_base))
    for provider in found.providers:
        for model in provider.models:
            about = " · ".join(filter(None, (_facts(model), f"{provider.variable} is set")))
            yield Row(model.name, about, Offer(model.name))


def remember_model(settings: Settings) -> None:
    """Keep the model that was chosen at the start for the next one, with its server; not with a password in it."""
    address = settings.api_base or ""
    if "@" not in address:
        preferences.save(settings.state_dir, model=settings.model, api_base=address)


def used_last(settings: Settings) -> Row | None:
    """The model that was chosen at an earlier start."""
    kept = preferences.load(settings.state_dir)
    model, address = kept.get("model", ""), kept.get("api_base", "")
    if not model:
        return None
    return Row(model, f"chosen last time{f' · {address}' if address else ''}", Offer(model, address))


def as_written(typed: str) -> Row | None:
    """A model by the name that is typed, `PROVIDER/NAME`, with a server's address behind it if it needs one."""
    name, _, address = typed.partition(" ")
    address = address.strip()
    made, _, rest = name.partition("/")
    if not (made and rest) or (address and not address.startswith(("http://", "https://"))):
        return None
    return Row(name, f"as you wrote it{f' · {address}' if address else ''}", Offer(name, address))


def name_as_written(typed: str) -> Row | None:
    """The same for a session, which keeps its server: an address is not taken."""
    return as_written(typed) if " " not in typed else None


def _facts(model: KnownModel) -> str:
    """Window, and prices in USD per million tokens."""
    window = f"window {compact(model.window)}" if model.window else ""
    price = (
        "" if model.input is None or model.output is None else f"${model.input:g} in, ${model.output:g} out"
    )
    return " · ".join(part for part in (window, price) if part)
