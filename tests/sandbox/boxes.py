"""The mechanisms that work here, and a folder outside of the temporary one: shared by the tests of the sandbox."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tui_agent.processes import supervised as supervisor
from tui_agent.sandbox.choose import Trial, candidates, try_out
from tui_agent.sandbox.mechanisms import Mechanism, Sandbox
from tui_agent.sandbox.policy import SandboxPolicy

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
        trying = try_out(mechanism, SandboxPolicy.around(Path(name) / "trial", Path(name) / "scratch"))
        # A test may have an event loop of its own.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, trying).result()


def supervised(
    sandbox: Sandbox, argv: list[str], *, cwd: Path, env: dict[str, str], grace: float = 0.5
) -> subprocess.CompletedProcess[str]:
    """Run a command in a sandbox, under a supervisor as always, and wait for its end."""
    (leash_end, leash), (status, status_end) = os.pipe(), os.pipe()
    try:
        done = subprocess.run(
            [*supervisor(grace, status_end, sandbox.gate, leash_end), *sandbox.wrap(argv)],
            cwd=cwd,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            pass_fds=(leash_end, status_end),
        )
        code = re.search(rb"^exit (\d+)$", os.read(status, 1000), re.MULTILINE)
    finally:
        for end in (leash_end, leash, status, status_end):
            os.close(end)
    done.returncode = -1 if code is None else int(code[1])
    return done


BY_HAND = {
    "bubblewrap": "`python -m pytest tests/sandbox tests/adversarial -k bubblewrap` with bwrap 0.8 or newer on PATH"
}
"""How to run what is skipped, by mechanism."""


def needed(mechanism: Mechanism) -> None:
    """Skip if the mechanism does not work, and say how it can be run."""
    if (trial := _trial(mechanism)).why:
        how = f"; by hand {BY_HAND[mechanism]}" if mechanism in BY_HAND else ""
        pytest.skip(f"{mechanism} does not work here: {trial.why}{how}")
