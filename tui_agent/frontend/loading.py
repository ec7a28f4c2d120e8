"""Imports in a thread that yields often, since somebody may be typing meanwhile."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

USUAL_PATIENCE = sys.getswitchinterval()
PATIENCE = 0.0005
"""Seconds after which the loading thread lets the screen's thread run."""


@contextmanager
def yielding_threads() -> Iterator[None]:
    """While inside, threads let the screen's thread run at once."""
    sys.setswitchinterval(PATIENCE)
    try:
        yield
    finally:
        sys.setswitchinterval(USUAL_PATIENCE)


async def load_modules(names: Sequence[str]) -> None:
    """Import a module at a time, keys answered in between."""
    with yielding_threads():
        for name in names:
            await asyncio.to_thread(importlib.import_module, name)
            await asyncio.sleep(0)
