"""Starting a model host: forked by a process that stays (`borrowed`), else a process of its own.

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
from tui_agent.models.borrowed import borrow, stay

if TYPE_CHECKING:
    from tui_agent.models.borrowed import Borrowed

LINE_LIMIT = 1 << 30
"""Longest line in bytes; a request holds the whole conversation."""
SCRIPTED = "scripted:"
"""How the names of models begin that are scenarios, and need no host."""

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]

Begun = asyncio.Task["processes.Child | Borrowed"]


async def begin(
    command: Sequence[str], environment: Mapping[str, str], stays: float
) -> processes.Child | Borrowed:
    """A host with this environment. `stays`: see `borrowed.borrow`; 0: a process of its own. Raises `OSError`."""
    borrowed = await borrow(environment, stays, LINE_LIMIT) if stays else None
    return borrowed or await processes.start(command, env=environment, limit=LINE_LIMIT)


def begin_early(model: object, minutes: object) -> Begun | None:
    """Begin a host for a model and `host_minutes` as options, variables or the operator's file have them, unchecked;
    None where they do not say that there will be one, or name minutes that must be checked first.
    """
    if not isinstance(model, str) or not model or model.startswith(SCRIPTED) or minutes not in (None, 0, "0"):
        return None
    stays = 0.0 if minutes is not None else stay(None, at_terminal=at_terminal())
    return asyncio.create_task(begin(host_command(), host_environment(os.environ), stays))


async def end(begun: Begun) -> None:
    """End a host that nobody needs."""
    begun.cancel()
    [host] = await asyncio.gather(begun, return_exceptions=True)
    if not isinstance(host, BaseException):
        await host.end()


def at_terminal() -> bool:
    """Whether a person at a terminal started this."""
    return sys.stderr is not None and sys.stderr.isatty()


def host_command() -> list[str]:
    """The host's command line: this interpreter, without the working folder on its path."""
    return [sys.executable, "-P", "-m", "tui_agent.models.host", str(os.getpid())]


def host_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The child's environment: ours, and where this package is."""
    paths = [str(_PACKAGE_ROOT), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONIOENCODING": "utf-8"}
