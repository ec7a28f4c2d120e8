"""Importing litellm so that it stays quiet, offline and without retries; and asking it about models.

Only the model host imports this. What litellm does by itself and why it is switched off stands
with each line.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import types
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from tui_agent.models import http_guard, prompt_cache
from tui_agent.models.fault_advice import CallFacts
from tui_agent.models.local_servers import is_nearby
from tui_agent.models.server_window import server_window

QUIET_ENVIRONMENT = {
    # Otherwise the import goes to the network for a price list and warns about it on stderr.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Otherwise a `.env` of the working folder is loaded; keys never come from a project's files.
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "CRITICAL",
    "NO_COLOR": "1",
}
"""Variables that must stand before the import."""

_SLOTS = 70_000
"""Places for values in a frame, of eight bytes each; CPython makes a megabyte of them."""

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm", "httpx", "openai")


def load() -> Any:
    """litellm, imported and quietened; takes seconds the first time. Raises `ImportError` when missing."""
    os.environ.update(QUIET_ENVIRONMENT)
    http_guard.install()
    # An import drops hardly anything, and is searched for garbage forty times: a sixth of its time.
    gc.disable()
    try:
        litellm = with_room(_import)
    finally:
        gc.freeze()
        gc.enable()

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.num_retries = 0
    # Otherwise counting the tokens of a Llama model goes to the network for its tokenizer, with retries,
    litellm.disable_hf_tokenizer_download = True
    # and each stream has 50 MB of another tokenizer loaded before its first word. Servers say what they counted.
    litellm.disable_token_counter = True
    # A hundred equal pieces may be the line of a table; a thousand are a model in a loop.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 1_000
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return litellm


def _import() -> Any:
    import litellm

    return litellm


def with_room(function: Any) -> Any:
    """Call a function that is written in Python, with room for the frames of all that it calls in one block of memory.

    CPython gives frames 16 KB at a time. Where an import within imports comes to the end of them, each call there maps
    and unmaps memory: ten thousand times while litellm is imported.
    """
    code = function.__code__.replace(co_stacksize=_SLOTS)
    return types.FunctionType(code, function.__globals__, closure=function.__closure__)()


def do_without_mcp_gateway() -> bool:
    """Put empty modules where litellm looks for its gateway of MCP tools; whether that was new.

    The gateway needs a package of its own. Only for releases that no longer take `_skip_mcp_handler`.
    """
    gateway = types.ModuleType("litellm.responses.mcp.litellm_proxy_mcp_handler")
    if getattr(sys.modules.get(gateway.__name__), "__file__", gateway) is None:
        return False
    never = staticmethod(lambda tools=None: False)
    handler = type("LiteLLM_Proxy_MCP_Handler", (), {"should_use_litellm_mcp_gateway": never})
    gateway.__dict__.update(LiteLLM_Proxy_MCP_Handler=handler, __file__=None)
    requests = types.ModuleType("litellm.responses.mcp.chat_completions_handler")
    requests.__dict__.update(acompletion_with_mcp=None, __file__=None)
    for module in (gateway, requests):
        sys.modules[module.__name__] = module
    return True


@dataclass(frozen=True)
class Route:
    """Where a call goes: the name as litellm wants it, and what is known for messages."""

    name: str
    facts: CallFacts
    api_base: str | None = None
    api_key: str | None = None
    """That of the request's own variable, or a placeholder for servers that want none; None: the provider's."""
    lacks_key: bool = False
    own_server: bool = False
    """OpenAI's protocol, or that of a server for local models, at an address of one's own."""
    without_tools: bool = False
    """litellm's tables say that the model cannot call tools."""
    without_vision: bool = False
    """litellm's tables list the model, and no sight."""
    responses: bool = False
    """Goes to OpenAI's responses, with a model that reasons."""
    nearby: bool = False
    """Its server is this machine's or one of its network."""


def route(litellm: Any, model: str, api_base: str | None, key_variable: str | None = None) -> Route:
    """Find the provider for a model's name.

    A name without a provider goes, with an api base, to any server with OpenAI's protocol. `key_variable` is the
    variable with its key, where it is not the provider's own.
    """
    providers = {str(getattr(each, "value", each)) for each in litellm.provider_list}
    prefix = model.partition("/")[0]
    name = f"openai/{model}" if api_base and (prefix == model or prefix not in providers) else model
    provider = ""
    # The exception's class changes from release to release; the call itself will say what is wrong.
    with suppress(Exception):
        _, provider, _, _ = litellm.get_llm_provider(model=name)
    base = api_base
    if base and provider == "anthropic":
        base = base.rstrip("/").removesuffix("/v1")
    if key_variable is None:
        own_key, missing = None, _missing_keys(litellm, name)
    else:
        own_key, missing = os.environ.get(key_variable), (key_variable,)
    own_server = api_base or (
        provider == "openai" and (os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL"))
    )
    facts = CallFacts(model, provider, api_base, missing)
    lacks_key = not own_key if key_variable is not None else bool(missing) and not own_server
    own_protocol = bool(api_base) and "api.openai.com" not in str(api_base) and provider in _OPENAI_SHAPED
    return Route(
        name,
        facts,
        base,
        own_key or ("none" if own_server and missing else None),
        lacks_key=lacks_key,
        own_server=own_protocol,
        without_tools=not own_protocol and _cannot_call_tools(litellm, name, provider),
        without_vision=not own_protocol and _cannot_see(litellm, name, provider),
        responses=_is_for_responses(litellm, name, provider),
        nearby=is_nearby(str(own_server or (_OLLAMA if provider in _OLLAMAS else ""))),
    )


_OPENAI_SHAPED = frozenset({"openai", "hosted_vllm", "lm_studio", "llamafile", "custom_openai"})


_TABLES_ARE_OLD = frozenset({"deepseek", "ollama", "ollama_chat"})
"""Providers whose models the tables know less well than the provider's own answer does."""


def _cannot_call_tools(litellm: Any, name: str, provider: str) -> bool:
    """Whether litellm's tables deny it outright; what they do not say is not denied."""
    if provider in _TABLES_ARE_OLD:
        return False
    with suppress(Exception):
        return litellm.get_model_info(name).get("supports_function_calling") is False
    return False


def _cannot_see(litellm: Any, name: str, provider: str) -> bool:
    """Whether the tables list the model without `supports_vision`; of one that they do not list nothing is known."""
    if provider in _OLLAMAS:
        return False
    with suppress(Exception):
        return not litellm.get_model_info(name).get("supports_vision")
    return False


def _is_for_responses(litellm: Any, name: str, provider: str) -> bool:
    if provider not in {"openai", "azure"}:
        return False
    known: dict[str, Any] = {}
    # An unknown model raises a bare Exception.
    with suppress(Exception):
        known = litellm.get_model_info(name.replace("/responses/", "/"))
    return bool(known.get("supports_reasoning")) and (
        "/responses/" in name or known.get("mode") == "responses"
    )


def _missing_keys(litellm: Any, name: str) -> tuple[str, ...]:
    """Variables with keys that the provider needs and the environment lacks.

    Only plain API keys: the large clouds have other ways to sign in, which must be tried.
    """
    missing: list[str] = []
    # Where it fails, the provider's own refusal is shown.
    with suppress(Exception):
        missing = litellm.validate_environment(model=name).get("missing_keys") or []
    plain = tuple(str(key) for key in missing if str(key).endswith(("_API_KEY", "_API_TOKEN")))
    return plain if len(plain) == len(missing) else ()


def look_up(litellm: Any, name: str) -> tuple[bool, bool, tuple[str, ...]]:
    """Whether litellm knows the provider in `name`, whether it lists the model, and the nearest names that it lists."""
    provider = ""
    # An unknown provider raises one of litellm's own errors.
    with suppress(Exception):
        provider = litellm.get_llm_provider(model=name)[1]
    known: dict[str, dict[str, Any]] = litellm.model_cost
    bare = name.removeprefix(f"{provider}/")
    if provider and (name in known or bare in known):
        return True, True, ()
    own = [listed for listed, facts in known.items() if facts.get("litellm_provider") == provider]
    return bool(provider), False, tuple(get_close_matches(bare, own or known, n=3, cutoff=0.5))


async def prompt_budget(litellm: Any, at: Route) -> int | None:
    """Tokens that a prompt may have: the window less room for a reply; None where nobody knows the window.

    A server of one's own is asked first: it may run a model with less than the model could take.
    """
    known: dict[str, Any] = {}
    # An unknown model raises a bare Exception.
    with suppress(Exception):
        known = litellm.get_model_info(at.name)
    window: int | None = None
    address = at.api_base or (_OLLAMA if at.facts.provider in _OLLAMAS else None)
    if address and (at.own_server or at.facts.provider in _OLLAMAS):
        key = at.api_key or os.environ.get(f"{at.facts.provider.upper()}_API_KEY")
        window = await server_window(address, at.name.partition("/")[2], key)
    if window is None:
        window = known.get("max_input_tokens") or known.get("max_tokens")
    if not isinstance(window, int) or window <= 0:
        return None
    room = known.get("max_output_tokens")
    # A reply rarely needs all that it may use; more than a quarter of the window is not kept for it.
    return window - min(room if isinstance(room, int) else 4_096, window // 4)


_OLLAMAS = frozenset({"ollama", "ollama_chat"})
_OLLAMA = "http://localhost:11434"


def caches_by_marks(litellm: Any, at: Route) -> bool:
    """Whether the model wants marks for its prompt cache."""
    known: dict[str, Any] = {}
    # An unknown model raises a bare Exception.
    with suppress(Exception):
        known = litellm.get_model_info(at.name)
    supported = known.get("supports_prompt_caching")
    return prompt_cache.wants_marks(at.facts.provider, at.name, own_server=at.own_server, known=supported)


def price(litellm: Any, at: Route, usage: dict[str, Any]) -> float | None:
    """What a call cost in USD; None where the model's price or the server behind a name is not known.

    `usage` is what the server reported, in OpenAI's form.
    """
    if at.facts.provider == "openai" and at.facts.api_base and "api.openai.com" not in at.facts.api_base:
        return None
    if at.facts.provider == "openrouter":
        # Prices differ by the provider behind it; what the call cost comes with the usage.
        cost = usage.get("cost")
        return float(cost) if isinstance(cost, int | float) else None
    # An unknown model raises a bare Exception.
    with suppress(Exception):
        prompt, completion = litellm.cost_per_token(model=at.name, usage_object=litellm.Usage(**usage))
        return float(prompt + completion)
    return None
