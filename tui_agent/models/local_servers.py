"""Model servers on this machine: who listens on the usual ports, and which models they serve.

Short questions, all at the same time, without keys, proxies or redirects; whoever does not answer in time or not in the
words of a model server is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tui_agent.models.server_window import answer_of, http_library, window_in

if TYPE_CHECKING:
    import httpx

PATIENCE = 1.5
"""Seconds for all questions to all servers together."""

USUAL = {
    "Ollama": "http://127.0.0.1:11434",
    "llama.cpp": "http://127.0.0.1:8080",
    "LM Studio": "http://127.0.0.1:1234",
    "vLLM": "http://127.0.0.1:8000",
}
"""Makes of servers, and the port on which each listens by default."""

_OWNERS = {"llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio", "library": "Ollama"}
"""Names of owners that servers give their models."""

_MOST_MODELS = 200


def is_nearby(address: str) -> bool:
    """True if an address is this machine's or one of its network: such servers may process a prompt for
    minutes before they say a word, while a silent provider is out of order.
    """
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return bool(host) and ("." not in host or host.endswith((".local", ".lan", ".internal")))


@dataclass(frozen=True)
class ServedModel:
    """A model of a server, by the name that `--model` takes; `window` in tokens, None: the server does not say."""

    name: str
    window: int | None


@dataclass(frozen=True)
class ModelServer:
    """A server that answers. `api_base` is what `--api-base` takes; empty: none is needed."""

    make: str
    address: str
    api_base: str
    models: tuple[ServedModel, ...]


async def find_servers(
    addresses: Iterable[str] = (), usual: Mapping[str, str] = USUAL, patience: float = PATIENCE
) -> list[ModelServer]:
    """The servers at `addresses` and at the usual ports that answer within `patience` seconds."""
    asked = {address: make for make, address in usual.items()}
    for address in addresses:
        asked.setdefault(address.rstrip("/").removesuffix("/v1"), "")
    if not asked:
        return []
    async with http_library().AsyncClient(timeout=patience, trust_env=False) as client:
        tasks = [asyncio.ensure_future(_server(client, address, make)) for address, make in asked.items()]
        _, late = await asyncio.wait(tasks, timeout=patience)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    return [server for task in tasks if task not in late and (server := task.result()) is not None]


async def _server(client: httpx.AsyncClient, root: str, make: str) -> ModelServer | None:
    places = ("/v1/models", "/api/tags", "/api/v0/models", "/props", "/api/ps")
    listed, tags, rich, props, running = await asyncio.gather(
        *(answer_of(client, root + place, None) for place in places)
    )
    if "models" in tags:
        loaded = {"data": running.get("models")}
        found = [
            ServedModel(f"ollama_chat/{name}", window_in(loaded, name, strictly=True))
            for name in _names(tags.get("models"), "name")
        ]
        own = root == USUAL["Ollama"]
        return ModelServer("Ollama", root, "" if own else root, tuple(found))
    if not isinstance(listed.get("data"), list):
        return None
    settings = {"data": [props.get("default_generation_settings")]}
    found = [
        ServedModel(
            f"openai/{name}",
            window_in(rich, name) or window_in(settings, name, ("n_ctx",)) or window_in(listed, name),
        )
        for name in _names(listed["data"], "id")
    ]
    return ModelServer(_make(listed["data"], make, root), root, f"{root}/v1", tuple(found))


def _names(entries: Any, field: str) -> list[str]:
    """The names of the models that can chat."""
    found = [
        str(entry[field])
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping)
        and isinstance(entry.get(field), str)
        and "embed" not in entry[field].lower()
    ]
    return list(dict.fromkeys(found))[:_MOST_MODELS]


def _make(entries: list[Any], expected: str, root: str) -> str:
    owners = {str(entry.get("owned_by")) for entry in entries if isinstance(entry, Mapping)}
    named = next((make for owner, make in _OWNERS.items() if owner in owners), expected)
    return named or urlsplit(root).netloc.rpartition("@")[2]
