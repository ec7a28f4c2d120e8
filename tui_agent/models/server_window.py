"""Asking a server for its window: what llama.cpp, vLLM, LM Studio, Ollama and gateways say about their models.

Short questions to the address that the calls go to anyway; whatever goes wrong means that nothing is known.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import httpx

LONGEST_WAIT = 5.0
"""Seconds for all questions together."""

SMALLEST_WINDOW, LARGEST_WINDOW = 128, 1 << 31
"""Tokens; what is less or more says nothing."""

_LARGEST_ANSWER = 8_000_000
"""Bytes; a gateway's list of models is long."""

_OF_A_MODEL = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
)
"""Fields of a model in a list, the most exact first: LM Studio, vLLM, gateways, Mistral."""

_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


def http_library() -> Any:
    """httpx, or what the OpenAI client has imported in its place: another one would take a tenth of a second."""
    return sys.modules.get("httpx2") or import_module("httpx")


async def server_window(base: str, model: str, key: str | None = None) -> int | None:
    """Tokens of the window with which the server at `base` runs `model`; None if it does not say."""
    httpx = http_library()
    base = base.rstrip("/")
    root = base.removesuffix("/v1")
    listed_at = f"{root}/v1/models" if root == base else f"{base}/models"
    questions = (f"{root}/api/v0/models", f"{root}/props", f"{root}/api/ps", listed_at)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        # What is not encrypted needs no certificates, and reading them takes a while.
        client = httpx.AsyncClient(timeout=LONGEST_WAIT, headers=headers, verify=base.startswith("https:"))
        async with client:
            tasks = [asyncio.ensure_future(answer_of(client, address)) for address in questions]
            done, late = await asyncio.wait(tasks, timeout=LONGEST_WAIT)
            for task in late:
                task.cancel()
            rich, props, running, listed = (task.result() if task in done else {} for task in tasks)
            # Only Ollama knows the models that run, and what one was set to.
            shown = (
                await answer_of(client, f"{root}/api/show", {"model": model}) if "models" in running else {}
            )
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    found = (
        window_in(rich, model),
        window_in({"data": [props.get("default_generation_settings")]}, model, ("n_ctx",)),
        window_in({"data": running.get("models")}, model, strictly=True),
        _num_ctx(shown),
        window_in(listed, model),
    )
    return next((tokens for tokens in found if tokens), None)


async def answer_of(client: httpx.AsyncClient, address: str, question: Any = None) -> dict[str, Any]:
    """The JSON object at an address; empty if there is none."""
    httpx = import_module(type(client).__module__.partition(".")[0])
    body = bytearray()
    with suppress(httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        method = "GET" if question is None else "POST"
        async with client.stream(method, address, json=question) as response:
            if response.status_code != 200:
                return {}
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _LARGEST_ANSWER:
                    return {}
        found = json.loads(body)
        return found if isinstance(found, dict) else {}
    return {}


def window_in(
    answer: Mapping[str, Any], model: str, fields: tuple[str, ...] = _OF_A_MODEL, *, strictly: bool = False
) -> int | None:
    """The window in the model's entry of a list; in the only entry, if there is one, unless `strictly`."""
    data = answer.get("data")
    entries = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []
    for entry in entries:
        if (strictly or len(entries) > 1) and model.removesuffix(":latest") not in set(_names(entry)):
            continue
        meta = entry.get("meta")
        places = [entry.get(field) for field in fields]
        places.append(meta.get("n_ctx") if isinstance(meta, Mapping) else None)
        for tokens in places:
            if _is_window(tokens):
                return int(tokens)
    return None


def _is_window(tokens: Any) -> TypeGuard[float]:
    """True if a field is a number of tokens that some window has: `true` is none, nor is a handful or 2 to
    the 70th.
    """
    number = isinstance(tokens, int | float) and not isinstance(tokens, bool)
    return number and SMALLEST_WINDOW <= tokens <= LARGEST_WINDOW


def _names(entry: Mapping[str, Any]) -> Iterator[str]:
    for field in ("id", "name", "model", "root"):
        name = entry.get(field)
        if isinstance(name, str):
            yield name
            yield name.removesuffix(":latest")


def _num_ctx(shown: Mapping[str, Any]) -> int | None:
    """Ollama: the window that the model's file sets. What the model was trained with says nothing about it."""
    found = _NUM_CTX.search(str(shown.get("parameters") or ""))
    return int(found[1]) if found else None
