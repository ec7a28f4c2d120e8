"""Which mechanism enforces the sandbox policy here: the first that works when it is really tried."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import processes
from tui_agent.sandbox.mechanisms import Mechanism, Sandbox
from tui_agent.sandbox.policy import SandboxPolicy
from tui_agent.sandbox.socket_filter import MACHINES, kept_in
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.sandbox.watch import Watch

if TYPE_CHECKING:
    from tui_agent.core.names import SandboxMode

TRIAL_TIMEOUT = 10.0
"""Seconds in which a trial must have ended."""
_LEAVING = 1.0
"""Seconds for what a trial leaves behind to go."""
_TRIAL = '(: > "$1") 2>/dev/null; cd "$0" && [ -w . ] && echo inside'
"""Tries to make a file outside, which is looked for afterwards, and whether the workspace can be written."""


@dataclass(frozen=True)
class Trial:
    """The result of trying one mechanism; `why` is empty if it works."""

    mechanism: Mechanism
    why: str = ""


def candidates() -> tuple[Mechanism, ...]:
    """The mechanisms of this operating system, the best first."""
    if sys.platform == "darwin":
        return ("sandbox-exec",)
    return ("bubblewrap", "landlock") if sys.platform.startswith("linux") and kept_in() else ()


def none_for() -> str:
    """That there is no mechanism for a system like this one."""
    only = f" (of Linux for {', '.join(MACHINES)})" if sys.platform.startswith("linux") else ""
    return f"there is none for {sys.platform} on {os.uname().machine}{only}"


async def try_out(mechanism: Mechanism, policy: SandboxPolicy) -> Trial:
    """Run a command inside, really."""
    program = {"bubblewrap": "bwrap", "sandbox-exec": "/usr/bin/sandbox-exec"}.get(mechanism)
    if program is not None and processes.own_program(program, policy.workspace) is None:
        return Trial(mechanism, f"{program} is not installed")
    outside = policy.scratch.with_name(f"{policy.scratch.name}-outside")
    sandbox = Sandbox(mechanism, policy)
    argv = sandbox.wrap(["/bin/sh", "-c", _TRIAL, os.fspath(policy.workspace), os.fspath(outside)])
    leash_end, leash = os.pipe()
    status = os.open(os.devnull, os.O_WRONLY)
    try:
        child = await processes.start(
            [*processes.supervised(0.0, status, sandbox.gate, leash_end), *argv], pass_fds=(leash_end, status)
        )
    except OSError as error:
        os.close(leash)
        return Trial(mechanism, f"it cannot be started ({error})")
    finally:
        os.close(leash_end)
        os.close(status)
    out = errors = b""
    try:
        async with asyncio.timeout(TRIAL_TIMEOUT):
            out, errors = await child.output(limit=4_000)
    except TimeoutError:
        return Trial(mechanism, f"it did not answer within {TRIAL_TIMEOUT:g} s")
    finally:
        os.close(leash)
        await child.end(_LEAVING)
    reached = outside.exists()
    with suppress(OSError):
        outside.unlink()
    if reached:
        return Trial(mechanism, "a file outside could be written")
    if out.strip() != b"inside":
        said = errors.decode("utf-8", "replace").strip().splitlines()
        return Trial(mechanism, said[-1] if said else "a command in it does nothing")
    return Trial(mechanism)


def switched_off(passed: tuple[str, ...]) -> Sandbox:
    """No sandbox, because nobody wants one: nothing need be said."""
    return Sandbox(why="it is switched off", passed=passed)


async def choose(
    mode: SandboxMode,
    policy: SandboxPolicy,
    passed: tuple[str, ...] = (),
    watch: Watch | None = None,
    report: Callable[[Sequence[TakenBack]], None] = lambda _: None,
) -> Sandbox:
    """The sandbox of commands from now on. One without a mechanism says why there is none.

    `watch` looks after what commands write for others to run (None: nobody); `report` hears of it.
    """
    if mode == "off":
        return switched_off(passed)
    if policy.workspace == Path(os.sep):
        return Sandbox(why="the workspace is the whole file system", passed=passed)
    await asyncio.to_thread(policy.scratch.mkdir, 0o700, True, True)
    reasons = []
    for mechanism in candidates():
        trial = await _tried(mechanism, policy)
        if not trial.why:
            if watch is not None:
                await asyncio.to_thread(watch.look)
            return Sandbox(mechanism, policy, passed=passed, watch=watch, report=report)
        reasons.append(f"{mechanism}: {trial.why}")
    return Sandbox(why="; ".join(reasons) or none_for(), passed=passed)


_TRIALS: dict[tuple[Mechanism, bool, int], Trial] = {}


async def _tried(mechanism: Mechanism, policy: SandboxPolicy) -> Trial:
    """One trial a process for what decides its outcome."""
    try:
        owner = policy.workspace.stat().st_uid
    except OSError as error:
        return Trial(mechanism, f"the workspace cannot be looked at ({error})")
    key = (mechanism, policy.network, owner)
    if key not in _TRIALS:
        _TRIALS[key] = await try_out(mechanism, policy)
    return _TRIALS[key]
