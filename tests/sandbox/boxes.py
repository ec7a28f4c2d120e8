"""The mechanisms that work here, and a folder outside of the temporary one: shared by the tests of the walls."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tui_agent.sandbox.choose import Trial, candidates, try_out
from tui_agent.sandbox.mechanisms import Mechanism
from tui_agent.sandbox.walls import Walls

MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "landlock", "sandbox-exec")


@contextmanager
def folder_at_home() -> Iterator[Path]:
    """Not in the temporary folder, of which commands have their own."""
    home = Path("~").expanduser()
    if home.is_relative_to("/tmp") or not os.access(home, os.W_OK):
        pytest.skip("the home folder is a temporary one, or cannot be written")
    with tempfile.TemporaryDirectory(prefix=".agent-tui-test-", dir=home) as folder:
        yield Path(folder)


@cache
def _trial(mechanism: Mechanism) -> Trial:
    if mechanism not in candidates():
        return Trial(mechanism, "not of this operating system")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "trial").mkdir()
        (Path(name) / "scratch").mkdir()
        trying = try_out(mechanism, Walls.around(Path(name) / "trial", Path(name) / "scratch"))
        # A test may have an event loop of its own.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, trying).result()


def needed(mechanism: Mechanism) -> None:
    """Skip where the mechanism does not work."""
    if (trial := _trial(mechanism)).why:
        pytest.skip(f"{mechanism} does not work here: {trial.why}")
