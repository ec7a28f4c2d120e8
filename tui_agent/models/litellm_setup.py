"""Importing litellm so that it stays quiet, offline and without retries.

Only the model host imports this. What litellm does by itself and why it is switched off stands
with each line.
"""

from __future__ import annotations

import logging
import os
import sys
import types
from contextlib import suppress
from typing import Any

from tui_agent.models import http_guard
from tui_agent.models.heavy_import import imported

QUIET_ENVIRONMENT = {
    # Otherwise the import goes to the network for a price list and warns about it on stderr.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Otherwise a `.env` of the working folder is loaded; keys never come from a project's files.
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "CRITICAL",
    "NO_COLOR": "1",
}
"""Variables that must stand before the import."""

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm", "httpx", "openai")


def load() -> Any:
    """litellm, imported and quietened; takes seconds the first time. Raises `ImportError` when missing."""
    os.environ.update(QUIET_ENVIRONMENT)
    litellm = imported(_import)
    http_guard.install()

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


def do_without_mcp_gateway() -> bool:
    """Put empty modules in the place of litellm's gateway of MCP tools. True if they were not there yet.

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


def provider_and_missing_keys(litellm: Any, name: str) -> tuple[str, tuple[str, ...]]:
    """The provider of a model, empty if litellm knows none, and the variables with keys that the environment lacks.

    Only plain API keys: the large clouds have other ways to sign in, which must be tried.
    """
    provider = ""
    missing: list[str] = []
    # The exceptions' classes change from release to release; the call itself will say what is wrong.
    with suppress(Exception):
        _, provider, _, _ = litellm.get_llm_provider(model=name)
    with suppress(Exception):
        missing = litellm.validate_environment(model=name).get("missing_keys") or []
    plain = tuple(str(key) for key in missing if str(key).endswith(("_API_KEY", "_API_TOKEN")))
    return provider, plain if len(plain) == len(missing) else ()
