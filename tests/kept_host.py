"""A model host that many sessions use, one after the other: starting litellm takes seconds."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tui_agent.models.hosted import HostedModel

HIDDEN_KEY = "sk-test-0123456789abcdef"
"""A provider's key that no message may show."""


class KeptHost(HostedModel):
    """A host that stays when a session closes its model."""

    async def close(self) -> None:
        """The next session needs it."""

    async def end(self) -> None:
        """End the process."""
        await super().close()


def environment() -> dict[str, str]:
    """A key for every provider but OpenAI, whose place servers on loopback take without one; and no proxy."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")
    providers = ("ANTHROPIC", "GEMINI", "MISTRAL", "DEEPSEEK", "OPENROUTER", "AZURE")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **{f"{provider}_API_KEY": "sk-none-0123456789" for provider in providers},
        "GROQ_API_KEY": HIDDEN_KEY,
        "AZURE_API_VERSION": "2024-10-21",
    }


@asynccontextmanager
async def kept_host(variables: Mapping[str, str] | None = None) -> AsyncIterator[KeptHost]:
    """A host with this environment, which ends with the block."""
    model = KeptHost(environment=environment() if variables is None else variables)
    try:
        yield model
    finally:
        await model.end()
