"""From the first paint to an open session: heavy imports, settings, the model, the journal.

Everything here happens while somebody may be typing: modules are loaded in a thread that gives way often,
files are read in threads, and the model lives in a process of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.console.arguments import ConsoleArguments, Newest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_agent.agent.operator import Operator
    from tui_agent.config import Settings
    from tui_agent.sessions.session import Session

MODULES = (
    "pydantic",
    "tui_agent.events",
    "tui_agent.state",
    "pydantic_settings",
    "tui_agent.config",
    "tui_agent.agent.operator",
    "tui_agent.sessions.session",
)
"""In the order in which they lean on each other: small steps instead of one large one."""

PATIENCE = 0.0005
"""Seconds after which the loading thread lets the screen's thread run."""


class BootError(Exception):
    """The console cannot start; `message` says what happened, why, and what to do."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@contextmanager
def _giving_way() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(PATIENCE)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


async def load_modules() -> None:
    """Import what the session needs, a module at a time, keys answered in between."""
    with _giving_way():
        for name in MODULES:
            await asyncio.to_thread(importlib.import_module, name)
            await asyncio.sleep(0)


async def boot(arguments: ConsoleArguments, operator: Operator) -> Session:
    """An open session for these arguments. Raises `BootError` for everything that the operator can mend."""
    await load_modules()
    from tui_agent.config import load_settings, require_workspace
    from tui_agent.config_errors import ConfigError
    from tui_agent.sessions.errors import SessionError
    from tui_agent.sessions.session import open_session

    overrides = dict(arguments.overrides)
    if arguments.step:
        overrides["step"] = True
    try:
        settings = await asyncio.to_thread(load_settings, overrides, arguments.config)
        if arguments.demo is not None:
            return await _open_demo(arguments.demo, settings, operator)
        require_workspace(settings)
        folder = None if arguments.resume is None else await _saved(arguments.resume, settings)
        return await open_session(settings, operator, resume=folder)
    except ConfigError as error:
        raise BootError(error.message) from error
    except SessionError as error:
        raise BootError(str(error)) from error
