"""A model host that many sessions use, one after the other: starting litellm takes seconds."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tui_agent.models.hosted import KeptHost

HIDDEN_KEY = "sk-test-0123456789abcdef"
"""A provider's key that no message may show."""


NOWHERE = "http://127.0.0.1:9"
"""The discard port stands where a proxy would: what is sent to a provider fails to connect, and says so."""


def environment() -> dict[str, str]:
    """A key for every provider but OpenAI, whose place servers on loopback take without one; no way out of here."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")
    providers = ("ANTHROPIC", "GEMINI", "MISTRAL", "DEEPSEEK", "OPENROUTER", "AZURE")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **{f"{provider}_API_KEY": "sk-none-0123456789" for provider in providers},
        "GROQ_API_KEY": HIDDEN_KEY,
        "AZURE_API_VERSION": "2024-10-21",
        "HTTPS_PROXY": NOWHERE,
        "HTTP_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
    }


@asynccontextmanager
async def kept_host(**variables: str) -> AsyncIterator[KeptHost]:
    """A host with these variables more in its environment, which ends with the block."""
    model = KeptHost(environment={**environment(), **variables})
    try:
        yield model
    finally:
        await model.end()
