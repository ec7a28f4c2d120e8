"""Facts about models from litellm's table: window, prices and capabilities, by provider.

The table is read as the file that it is; nothing of litellm is imported, so this may run in the screen's process
(in a thread: 50 ms). What a call costs is in `prices`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

_TABLE = "model_prices_and_context_window_backup.json"
_IN_TABLE = {"cohere": "cohere_chat"}
"""Providers that the table calls otherwise than the names of their models begin."""

_NO_AGENT = re.compile(
    r"audio|realtime|search|image|tts|transcribe|computer-use|deep-research|embed|^ft:|/ft:"
)
_DATED = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{2}-\d{4}|\d{2}-\d{2})$")
_MILLION = 1_000_000


@dataclass(frozen=True)
class KnownModel:
    """A model as the table has it. `window` in tokens; prices in USD per million tokens; None: not known."""

    name: str
    window: int | None = None
    input: float | None = None
    output: float | None = None
    cached: float | None = None
    """For tokens that are read from the provider's cache."""


def known(name: str) -> KnownModel:
    """The table's facts about a model, by the name that `--model` takes."""
    return _model(name, facts(name))


def facts(name: str, provider: str = "") -> Mapping[str, Any]:
    """The table's row of a model, by a name with or without its provider; empty when there is none.

    `provider`: that of a name without one.
    """
    table = _table()
    prefix, slash, bare = name.partition("/")
    for candidate in (name, f"{provider}/{name}") if provider else (name,):
        if candidate in table:
            return table[candidate]
    if not slash:
        return {}
    found = table.get(bare, {})
    return found if _is_of(found, prefix) or _is_of(found, provider) else {}


def _is_of(row: Mapping[str, Any], provider: str) -> bool:
    """The row's provider is this one, or a part of it (`vertex_ai-language-models`, `bedrock_converse`)."""
    listed = str(row.get("litellm_provider") or "")
    if not listed or not provider:
        return False
    return listed in {provider, _IN_TABLE.get(provider)} or listed.startswith(
        (f"{provider}-", f"{provider}_")
    )


def provider_of(name: str) -> str:
    """The provider that the table names for a model without a prefix; empty when it lists none."""
    return str(_table().get(name, {}).get("litellm_provider") or "")


@cache
def providers() -> frozenset[str]:
    """The providers of the table, as the names of models begin."""
    listed = {str(row.get("litellm_provider") or "") for row in _table().values()}
    return frozenset(listed | set(_IN_TABLE)) - {""}


def nearest(name: str, provider: str) -> tuple[str, ...]:
    """The listed names that are most like a name that is not; those of its provider when it has one."""
    own = [listed for listed, row in _table().items() if _is_of(row, provider)]
    return tuple(get_close_matches(name.removeprefix(f"{provider}/"), own or _table(), n=3, cutoff=0.5))


def models_of(provider: str) -> list[KnownModel]:
    """A provider's models that can call tools, the newest version first; dated names only if there is no
    other.
    """
    today = time.strftime("%Y-%m-%d")
    names: dict[str, dict[str, Any]] = {}
    for name, facts in _table().items():
        if (
            facts.get("litellm_provider") == _IN_TABLE.get(provider, provider)
            and facts.get("mode") in {"chat", "responses"}
            and facts.get("supports_function_calling")
            and str(facts.get("deprecation_date") or "9") > today
            and _NO_AGENT.search(name) is None
        ):
            names.setdefault(name if name.startswith(f"{provider}/") else f"{provider}/{name}", facts)
    models = [
        _model(name, facts)
        for name, facts in names.items()
        if _DATED.sub("", name) not in names or name == _DATED.sub("", name)
    ]
    return sorted(models, key=lambda model: (_version(model.name), model.name), reverse=True)


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name.partition("/")[2])[:2])


def _model(name: str, facts: Mapping[str, Any]) -> KnownModel:
    return KnownModel(
        name,
        facts.get("max_input_tokens") or facts.get("max_tokens"),
        _price(facts, "input_cost_per_token"),
        _price(facts, "output_cost_per_token"),
        _price(facts, "cache_read_input_token_cost"),
    )


def _price(facts: Mapping[str, Any], field: str) -> float | None:
    price = facts.get(field)
    return round(price * _MILLION, 6) if isinstance(price, int | float) else None


@cache
def _table() -> dict[str, dict[str, Any]]:
    """litellm's own file; empty if a release has it elsewhere."""
    found = importlib.util.find_spec("litellm")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        try:
            table = json.loads(Path(folder, _TABLE).read_bytes())
        except (OSError, ValueError):
            continue
        return {name: facts for name, facts in table.items() if isinstance(facts, dict)}
    return {}
