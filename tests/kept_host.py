"""A model host that several sessions use, one after the other: starting litellm takes seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tui_agent.models.hosted import HostedModel


class KeptHost(HostedModel):
    """A host that stays when a session closes its model."""

    async def close(self) -> None:
        """The next session needs it."""

    async def end(self) -> None:
        """End the process."""
        await super().close()


@asynccontextmanager
async def kept_host(environment: Mapping[str, str]) -> AsyncIterator[KeptHost]:
    """A host with this environment, which ends with the block."""
    model = KeptHost(environment=environment)
    try:
        yield model
    finally:
        await model.end()
