"""Starting a model host: a child process that ends with this one.

Nothing here imports pydantic: `run` begins a host before it reads its settings.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import processes
from tui_agent.models.providers import likely_client

if TYPE_CHECKING:
    from tui_agent.config.profiles import Client

LINE_LIMIT = 1 << 30
"""Longest line in bytes; a request holds the whole conversation."""
SCRIPTED = "scripted:"
"""How the names of models begin that are scenarios, and need no host."""

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]

Begun = asyncio.Task[processes.Child]


async def begin(command: Sequence[str], environment: Mapping[str, str]) -> processes.Child:
    """A host with this environment. Raises `OSError`."""
    return await processes.start(command, env=environment, limit=LINE_LIMIT)


def begin_early(model: object, api_base: object, client: object = None) -> Begun | None:
    """Begin a host for a model, its address and the client that it wants, as options, variables or the operator's file
    have them, unchecked; None if they do not say that there will be one.
    """
    if not isinstance(model, str) or not model or model.startswith(SCRIPTED):
        return None
    command = host_command(first_client(model, api_base, client))
    return asyncio.create_task(begin(command, host_environment(os.environ)))


def first_client(model: str, api_base: object, wanted: object) -> Client:
    """The client that a host loads at once: the one that a profile wants, else the one that is most likely needed."""
    return "litellm" if wanted == "litellm" else likely_client(model, with_address=bool(api_base))


async def end(begun: Begun) -> None:
    """End a host that nobody needs."""
    begun.cancel()
    [host] = await asyncio.gather(begun, return_exceptions=True)
    if not isinstance(host, BaseException):
        await host.end()


def host_command(first: Client = "openai") -> list[str]:
    """The host's command line: this interpreter, without the working folder on its path. `first`: the client that
    loads at once.
    """
    return [sys.executable, "-P", "-m", "tui_agent.models.host", str(os.getpid()), first]


def host_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The child's environment: ours, and the place of this package."""
    paths = [str(_PACKAGE_ROOT), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONIOENCODING": "utf-8"}
